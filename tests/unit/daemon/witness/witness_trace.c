/* witness_trace.c - records what looks at processes show, and replays such records through the
 * detector: no launcher takes part.
 *
 *   witness_trace look SECONDS STORE_PORT RANK:PID...
 *     looks once a second; prints "t=MS judge" after the lines of each look
 *   witness_trace replay < TRACE
 *     prints what is new, a line each, as hang_trace.h has it; what the trace itself says of that
 * is skipped
 *
 * Lines of a trace are those of --hang-trace, see hang_trace.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "daemon/witness/hang_trace.h"
#include "daemon/witness/talks.h"

enum { WORKERS_MAX = 64, RANKS_MAX = 4096, AFTER_MS = 600000 };

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void look_once(
	struct talks *talks, struct looked *workers, struct worker_sample *samples, unsigned count)
{
	struct text out = { 0 };

	for (unsigned i = 0; i < count; i++)
		look_at_worker(&workers[i], now_ms(), MEMORY_WATCHED, &samples[i]);
	(void)talks_add(talks, workers, samples, count);
	for (unsigned i = 0; i < count; i++)
		sample_add(&out, &samples[i]);
	text_printf(&out, "t=%" PRIu64 " judge\n", now_ms());
	(void)fputs(text_string(&out), stdout);
	(void)fflush(stdout);
	text_done(&out);
}

static int look(int argc, char **argv)
{
	static struct looked workers[WORKERS_MAX];
	unsigned seconds = (unsigned)strtoul(argv[2], NULL, 10), count = 0;
	struct talks talks = { .store_port = (unsigned)strtoul(argv[3], NULL, 10) };
	unsigned ranks = 0;
	struct worker_sample *samples;

	for (int i = 4; i < argc && count < WORKERS_MAX; i++, count++) {
		struct looked *w = &workers[count];

		if (sscanf(argv[i], "%u:%d", &w->rank, &w->pid) != 2)
			return 2;
		ranks = w->rank >= ranks ? w->rank + 1 : ranks;
	}
	samples = calloc(count, sizeof *samples);
	if (!samples)
		return 1;
	printf("t=%" PRIu64 " begin %u %u\n", now_ms(), ranks, AFTER_MS);
	for (unsigned i = 0; i < seconds; i++) {
		const struct timespec second = { .tv_sec = 1 };

		look_once(&talks, workers, samples, count);
		(void)nanosleep(&second, NULL);
	}
	talks_done(&talks);
	free(samples);
	return 0;
}

static int play(struct detector *d, const struct trace_step *s)
{
	struct text text = { 0 };

	if (s->kind == TRACE_BEGIN && s->ranks > d->ranks)
		return -1; /* the room is for those of the first */
	trace_add_news(&text, d, trace_play(d, s), s->at_ms);
	(void)fputs(text_string(&text), stdout);
	text_done(&text);
	return 0;
}

static int make(struct detector *d, const struct trace_step *s)
{
	if (s->kind != TRACE_BEGIN || s->ranks < 1 || s->ranks > RANKS_MAX)
		return -1;
	d->ranks = s->ranks;
	d->sights = calloc(d->ranks, sizeof *d->sights);
	d->room = calloc((size_t)d->ranks * TALKS_MAX, sizeof *d->room);
	return d->sights && d->room ? 0 : -1;
}

static int replay(void)
{
	struct detector d = { .ranks = 0 };
	struct trace_step s;
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	while (rc == 0 && getline(&line, &room, stdin) > 0) {
		if (trace_read(line, strcspn(line, "\n"), &s) < 0) {
			rc = strncmp(line, "rank=", 5) == 0 ? -1 : 0; /* of an older launchd */
			continue;
		}
		if (d.ranks == 0)
			rc = make(&d, &s);
		if (rc == 0)
			rc = play(&d, &s);
	}
	free(line);
	free(d.room);
	free(d.sights);
	return rc == 0 && d.ranks > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && strcmp(argv[1], "look") == 0)
		return look(argc, argv);
	if (argc == 2 && strcmp(argv[1], "replay") == 0)
		return replay();
	(void)fprintf(stderr, "usage: %s look SECONDS STORE_PORT RANK:PID... | replay\n", argv[0]);
	return 2;
}
