/* witness_trace.c - records what looks at processes show, and replays such records through the
 * detector: no launcher takes part.
 *
 *   witness_trace look SECONDS STORE_PORT RANK:PID...
 *     looks once a second; prints "t=MS judge" after the lines of each look
 *   witness_trace replay RANKS AFTER_MS < TRACE
 *     prints what is new, a line each: "t=MS suspect outside 3,5 TEXT", "t=MS cleared",
 *     "t=MS certain ..."
 *
 * Lines of a trace, in the order of their times (milliseconds):
 *   t=MS begin           workers were started (the first line says so at the latest)
 *   t=MS moved           a line of output, a step, a change in the store
 *   rank=...             a look at a worker, see sample.h
 *   waits RANK KEY       it waits in the store for that key; without KEY: it does not
 *   t=MS judge           that was all of this look */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "daemon/witness/detector.h"
#include "daemon/witness/talks.h"

enum { WORKERS_MAX = 64, RANKS_MAX = 4096 };

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void look_once(struct looked *workers, unsigned count, unsigned store_port)
{
	static struct worker_sample samples[WORKERS_MAX];
	struct text out = { 0 };

	for (unsigned i = 0; i < count; i++)
		look_at_worker(&workers[i], now_ms(), &samples[i]);
	(void)talks_add(workers, samples, count, store_port, 0);
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
	unsigned store_port = (unsigned)strtoul(argv[3], NULL, 10);

	for (int i = 4; i < argc && count < WORKERS_MAX; i++, count++)
		if (sscanf(argv[i], "%u:%d", &workers[count].rank, &workers[count].pid) != 2)
			return 2;
	printf("t=%" PRIu64 " begin\n", now_ms());
	for (unsigned i = 0; i < seconds; i++) {
		const struct timespec second = { .tv_sec = 1 };

		look_once(workers, count, store_port);
		(void)nanosleep(&second, NULL);
	}
	return 0;
}

static void tell(const struct detector *d, enum detector_news news, uint64_t at)
{
	static const char *const words[] = { "", "suspect", "cleared", "certain" };
	struct text text = { 0 };

	if (news == NEWS_NONE)
		return;
	printf("t=%" PRIu64 " %s", at, words[news]);
	if (news != NEWS_CLEARED) {
		printf(" %s ", hang_class_word(d->finding.class));
		for (unsigned i = 0; i < d->finding.count && i < FINDING_RANKS; i++)
			printf("%s%u", i > 0 ? "," : "", d->finding.ranks[i]);
		finding_describe(&d->finding, &text);
		printf("%s %s", d->finding.count > 0 ? "" : "-", text_string(&text));
	}
	printf("\n");
	text_done(&text);
}

static void take(struct detector *d, char *line)
{
	struct worker_sample s;
	uint64_t at;
	unsigned rank;
	char word[64] = "";

	line[strcspn(line, "\n")] = '\0';
	if (sample_read(line, strlen(line), &s) == 0)
		detector_see(d, &s);
	else if (sscanf(line, "waits %u %63s", &rank, word) >= 1)
		detector_awaits(d, rank, word);
	else if (sscanf(line, "t=%" SCNu64 " %63s", &at, word) == 2 && strcmp(word, "begin") == 0)
		detector_begin(d, at);
	else if (strcmp(word, "moved") == 0)
		tell(d, detector_moved(d, at), at);
	else if (strcmp(word, "judge") == 0)
		tell(d, detector_judge(d, at), at);
}

static int replay(char **argv)
{
	struct detector d = { .ranks = (unsigned)strtoul(argv[2], NULL, 10),
		.after_ms = strtoull(argv[3], NULL, 10) };
	char *line = NULL;
	size_t room = 0;

	if (d.ranks < 1 || d.ranks > RANKS_MAX)
		return 2;
	d.sights = calloc(d.ranks, sizeof *d.sights);
	d.room = calloc((size_t)d.ranks * TALKS_MAX, sizeof *d.room);
	if (!d.sights || !d.room)
		return 1;
	while (getline(&line, &room, stdin) > 0)
		take(&d, line);
	free(line);
	free(d.room);
	free(d.sights);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && strcmp(argv[1], "look") == 0)
		return look(argc, argv);
	if (argc == 4 && strcmp(argv[1], "replay") == 0)
		return replay(argv);
	(void)fprintf(stderr,
		"usage: %s look SECONDS STORE_PORT RANK:PID... | replay RANKS AFTER_MS\n", argv[0]);
	return 2;
}
