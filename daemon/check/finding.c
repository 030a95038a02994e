/* finding.c - see finding.h */
#include "daemon/check/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/text.h"

static const char *const words[HEALTHS] = {
	[HEALTH_GOOD] = "good",
	[HEALTH_UNKNOWN] = "unknown",
	[HEALTH_BAD] = "bad",
};

const char *health_word(enum health h)
{
	return words[h];
}

/* Where one of this health goes; NULL: nothing stands there that matters less. */
static struct finding *room_for(struct findings *f, enum health health)
{
	if (f->count < FINDINGS_MAX)
		return &f->at[f->count++];
	f->count = FINDINGS_MAX; /* a child may have written anything */
	f->left_out++;
	for (int less = HEALTH_GOOD; less < (int)health; less++)
		for (unsigned i = f->count; i-- > 0;)
			if ((int)f->at[i].health == less)
				return &f->at[i];
	return NULL;
}

/* Copies a text on one line. */
static void copy(char *to, const char *from, size_t size)
{
	text_fit(to, size, from);
	for (; *to; to++)
		if ((unsigned char)*to < 0x20 || *to == 0x7f)
			*to = ' ';
}

/* The same of a child's, which may have no end. */
static void copy_back(char *to, const char *from, size_t size)
{
	char text[sizeof((struct finding *)NULL)->text];

	memcpy(text, from, size);
	text[size - 1] = '\0';
	copy(to, text, size);
}

void findings_add(struct findings *f, enum health health, const char *check, const char *subject,
	const char *fmt, ...)
{
	struct finding *to = room_for(f, health);
	char text[4 * sizeof to->text];
	va_list ap;

	if (!to)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	to->health = health;
	copy(to->check, check, sizeof to->check);
	copy(to->subject, subject, sizeof to->subject);
	copy(to->text, text, sizeof to->text);
}

void findings_merge(struct findings *f, const struct findings *from)
{
	unsigned count = from->count < FINDINGS_MAX ? from->count : FINDINGS_MAX;

	f->left_out += from->left_out;
	for (unsigned i = 0; i < count; i++) {
		struct finding one = from->at[i]; /* whose child may still write */
		enum health health = (unsigned)one.health < HEALTHS ? one.health : HEALTH_UNKNOWN;
		struct finding *to = room_for(f, health);

		if (!to)
			continue;
		to->health = health;
		copy_back(to->check, one.check, sizeof to->check);
		copy_back(to->subject, one.subject, sizeof to->subject);
		copy_back(to->text, one.text, sizeof to->text);
	}
}

const struct finding *findings_find(
	const struct findings *f, const char *check, const char *subject)
{
	for (unsigned i = 0; i < f->count; i++)
		if (strcmp(f->at[i].check, check) == 0 &&
			(!subject || strcmp(f->at[i].subject, subject) == 0))
			return &f->at[i];
	return NULL;
}

enum health findings_worst(const struct findings *f)
{
	enum health worst = HEALTH_GOOD;

	for (unsigned i = 0; i < f->count; i++)
		if (f->at[i].health > worst)
			worst = f->at[i].health;
	return worst;
}

static unsigned count_of(const struct findings *f, enum health health)
{
	unsigned count = 0;

	for (unsigned i = 0; i < f->count; i++)
		count += f->at[i].health == health;
	return count;
}

/* --- for people --- */

static bool is_alike(const struct finding *a, const struct finding *b)
{
	return a->health == b->health && a->health != HEALTH_BAD &&
		strcmp(a->check, b->check) == 0 && strcmp(a->text, b->text) == 0;
}

/* How many say the same as the i-th; 0: it isn't the first of them. */
static unsigned alike(const struct findings *f, unsigned i)
{
	unsigned count = 1;

	for (unsigned other = 0; other < f->count; other++)
		if (other != i && is_alike(&f->at[i], &f->at[other])) {
			if (other < i)
				return 0;
			count++;
		}
	return count;
}

