/* key.h - the job's secret, by which launchers know each other's messages. */
#ifndef LAUNCHD_DAEMON_NET_KEY_H
#define LAUNCHD_DAEMON_NET_KEY_H

#include <stdbool.h>

struct failure;

enum {
	KEY_BYTES = 32,
	KEY_SECRET_MIN = 16, /* of what users give: shorter ones can be guessed */
	KEY_SECRET_MAX = 4096,
};

struct job_key {
	unsigned char bytes[KEY_BYTES];
	bool there;
	const char *from; /* for the user: "LAUNCHD_KEY", or the name of the file as it was given */
};

/* Where a key may come from: the first one that is given is used, the others are not looked at. All
 * are borrowed; job_key.from may point to file. */
struct key_sources {
	const char *file;       /* NULL: none */
	const char *file_where; /* the setting that names it, for the user */
	const char *text;       /* LAUNCHD_KEY's value; NULL or "": none */
};

/* For processes that hold a key: keeps their memory out of core dumps and from other processes.
 * From now on only CAP_SYS_PTRACE allows attaching to this one or reading its environment. The
 * effect ends with execve(2). */
int key_shield(struct failure *why);

/* Overwrites the value of LAUNCHD_KEY where the kernel put it, which is what /proc/PID/environ
 * shows; the variable stays, and is empty. The key itself must have been read. */
void key_forget_variable(char **env);

/* Derives the key: a hash of the secret for this use alone, so that no other use of the secret
 * gives it away. Without a source: 0, and ret->there is false. A file must be a regular one, owned
 * by us or root, that nobody else may read or write; one trailing newline is ignored. -EINVAL: the
 * user's secret is too short or long, or its file not there, or not private. -ELIBACC: libsodium is
 * missing. Other negative errno: the file can't be read. Blocks as long as the file system does.
 * Where there is a source, key_shield() comes first. */
int key_read(const struct key_sources *from, struct job_key *ret, struct failure *why);

#endif
