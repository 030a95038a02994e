/* hosts.c - see hosts.h */
#include "config/hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/vec.h"
#include "config/lists.h"

enum {
	NAME_MAX_BYTES = 253,  /* of DNS */
	SHOWN_BYTES = 100,     /* of a word in a sentence */
	ENTRIES_MAX = 1 << 20, /* of a file, in which a host may stand once for each slot */
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
		       "(HOST:N in a host file says how many workers it has)";
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
	if (ret->count == (ret->is_file ? ENTRIES_MAX : HOSTS_MAX))
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
static int take_colon(struct word *w, bool may_be_none, struct host *ret)
{
	const char *last = memrchr(w->text, ':', w->len), *end = w->text + w->len;
	size_t name = last ? (size_t)(last - w->text) : 0;
	uint64_t n;

	if (name == 0 || (last[-1] != ']' && memchr(w->text, ':', name)) || last + 1 == end ||
		last[1] < '0' || last[1] > '9')
		return 0;
	if (num_parse_len(last + 1, (size_t)(end - last - 1), !may_be_none, HOSTS_MAX, &n) < 0)
		return refuse(w, "is not followed by a number of workers, 1 to 65536");
	ret->slots = (unsigned)n;
	ret->said = SLOTS_ADDED;
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
	struct host all = { 0 };
	int rc = ret->colon ? take_colon(&one, ret->is_file, &all) : 0;

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
	for (; before < ret->count; before++) {
		ret->at[before].slots = all.slots;
		ret->at[before].said = all.said;
	}
	if (arena_failed(w->arena))
		return failure_oom(w->why);
	return rc;
}

/* What C and Open MPI take for one within a line. */
static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Up to a blank, or a comma outside of brackets. */
static size_t word_length(const char *text, const char *end)
{
	bool inside = false;
	size_t n = 0;

	for (; text + n < end && !is_blank(text[n]); n++) {
		if (text[n] == ',' && !inside)
			break;
		inside = text[n] == '[' || (inside && text[n] != ']');
	}
	return n;
}

/* Hosts without slots beside some that have them have 1, as for Hydra, Open MPI 4 and PBS. */
static void hosts_fill_slots(struct hosts *h)
{
	bool any = false;

	for (size_t i = 0; i < h->count; i++)
		any = any || h->at[i].said;
	for (size_t i = 0; any && i < h->count; i++)
		if (!h->at[i].said)
			h->at[i].slots = 1;
}

int hosts_add_list(struct arena *arena, const char *text, const char *where, struct hosts *ret,
	struct failure *why)
{
	static const char separators[] = ", \t\n\v\f\r"; /* those of is_blank(), and a comma */
	const char *end = text + strlen(text);
	struct hosts all = *ret;
	int rc = 0;

	for (text += strspn(text, separators); text < end && rc == 0;
		text += strspn(text, separators)) {
		const struct word w = { arena, text, word_length(text, end), where, why };

		rc = add_word(&w, &all);
		text += w.len;
	}
	if (rc == 0 && all.count == ret->count)
		return failure_usage(why, "%s names no host", where);
	if (rc == 0) {
		hosts_fill_slots(&all);
		*ret = all;
	}
	return rc;
}

/* Case is nothing to a name; entries that are equal keep their order. */
static int by_name(const void *a, const void *b)
{
	const struct host *one = *(const struct host *const *)a;
	const struct host *other = *(const struct host *const *)b;
	int order = strcasecmp(one->name, other->name);

	return order ? order : (one > other) - (one < other);
}

/* All of them in that order. */
static struct host **hosts_sort(struct arena *arena, const struct hosts *hosts)
{
	struct host **sorted = arena_alloc(arena, (hosts->count + 1) * sizeof *sorted);

	for (size_t i = 0; sorted && i < hosts->count; i++)
		sorted[i] = &hosts->at[i];
	if (sorted)
		qsort(sorted, hosts->count, sizeof *sorted, by_name);
	return sorted;
}

const struct host *hosts_twice(
	struct arena *arena, const struct hosts *hosts, const struct host **ret_first)
{
	struct host **sorted = hosts_sort(arena, hosts);
	const struct host *second = NULL;

