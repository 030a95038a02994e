/* hosts.h - lists of hosts: [cluster] nodes, and host files as Open MPI and DeepSpeed have them.
 * Pure. */
#ifndef LAUNCHD_CONFIG_HOSTS_H
#define LAUNCHD_CONFIG_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct failure;

enum { HOSTS_MAX = 65536 }; /* as many as --nnodes may say */

struct host {
	const char *name; /* without the dot at its end; an address as address_host_text() has it */
	const char *where; /* for the user: "job.ini:4", "hosts:12" */
	bool is_address;
	unsigned slots, max_slots; /* workers there, and the most of them; 0: not said */
};

struct hosts {
	struct host *at;
	size_t count, room;
	bool colon; /* HOST:N is read, too, as horovodrun has it: N slots */
};

/* Adds the hosts of a list: names and addresses, separated by commas and blanks. Brackets hold
 * numbers and ranges of them, as in Slurm's lists: "gpu[01-03,07]" is gpu01, gpu02, gpu03, gpu07;
 * a name may have several, and an IPv6 address may stand in one. `where` begins the sentences, and
 * is what the hosts have for it; borrowed. The rest is the arena's.
 * -EINVAL, with a sentence: no host at all, what can't be a host, or more than HOSTS_MAX. */
int hosts_add_list(struct arena *arena, const char *text, const char *where, struct hosts *ret,
	struct failure *why);

/* Adds those of a host file: one a line, which may have slots=N and max_slots=N behind it; what
 * follows a '#' is a comment. name is what the user calls the file. Errors as above. */
int hosts_add_file(struct arena *arena, const char *bytes, size_t len, const char *name,
	struct hosts *ret, struct failure *why);

/* Slots are those of all hosts or of none: of some alone they would leave open what the others
 * have. -EINVAL with a sentence. */
int hosts_check_slots(const struct hosts *hosts, struct failure *why);

/* The second of two entries that are the same name or address, and the first of them; NULL: none
 * is there twice, or there was no memory to look. */
const struct host *hosts_twice(
	struct arena *arena, const struct hosts *hosts, const struct host **ret_first);

#endif
