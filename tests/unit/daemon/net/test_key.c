/* test_key.c - the job's key: where it comes from, and which files are refused. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/net/key.h"

#define SIXTEEN "0123456789abcdef"

static char dir[] = "/tmp/launchd_test_key_XXXXXX";
static char path[sizeof dir + 8];

static int make_dir(void **state)
{
	(void)state;
	(void)strcpy(dir + sizeof dir - 7, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof path, "%s/key", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	(void)unlink(path);
	(void)rmdir(path);
	return rmdir(dir);
}

static int make_file(const char *bytes, size_t len, mode_t mode)
{
	autoclose fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd >= 0 && fd_write_all(fd, bytes, len) == 0 && fchmod(fd, mode) == 0 ? 0 : -1;
}

static int read_file(struct job_key *ret, struct failure *why)
{
	const struct key_sources from = { .file = path, .file_where = "--key-file", .text = "x" };

	return key_read(&from, ret, why);
}

static const struct file_row {
	const char *says;
	const char *bytes; /* NULL: `len` times 'k' */
	size_t len;
	mode_t mode;
	int rc;
	const char *part;
} files[] = {
	{ "sixteen bytes", SIXTEEN, 16, 0600, 0, NULL },
	{ "read-only", SIXTEEN, 16, 0400, 0, NULL },
	{ "a newline at the end", SIXTEEN "\n", 17, 0600, 0, NULL },
	{ "the longest", NULL, 4096, 0600, 0, NULL },
	{ "fifteen bytes", SIXTEEN, 15, 0600, -EINVAL,
		"--key-file: a key must have 16 to 4096 bytes, this one has 15" },
	{ "a newline is none of the sixteen", "0123456789abcde\n", 16, 0600, -EINVAL,
		"this one has 15" },
	{ "empty", "", 0, 0600, -EINVAL, "this one has 0" },
	{ "one byte too long", NULL, 4097, 0600, -EINVAL, "this one has more than 4096" },
	{ "much too long", NULL, 9000, 0600, -EINVAL, "this one has more than 4096" },
	{ "the group may read", SIXTEEN, 16, 0640, -EINVAL,
		"has mode 0640: others may read or write it (chmod 600 fixes that)" },
	{ "others may read", SIXTEEN, 16, 0604, -EINVAL, "has mode 0604" },
	{ "others may write", SIXTEEN, 16, 0602, -EINVAL, "has mode 0602" },
	{ "the group may write", SIXTEEN, 16, 0620, -EINVAL, "has mode 0620" },
};

static void test_file(void **state)
{
	const struct file_row *row = *state;
	static char many[9000];
	struct failure why = { 0 };
	struct job_key k = { .from = "untouched" };
	int rc;

	assert_int_equal(make_dir(NULL), 0);
	memset(many, 'k', sizeof many);
	assert_int_equal(make_file(row->bytes ? row->bytes : many, row->len, row->mode), 0);
	rc = read_file(&k, &why);
	assert_int_equal(remove_dir(NULL), 0);
	assert_outcome(rc, row->rc, &why, row->part);
	assert_int_equal(k.there, row->rc == 0);
	assert_string_equal(k.from, row->rc == 0 ? path : "untouched");
}

static void test_no_file(void **state)
{
	struct failure why = { 0 };
	struct job_key k;

	(void)state;
	assert_outcome(read_file(&k, &why), -EINVAL, &why, "No such file");
}

static void test_fifo(void **state)
{
	struct failure why = { 0 };
	struct job_key k;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_outcome(read_file(&k, &why), -EINVAL, &why, "is not a regular file");
}

static void test_directory(void **state)
{
	struct failure why = { 0 };
	struct job_key k;

	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_outcome(read_file(&k, &why), -EINVAL, &why, "is not a regular file");
}

