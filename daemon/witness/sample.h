/* sample.h - what one look at a worker shows, and its one line of text: it travels so between
 * launchers, and a trace of looks is a file of such lines. Pure.
 *
 *   rank=3 at=81234 state=S wait=futex mcpu=5120 mio=88123 mflt=88 rest=910 rd=88123 rdn=40 wr=512
 *   wrn=3 net=51234 kids=2 kidcpu=40 kidmax=3 dead=0 stuck=0 stop=0 traced=0 gpu=none store=40112
 *   ws=49152 talk=9f3c11aa0b7e52d3,5564,5584,0,0,0
 *
 * (one line). Keys may come in any order; unknown ones are skipped, so that an older reader reads
 * what a newer one has written. A line without mcpu is of a launchd that did not look at the main
 * thread alone: it is refused. */
#ifndef LAUNCHD_DAEMON_WITNESS_SAMPLE_H
#define LAUNCHD_DAEMON_WITNESS_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* In what a worker's main thread waits, as far as /proc/PID/wchan tells. */
enum waiting_in {
	WAIT_UNKNOWN, /* it may not be read */
	WAIT_RUNS,
	WAIT_FUTEX, /* a lock, a condition: of Python, of gloo, of NCCL */
	WAIT_SLEEP,
	WAIT_POLL,
	WAIT_PIPE,
	WAIT_SOCKET,
	WAIT_DISK, /* a file system or a block device, FUSE and NFS included */
	WAIT_CHILD,
	WAIT_SIGNAL, /* stopped */
	WAIT_OTHER,
	WAITS,
};

/* What the GPUs of a worker do, where NVML is asked. */
enum gpu_activity {
	GPU_NONE,    /* it uses none */
	GPU_UNKNOWN, /* it uses some, and nobody can tell */
	GPU_BUSY,
	GPU_IDLE,  /* no kernel runs */
	GPU_WAITS, /* one does, and works far less than this job's do */
	GPU_ACTIVITIES,
};

/* One TCP connection between this worker and somebody. */
struct tcp_talk {
	uint64_t id;                /* the same at both ends */
	uint32_t sent_ms, heard_ms; /* since when no data was sent, and none came */
	uint32_t unread;            /* bytes that have come and wait to be read */
	uint32_t unacked;           /* packets that the other end has not acknowledged */
	uint32_t retries;           /* of the packet that is sent again now */
};

enum { TALKS_MAX = 12, WORKING_SET_UNKNOWN = -1 };

struct worker_sample {
	unsigned rank;
	uint64_t at_ms; /* on the clock of its node */
	char state;     /* as proc(5) has it; '?': it can't be seen */
	enum waiting_in waits;
	/* its main thread's, since it began: read and written, as /proc/PID/io counts it, by calls
	 * and through mapped files */
	uint64_t main_cpu_ms, main_bytes, main_faults;
	/* of the rest of its tree: its other threads, and all processes that it has started,
	 * reaped ones too */
	uint64_t rest_cpu_ms, read_bytes, reads, written_bytes, writes;
	uint64_t kid_cpu_ms; /* of these, what the processes have used */
	/* over TCP, both ways, since it was looked at first; without what goes to the store and to
	 * other workers of this node */
	uint64_t net_bytes;
	unsigned kid_busiest_ms; /* CPU time of the busiest child since the last look, a second */
	unsigned kids;           /* processes below it */
	unsigned dead;           /* of these, zombies */
	unsigned stuck;          /* of these and of itself, in state D or stopped */
	int stop_signal;         /* that stopped it; 0: none, or not known */
	bool traced;             /* by a debugger */
	enum gpu_activity gpu;
	int64_t working_set; /* bytes touched since the last look; WORKING_SET_UNKNOWN */
	unsigned store_port; /* its own port of its connection to the store; 0: none */
	struct tcp_talk talks[TALKS_MAX]; /* the latest; without those with the store */
	unsigned talk_count;
};

/* "futex" */
const char *waiting_word(enum waiting_in w);

/* What a name of /proc/PID/wchan means. */
enum waiting_in waiting_of(const char *wchan);

/* Adds the line, with its newline. */
void sample_add(struct text *out, const struct worker_sample *s);

/* Reads a line of len bytes, without its newline. -EINVAL: it is none of a worker, or lacks mcpu.
 * Numbers that are too large are cut to the largest. */
int sample_read(const char *line, size_t len, struct worker_sample *ret);

#endif
