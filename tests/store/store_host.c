/* store_host.c - a program that is nothing but a store, for tests and benchmarks with real clients.
 *
 *   store_host ADDR PORT none|a|c MEMORY_MIB
 *
 * Prints "port N", then a line "note: ..." for each note. Obeys lines of stdin: "next" begins an
 * attempt and answers "next", "clients" prints "clients N", "memory" what is in use, "allow ADDR"
 * lets an address in and answers "allowed". At the end of stdin it closes the store, and proves
 * that libuv has nothing left. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "daemon/store/store.h"

struct host {
	struct store store;
	uv_pipe_t orders;
	char line[256];
	size_t len;
};

static void on_note(void *owner, const char *text)
{
	(void)owner;
	printf("note: %s\n", text);
}

static void allow(struct host *h, const char *text)
{
	struct address addr;

	if (address_parse(text, 0, &addr) < 0 || store_allow(&h->store, &addr) < 0)
		exit(2);
	printf("allowed\n");
}

static void obey(struct host *h, const char *order)
{
	if (strcmp(order, "next") == 0) {
		store_next_attempt(&h->store);
		printf("next\n");
	} else if (strcmp(order, "clients") == 0) {
		printf("clients %u\n", store_clients(&h->store));
	} else if (strcmp(order, "memory") == 0) {
		printf("memory %" PRIu64 "\n", h->store.budget.used);
	} else if (strncmp(order, "allow ", 6) == 0) {
		allow(h, order + 6);
	} else {
		fprintf(stderr, "store_host: what is \"%s\"?\n", order);
		exit(2);
	}
}

static void on_store_closed(struct store *s)
{
	(void)s;
	printf("closed\n");
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
	struct host *h = handle->data;

	(void)wanted;
	if (h->len == sizeof h->line)
		exit(2); /* no order is as long as that */
	*ret = uv_buf_init(h->line + h->len, (unsigned)(sizeof h->line - h->len));
}

static void on_orders(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct host *h = stream->data;
	char *end;

	(void)buf;
	if (n < 0) {
		uv_close((uv_handle_t *)&h->orders, NULL);
		store_close(&h->store, on_store_closed);
		return;
	}
	h->len += (size_t)n;
	while ((end = memchr(h->line, '\n', h->len))) {
		*end = '\0';
		obey(h, h->line);
		h->len -= (size_t)(end + 1 - h->line);
		memmove(h->line, end + 1, h->len);
	}
}

int main(int argc, char **argv)
{
	static const char *const dialects[] = { "none", "a", "c" };
	static struct host h;
	struct failure why = { 0 };
	struct store_config c = { .on_note = on_note };
	uv_loop_t loop;
	size_t d = 0;

	if (argc != 5 || setvbuf(stdout, NULL, _IOLBF, 0) != 0 ||
		signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 2;
	while (d < 3 && strcmp(dialects[d], argv[3]) != 0)
		d++;
	if (d == 3 || uv_loop_init(&loop) < 0)
		return 2;
	c.addr = argv[1];
	c.port = (unsigned)strtoul(argv[2], NULL, 10);
	c.old = (enum store_dialect)d;
	c.memory_max = strtoull(argv[4], NULL, 10) << 20;
	if (store_open(&h.store, &loop, &c, &why) < 0) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	printf("port %u\n", store_port(&h.store));
	h.orders.data = &h;
	if (uv_pipe_init(&loop, &h.orders, 0) < 0 || uv_pipe_open(&h.orders, 0) < 0 ||
		uv_read_start((uv_stream_t *)&h.orders, on_room, on_orders) < 0)
		return 2;
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop) == 0 ? 0 : 3;
}