	for (size_t i = 1; sorted && i < hosts->count; i++)
		if (strcasecmp(sorted[i - 1]->name, sorted[i]->name) == 0 &&
			(!second || sorted[i] < second)) {
			*ret_first = sorted[i - 1];
			second = sorted[i];
		}
	return second;
}

/* --- host files --- */

enum option {
	OPTION_SLOTS,
	OPTION_MOST,
	OPTION_LOGIN,       /* Open MPI's */
	OPTION_HYDRA_LOGIN, /* Hydra's: Open MPI's mpirun reads none of it */
	OPTION_IGNORED,     /* launchd binds workers, not mpiexec */
};

/* What may stand behind a host, as KEY=VALUE; '-' is '_'. Open MPI's hostfile_lex.l and Hydra's
 * HYDU_process_mfile_token() have them all; DeepSpeed, horovodrun and MPI operators have slots. */
static const struct {
	const char *key;
	enum option option;
} options[] = {
	{ "slots", OPTION_SLOTS },
	{ "cpu", OPTION_SLOTS },
	{ "count", OPTION_SLOTS },
	{ "max_slots", OPTION_MOST },
	{ "slots_max", OPTION_MOST },
	{ "max_cpu", OPTION_MOST },
	{ "cpu_max", OPTION_MOST },
	{ "max_count", OPTION_MOST },
	{ "count_max", OPTION_MOST },
	{ "username", OPTION_LOGIN },
	{ "user_name", OPTION_LOGIN },
	{ "port", OPTION_LOGIN },
	{ "user", OPTION_HYDRA_LOGIN },
	{ "binding", OPTION_IGNORED },
};

static bool hostfile_key_is(const char *key, const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && key[i] && (text[i] == key[i] || (text[i] == '-' && key[i] == '_')))
		i++;
	return i == len && !key[i];
}

/* NULL: it is none. */
static const enum option *hostfile_option(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (hostfile_key_is(options[i].key, text, len))
			return &options[i].option;
	return NULL;
}

/* What Open MPI takes behind a host and ignores. */
static bool hostfile_ignores(const struct word *w)
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-,:*@";

	for (size_t i = 0; i < w->len; i++)
		if (!memchr(letters, w->text[i], sizeof letters - 1))
			return false;
	return true;
}

static int hostfile_slots(const struct word *w, enum option option, const char *value, size_t len,
	struct host *at, const struct host *end)
{
	uint64_t n;

	while (len > 0 && value[len - 1] == ',') /* DeepSpeed looks at the number alone */
		len--;
	if (num_parse_len(value, len, 0, HOSTS_MAX, &n) < 0)
		return refuse(w, "is not a number of workers, 0 to 65536");
	for (; at < end; at++) {
		if (option == OPTION_MOST) {
			at->max_slots = (unsigned)n;
			continue;
		}
		if (at->said == SLOTS_GIVEN)
			return refuse(w, "gives the host's slots once more");
		at->slots = (unsigned)n;
		at->said = SLOTS_GIVEN;
		if (at->max_slots && at->max_slots < n) /* it came first: Open MPI raises it */
			at->max_slots = (unsigned)n;
	}
	return 0;
}

/* w is all of it, "slots = 8", key the bytes of its key; value NULL: there is no '='. */
static int hostfile_put(
	const struct word *w, size_t key, const char *value, struct hosts *h, size_t before)
{
	const enum option *option = hostfile_option(w->text, key);

	/* HOST:N is Hydra's, who refuses a second one */
	if (!option && !value && hostfile_ignores(w) && !memchr(w->text, ':', w->len)) {
		notes_add(&h->notes, NOTE_WARNING,
			"%s: \"%.*s\" is ignored, as Open MPI does: each host needs a line of its "
			"own, and a number of workers is slots=N",
			w->where, (int)(w->len < SHOWN_BYTES ? w->len : SHOWN_BYTES), w->text);
		return 0;
	}
	if (!option)
		return refuse(w,
			"is not known: behind a host may stand slots=N and max_slots=N, and each "
			"host needs a line of its own");
	if (!value || value == w->text + w->len)
		return refuse(w, "has no value: write slots=8");
	h->is_wider |= *option >= OPTION_HYDRA_LOGIN || w->text[w->len - 1] == ',';
	if (*option == OPTION_SLOTS || *option == OPTION_MOST)
		return hostfile_slots(w, *option, value, (size_t)(w->text + w->len - value),
			h->at + before, h->at + h->count);
	for (; before < h->count; before++)
		h->at[before].login |= *option != OPTION_IGNORED;
	return 0;
}

