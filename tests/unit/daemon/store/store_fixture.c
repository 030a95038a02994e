/* store_fixture.c - see store_fixture.h */
#include "tests/unit/daemon/store/store_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/daemon/store/store_sim.h"
#include "tests/unit/unit.h"

#define D STORE_DIALECT_D

enum { LIMIT_MS = 60000 };

static void on_note(void *owner, const char *text)
{
	struct store_fixture *st = owner;

	assert_true(st->note_count < FIXTURE_NOTES);
	(void)snprintf(st->notes[st->note_count++], sizeof *st->notes, "%s", text);
}

static void on_closed(struct store *s)
{
	struct store_fixture *st =
		(struct store_fixture *)(void *)((char *)s - offsetof(struct store_fixture, store));

	st->closed = true;
}

void store_fixture_open(struct store_fixture *st, const char *addr, uint64_t memory)
{
	struct failure why = { 0 };
	struct store_config c = {
		.addr = addr, .memory_max = memory, .on_note = on_note, .owner = st
	};

	memset(st, 0, sizeof *st);
	assert_int_equal(uv_loop_init(&st->loop), 0);
	assert_outcome(store_open(&st->store, &st->loop, &c, &why), 0, &why, NULL);
	assert_true(store_port(&st->store) > 0);
}

void store_fixture_close(struct store_fixture *st)
{
	store_close(&st->store, on_closed);
	(void)uv_run(&st->loop, UV_RUN_DEFAULT);
	assert_true(st->closed);
	assert_int_equal(uv_loop_close(&st->loop), 0);
}

int dial(const struct store_fixture *st, const char *to, const char *from)
{
	struct sockaddr_in in = { .sin_family = AF_INET }, own = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	in.sin_port = htons((uint16_t)store_port(&st->store));
	assert_int_equal(inet_pton(AF_INET, to, &in.sin_addr), 1);
	assert_int_equal(inet_pton(AF_INET, from, &own.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	return fd;
}

void ask(struct store_fixture *st, int fd, const char *request)
{
	struct text bytes = { 0 };
	size_t sent = 0;

	wire_request(&bytes, D, request);
	while (sent < bytes.len) {
		ssize_t n =
			send(fd, bytes.at + sent, bytes.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		assert_true(n > 0 || errno == EAGAIN || errno == ECONNRESET || errno == EPIPE);
		if (n < 0 && errno != EAGAIN)
			break; /* the store has heard enough */
		sent += n > 0 ? (size_t)n : 0;
		if (sent < bytes.len)
			(void)uv_run(&st->loop, UV_RUN_NOWAIT);
	}
	text_done(&bytes);
}

int dial_and_greet(struct store_fixture *st)
{
	int fd = dial(st, "127.0.0.1", "127.0.0.1");

	ask(st, fd, "VALIDATE %0x3c85f7ce");
	return fd;
}

void run_until_readable(struct store_fixture *st, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (int ms = 0; poll(&p, 1, 0) == 0; ms++) {
		assert_true(ms < LIMIT_MS);
		if (uv_run(&st->loop, UV_RUN_NOWAIT) && poll(&p, 1, 1) > 0)
			return;
	}
}

void hear(struct store_fixture *st, int fd, const char *words)
{
	struct text expected = { 0 };
	char *got;
	size_t len = 0;

	wire_words(&expected, words);
	got = malloc(expected.len + 1);
	assert_non_null(got);
	while (len < expected.len) {
		ssize_t n;

		run_until_readable(st, fd);
		n = recv(fd, got + len, expected.len - len, 0);
		assert_true(n > 0);
		len += (size_t)n;
	}
	assert_memory_equal(got, expected.at, expected.len);
	free(got);
	text_done(&expected);
}

void hear_end(struct store_fixture *st, int fd)
{
	char byte;

	run_until_readable(st, fd);
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	(void)close(fd);
}

void settle(struct store_fixture *st)
{
	for (int i = 0; i < 20; i++) {
		(void)uv_run(&st->loop, UV_RUN_NOWAIT);
		(void)usleep(500);
	}
}
