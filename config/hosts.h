/* hosts.h - lists of hosts: [cluster] nodes, and the host files of Open MPI, Hydra, DeepSpeed,
 * horovodrun, MPI operators and PBS. Pure. */
#ifndef LAUNCHD_CONFIG_HOSTS_H
#define LAUNCHD_CONFIG_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/notes.h"

struct arena;
struct failure;

enum { HOSTS_MAX = 65536 }; /* as many as --nnodes may say */

/* What is known of a host's slots while a list is read. */
enum slots_said {
	SLOTS_NONE,
	SLOTS_ADDED,     /* HOST:N: N more than the host's other lines say */
	SLOTS_GIVEN,     /* slots=N, or several lines */
	SLOTS_OF_NOBODY, /* no line of its own: excluded, or added to an earlier one */
};

struct host {
	const char *name; /* without the dot at its end; an address as address_host_text() has it */
	const char *where; /* for the user: "job.ini:4", "hosts:12" */
	bool is_address;
	bool login; /* a file says how mpirun logs in there: a user or a port */
	enum slots_said said;
	unsigned slots, max_slots; /* workers there, and the most of them; 0: not said */
};

struct hosts {
	struct host *at;
	size_t count, room;
	bool colon; /* HOST:N is read, too, as horovodrun has it: N slots */
	bool is_file;
	bool is_wider;      /* a file that has what Open MPI's mpirun doesn't read, as HOST:N */
	struct notes notes; /* on what a file has that is ignored */
};

/* Adds the hosts of a list: names and addresses, separated by commas and blanks. Brackets hold
 * numbers and ranges of them, as in Slurm's lists: "gpu[01-03,07]" is gpu01, gpu02, gpu03, gpu07;
 * a name may have several, and an IPv6 address may stand in one. `where` begins the sentences, and
 * is what the hosts have for it; borrowed. The rest is the arena's.
 * -EINVAL, with a sentence: no host at all, what can't be a host, or more than HOSTS_MAX. */
int hosts_add_list(struct arena *arena, const char *text, const char *where, struct hosts *ret,
	struct failure *why);

/* Reads a host file, with a line for each host. It means what it means to its owner; launchd(1)
 * decides where owners differ. A host on several lines has that many slots, a host with slots=0 is
 * left out, and if any host in *ret has slots all have. name is what the user calls the file.
 * Errors as above. */
int hosts_read_file(struct arena *arena, const char *bytes, size_t len, const char *name,
	struct hosts *ret, struct failure *why);

/* The second of two entries that are the same name or address, and the first of them; NULL: none
 * is there twice, or there was no memory to look. */
const struct host *hosts_twice(
	struct arena *arena, const struct hosts *hosts, const struct host **ret_first);

#endif
