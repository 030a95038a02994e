/* test_journal_socket.c - entries arrive whole, also large ones; a journald that is full or not
 * there is said to be. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/os/journal_socket.h"

struct scene {
	char directory[40];
	struct sockaddr_un at;
	int server, fd;
};

static int make(void **state)
{
	struct scene *s = calloc(1, sizeof *s);

	assert_non_null(s);
	(void)snprintf(s->directory, sizeof s->directory, "/tmp/launchd-journal-XXXXXX");
	assert_non_null(mkdtemp(s->directory));
	s->at.sun_family = AF_UNIX;
	(void)snprintf(s->at.sun_path, sizeof s->at.sun_path, "%s/socket", s->directory);
	s->server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->server, (const struct sockaddr *)&s->at, sizeof s->at), 0);
	s->fd = journal_socket_open(s->at.sun_path);
	assert_true(s->fd >= 0);
	*state = s;
	return 0;
}

static int unmake(void **state)
{
	struct scene *s = *state;

	(void)close(s->fd);
	if (s->server >= 0)
		(void)close(s->server);
	assert_int_equal(unlink(s->at.sun_path), 0);
	assert_int_equal(rmdir(s->directory), 0);
	free(s);
	return 0;
}

static void test_small(void **state)
{
	const struct scene *s = *state;
	char got[64];

	assert_int_equal(journal_socket_send(s->fd, "MESSAGE=a\n", 10), 0);
	assert_int_equal(recv(s->server, got, sizeof got, MSG_DONTWAIT), 10);
	assert_memory_equal(got, "MESSAGE=a\n", 10);
}

/* Larger than any datagram: a file that nobody can change any more. */
static void test_large(void **state)
{
	enum { LARGE = 16 * 1024 * 1024 };
	const struct scene *s = *state;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = { .msg_control = &control, .msg_controllen = sizeof control.room };
	char *text = malloc(LARGE), *got = malloc(LARGE);
	int file;

	assert_true(text && got);
	memset(text, 'x', LARGE);
	assert_int_equal(journal_socket_send(s->fd, text, LARGE), 0);
	assert_int_equal(recvmsg(s->server, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), 0);
	memcpy(&file, CMSG_DATA(&control.head), sizeof file);
	assert_int_equal(pread(file, got, LARGE, 0), LARGE);
	assert_memory_equal(text, got, LARGE);
	assert_int_equal(
		fcntl(file, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	(void)close(file);
	free(text);
	free(got);
}

static void test_full(void **state)
{
	const struct scene *s = *state;
	char got[64];
	int sent = 0;

	while (journal_socket_send(s->fd, "MESSAGE=a\n", 10) == 0)
		sent++;
	assert_true(sent > 0);
	assert_int_equal(journal_socket_send(s->fd, "MESSAGE=a\n", 10), -EAGAIN);
	assert_int_equal(journal_socket_send_within(s->fd, "MESSAGE=a\n", 10, 1), -EAGAIN);
	for (int i = 0; i < sent; i++)
		assert_int_equal(recv(s->server, got, sizeof got, MSG_DONTWAIT), 10);
	assert_int_equal(journal_socket_send_within(s->fd, "MESSAGE=a\n", 10, 1), 0);
}

static void test_gone(void **state)
{
	struct scene *s = *state;

	(void)close(s->server);
	s->server = -1;
	assert_int_equal(journal_socket_send(s->fd, "MESSAGE=a\n", 10), -ECONNREFUSED);
	assert_int_equal(journal_socket_open("/nowhere/at/all"), -ENOENT);
	assert_int_equal(journal_socket_open(
				 "/much/longer/than/the/name/of/any/socket/can/be/as/the/structure/"
				 "has/a/hundred/and/eight/bytes/for/it/and/no/more"),
		-ENAMETOOLONG);
}

TESTS(journal_socket)
{
	struct suite s = { .count = 0 };

	suite_add(&s, "an entry arrives", test_small, make, unmake);
	suite_add(&s, "so does a large one", test_large, make, unmake);
	suite_add(&s, "nobody waits for a reader that is full", test_full, make, unmake);
	suite_add(&s, "one that is not there is said to be", test_gone, make, unmake);
	return suite_run(&s);
}
