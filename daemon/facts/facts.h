/* facts.h - what the machine and the environment say, read once before anything is decided, and
 * never again.
 *
 * Everything that follows is pure: the same settings and the same facts make the same plan. */
#ifndef LAUNCHD_DAEMON_FACTS_FACTS_H
#define LAUNCHD_DAEMON_FACTS_FACTS_H

#include <stdbool.h>

#include "common/vec.h"
#include "daemon/facts/gpu.h"
#include "daemon/facts/listed_nodes.h"
#include "daemon/facts/program.h"
#include "daemon/facts/pmix_task.h"
#include "daemon/os/procfs.h"

struct arena;
struct failure;
struct machine;
struct settings;

/* The loopback address of this host. */
enum loopback { LOOPBACK_V4, LOOPBACK_V6, LOOPBACK_NONE };

struct facts {
	const char *const *env; /* the launcher's environment; borrowed */
	const char *hostname;
	const char *
		boot_id; /* of the kernel's run, so that hosts of one name differ; NULL: not read */
	int parent;      /* the pid of who started us */
	int pmi_fd;      /* PMI_FD's, if it is open; 0: none */
	struct task_facts task;
	unsigned allocated_nodes;   /* by the hosts' file of an allocation; 0: none is known */
	unsigned cpus;              /* that this process may use, mpirun's binding undone */
	unsigned cpus_online;       /* of the machine */
	struct gpus gpus;           /* that there are; read only where somebody asks for GPUs */
	struct vec addresses;       /* of this host's interfaces, as text; only where needed */
	struct listed_nodes listed; /* of [cluster]; none under --standalone */
	enum loopback loopback;
	const char *random_id; /* a new UUID; "" unless --standalone */
	bool terminal[3];      /* whether descriptors 0 to 2 are one */
	bool foreground;       /* stderr's terminal has this process in its foreground */
	bool background;       /* stdin's terminal is ours, and another job is in its foreground */
	bool typed;     /* somebody sits before the launcher's task, a shell of this terminal */
	enum proc proc; /* whose processes /proc shows */
	bool stderr_is_journal;  /* JOURNAL_STREAM names it */
	bool under_systemd;      /* systemd started this process itself */
	bool cpus_unbound;       /* mpirun had bound the launcher to fewer CPUs */
	int cpus_error;          /* why its binding could not be taken off; 0: it could, or none */
	struct machine *machine; /* the arena's; NULL: nobody asks for it */
	struct program program;
	struct wrapper wrapper; /* of --wrap */
	struct wrapper preempt_watch, post_attempt;
	const char *torch_version; /* of program; NULL: not known */
	const char *
		torch_unknown; /* why it is unknown of a script in Python's place; NULL: it isn't */
};

/* The part of facts_read() that needs no script. */
int facts_read_machine(const struct settings *s, const char *const *env, struct arena *arena,
	struct facts *ret, struct failure *why);

/* Reads what the settings need to know. -EINVAL, -ENOENT, -EACCES: the script, the Python or the
 * GPUs are not what the settings say (failure.h has the exit codes, and how to hear of the script,
 * the Python and the commands of --wrap and --preempt-watch together with what follows), or workers
 * can't have the attributes that are asked for. Changes one thing: a CPU binding by mpirun is taken
 * off this process, as workers would inherit it. */
int facts_read(const struct settings *s, const char *const *env, struct arena *arena,
	struct facts *ret, struct failure *why);

#endif