/* The next word, up to a blank or a '='. */
static bool hostfile_word(struct word *w, const char **at, const char *end)
{
	while (*at < end && is_blank(**at))
		++*at;
	w->text = *at;
	while (*at < end && !is_blank(**at) && **at != '=')
		++*at;
	w->len = (size_t)(*at - w->text);
	return w->text < end;
}

static bool hostfile_word_is(const struct word *w, const char *word)
{
	return w->len == strlen(word) && strncmp(w->text, word, w->len) == 0;
}

/* "n0", "[fd00::1]", "n0:8", "user@n0", and "^n0", which PRRTE takes off the list. */
static int hostfile_host(const struct word *word, struct hosts *h)
{
	struct word w = *word;
	const char *at = memchr(w.text, '@', w.len);
	bool excluded = *w.text == '^';
	size_t before = h->count;
	int rc;

	if (*w.text == '+')
		return refuse(&w,
			"counts nodes of a batch system's allocation, but there is none: give the "
			"host's name");
	if (at == w.text)
		return refuse(&w, "has no user before the @");
	if (at || excluded) {
		w.text = at ? at + 1 : w.text + 1;
		w.len = (size_t)(word->text + word->len - w.text);
	}
	rc = add_word(&w, h);
	for (; rc == 0 && before < h->count; before++) {
		h->at[before].login = at;
		h->is_wider |= excluded || h->at[before].said == SLOTS_ADDED ||
			memchr(word->text, '[', word->len);
		if (excluded)
			h->at[before].said = SLOTS_OF_NOBODY;
	}
	return rc;
}

/* One line without its end, and without comments. A rank file's "rank 0=n0 slot=0" is one slot. */
static int hostfile_line(struct word *w, const char *at, const char *end, struct hosts *h)
{
	size_t before = h->count;
	bool ranked;
	int rc;

	if (!hostfile_word(w, &at, end))
		return 0;
	ranked = hostfile_word_is(w, "rank");
	if (ranked) {
		const char *equals = memchr(at, '=', (size_t)(end - at));

		if (!equals)
			return refuse(w, "is not followed by N=HOST");
		at = equals + 1;
		if (!hostfile_word(w, &at, end))
			return refuse(w, "names no host");
	}
	at = w->text;
	w->len = word_length(at, end);
	at += w->len;
	if (at < end && *at == ',')
		return refuse(w, "is followed by a comma: give each host a line of its own");
	rc = hostfile_host(w, h);
	for (; ranked && before < h->count; before++) {
		h->at[before].slots = 1;
		h->at[before].said = SLOTS_ADDED;
	}
	while (rc == 0 && !ranked && hostfile_word(w, &at, end)) {
		const char *key_end = at, *value = NULL;

		while (at < end && is_blank(*at))
			at++;
		if (at < end && *at == '=') {
			struct word v;

			at++;
			(void)hostfile_word(&v, &at, end);
			while (at < end && !is_blank(*at)) /* binding=map=0 */
				at++;
			value = v.text;
			w->len = (size_t)(at - w->text);
		}
		rc = hostfile_put(w, (size_t)(key_end - w->text), value, h, before);
	}
	return rc;
}

/* A copy with blanks in place of comments: after '#' and "//", and from slash and star, over lines,
 * to star and slash. */
static const char *without_comments(
	struct arena *arena, const char *bytes, size_t len, const char *name, struct failure *why)
{
	enum { NO, TO_LINE_END, TO_STAR } in = NO;
	char *copy = arena_alloc(arena, len + 1);
	unsigned line = 1, opened = 0;

	for (size_t i = 0; copy && i < len; i++) {
		const char *two = i + 1 < len ? bytes + i : "  ";

		line += bytes[i] == '\n';
		if (bytes[i] == '\n' && in == TO_LINE_END)
			in = NO;
		if (in == NO && (bytes[i] == '#' || memcmp(two, "//", 2) == 0))
			in = TO_LINE_END;
		copy[i] = in == NO || bytes[i] == '\n' ? bytes[i] : ' ';
		if (in != TO_LINE_END && memcmp(two, in == NO ? "/*" : "*/", 2) == 0) {
			in = in == NO ? TO_STAR : NO;
			opened = line;
			copy[i] = copy[i + 1] = ' ';
			i++;
		}
	}
	if (!copy)
		(void)failure_oom(why);
	else if (in == TO_STAR)
		(void)failure_usage(
			why, "%s:%u: a comment begins with /*, but doesn't end", name, opened);
	return why->code < 0 ? NULL : copy;
}

