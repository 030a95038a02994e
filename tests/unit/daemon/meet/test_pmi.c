/* test_pmi.c - PMI-1 from the client's side, against a server that answers line by line. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "daemon/meet/pmi.h"

#define INIT \
	"cmd=init pmi_version=1 pmi_subversion=1", \
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
#define NAME "cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_7"
#define PUT(n, value) \
	"cmd=put kvsname=kvs_7 key=launchd-" n " value=" value, "cmd=put_result rc=0 msg=success"
#define MEET "cmd=barrier_in", "cmd=barrier_out"
#define GET(n, value) \
	"cmd=get kvsname=kvs_7 key=launchd-" n, "cmd=get_result rc=0 msg=success value=" value
#define LEAVE "cmd=finalize", "cmd=finalize_ack"

enum { LINES = 32 };

static const struct pmi_row {
	const char *says;
	const char *mine;         /* NULL: this isn't rank 0 */
	const char *lines[LINES]; /* what is asked, and what is answered, in turn */
	const char *got;          /* NULL: it fails */
	const char *why;
	unsigned steps; /* how many */
	int limit_ms;   /* for the others */
} pmi_rows[] = {
	{ "rank 0", "\x01z",
		{ INIT, NAME, PUT("0", "017a"), PUT("1", "-"), MEET, GET("0", "017a"),
			GET("1", "-"), LEAVE },
		"\x01z", NULL, 5, 60000 },
	{ "another rank", NULL,
		{ INIT, NAME, MEET, GET("0", "6162"), GET("1", "63"), GET("2", "-"), LEAVE }, "abc",
		NULL, 5, 60000 },
	{ "it is finalized whatever fails", NULL,
		{ INIT, NAME, MEET, "cmd=get kvsname=kvs_7 key=launchd-0",
			"cmd=get_result rc=-1 msg=unknown_key", LEAVE },
		NULL, "unknown_key", 4, 60000 },
	{ "more than there is room for", NULL,
		{ INIT, NAME, MEET, GET("0", "61626364656667686970"), LEAVE }, NULL, "value", 4,
		60000 },
	{ "others that don't come: finalize must wait", NULL, { INIT, NAME, "cmd=barrier_in", "" },
		NULL, "no answer", 3, 50 },
	{ "another version", NULL,
		{ "cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init rc=-1" }, NULL,
		"rc=-1", 1, 60000 },
	{ "an answer to something else", NULL,
		{ "cmd=init pmi_version=1 pmi_subversion=1", "cmd=barrier_out" }, NULL,
		"barrier_out", 1, 60000 },
	{ "a server that has gone", NULL, { NULL }, NULL, "closed", 1, 60000 },
};

/* In a child: exits with 0 if it was asked just that. */
static _Noreturn void serve(int fd, const char *const *lines)
{
	bool silent = false;

	for (; *lines; lines += 2) {
		char line[4096];
		size_t len = 0, wanted = strlen(lines[0]) + 1;

		while (len < wanted) {
			ssize_t n = read(fd, line + len, wanted - len);

			if (n <= 0)
				_exit(1);
			len += (size_t)n;
		}
		line[len - 1] = '\0';
		silent = !*lines[1];
		if (strcmp(line, lines[0]) != 0 ||
			(*lines[1] &&
				(fd_write_all(fd, lines[1], strlen(lines[1])) < 0 ||
					fd_write_all(fd, "\n", 1) < 0)))
			_exit(2);
	}
	if (!silent)
		(void)shutdown(fd, SHUT_WR);
	_exit(read(fd, (char[1]){ 0 }, 1) > 0 ? 3 : 0); /* nothing more is asked */
}

static void count_step(void *owner, enum pmi_step step)
{
	assert_true(step < PMI_STEPS);
	++*(unsigned *)owner;
}

static void test_exchange(void **state)
{
	const struct pmi_row *row = *state;
	unsigned steps = 0;
	struct pmi p = {
		.enter = count_step, .owner = &steps, .until_ms = monotonic_ms() + row->limit_ms
	};
	char got[8];
	int ends[2], status;
	pid_t server;
	long len;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	server = fork();
	if (server == 0) {
		(void)close(ends[0]);
		serve(ends[1], row->lines);
	}
	(void)close(ends[1]);
	p.fd = ends[0];
	len = pmi_exchange(&p, row->mine, row->mine ? strlen(row->mine) : 0, got, sizeof got);
	(void)close(ends[0]);
	assert_int_equal(waitpid(server, &status, 0), server);
	if (row->lines[0])
		assert_int_equal(status, 0);
	assert_int_equal(steps, row->steps);
	if (!row->got) {
		assert_true(len < 0);
		assert_contains(p.line, row->why);
		return;
	}
	assert_int_equal(len, (int)strlen(row->got));
	assert_memory_equal(got, row->got, strlen(row->got));
}

TESTS(pmi)
{
	static struct suite s;

	SUITE_ROWS(&s, test_exchange, pmi_rows);
	return suite_run(&s);
}
