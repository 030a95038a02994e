/* test_job_sockets.c - which sockets count: those whose directory, file and listener are one
 * user's. Each row is a real launcher's, or one that pretends. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fd.h"
#include "daemon/ctl/job_sockets.h"

enum { LIMIT_S = 60, FIRST_DEAD = 990000000 };
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
	jobs_open(&jobs, env, 0, &cjson, &memory);
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

/* A listener of that user's in a directory, which says one text to whoever comes; more names lead
 * to it. */
static pid_t crowd(const char *dir, uid_t uid, unsigned names, const char *says)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int ready[2], fd;
	char byte;
	pid_t pid;

	(void)mkdir(dir, 0755);
	assert_int_equal(chown(dir, uid, 0), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid > 0) {
		(void)close(ready[1]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		(void)close(ready[0]);
		return pid;
	}
	(void)snprintf(at.sun_path, sizeof at.sun_path, "%s/%d.sock", dir, FIRST_DEAD);
	(void)unlink(at.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || chown(at.sun_path, uid, 0) < 0)
		_exit(1);
	for (unsigned i = 1; i < names; i++) {
		char other[128];

		(void)snprintf(other, sizeof other, "%s/%u.sock", dir, FIRST_DEAD + i);
		if (link(at.sun_path, other) < 0)
			_exit(1);
	}
	if (seteuid(uid) < 0 || listen(fd, 4096) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
		write(ready[1], "x", 1) != 1)
		_exit(1);
	for (;;) {
		int one = says ? accept(fd, NULL, NULL) : pause();

		if (one >= 0)
			(void)!write(one, says, strlen(says));
	}
}

static void disperse(pid_t listener)
{
	assert_int_equal(kill(listener, SIGKILL), 0);
	assert_int_equal(waitpid(listener, NULL, 0), listener);
}

/* As root, with all that counts; the caller looks. */
static void look(struct jobs *jobs, pid_t named)
{
	static const char *const env[] = { NULL };
	static struct arena memory;
	static struct cjson cjson;
	struct failure why = { 0 };

	arena_done(&memory);
	if (!cjson.free)
		assert_int_equal(cjson_open(NULL, &cjson, &why), 0);
	jobs_open(jobs, env, named, &cjson, &memory);
}

static unsigned count_of_user(const struct jobs *jobs, uid_t uid)
{
	unsigned count = 0;

	for (size_t i = 0; i < jobs->count; i++)
		count += jobs->at[i].uid == uid;
	return count;
}

/* The owner's directory comes behind it. */
static void test_crowd_hides_nobody(void **state)
{
	char dir[64], command[96];
	struct rlimit before, few;
	struct jobs jobs;
	pid_t listener;

	(void)state;
	needs(geteuid() == 0, "root, to be somebody else");
	(void)alarm(LIMIT_S);
	begin(&rows[0]);
	(void)snprintf(dir, sizeof dir, "/tmp/launchd-%u", (unsigned)s.uids[ENEMY]);
	listener = crowd(dir, s.uids[ENEMY], 3000, NULL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	look(&jobs, 0);
	assert_int_equal(count_of_user(&jobs, s.uids[OWNER]), 1);
	assert_in_range(count_of_user(&jobs, s.uids[ENEMY]), 1, 128);
	assert_true(jobs.cut);
	jobs_close(&jobs);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	disperse(listener);
	(void)snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0); /* NOLINT: the name is ours */
	end();
}

/* Where its own user has one: by its pid it is found all the same. */
static void test_named_in_a_crowd(void **state)
{
	struct jobs jobs;
	pid_t listener;

	(void)state;
	needs(geteuid() == 0, "root, to be somebody else");
	(void)alarm(LIMIT_S);
	begin(&rows[0]);
	listener = crowd(s.dir, s.uids[OWNER], 3000, NULL);
	look(&jobs, s.guard);
	assert_int_equal(jobs.count, 1);
	assert_int_equal(jobs.at[0].here, s.guard);
	jobs_close(&jobs);
	disperse(listener);
	end();
}

/* However many directories others have: one of ours that two patterns name counts once. */
static void test_once_among_many(void **state)
{
	enum { MANY = 80 };
	char dir[64], own[64], command[200];
	pid_t listeners[MANY], ours;
	struct jobs jobs;
	unsigned count = 0;

	(void)state;
	needs(geteuid() == 0, "root, to be somebody else");
	(void)alarm(LIMIT_S);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(dir, sizeof dir, "/tmp/launchd-%d-%d", 100000000 + (int)getpid(), i);
		listeners[i] = crowd(dir, 100000000 + (uid_t)getpid(), 1, NULL);
	}
	(void)snprintf(own, sizeof own, "/dev/shm/launchd-0-%d", (int)getpid());
	ours = crowd(own, 0, 1, NULL);
	look(&jobs, 0);
	for (size_t i = 0; i < jobs.count; i++)
		count += jobs.at[i].uid == 0 && jobs.at[i].guard == FIRST_DEAD;
	assert_int_equal(count, 1);
	jobs_close(&jobs);
	for (int i = 0; i < MANY; i++)
		disperse(listeners[i]);
	disperse(ours);
	(void)snprintf(command, sizeof command, "rm -rf %s /tmp/launchd-%d-*", own,
		100000000 + (int)getpid());
	assert_int_equal(system(command), 0); /* NOLINT: the names are ours */
}

/* 100 answers of 1 MB each would take 3 GB, as objects. */
static void test_talkers(void **state)
{
	enum { LEN = 1 << 20, NAMES = 100 };
	char *says = malloc(LEN + 64), dir[64], command[96];
	size_t len, bytes = 0;
	struct jobs jobs;
	pid_t listener;

	(void)state;
	needs(geteuid() == 0, "root, to be somebody else");
	(void)alarm(LIMIT_S);
	assert_non_null(says);
	len = (size_t)sprintf(says, "{\"v\":1,\"id\":1,\"ok\":true,\"result\":{\"a\":[1");
	while (len < LEN)
		len += (size_t)sprintf(says + len, ",1");
	(void)sprintf(says + len, "]}}\n");
	(void)snprintf(dir, sizeof dir, "/tmp/launchd-%u", 100000000 + (unsigned)getpid());
	listener = crowd(dir, 100000000 + (uid_t)getpid(), NAMES, says);
	look(&jobs, 0);
	jobs_ask(&jobs, jobs_own_answered, NULL);
	for (size_t i = 0; i < jobs.count; i++)
		bytes += jobs.at[i].uid == 100000000 + (uid_t)getpid() ? jobs.at[i].link.in.len : 0;
	assert_in_range(bytes, LEN, 5 * LEN);
	jobs_close(&jobs);
	disperse(listener);
	(void)snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0); /* NOLINT: the name is ours */
	free(says);
}

TESTS(job_sockets)
{
	static struct suite suite;

	SUITE_ROWS(&suite, test_counts, rows);
	suite_add(&suite, "a crowd hides no other user's", test_crowd_hides_nobody, NULL, NULL);
	suite_add(
		&suite, "one that is named is found in a crowd", test_named_in_a_crowd, NULL, NULL);
	suite_add(&suite, "a directory counts once among many", test_once_among_many, NULL, NULL);
	suite_add(&suite, "a crowd's words fill no memory", test_talkers, NULL, NULL);
	return suite_run(&suite);
}