/* A line of a host that had one before: one slot more, or N of HOST:N. What slots=N would do there
 * Open MPI and DeepSpeed refuse. */
static int hostfile_repeat(struct host *first, const struct host *h, struct failure *why)
{
	if (h->said == SLOTS_GIVEN)
		return failure_usage(why,
			"%s: %s is listed twice, first at %s: slots=N may stand behind the first "
			"alone",
			h->where, h->name, first->where);
	first->slots = (first->said ? first->slots : 1) + (h->said ? h->slots : 1);
	if (first->slots > HOSTS_MAX)
		return failure_usage(
			why, "%s: %s has more than %d slots", h->where, h->name, HOSTS_MAX);
	first->said = SLOTS_GIVEN;
	first->max_slots = h->max_slots ? h->max_slots : first->max_slots;
	first->login |= h->login;
	return 0;
}

/* Each host once, at its first line; without those that a '^' excludes. */
static int hostfile_join(struct arena *arena, struct hosts *h, struct failure *why)
{
	struct host **sorted = hosts_sort(arena, h);
	size_t next, kept = 0;
	int rc = 0;

	if (!sorted)
		return failure_oom(why);
	for (size_t i = 0; i < h->count && rc == 0; i = next) {
		bool excluded = false;

		for (next = i;
			next < h->count && strcasecmp(sorted[i]->name, sorted[next]->name) == 0;
			next++)
			excluded |= sorted[next]->said == SLOTS_OF_NOBODY;
		for (size_t n = i + !excluded; n < next && rc == 0; n++) {
			if (!excluded)
				rc = hostfile_repeat(sorted[i], sorted[n], why);
			sorted[n]->said = SLOTS_OF_NOBODY;
		}
	}
	for (size_t i = 0; i < h->count; i++)
		if (h->at[i].said != SLOTS_OF_NOBODY)
			h->at[kept++] = h->at[i];
	h->count = kept;
	return rc;
}

/* What all lines together say. A host with max_slots alone has as many, and one without slots gets
 * no worker, as with Open MPI. */
static int hostfile_settle(
	struct arena *arena, struct hosts *h, const char *name, struct failure *why)
{
	size_t kept = 0;

	if (h->count == 0)
		return failure_usage(why, "%s names no host", name);
	if (hostfile_join(arena, h, why) < 0)
		return why->code;
	for (size_t i = 0; i < h->count; i++) {
		struct host *at = &h->at[i];

		if (at->max_slots && !at->said) {
			at->slots = at->max_slots;
			at->said = SLOTS_GIVEN;
		}
		if (at->max_slots && at->slots > at->max_slots)
			return failure_usage(why, "%s: %s has slots=%u, above its max_slots=%u",
				at->where, at->name, at->slots, at->max_slots);
	}
	hosts_fill_slots(h);
	for (size_t i = 0; i < h->count; i++)
		if (h->at[i].slots || !h->at[i].said)
			h->at[kept++] = h->at[i];
	h->count = kept;
	if (kept > HOSTS_MAX)
		return failure_usage(why, "%s: there are more than %d hosts", name, HOSTS_MAX);
	return kept ? 0 : failure_usage(why, "%s names no host that has a slot", name);
}

int hosts_read_file(struct arena *arena, const char *bytes, size_t len, const char *name,
	struct hosts *ret, struct failure *why)
{
	struct hosts all = { .colon = true, .is_file = true, .notes.arena = arena };
	const char *at, *end;
	unsigned line = 1;
	int rc = 0;

	if (memchr(bytes, '\0', len))
		return failure_usage(why, "%s has a NUL byte: is it a text, and not UTF-16?", name);
	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
		bytes += 3; /* byte order mark */
		len -= 3;
		all.is_wider = true;
	}
	all.is_wider |= memchr(bytes, '\r', len) != NULL;
	at = without_comments(arena, bytes, len, name, why);
	if (!at)
		return why->code;
	for (end = at + len; at < end && rc == 0; line++) {
		struct arena_mark mark = arena_mark(arena);
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		struct word w = { .arena = arena,
			.where = arena_printf(arena, "%s:%u", name, line),
			.why = why };
		size_t before = all.count;

		rc = hostfile_line(&w, at, stop, &all);
		if (rc == 0 && all.count == before)
			arena_rewind(arena, mark); /* a comment */
		at = newline ? newline + 1 : end;
	}
	if (rc == 0)
		rc = hostfile_settle(arena, &all, name, why);
	if (rc == 0)
		*ret = all;
	return rc;
}
