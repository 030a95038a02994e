/* lookup.c - see lookup.h */
#include "daemon/meet/lookup.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/fd.h"

enum { STACK_BYTES = 512 << 10 };

struct lookup {
	atomic_uint holders; /* the thread and the loop: the last one gives the memory back */
	uv_poll_t answered;
	int event;
	void (*on_answer)(void *owner, const struct addrinfo *list, const char *why);
	void *owner;
	char name[NI_MAXHOST], port[8];

	/* the thread's, until the event */
	struct addrinfo *list;
	char why[128]; /* "": there is a list */
};

static void let_go(struct lookup *l)
{
	if (atomic_fetch_sub(&l->holders, 1) > 1)
		return;
	if (l->list)
		freeaddrinfo(l->list);
	(void)close(l->event);
	free(l);
}

static void ask(void *of)
{
	static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	static const uint64_t one = 1;
	struct lookup *l = of;
	int rc = getaddrinfo(l->name, l->port, &hints, &l->list);

	if (rc != 0)
		(void)snprintf(l->why, sizeof l->why, "%s",
			rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	while (write(l->event, &one, sizeof one) < 0 && errno == EINTR)
		;
	let_go(l);
}

static void on_closed(uv_handle_t *h)
{
	let_go(h->data);
}

void lookup_abandon(struct lookup *l)
{
	uv_close((uv_handle_t *)&l->answered, on_closed);
}

static void on_answered(uv_poll_t *h, int status, int events)
{
	struct lookup *l = h->data;

	(void)status, (void)events;
	lookup_abandon(l); /* its memory is there until the loop's next turn */
	l->on_answer(l->owner, l->list, *l->why ? l->why : NULL);
}

/* It must not get signals that are the main thread's: it inherits the mask. */
static int start_thread(struct lookup *l)
{
	const uv_thread_options_t options = { UV_THREAD_HAS_STACK_SIZE, STACK_BYTES };
	uv_thread_t thread;
	int rc = uv_thread_create_ex(&thread, &options, ask, l);

	return rc < 0 ? rc : -pthread_detach(thread);
}

int lookup_start(uv_loop_t *loop, const char *name, const char *port,
	void (*on_answer)(void *owner, const struct addrinfo *list, const char *why), void *owner,
	struct lookup **ret)
{
	struct lookup *l = calloc(1, sizeof *l);
	int rc;

	if (!l)
		return -ENOMEM;
	l->on_answer = on_answer;
	l->owner = owner;
	(void)snprintf(l->name, sizeof l->name, "%s", name);
	(void)snprintf(l->port, sizeof l->port, "%s", port);
	atomic_init(&l->holders, 1);
	l->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = l->event < 0 ? -errno : uv_poll_init(loop, &l->answered, l->event);
	if (rc < 0) {
		fd_closep(&l->event);
		free(l);
		return rc;
	}
	l->answered.data = l;
	atomic_store(&l->holders, 2);
	rc = start_thread(l);
	if (rc < 0) {
		atomic_store(&l->holders, 1);
		lookup_abandon(l);
		return rc;
	}
	(void)uv_poll_start(&l->answered, UV_READABLE, on_answered); /* a new watch: can't fail */
	*ret = l;
	return 0;
}
