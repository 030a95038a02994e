/* hosts.c - see hosts.h */
#include "config/hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/vec.h"
#include "config/lists.h"

enum {
	NAME_MAX_BYTES = 253, /* of DNS */
	SHOWN_BYTES = 100,    /* of a word in a sentence */
};

/* One word of a list. */
struct word {
	struct arena *arena;
	const char *text; /* all of it */
	size_t len;
	const char *where;
	struct failure *why;
};

static int refuse(const struct word *w, const char *fault)
{
	return failure_usage(w->why, "%s: \"%.*s%s\" %s", w->where,
		(int)(w->len < SHOWN_BYTES ? w->len : SHOWN_BYTES), w->text,
		w->len > SHOWN_BYTES ? "..." : "", fault);
}

static int refuse_number(const struct word *w)
{
	return failure_usage(w->why, "%s: there are more than %d hosts", w->where, HOSTS_MAX);
}

/* NULL: out of memory, which the arena knows. */
static struct host *add(struct arena *arena, struct hosts *h)
{
	enum { ROOM = 16 };

	if (h->count == h->room) {
		size_t room = h->room ? 2 * h->room : ROOM;
		struct host *at = arena_alloc(arena, room * sizeof *at);

		if (!at)
			return NULL;
		if (h->count > 0)
			memcpy(at, h->at, h->count * sizeof *at);
		h->at = at;
		h->room = room;
	}
	return &h->at[h->count++];
}

/* Why a name is none; NULL: it may be one. What ends with a number is no name (RFC 1123, 2.1): the
 * resolver would take 10.0.1 for an address. */
static const char *name_fault(const char *name)
{
	static const char letters[] = "-_.0123456789abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *last = strrchr(name, '.');

	if (strchr(name, ':'))
		return "has a ':', but is not an IPv6 address: give the host alone, without a port "
		       "(in a host file slots=N says how many workers it has)";
	if (strlen(name) > NAME_MAX_BYTES)
		return "is too long for the name of a host";
	last = last ? last + 1 : name;
	if (name[strspn(name, letters)] || *name == '-' || *name == '.' || strstr(name, "..") ||
		!last[strspn(last, "0123456789")])
		return "is not the name or the address of a host";
	return NULL;
}

static int add_host(const struct word *w, const char *name, struct hosts *ret)
{
	size_t len = strlen(name);
	char text[ADDRESS_TEXT];
	struct host *host;
	struct address a;
	bool is_address;

	if (len > 2 && name[0] == '[' && name[len - 1] == ']')
		name = arena_strndup(w->arena, name + 1, len - 2);
	is_address = address_parse(name, 0, &a) == 0;
	if (is_address && address_is_any(&a))
		return refuse(w, "is the address of no host");
	if (is_address) {
		address_host_text(&a, text);
		name = arena_strdup(w->arena, text);
	} else if (len > 1 && name[len - 1] == '.') {
		name = arena_strndup(w->arena, name, len - 1);
	}
	if (!is_address && name_fault(name))
		return refuse(w, name_fault(name));
	if (ret->count == HOSTS_MAX)
		return refuse_number(w);
	host = add(w->arena, ret);
	if (!host)
		return failure_oom(w->why);
	*host = (struct host){ .name = name, .where = w->where, .is_address = is_address };
	return 0;
}

/* What a bracket holds, the len bytes at list, behind each of these beginnings; the zeros before a
 * range's first number are those of all. */
static int expand(const struct word *w, const struct vec *before, const char *list, size_t len,
	struct vec *ret)
{
	for (size_t i = 0; i < before->count; i++) {
		const char *at = list, *end = list + len;

		while (at <= end) {
			const char *comma = memchr(at, ',', (size_t)(end - at));
			size_t item = (size_t)((comma ? comma : end) - at);
			const char *dash = memchr(at, '-', item);
			int width = (int)(dash ? (size_t)(dash - at) : item);
			struct range r;

			if (range_parse(at, item, 0, UINT32_MAX, &r) < 0)
				return refuse(w,
					"has a bracket that holds no numbers and ranges of them, "
					"as in gpu[01-16,20]");
			for (uint64_t n = r.first; n <= r.last; n++) {
				if (ret->count == HOSTS_MAX)
					return refuse_number(w);
				vec_add(w->arena, ret,
					arena_printf(w->arena, "%s%0*llu", before->at[i], width,
						(unsigned long long)n));
				if (arena_failed(w->arena))
					return failure_oom(w->why);
			}
			at += item + 1;
		}
	}
	return 0;
}