static void add_row(const struct findings *f, unsigned i, struct text *out)
{
	const struct finding *one = &f->at[i];
	unsigned count = alike(f, i);
	const char *end = strrchr(one->subject, ' ');
	char subject[sizeof one->subject + 16];

	if (count == 0)
		return;
	if (count == 1)
		(void)snprintf(subject, sizeof subject, "%s", one->subject);
	else if (end && strncmp(one->subject, "GPU ", 4) == 0)
		(void)snprintf(subject, sizeof subject, "%u GPUs", count);
	else
		(void)snprintf(subject, sizeof subject, "%s +%u", one->subject, count - 1);
	text_printf(out, "%-8s %-15s %-16s ", words[one->health], one->check, subject);
	text_add_shown(out, one->text, strlen(one->text));
	text_add(out, "\n");
}

void findings_table(const struct findings *f, struct text *out)
{
	unsigned bad = count_of(f, HEALTH_BAD), unknown = count_of(f, HEALTH_UNKNOWN);

	for (int health = HEALTH_BAD; health >= HEALTH_GOOD; health--)
		for (unsigned i = 0; i < f->count; i++)
			if ((int)f->at[i].health == health)
				add_row(f, i, out);
	text_printf(out, "\nThis node is %s: ", bad ? "bad" : "good");
	if (bad)
		text_printf(out, "%u bad, ", bad);
	text_printf(out, "%u good, %u unknown", count_of(f, HEALTH_GOOD), unknown);
	if (f->left_out)
		text_printf(out, ", %u left out", f->left_out);
	text_add(out, "\n");
}

/* --- for programs --- */

void findings_json(const struct findings *f, const char *host, struct text *out)
{
	struct json j = { .out = out };

	json_object_begin(&j, NULL);
	json_number(&j, "launchd_node_check", 1);
	json_string(&j, "host", host);
	json_string(&j, "health", words[findings_worst(f)]);
	json_number(&j, "left_out", f->left_out);
	json_array_begin(&j, "findings");
	for (unsigned i = 0; i < f->count; i++) {
		json_object_begin(&j, NULL);
		json_string(&j, "check", f->at[i].check);
		json_string(&j, "subject", f->at[i].subject);
		json_string(&j, "health", words[f->at[i].health]);
		json_string(&j, "text", f->at[i].text);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
}

static void add_sample(
	const struct finding *one, const char *name, const char *host, int value, struct text *out)
{
	text_printf(out, "%s{check=", name);
	text_add_label(out, one->check);
	text_add(out, ",subject=");
	text_add_label(out, one->subject);
	if (host) {
		text_add(out, ",host=");
		text_add_label(out, host);
	}
	text_printf(out, "} %d\n", value);
}

/* Prometheus refuses a name with the same labels twice: the worst of them is told. */
static bool is_told(const struct findings *f, unsigned i)
{
	const struct finding *one = &f->at[i];

	for (unsigned other = 0; other < f->count; other++) {
		const struct finding *o = &f->at[other];

		if (strcmp(o->check, one->check) != 0 || strcmp(o->subject, one->subject) != 0)
			continue;
		if (o->health > one->health || (o->health == one->health && other < i))
			return false;
	}
	return true;
}

void findings_prometheus(const struct findings *f, const char *host, struct text *out)
{
	text_add(out,
		"# HELP launchd_node_check Whether what was checked is good (1) or bad (0).\n"
		"# TYPE launchd_node_check gauge\n");
	for (unsigned i = 0; i < f->count; i++)
		if (f->at[i].health != HEALTH_UNKNOWN && is_told(f, i))
			add_sample(&f->at[i], "launchd_node_check", host,
				f->at[i].health == HEALTH_GOOD, out);
	text_add(out,
		"# HELP launchd_node_check_unknown What could not be checked.\n"
		"# TYPE launchd_node_check_unknown gauge\n");
	for (unsigned i = 0; i < f->count; i++)
		if (f->at[i].health == HEALTH_UNKNOWN && is_told(f, i))
			add_sample(&f->at[i], "launchd_node_check_unknown", host, 1, out);
}
