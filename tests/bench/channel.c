/* channel.c - what control connections cost the launcher of node rank 0.
 *
 * usage: channel [LINKS [TIMEOUT_MS]]
 *
 * A hub, and as many dialers in a process of its own, over loopback and with a key. Prints the time
 * until all are ready, the hub's memory for each, and the share of a core that their beats take at
 * the hub. Ends with 1 where that is beyond anything reasonable. */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "daemon/net/beat.h"
#include "daemon/net/listener.h"
#include "daemon/net/sodium.h"

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

enum {
	LINKS = 1024,
	TIMEOUT_MS = 10000,
	WATCH_MS = 5000,
	READY_MAX_MS = 60000,
	BYTES_MAX = IS_SANITIZED ? 1 << 20 : 16 << 10, /* a link; what is freed stays for a while */
};

struct side {
	uv_loop_t loop;
	struct link_auth auth;
	struct sodium sodium;
	struct beat beat;
	struct listener listener;
	struct link *links;
	unsigned count, begun, ready, closed, silent;
	struct address at;
	uint64_t ready_ns;
	uv_timer_t timer;
};

static void give_up(const char *what)
{
	fprintf(stderr, "channel: %s\n", what);
	exit(1);
}

static void on_message(struct link *l, unsigned type, const unsigned char *payload, size_t len)
{
	(void)l, (void)type, (void)payload, (void)len;
}

static void on_ready(struct link *l)
{
	struct side *s = l->owner;

	if (beat_watch(&s->beat, l) < 0)
		give_up("out of memory");
	if (++s->ready < s->count)
		return;
	s->ready_ns = uv_hrtime();
	if (s->listener.count > 0)
		uv_stop(&s->loop);
}

static void on_closed(struct link *l, const char *why)
{
	struct side *s = l->owner;

	if (l->end != LINK_END_OURS && l->end != LINK_END_LOST)
		give_up(why);
	if (++s->closed == s->count)
		uv_stop(&s->loop);
}

static void on_silent(struct beat *b, struct link *l, uint64_t silent_ms)
{
	(void)l, (void)silent_ms;
	((struct side *)b->owner)->silent++;
}

static struct link *link_make(struct side *s)
{
	struct link *l = &s->links[s->begun++];

	*l = (struct link){ .on_ready = on_ready,
		.on_message = on_message,
		.on_closed = on_closed,
		.owner = s,
		.timeout_ms = s->beat.timeout_ms };
	return l;
}

static struct link *on_accept(struct listener *li)
{
	struct side *s = li->owner;

	return s->begun < s->count ? link_make(s) : NULL;
}

static void side_make(struct side *s, unsigned count, uint32_t timeout_ms)
{
	struct failure why = { 0 };

	*s = (struct side){ .count = count,
		.beat = { .on_silent = on_silent, .owner = s, .timeout_ms = timeout_ms },
		.auth = { .keyed = true, .key = "a key for all of them", .sodium = &s->sodium } };
	s->links = calloc(count, sizeof *s->links);
	if (!s->links || uv_loop_init(&s->loop) < 0)
		give_up("out of memory");
	if (sodium_load(&s->sodium, &why) < 0)
		give_up(why.text);
	beat_open(&s->beat, &s->loop);
	(void)uv_timer_init(&s->loop, &s->timer);
}

static void hub_make(struct side *s, unsigned count, uint32_t timeout_ms)
{
	const struct addresses one = {
		1,
		{ { .v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } } }
	};
	struct failure why = { 0 };

	side_make(s, count, timeout_ms);
	s->listener = (struct listener){
		.on_accept = on_accept, .owner = s, .auth = &s->auth, .source_max = count
	};
	if (listener_open(&s->listener, &s->loop, &one, 0, &why) < 0)
		give_up(why.text);
	beat_hear(&s->beat, &s->listener);
	s->at = one.at[0];
	address_set_port(&s->at, s->listener.port);
}

/* Dials all at once; ends when the hub has closed all. */
static _Noreturn void be_dialers(const struct address *at, unsigned count, uint32_t timeout_ms)
{
	static struct side s;
	struct failure why = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	side_make(&s, count, timeout_ms);
	while (s.begun < count)
		if (link_dial(link_make(&s), &s.loop, at, &s.auth, &why) < 0)
			give_up(why.text);
	(void)uv_run(&s.loop, UV_RUN_DEFAULT);
	_exit(s.silent == 0 ? 0 : 1);
}

static double cpu_ms(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static void on_over(uv_timer_t *t)
{
	uv_stop(t->loop);
}

static void run_ms(struct side *s, uint64_t ms)
{
	uv_update_time(&s->loop);
	(void)uv_timer_start(&s->timer, on_over, ms, 0);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	(void)uv_timer_stop(&s->timer);
}

/* Memory of this process, in bytes. */
static size_t in_use(void)
{
	long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2)
		give_up("/proc/self/statm can't be read");
	(void)fclose(f);
	return (size_t)(resident * sysconf(_SC_PAGESIZE));
}

static int measure(struct side *s, size_t before)
{
	double began = 0, cpu = 0, ready_ms = 0;
	uint64_t start = uv_hrtime();
	size_t bytes;

	run_ms(s, READY_MAX_MS);
	if (s->ready < s->count)
		give_up("not all were ready in time");
	ready_ms = (double)(s->ready_ns - start) / 1e6;
	run_ms(s, WATCH_MS); /* by then beats travel by UDP */
	bytes = (in_use() - before) / s->count;
	began = cpu_ms();
	run_ms(s, WATCH_MS);
	cpu = cpu_ms() - began;
	printf("%u links: ready in %.0f ms, %zu bytes each (struct link: %zu), "
	       "beats every %.0f ms: %.2f %% of a core, %.1f us a link and beat\n",
		s->count, ready_ms, bytes, sizeof(struct link), (double)s->beat.interval_ns / 1e6,
		100 * cpu / WATCH_MS,
		1e3 * cpu / s->count / (WATCH_MS / ((double)s->beat.interval_ns / 1e6)));
	if (s->silent > 0)
		give_up("some were taken for lost");
	return bytes <= BYTES_MAX ? 0 : 1;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : LINKS;
	uint32_t timeout_ms = argc > 2 ? (uint32_t)atoi(argv[2]) : TIMEOUT_MS;
	struct rlimit files;
	static struct side hub;
	int rc, status = 1;
	size_t before;
	pid_t dialers;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	before = in_use();
	hub_make(&hub, count, timeout_ms);
	dialers = fork();
	if (dialers == 0)
		be_dialers(&hub.at, count, timeout_ms);
	if (dialers < 0)
		give_up("can't fork");
	rc = measure(&hub, before);
	for (unsigned i = 0; i < count; i++)
		link_close(&hub.links[i], false, NULL);
	(void)uv_run(&hub.loop, UV_RUN_DEFAULT);
	(void)waitpid(dialers, &status, 0);
	free(hub.links);
	return rc || status ? 1 : 0;
}
