/* hang_trace.c - see hang_trace.h */
#include "daemon/witness/hang_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum { LINE_BYTES = 1024 }; /* of a line that is no sample; more is cut */

static const char *const news_words[] = {
	[NEWS_SUSPECT] = "suspect",
	[NEWS_CLEARED] = "cleared",
	[NEWS_CERTAIN] = "certain",
};

/* "outside 3,5 rank 3 is ..."; where no rank is named: "all_wait - all ranks ..." */
static void add_finding(struct text *out, const struct hang_finding *f)
{
	text_printf(out, " %s ", hang_class_word(f->class));
	for (unsigned i = 0; i < f->count && i < FINDING_RANKS; i++)
		text_printf(out, "%s%u", i > 0 ? "," : "", f->ranks[i]);
	text_add(out, f->count > 0 ? " " : "- ");
	finding_describe(f, out);
}

static void add_news(struct text *out, const struct trace_step *s)
{
	text_printf(out, "t=%" PRIu64 " %s", s->at_ms, news_words[s->news]);
	if (s->news != NEWS_CLEARED)
		add_finding(out, &s->finding);
}

void trace_add(struct text *out, const struct trace_step *s)
{
	switch (s->kind) {
	case TRACE_BEGIN:
		text_printf(
			out, "t=%" PRIu64 " begin %u %" PRIu64, s->at_ms, s->ranks, s->after_ms);
		break;
	case TRACE_MOVED:
		text_printf(out, "t=%" PRIu64 " moved", s->at_ms);
		break;
	case TRACE_SAMPLE:
		sample_add(out, &s->sample); /* with its newline */
		return;
	case TRACE_STOPPED:
		text_printf(out, "stopped %u %d", s->rank, s->stop_signal);
		break;
	case TRACE_AWAITS:
		text_printf(out, "awaits %u ", s->rank);
		text_add_shown(out, s->key, strlen(s->key));
		break;
	case TRACE_LATE:
		text_printf(out, "late %u", s->rank);
		break;
	case TRACE_RAS:
		text_printf(out, "ops ras %" PRIu32, s->ras_bytes);
		break;
	case TRACE_OPS:
		rank_ops_add(out, s->rank, &s->ops); /* with its newline */
		return;
	case TRACE_JUDGE:
		text_printf(out, "t=%" PRIu64 " judge", s->at_ms);
		break;
	case TRACE_NEWS:
		add_news(out, s);
		break;
	}
	text_add(out, "\n");
}

/* --- reading --- */

static enum hang_class class_of(const char *word)
{
	for (int i = 0; i < HANG_CLASSES; i++)
		if (strcmp(hang_class_word((enum hang_class)i), word) == 0)
			return (enum hang_class)i;
	return HANG_NONE;
}

/* "3,5"; "-": none */
static void read_ranks(const char *at, struct hang_finding *f)
{
	while (*at >= '0' && *at <= '9' && f->count < FINDING_RANKS) {
		char *end;

		f->ranks[f->count++] = (unsigned)strtoul(at, &end, 10);
		at = *end == ',' ? end + 1 : end;
	}
}

static int read_news(const char *word, const char *rest, struct trace_step *s)
{
	char class[16] = "", ranks[256] = "";

	for (size_t i = NEWS_SUSPECT; i < sizeof news_words / sizeof *news_words; i++) {
		if (strcmp(word, news_words[i]) != 0)
			continue;
		s->kind = TRACE_NEWS;
		s->news = (enum detector_news)i;
		(void)sscanf(rest, " %15s %255s", class, ranks);
		s->finding.class = class_of(class);
		read_ranks(ranks, &s->finding);
		return 0;
	}
	return -EINVAL;
}

static int read_timed(const char *text, struct trace_step *s)
{
	char word[16];
	int used = 0;

	if (sscanf(text, "t=%" SCNu64 " %15s%n", &s->at_ms, word, &used) != 2)
		return -EINVAL;
	if (strcmp(word, "begin") == 0) {
		s->kind = TRACE_BEGIN;
		return sscanf(text + used, "%u %" SCNu64, &s->ranks, &s->after_ms) == 2 ? 0 :
											  -EINVAL;
	}
	s->kind = strcmp(word, "moved") == 0 ? TRACE_MOVED : TRACE_JUDGE;
	if (s->kind == TRACE_MOVED || strcmp(word, "judge") == 0)
		return 0;
	return read_news(word, text + used, s);
}