static void append(const struct word *w, struct vec *names, const char *text, size_t len)
{
	for (size_t i = 0; len > 0 && i < names->count; i++)
		names->at[i] = arena_printf(w->arena, "%s%.*s", names->at[i], (int)len, text);
}

/* An IPv6 address in brackets, not a range. */
static bool is_address_in_brackets(const char *text, size_t len)
{
	return len > 2 && text[0] == '[' && memchr(text, ']', len) == text + len - 1 &&
		memchr(text, ':', len);
}

/* Takes ":8" off a word's end, if it is there: *ret. An IPv6 address has more than one colon, or is
 * in brackets. */
static int take_colon(struct word *w, unsigned *ret)
{
	const char *last = memrchr(w->text, ':', w->len), *end = w->text + w->len;
	size_t name = last ? (size_t)(last - w->text) : 0;
	uint64_t n;

	if (name == 0 || (last[-1] != ']' && memchr(w->text, ':', name)) || last + 1 == end ||
		last[1] < '0' || last[1] > '9')
		return 0;
	if (num_parse_len(last + 1, (size_t)(end - last - 1), 1, HOSTS_MAX, &n) < 0)
		return refuse(w, "is not followed by a number of workers, 1 to 65536");
	*ret = (unsigned)n;
	w->len = name;
	return 0;
}

static int add_word(const struct word *word, struct hosts *ret)
{
	struct word one = *word;
	const struct word *w = &one;
	size_t before = ret->count;
	struct vec names = { 0 };
	const char *at, *end;
	unsigned slots = 0;
	int rc = ret->colon ? take_colon(&one, &slots) : 0;

	at = w->text;
	end = w->text + w->len;

	vec_add(w->arena, &names, "");
	if (is_address_in_brackets(at, w->len)) {
		append(w, &names, at, w->len);
		at = end;
	}
	while (at < end && rc == 0) {
		const char *open = memchr(at, '[', (size_t)(end - at));
		const char *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
		struct vec longer = { 0 };

		if (open && !close)
			return refuse(w, "has a bracket that isn't closed");
		append(w, &names, at, (size_t)((open ? open : end) - at));
		at = end;
		if (!open)
			continue;
		rc = expand(w, &names, open + 1, (size_t)(close - open - 1), &longer);
		names = longer;
		at = close + 1;
	}
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = add_host(w, names.at[i], ret);
	for (; before < ret->count; before++)
		ret->at[before].slots = slots;
	if (arena_failed(w->arena))
		return failure_oom(w->why);
	return rc;
}

/* Up to a blank, or a comma outside of brackets. */
static size_t word_length(const char *text, const char *end)
{
	bool inside = false;
	size_t n = 0;

	for (; text + n < end && text[n] != ' ' && text[n] != '\t'; n++) {
		if (text[n] == ',' && !inside)
			break;
		inside = text[n] == '[' || (inside && text[n] != ']');
	}
	return n;
}

int hosts_add_list(struct arena *arena, const char *text, const char *where, struct hosts *ret,
	struct failure *why)
{
	const char *end = text + strlen(text);
	struct hosts all = *ret;
	int rc = 0;

	for (text += strspn(text, ", \t"); text < end && rc == 0; text += strspn(text, ", \t")) {
		const struct word w = { arena, text, word_length(text, end), where, why };

		rc = add_word(&w, &all);
		text += w.len;
	}
	if (rc == 0 && all.count == ret->count)
		return failure_usage(why, "%s names no host", where);
	if (rc == 0)
		*ret = all;
	return rc;
}

/* --- host files --- */

/* "slots=8" behind a host. */
static int put_option(const struct word *w, struct host *first, struct host *end)
{
	const char *equals = memchr(w->text, '=', w->len);
	size_t key = equals ? (size_t)(equals - w->text) : w->len;
	bool slots = key == strlen("slots") && strncmp(w->text, "slots", key) == 0;
	bool most = key == strlen("max_slots") &&
		(strncmp(w->text, "max_slots", key) == 0 ||
			strncmp(w->text, "max-slots", key) == 0);
	uint64_t n;

	if (!equals || !(slots || most))
		return refuse(w,
			"is not known: only slots=N and max_slots=N may stand behind a host, and "
			"each host has a line of its own");
	if (num_parse_len(equals + 1, w->len - key - 1, 1, HOSTS_MAX, &n) < 0)
		return refuse(w, "is not a number of workers, 1 to 65536");
	for (; first < end; first++)
		*(slots ? &first->slots : &first->max_slots) = (unsigned)n;
	return 0;
}

