/* test_job_sockets.c - which sockets count: those whose directory, file and listener are one
 * user's. Each row is a real launcher's, or one that pretends. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fd.h"
#include "daemon/ctl/job_sockets.h"

enum { LIMIT_S = 60 };
enum whose { OWNER, ENEMY, ROOT };
enum named { BY_GUARD, BY_LIVING, BY_NOBODY, BY_LETTERS };

static const struct place_row {
	const char *says;
	enum whose dir, file, listener;
	enum named named; /* the socket */
	mode_t mode;      /* of the directory */
	bool dir_link, file_link;
	unsigned for_root, for_owner; /* how many count */
} rows[] = {
	{ "all is one user's", .mode = 0700, .for_root = 1, .for_owner = 1 },
	{ "others may read", .mode = 0755, .for_root = 1, .for_owner = 1 },
	{ "others may write", .mode = 0722 },
	{ "somebody else has made the directory of that name", .dir = ENEMY, .file = ENEMY,
		.listener = ENEMY, .mode = 0755 },
	{ "the directory is somebody else's", .dir = ENEMY, .mode = 0755 },
	{ "the file is somebody else's", .file = ENEMY, .mode = 0755 },
	{ "the listener is somebody else's", .listener = ENEMY, .mode = 0755 },
	{ "the listener is root's", .listener = ROOT, .mode = 0755 },
	{ "the pid is another launcher's", .named = BY_LIVING, .mode = 0700 },
	{ "the pid is nobody's here: of another namespace, or the guard was killed",
		.named = BY_NOBODY, .mode = 0700, .for_root = 1, .for_owner = 1 },
	{ "the name is none of a socket's", .named = BY_LETTERS, .mode = 0700 },
	{ "a link to the directory", .dir_link = true, .mode = 0700 },
	{ "a link to the socket", .file_link = true, .mode = 0700 },
};

static struct {
	uid_t uids[3];
	char dir[64], real[64], path[96], real_path[96];
	pid_t guard;
} s;

static _Noreturn void supervise(const struct place_row *row, int ready)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(at.sun_path, s.real_path, strlen(s.real_path) + 1);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
		chown(s.real_path, s.uids[row->file], 0) < 0 || chmod(s.real_path, 0777) < 0 ||
		seteuid(s.uids[row->listener]) < 0 || listen(fd, 8) < 0 ||
		prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || /* which seteuid(2) takes back */
		write(ready, "x", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

/* In a child: what is named is known once it has its pid. */
static _Noreturn void guard(const struct place_row *row, int ready)
{
	pid_t name = row->named == BY_GUARD ? getpid() :
		row->named == BY_LIVING     ? getppid() :
					      999999999;
	char letters[16];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(letters, sizeof letters, row->named == BY_LETTERS ? "%dx" : "%d", (int)name);
	(void)snprintf(s.real_path, sizeof s.real_path, "%s/%s%s.sock", s.real, letters,
		row->file_link ? "r" : "");
	(void)snprintf(s.path, sizeof s.path, "%s/%s.sock", s.real, letters);
	if (row->file_link && symlink(s.real_path, s.path) < 0)
		_exit(1);
	if (fork() == 0)
		supervise(row, ready);
	for (;;)
		(void)pause();
}

static void begin(const struct place_row *row)
{
	int ready[2];
	char byte;

	/* users that no other test has: the directories are named after them */
	s.uids[OWNER] = 1000000 + (uid_t)getpid();
	s.uids[ENEMY] = 100000000 + (uid_t)getpid();
	(void)snprintf(s.dir, sizeof s.dir, "/tmp/launchd-%u", (unsigned)s.uids[OWNER]);
	(void)snprintf(s.real, sizeof s.real, "%s%s", s.dir, row->dir_link ? "-real" : "");
	if (row->dir_link)
		(void)snprintf(s.real, sizeof s.real, "/tmp/launchd+%u", (unsigned)s.uids[OWNER]);
	assert_int_equal(mkdir(s.real, 0700), 0);
	assert_int_equal(chown(s.real, s.uids[row->dir], 0), 0);
	assert_int_equal(chmod(s.real, row->mode), 0);
	if (row->dir_link)
		assert_int_equal(symlink(s.real, s.dir), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	s.guard = fork();
	assert_true(s.guard >= 0);
	if (s.guard == 0)
		guard(row, ready[1]);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
}

static void end(void)
{
	char command[160];

	assert_int_equal(kill(s.guard, SIGKILL), 0);
	assert_int_equal(waitpid(s.guard, NULL, 0), s.guard);
	(void)snprintf(command, sizeof command, "rm -rf %s %s", s.dir, s.real);
	assert_int_equal(system(command), 0); /* NOLINT: the names are ours */
}

/* Those of the row: others run on this machine. */
static unsigned count_as(uid_t uid)
{
	static const char *const env[] = { NULL };
	struct arena memory = { 0 };
	struct cjson cjson = { 0 };
	struct failure why = { 0 };
	struct jobs jobs;
	unsigned count = 0;

	assert_int_equal(cjson_open(NULL, &cjson, &why), 0);
	assert_int_equal(seteuid(uid), 0);
	jobs_open(&jobs, env, &cjson, &memory);
	assert_int_equal(seteuid(0), 0);
	for (size_t i = 0; i < jobs.count; i++)
		count += jobs.at[i].uid == s.uids[OWNER] || jobs.at[i].uid == s.uids[ENEMY];
	jobs_close(&jobs);
	cjson_close(&cjson);
	arena_done(&memory);
	return count;
}

static void test_counts(void **state)
{
	const struct place_row *row = *state;

	needs(geteuid() == 0, "root, to be somebody else");
	(void)alarm(LIMIT_S);
	begin(row);
	assert_int_equal(count_as(0), row->for_root);
	assert_int_equal(count_as(s.uids[OWNER]), row->for_owner);
	assert_int_equal(count_as(s.uids[ENEMY]), 0);
	end();
}

TESTS(job_sockets)
{
	static struct suite suite;

	SUITE_ROWS(&suite, test_counts, rows);
	return suite_run(&suite);
}