static void test_another_user(void **state)
{
	struct failure why = { 0 };
	struct job_key k;

	(void)state;
	needs(geteuid() == 0, "root");
	assert_int_equal(make_file(SIXTEEN, 16, 0600), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_outcome(read_file(&k, &why), -EINVAL, &why, "belongs to user 65534");
}

static void assert_same(const struct key_sources *a, const struct key_sources *b, bool same)
{
	struct failure why = { 0 };
	struct job_key one, other;

	assert_outcome(key_read(a, &one, &why), 0, &why, NULL);
	assert_outcome(key_read(b, &other, &why), 0, &why, NULL);
	assert_int_equal(memcmp(one.bytes, other.bytes, KEY_BYTES) == 0, same);
}

static void test_same_secret(void **state)
{
	const struct key_sources file = { .file = path, .file_where = "--key-file" },
				 text = { .text = SIXTEEN }, other = { .text = SIXTEEN "g" };

	(void)state;
	assert_int_equal(make_file(SIXTEEN "\n", 17, 0600), 0);
	assert_same(&file, &text, true);
	assert_same(&text, &other, false);
}

/* BLAKE2b-256 of the sixteen bytes, keyed with the context: nodes of two builds must agree. */
static void test_known(void **state)
{
	static const unsigned char expected[KEY_BYTES] = { 0x2e, 0x2b, 0xcd, 0x34, 0x4f, 0x91, 0xe9,
		0xf9, 0x0d, 0x6f, 0x79, 0xa6, 0xde, 0x33, 0x91, 0x0f, 0x9a, 0x12, 0xec, 0x94, 0xdf,
		0x8b, 0xbb, 0x82, 0x98, 0x05, 0x1b, 0xcb, 0xff, 0x9c, 0x29, 0xd5 };
	struct failure why = { 0 };
	struct job_key k;

	(void)state;
	assert_outcome(key_read(&(struct key_sources){ .text = SIXTEEN }, &k, &why), 0, &why, NULL);
	assert_memory_equal(k.bytes, expected, KEY_BYTES);
	assert_string_equal(k.from, "LAUNCHD_KEY");
}

static const struct text_row {
	const char *says, *text;
	int rc;
	bool there;
	const char *part;
} texts[] = {
	{ "no LAUNCHD_KEY", NULL, 0, false, NULL },
	{ "an empty LAUNCHD_KEY", "", 0, false, NULL },
	{ "LAUNCHD_KEY", SIXTEEN, 0, true, NULL },
	{ "a short LAUNCHD_KEY, which is not shown", "secret", -EINVAL, false,
		"LAUNCHD_KEY: a key must have 16 to 4096 bytes, this one has 6" },
};

static void test_text(void **state)
{
	const struct text_row *row = *state;
	struct failure why = { 0 };
	struct job_key k = { 0 };

	assert_outcome(key_read(&(struct key_sources){ .text = row->text }, &k, &why), row->rc,
		&why, row->part);
	assert_int_equal(k.there, row->there);
	assert_null(strstr(why.text, "secret"));
}

/* Runs in a process of its own: what it does to itself would stay. */
static void in_child(int (*act)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(prctl(PR_SET_DUMPABLE, 1) != 0 || act()); /* earlier tests had keys */
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int read_nothing(void)
{
	struct failure why = { 0 };
	struct job_key k;
	int rc = key_read(&(struct key_sources){ .text = NULL }, &k, &why);

	return rc != 0 || prctl(PR_GET_DUMPABLE) != 1;
}

static int read_a_key(void)
{
	struct failure why = { 0 };
	struct job_key k;
	int rc = key_read(&(struct key_sources){ .text = SIXTEEN }, &k, &why);

	return rc != 0 || prctl(PR_GET_DUMPABLE) != 0;
}

/* A program that is executed by a shielded process: a worker. */
static int execute(void)
{
	struct failure why = { 0 };

	/* one with dumpable 0 could not read its own, but as root */
	if (key_shield(&why) == 0 && (setuid(65534) == 0 || geteuid() != 0))
		(void)execl("/bin/sh", "sh", "-c", "exec cat /proc/self/environ >/dev/null", NULL);
	return 1;
}

static void test_shield(void **state)
{
	(void)state;
	in_child(read_nothing);
	in_child(read_a_key);
	in_child(execute);
}

static void test_forget(void **state)
{
	char first[] = "LAUNCHD_KEY=secret", other[] = "LAUNCHD_KEYS=1", bare[] = "LAUNCHD_KEY",
	     again[] = "LAUNCHD_KEY=more";
	char *env[] = { first, other, bare, again, NULL };

	(void)state;
	key_forget_variable(env);
	assert_memory_equal(first, "LAUNCHD_KEY=\0\0\0\0\0\0", sizeof first);
	assert_string_equal(other, "LAUNCHD_KEYS=1");
	assert_string_equal(bare, "LAUNCHD_KEY");
	assert_memory_equal(again, "LAUNCHD_KEY=\0\0\0\0", sizeof again);
	key_forget_variable(NULL);
}

TESTS(key)
{
	static struct suite s;

	SUITE_ROWS(&s, test_file, files);
	SUITE_ROWS(&s, test_text, texts);
	suite_add(&s, "no file", test_no_file, make_dir, remove_dir);
	suite_add(&s, "a FIFO, which nobody waits for", test_fifo, make_dir, remove_dir);
	suite_add(&s, "a directory", test_directory, make_dir, remove_dir);
	suite_add(&s, "another user's file", test_another_user, make_dir, remove_dir);
	suite_add(&s, "one secret is one key, wherever it comes from", test_same_secret, make_dir,
		remove_dir);
	suite_add(&s, "the key is what another build makes of it", test_known, NULL, NULL);
	suite_add(
		&s, "who holds a key is not dumped, what it executes is", test_shield, NULL, NULL);
	suite_add(&s, "the variable stays, empty", test_forget, NULL, NULL);
	return suite_run(&s);
}