static size_t skip_blanks(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && (at[n] == ' ' || at[n] == '\t'))
		n++;
	return n;
}

/* One line without its end. */
static int add_line(struct word *w, const char *at, const char *end, struct hosts *ret)
{
	size_t before = ret->count;
	int rc = 0;

	for (const char *p = at; p < end; p++)
		if (*p == '#' && (p == at || p[-1] == ' ' || p[-1] == '\t'))
			end = p;
	for (at += skip_blanks(at, end); at < end && rc == 0; at += skip_blanks(at, end)) {
		w->text = at;
		w->len = word_length(at, end);
		if (at + w->len < end && at[w->len] == ',')
			return refuse(
				w, "is followed by a comma: give each host a line of its own");
		rc = ret->count == before ? add_word(w, ret) :
					    put_option(w, ret->at + before, ret->at + ret->count);
		at += w->len;
	}
	for (size_t i = before; rc == 0 && i < ret->count; i++)
		if (ret->at[i].max_slots && ret->at[i].slots > ret->at[i].max_slots)
			return failure_usage(w->why, "%s: %s has slots=%u, above its max_slots=%u",
				w->where, ret->at[i].name, ret->at[i].slots, ret->at[i].max_slots);
	return rc;
}

int hosts_add_file(struct arena *arena, const char *bytes, size_t len, const char *name,
	struct hosts *ret, struct failure *why)
{
	const char *at = bytes, *end = bytes + len;
	struct hosts all = *ret;
	unsigned line = 1;
	int rc = 0;

	if (memchr(bytes, '\0', len))
		return failure_usage(why, "%s has a NUL byte: is it a text, and not UTF-16?", name);
	if (len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3; /* byte order mark */
	for (; at < end && rc == 0; line++) {
		struct arena_mark mark = arena_mark(arena);
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		struct word w = { .arena = arena,
			.where = arena_printf(arena, "%s:%u", name, line),
			.why = why };
		size_t before = all.count;

		if (stop > at && stop[-1] == '\r')
			stop--;
		rc = add_line(&w, at, stop, &all);
		if (rc == 0 && all.count == before)
			arena_rewind(arena, mark); /* a comment */
		at = newline ? newline + 1 : end;
	}
	if (rc == 0 && all.count == ret->count)
		return failure_usage(why, "%s names no host", name);
	if (rc == 0)
		*ret = all;
	return rc;
}

int hosts_check_slots(const struct hosts *hosts, struct failure *why)
{
	const struct host *with = NULL, *without = NULL;

	for (size_t i = 0; i < hosts->count; i++) {
		const struct host *h = &hosts->at[i];

		if (h->slots && !with)
			with = h;
		if (!h->slots && !without)
			without = h;
	}
	return with && without ?
		failure_usage(why, "%s: %s has no slots, but %s has (%s): give all or none",
			without->where, without->name, with->name, with->where) :
		0;
}

/* Case is nothing to a name; entries that are equal keep their order. */
static int by_name(const void *a, const void *b)
{
	const struct host *one = *(const struct host *const *)a;
	const struct host *other = *(const struct host *const *)b;
	int order = strcasecmp(one->name, other->name);

	return order ? order : (one > other) - (one < other);
}

const struct host *hosts_twice(
	struct arena *arena, const struct hosts *hosts, const struct host **ret_first)
{
	const struct host **sorted = arena_alloc(arena, (hosts->count + 1) * sizeof *sorted);
	const struct host *second = NULL;

	for (size_t i = 0; sorted && i < hosts->count; i++)
		sorted[i] = &hosts->at[i];
	if (sorted)
		qsort(sorted, hosts->count, sizeof *sorted, by_name);
	for (size_t i = 1; sorted && i < hosts->count; i++)
		if (strcasecmp(sorted[i - 1]->name, sorted[i]->name) == 0 &&
			(!second || sorted[i] < second)) {
			*ret_first = sorted[i - 1];
			second = sorted[i];
		}
	return second;
}
