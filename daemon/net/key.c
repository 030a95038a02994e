/* key.c - see key.h */
#include "daemon/net/key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "config/settings.h"
#include "daemon/net/sodium.h"
#include "daemon/os/rehearsal.h"
#include "daemon/os/secret.h"

/* Changes with what the key is used for. */
static const unsigned char context[] = "launchd control channel, version 1";

struct secret {
	unsigned char bytes[KEY_SECRET_MAX + 2]; /* a newline, and one too many */
	size_t len;
};

int key_shield(struct failure *why)
{
	if (prctl(PR_SET_DUMPABLE, 0) == 0)
		return 0;
	return failure_set(why, -errno, "prctl(PR_SET_DUMPABLE): %s", strerror(errno));
}

void key_forget_variable(char **env)
{
	static const char name[] = SETTING_KEY_VARIABLE "=";
	const size_t len = sizeof name - 1;

	for (; env && *env; env++)
		if (strncmp(*env, name, len) == 0)
			secret_wipe(*env + len, strlen(*env + len));
}

static int check_length(size_t len, const char *where, struct failure *why)
{
	if (len >= KEY_SECRET_MIN && len <= KEY_SECRET_MAX)
		return 0;
	return failure_usage(why, "%s: a key must have %d to %d bytes, this one has %s%zu", where,
		KEY_SECRET_MIN, KEY_SECRET_MAX, len > KEY_SECRET_MAX ? "more than " : "",
		len > KEY_SECRET_MAX ? (size_t)KEY_SECRET_MAX : len);
}

/* Of the open file: what the name stands for may change meanwhile. */
static int check_file(int fd, const char *where, const char *path, struct failure *why)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return failure_set(why, -errno, "%s: %s: %s", where, path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return failure_usage(why, "%s: %s is not a regular file", where, path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return failure_usage(why, "%s: %s belongs to user %u, who is neither you nor root",
			where, path, (unsigned)st.st_uid);
	if (st.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH))
		return failure_usage(why,
			"%s: %s has mode %04o: others may read or write it (chmod 600 fixes that)",
			where, path, (unsigned)(st.st_mode & 07777));
	return 0;
}

static int read_file(const char *path, const char *where, struct secret *s, struct failure *why)
{
	/* a FIFO must not hold us up, nor a terminal become ours */
	int rc = path_answers(where, path, why);
	autoclose fd = rc < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	long len;

	if (rc < 0)
		return rc;
	if (fd < 0)
		return failure_usage(why, "%s: %s: %s", where, path, strerror(errno));
	rc = check_file(fd, where, path, why);
	if (rc < 0)
		return rc;
	len = fd_read_up_to(fd, (char *)s->bytes, sizeof s->bytes);
	if (len < 0)
		return failure_set(why, (int)len, "%s: %s: %s", where, path, strerror((int)-len));
	s->len = (size_t)len;
	if (s->len > 0 && s->bytes[s->len - 1] == '\n')
		s->len--;
	return check_length(s->len, where, why);
}

static int read_text(const char *text, struct secret *s, struct failure *why)
{
	int rc = check_length(strlen(text), SETTING_KEY_VARIABLE, why);

	if (rc < 0)
		return rc;
	s->len = strlen(text);
	memcpy(s->bytes, text, s->len);
	return 0;
}

static int derive(
	const struct secret *s, const char *from, struct job_key *ret, struct failure *why)
{
	struct job_key k = { .there = true, .from = from };
	struct sodium sodium;
	int rc = sodium_load(&sodium, why);

	if (rc < 0)
		return rc;
	if (sodium.generichash(
		    k.bytes, sizeof k.bytes, s->bytes, s->len, context, sizeof context - 1) != 0)
		return failure_set(why, -EIO, "libsodium: hashing failed");
	*ret = k;
	secret_wipe(&k, sizeof k);
	return 0;
}

int key_read(const struct key_sources *from, struct job_key *ret, struct failure *why)
{
	struct secret s = { .len = 0 };
	bool by_file = from->file, by_text = !by_file && from->text && *from->text;
	int rc;

	if (!by_file && !by_text) {
		*ret = (struct job_key){ .there = false };
		return 0;
	}
	rc = key_shield(why);
	if (rc == 0)
		rc = by_file ? read_file(from->file, from->file_where, &s, why) :
			       read_text(from->text, &s, why);
	if (rc == 0)
		rc = derive(&s, by_file ? from->file : SETTING_KEY_VARIABLE, ret, why);
	secret_wipe(&s, sizeof s);
	return rc;
}