static int read_awaits(const char *text, struct trace_step *s)
{
	int used = 0;

	if (sscanf(text, "awaits %u %n", &s->rank, &used) != 1 || !text[used])
		return -EINVAL;
	s->kind = TRACE_AWAITS;
	(void)snprintf(s->key, sizeof s->key, "%s", text + used);
	return 0;
}

static int read_ops(const char *text, struct trace_step *s)
{
	s->kind = TRACE_OPS;
	if (rank_ops_read(text, &s->rank, &s->ops) == 0)
		return 0;
	s->kind = TRACE_LATE;
	if (sscanf(text, "late %u", &s->rank) == 1)
		return 0;
	s->kind = TRACE_RAS;
	return sscanf(text, "ops ras %" SCNu32, &s->ras_bytes) == 1 ? 0 : -EINVAL;
}

int trace_read(const char *line, size_t len, struct trace_step *ret)
{
	struct trace_step s = { .kind = TRACE_SAMPLE };
	char text[LINE_BYTES];
	int rc = sample_read(line, len, &s.sample);

	if (rc < 0) {
		(void)snprintf(text, sizeof text, "%.*s",
			(int)(len < sizeof text ? len : sizeof text - 1), line);
		rc = read_timed(text, &s);
		if (rc < 0)
			rc = read_awaits(text, &s);
		if (rc < 0)
			rc = read_ops(text, &s);
		if (rc < 0 && sscanf(text, "stopped %u %d", &s.rank, &s.stop_signal) == 2) {
			s.kind = TRACE_STOPPED;
			rc = 0;
		}
	}
	if (rc == 0)
		*ret = s;
	return rc;
}

/* --- playing --- */

static enum detector_news judge(struct detector *d, uint64_t at_ms)
{
	enum detector_news news = detector_judge(d, at_ms);

	for (unsigned i = 0; i < d->ranks; i++) {
		detector_awaits(d, i, "");
		detector_late(d, i, false);
	}
	return news;
}

enum detector_news trace_play(struct detector *d, const struct trace_step *s)
{
	switch (s->kind) {
	case TRACE_BEGIN:
		d->after_ms = s->after_ms;
		detector_begin(d, s->at_ms);
		return NEWS_NONE;
	case TRACE_MOVED:
		return detector_moved(d, s->at_ms);
	case TRACE_SAMPLE:
		detector_see(d, &s->sample);
		return NEWS_NONE;
	case TRACE_STOPPED:
		detector_stopped(d, s->rank, s->stop_signal);
		return NEWS_NONE;
	case TRACE_AWAITS:
		detector_awaits(d, s->rank, s->key);
		return NEWS_NONE;
	case TRACE_LATE:
		detector_late(d, s->rank, true);
		return NEWS_NONE;
	case TRACE_RAS:
		detector_ras(d, s->ras_bytes);
		return NEWS_NONE;
	case TRACE_OPS:
		detector_ops(d, s->rank, &s->ops);
		return NEWS_NONE;
	case TRACE_JUDGE:
		return judge(d, s->at_ms);
	case TRACE_NEWS:
		return NEWS_NONE;
	}
	return NEWS_NONE;
}

/* --- writing what a detector knows --- */

void trace_add_awaits(struct text *out, const struct detector *d)
{
	for (unsigned i = 0; i < d->ranks; i++) {
		struct trace_step s = { .kind = TRACE_AWAITS, .rank = i };

		memcpy(s.key, d->sights[i].awaits, sizeof s.key);
		if (*s.key)
			trace_add(out, &s);
		s.kind = TRACE_LATE;
		if (d->sights[i].late)
			trace_add(out, &s);
	}
}

void trace_add_news(
	struct text *out, const struct detector *d, enum detector_news news, uint64_t at_ms)
{
	if (news != NEWS_NONE)
		trace_add(out,
			&(struct trace_step){ .kind = TRACE_NEWS,
				.at_ms = at_ms,
				.news = news,
				.finding = d->finding });
}
