/* finder.c - see finder.h */
#include "daemon/cluster/finder.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

enum {
	RETRY_MS = 1000,
	FIRST_NOTE_MS = 10000, /* until the owner hears that it takes time */
	NEXT_NOTE_MS = 60000,
};

static void look_up(struct finder *f);

static void give_up(struct finder *f)
{
	f->over = true;
	(void)uv_timer_stop(&f->retry);
	f->on_failed(f, f->why);
}

/* The next try, or the end of the time, which may come before the resolver's answer. */
static void on_retry(uv_timer_t *t)
{
	struct finder *f = t->data;

	if (f->asking || uv_now(f->loop) >= f->deadline_ms)
		give_up(f);
	else
		look_up(f);
}

static void on_retry_closed(uv_handle_t *h)
{
	struct finder *f = h->data;

	f->on_closed(f);
}

static uint64_t left_ms(const struct finder *f)
{
	uint64_t now = uv_now(f->loop);

	return f->deadline_ms > now ? f->deadline_ms - now : 0;
}

static void explain(struct finder *f, const char *why)
{
	(void)snprintf(f->why, sizeof f->why, "the name %s can't be resolved: %s", f->name, why);
}

static void later(struct finder *f, int error)
{
	uint64_t now = uv_now(f->loop), left = left_ms(f);

	explain(f, uv_strerror(error));
	if (left == 0) {
		give_up(f);
		return;
	}
	(void)uv_timer_start(&f->retry, on_retry, left < RETRY_MS ? left : RETRY_MS, 0);
	if (now >= f->note_ms) {
		f->note_ms = now + NEXT_NOTE_MS;
		f->on_searching(f, f->why);
	}
}

/* Every address once: the resolver may give one for each kind of socket. */
static void keep(struct finder *f, const struct sockaddr *a, socklen_t len)
{
	for (unsigned i = 0; i < f->count; i++)
		if (memcmp(&f->addresses[i], a, len) == 0)
			return;
	if (f->count < FINDER_ADDRESSES && len <= sizeof *f->addresses)
		memcpy(&f->addresses[f->count++], a, len);
}

static void on_answer(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
	struct finder *f = request->data;

	f->asking = false;
	for (const struct addrinfo *a = status == 0 ? list : NULL; a; a = a->ai_next)
		keep(f, a->ai_addr, a->ai_addrlen);
	uv_freeaddrinfo(list);
	if (f->closing)
		uv_close((uv_handle_t *)&f->retry, on_retry_closed);
	if (f->closing || f->over)
		return;
	(void)uv_timer_stop(&f->retry);
	if (f->count > 0)
		f->on_found(f);
	else
		later(f, status < 0 ? status : UV_EAI_NONAME);
}

static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };

static void look_up(struct finder *f)
{
	int rc;

	f->request.data = f;
	rc = uv_getaddrinfo(f->loop, &f->request, on_answer, f->name, f->port, &hints);
	if (rc < 0) {
		later(f, rc);
		return;
	}
	f->asking = true;
	if (left_ms(f) > 0)
		(void)uv_timer_start(&f->retry, on_retry, left_ms(f), 0);
}

static void on_numeric(uv_timer_t *t)
{
	struct finder *f = t->data;

	f->on_found(f);
}

/* An address needs no resolver, whose thread would stay for the whole run. */
static bool is_numeric(struct finder *f)
{
	struct addrinfo numeric = hints, *list;

	numeric.ai_flags = AI_NUMERICHOST;
	if (getaddrinfo(f->name, f->port, &numeric, &list) != 0)
		return false;
	keep(f, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return true;
}

void finder_start(
	struct finder *f, uv_loop_t *loop, const char *name, unsigned port, uint64_t within_ms)
{
	f->loop = loop;
	f->name = name;
	f->deadline_ms = uv_now(loop) + within_ms;
	f->note_ms = uv_now(loop) + FIRST_NOTE_MS;
	(void)snprintf(f->port, sizeof f->port, "%u", port);
	(void)uv_timer_init(loop, &f->retry); /* can't fail */
	f->retry.data = f;
	f->numeric = is_numeric(f);
	explain(f, "the resolver does not answer");
	if (f->numeric)
		(void)uv_timer_start(&f->retry, on_numeric, 0, 0);
	else
		look_up(f);
}

void finder_close(struct finder *f)
{
	if (f->closing)
		return;
	f->closing = true;
	(void)uv_timer_stop(&f->retry);
	if (f->asking)
		(void)uv_cancel((uv_req_t *)&f->request); /* on_answer comes in any case */
	else
		uv_close((uv_handle_t *)&f->retry, on_retry_closed);
}
