/* ras_counts.c - see ras_counts.h */
#include "daemon/witness/ras_counts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * 0x100000001b3;
	return hash;
}

static uint64_t hash_of(const char *word)
{
	return mix(0xcbf29ce484222325, word, strlen(word));
}

/* NULL: out of memory, or there are too many. */
static struct ras_entry *add_entry(struct ras_counts *c)
{
	if (c->count == c->room) {
		size_t room = c->room > 0 ? 2 * c->room : 64;
		struct ras_entry *more = c->count < RAS_ENTRIES_MAX ?
			realloc(c->entries, room * sizeof *more) :
			NULL;

		if (!more)
			return NULL;
		c->entries = more;
		c->room = room;
	}
	c->entries[c->count] = (struct ras_entry){ .rank = -1 };
	return &c->entries[c->count++];
}

void ras_counts_done(struct ras_counts *c)
{
	free(c->entries);
	*c = (struct ras_counts){ 0 };
}

/* --- JSON --- */

/* It is read key by key, as all keys that matter have names of their own, and as one version
 * (2.28.9) forgets a comma. */
struct json_reading {
	const char *at, *end;
	char key[64], value[64];
	struct ras_counts *counts;
	struct ras_entry *entry; /* NULL: between ranks */
	uint64_t comm;
	unsigned size;
	bool missing, counting, whole;
};

static void take_word(struct json_reading *j, bool quoted, char *ret, size_t size)
{
	size_t len = 0;

	while (j->at < j->end &&
		(quoted ? *j->at != '"' : !strchr(",:{}[]\" \t\r\n", *j->at) || *j->at == '\0')) {
		if (len + 1 < size)
			ret[len++] = *j->at;
		j->at++;
	}
	ret[len] = '\0';
	if (quoted && j->at < j->end)
		j->at++;
}

static bool is_key(const struct json_reading *j)
{
	const char *at = j->at;

	while (at < j->end && strchr(" \t\r\n", *at) && *at != '\0')
		at++;
	return at < j->end && *at == ':';
}

/* Send, receive and signals are no collectives. */
static bool is_collective(const char *name)
{
	return !strstr(name, "Send") && !strstr(name, "Recv") && !strstr(name, "Signal");
}

static void count(struct json_reading *j)
{
	uint64_t n = strtoull(j->value, NULL, 10);

	if (!j->entry || !is_collective(j->key))
		return;
	j->entry->started += n;
	j->entry->kinds = mix(mix(j->entry->kinds, j->key, strlen(j->key)), &n, sizeof n);
}

static void take_of_entry(struct ras_entry *e, const char *key, const char *value)
{
	bool yes = strcmp(value, "true") == 0;

	if (strcmp(key, "host") == 0)
		e->process = hash_of(value);
	else if (strcmp(key, "pid") == 0)
		e->pid = strtoll(value, NULL, 10);
	else if (strcmp(key, "unresponsive") == 0 || strcmp(key, "considered_dead") == 0)
		e->gone |= yes;
	else if (strcmp(key, "finalize_called") == 0 || strcmp(key, "destroy_flag") == 0 ||
		strcmp(key, "abort_flag") == 0)
		e->closing |= yes;
}

/* -ENOMEM. */
static int take_value(struct json_reading *j)
{
	if (j->counting) {
		count(j);
	} else if (strcmp(j->key, "hash") == 0) {
		j->comm = hash_of(j->value);
		j->size = 0;
		j->entry = NULL;
	} else if (strcmp(j->key, "secondary_hash") == 0) {
		j->comm = mix(j->comm, j->value, strlen(j->value));
	} else if (strcmp(j->key, "size") == 0) {
		j->size = (unsigned)strtoul(j->value, NULL, 10);
	} else if (strcmp(j->key, "rank") == 0) {
		j->entry = add_entry(j->counts);
		if (!j->entry)
			return -ENOMEM;
		j->entry->comm = j->comm;
		j->entry->size = j->size;
		j->entry->rank = (int)strtol(j->value, NULL, 10);
		if (j->entry->rank < 0)
			j->entry->rank = 0;
		j->entry->kinds = j->missing; /* of these there are no counts */
	} else if (j->entry) {
		take_of_entry(j->entry, j->key, j->value);
	}
	return 0;
}

/* A key whose value is an object or an array begins a part. */
static void take_part(struct json_reading *j)
{
	if (strcmp(j->key, "ranks") == 0)
		j->missing = false;
	else if (strcmp(j->key, "missing_ranks") == 0)
		j->missing = true;
	j->counting = strcmp(j->key, "collective_counts") == 0;
	j->whole |= strcmp(j->key, "ras") == 0;
	if (strcmp(j->key, "ranks") == 0 || j->whole)
		j->entry = NULL;
}

static int read_json(const char *answer, size_t len, struct ras_counts *ret)
{
	struct json_reading j = { .at = answer, .end = answer + len, .counts = ret };
	int rc = 0;

	while (j.at < j.end && rc == 0) {
		bool quoted = *j.at == '"';

		if (*j.at == '}')
			j.counting = false;
		if ((*j.at == '{' || *j.at == '[') && *j.key) {
			take_part(&j);
			*j.key = '\0';
		}
		if (*j.at == '\0' || (!quoted && strchr(",:{}[] \t\r\n", *j.at))) {
			j.at++;
			continue;
		}
		j.at += quoted;
		take_word(&j, quoted, j.value, sizeof j.value);
		if (is_key(&j)) {
			memcpy(j.key, j.value, sizeof j.key);
		} else if (*j.key) {
			rc = take_value(&j);
			*j.key = '\0';
		}
	}
	return rc < 0 ? rc : j.whole ? 0 : -EPROTO;
}

/* --- text --- */

enum { GROUPS_MAX = 64, TEXT_LINE = 256 };

struct text_reading {
	struct ras_counts *counts;
	unsigned sizes[GROUPS_MAX]; /* of the communicators of each group */
	uint64_t first;             /* communicator with a mismatch */
	uint64_t comm, kind;
	unsigned size;
	uint64_t started;
	bool incomplete, differs, has_started; /* of what the next lines are */
	bool errors, whole;
};

/* "#0-1 (cf264af53edbe986) MISMATCH" */
static bool take_comm(struct text_reading *t, const char *line)
{
	unsigned group, index;
	char word[16];

	if (sscanf(line, "#%u-%u (%" SCNx64 ") %15s", &group, &index, &t->comm, word) != 4)
		return false;
	t->size = group < GROUPS_MAX ? t->sizes[group] : 0;
	t->incomplete = strcmp(word, "INCOMPLETE") == 0;
	t->differs = t->has_started = false;
	t->kind = 0;
	return true;
}

static bool take_kind(struct text_reading *t, const char *line)
{
	char word[32];
	int end = 0;

	if (sscanf(line, "Communicator ranks have different %31s %n", word, &end) != 1)
		return false;
	t->incomplete = t->has_started = false;
	t->differs = strcmp(line + end, "operation counts") == 0;
	t->kind = hash_of(word);
	if (t->differs) {
		t->counts->several |= t->first != 0 && t->first != t->comm;
		t->first = t->comm;
	}
	return true;
}

/* "managed by process 4711 on node 10.0.0.3" */
static void take_process(const char *line, struct ras_entry *e)
{
	const char *at = strstr(line, "managed by process ");
	char host[64];

	if (at && sscanf(at, "managed by process %" SCNd64 " on node %63s", &e->pid, host) == 2)
		e->process = hash_of(host);
}

static int add_rank(struct text_reading *t, const char *line, int rank)
{
	struct ras_entry *e = add_entry(t->counts);

	if (!e)
		return -ENOMEM;
	e->comm = t->incomplete ? t->comm : mix(t->comm, &t->kind, sizeof t->kind);
	e->size = t->size;
	e->rank = rank;
	e->gone = t->incomplete;
	e->started = t->incomplete ? 0 : t->started;
	take_process(line, e);
	return 0;
}

/* A line below one of a communicator. */
static int take_rank(struct text_reading *t, const char *line)
{
	static const char none[] = " not launched any operations";
	unsigned count, rank;
	int end = 0;

	if (t->differs && sscanf(line, "%u ranks have%n", &count, &end) == 1 && end > 0) {
		t->started = 0;
		t->has_started = sscanf(line + end, " launched up to operation %" SCNu64,
					 &t->started) == 1 ||
			strncmp(line + end, none, sizeof none - 1) == 0;
		return t->has_started ? add_rank(t, "", -1) : 0;
	}
	if (sscanf(line, "Rank %u%n", &rank, &end) != 1 || rank > INT32_MAX)
		return 0;
	if (strncmp(line + end, " --", 3) == 0)
		return t->incomplete || t->has_started ? add_rank(t, line, (int)rank) : 0;
	t->started = 0;
	if (t->differs && strncmp(line + end, " has", 4) == 0 &&
		(sscanf(line + end, " has launched up to operation %" SCNu64, &t->started) == 1 ||
			strncmp(line + end + 4, none, sizeof none - 1) == 0))
		return add_rank(t, line, (int)rank);
	return 0;
}

/* A row of the table of communicators. */
static void take_group(struct text_reading *t, const char *line)
{
	unsigned group, comms, nodes, size;
	char each[16];

	if (sscanf(line, "%u %u %u %15s %u", &group, &comms, &nodes, each, &size) == 5 &&
		group < GROUPS_MAX)
		t->sizes[group] = size;
}

static int take_line(struct text_reading *t, const char *line)
{
	if (strcmp(line, "Errors") == 0)
		t->errors = true;
	t->whole |= t->errors && strcmp(line, "Warnings") == 0;
	if (!t->errors) {
		take_group(t, line);
		return 0;
	}
	return take_comm(t, line) || take_kind(t, line) ? 0 : take_rank(t, line);
}

static int read_text(const char *answer, size_t len, struct ras_counts *ret)
{
	struct text_reading t = { .counts = ret };
	const char *at = answer, *end = answer + len;
	char line[TEXT_LINE];

	ret->partial = true;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		size_t n;
		int rc;

		while (at < stop && (*at == ' ' || *at == '\t'))
			at++;
		n = (size_t)(stop - at) < sizeof line ? (size_t)(stop - at) : sizeof line - 1;
		memcpy(line, at, n);
		while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
			n--;
		line[n] = '\0';
		rc = take_line(&t, line);
		if (rc < 0)
			return rc;
		at = stop + 1;
	}
	return t.whole ? 0 : -EPROTO;
}

/* --- both --- */

static int by_comm(const void *a, const void *b)
{
	const struct ras_entry *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

int ras_counts_read(const char *answer, size_t len, struct ras_counts *ret)
{
	static const char mark[] = "\"communicators\"";
	bool json = false;
	int rc;

	*ret = (struct ras_counts){ .bytes = len };
	for (size_t i = 0; i + sizeof mark <= len && i < 1024 && !json; i++)
		json = memcmp(answer + i, mark, sizeof mark - 1) == 0;
	rc = json ? read_json(answer, len, ret) : read_text(answer, len, ret);
	if (rc < 0) {
		ras_counts_done(ret);
		return rc;
	}
	for (size_t i = 0; i < ret->count; i++)
		if (ret->entries[i].process != 0)
			ret->entries[i].process = mix(ret->entries[i].process, &ret->entries[i].pid,
				sizeof ret->entries[i].pid);
	if (ret->count > 0)
		qsort(ret->entries, ret->count, sizeof *ret->entries, by_comm);
	return 0;
}

bool ras_counts_moved(const struct ras_counts *before, const struct ras_counts *now)
{
	size_t i = 0, k = 0, common = 0;

	while (i < before->count && k < now->count) {
		const struct ras_entry *a = &before->entries[i], *b = &now->entries[k];
		int order = by_comm(a, b);

		if (order == 0 && a->rank >= 0 && !a->gone && !b->gone &&
			(a->started != b->started || a->kinds != b->kinds))
			return true;
		common += order == 0;
		i += order <= 0;
		k += order >= 0;
	}
	return common == 0 && now->count > 0;
}

/* --- whose ranks they are --- */

struct placed {
	uint64_t process;
	unsigned rank;
};

struct ras_placing {
	struct placed *all; /* sorted by process */
	size_t count;
};

static int by_process(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->process < y->process ? -1 : x->process > y->process;
}

static const struct placed *find_process(const struct ras_placing *p, uint64_t process)
{
	const struct placed wanted = { process, 0 };

	return p->count > 0 ? bsearch(&wanted, p->all, p->count, sizeof *p->all, by_process) : NULL;
}

/* The process with that pid; 0: there is none, or one on each of two nodes. */
static uint64_t only_process(const struct ras_counts *c, int64_t pid)
{
	uint64_t found = 0;

	for (size_t i = 0; i < c->count && pid > 0; i++) {
		uint64_t process = c->entries[i].pid == pid ? c->entries[i].process : 0;

		if (process != 0 && found != 0 && process != found)
			return 0;
		found = process != 0 ? process : found;
	}
	return found;
}

/* False: out of memory. */
static bool place_all(const struct ras_counts *c, const struct ras_worker *own, size_t own_count,
	unsigned ranks, struct ras_placing *p)
{
	size_t known;

	p->all = calloc(own_count + c->count + 1, sizeof *p->all);
	if (!p->all)
		return false;
	for (size_t i = 0; i < own_count; i++) {
		uint64_t process = only_process(c, own[i].pid);

		if (process != 0)
			p->all[p->count++] = (struct placed){ process, own[i].rank };
	}
	qsort(p->all, p->count, sizeof *p->all, by_process);
	known = p->count;
	for (size_t i = 0; i < c->count; i++) {
		const struct ras_entry *e = &c->entries[i];
		const struct ras_placing before = { p->all, known };

		if (e->process != 0 && e->rank >= 0 && e->size == ranks &&
			!find_process(&before, e->process))
			p->all[p->count++] = (struct placed){ e->process, (unsigned)e->rank };
	}
	qsort(p->all, p->count, sizeof *p->all, by_process);
	return true;
}

/* NULL: nobody knows. */
static struct rank_ops *place(const struct ras_placing *p, const struct ras_entry *e,
	unsigned ranks, struct rank_ops *all)
{
	const struct placed *found = e->process != 0 ? find_process(p, e->process) : NULL;
	unsigned rank = found ? found->rank : (unsigned)e->rank;

	if (!found && (e->rank < 0 || e->size != ranks))
		return NULL;
	return rank < ranks ? &all[rank] : NULL;
}

/* --- what follows --- */

/* Those of one communicator. */
struct ras_comm {
	const struct ras_entry *first;
	size_t count;
	uint64_t least, most;
	uint64_t kinds; /* that most of its ranks have started */
	bool closing;
};

static bool has_count(const struct ras_counts *c, const struct ras_entry *e)
{
	return !e->gone && (c->partial || e->kinds > 1);
}

/* By majority (Boyer and Moore), where there is one. */
static void sum_up(const struct ras_counts *c, struct ras_comm *comm)
{
	size_t votes = 0;

	comm->least = UINT64_MAX;
	for (size_t i = 0; i < comm->count; i++) {
		const struct ras_entry *e = &comm->first[i];

		comm->closing |= e->closing;
		if (!has_count(c, e))
			continue;
		comm->least = e->started < comm->least ? e->started : comm->least;
		comm->most = e->started > comm->most ? e->started : comm->most;
		if (votes == 0)
			comm->kinds = e->kinds;
		votes += e->kinds == comm->kinds ? 1 : (size_t)-1;
	}
}

static bool judge_comm(const struct ras_counts *c, const struct ras_comm *comm,
	const struct ras_placing *p, unsigned ranks, struct rank_ops *ret)
{
	for (unsigned i = 0; c->partial && comm->first->size == ranks && i < ranks; i++)
		ret[i].known = true; /* those that are not named are as most are */
	for (size_t i = 0; i < comm->count; i++) {
		const struct ras_entry *e = &comm->first[i];
		bool counts = has_count(c, e) && !comm->closing && e->rank >= 0;
		bool behind = counts && e->started < comm->most;
		bool odd = counts && comm->least == comm->most && e->kinds != comm->kinds;
		struct rank_ops *r = place(p, e, ranks, ret);

		if (!r && (behind || odd || e->gone))
			return false;
		if (!r || !(counts || e->gone))
			continue;
		r->known = true;
		r->gone |= e->gone;
		r->odd |= odd;
		r->ahead |= counts && e->started > comm->least;
		if (behind && (!r->behind || comm->most - e->started > r->most - r->started)) {
			r->started = e->started;
			r->most = comm->most;
		}
		r->behind |= behind;
	}
	return true;
}

bool ras_counts_judge(const struct ras_counts *c, const struct ras_worker *own, size_t own_count,
	unsigned ranks, struct rank_ops *ret)
{
	struct ras_placing p = { NULL, 0 };
	bool clear = !c->several && place_all(c, own, own_count, ranks, &p);

	memset(ret, 0, ranks * sizeof *ret);
	for (size_t i = 0; i < c->count && clear;) {
		struct ras_comm comm = { .first = &c->entries[i] };

		while (i < c->count && c->entries[i].comm == comm.first->comm) {
			comm.count++;
			i++;
		}
		sum_up(c, &comm);
		clear = judge_comm(c, &comm, &p, ranks, ret);
	}
	free(p.all);
	if (!clear)
		memset(ret, 0, ranks * sizeof *ret);
	return clear;
}

/* --- its line --- */

void rank_ops_add(struct text *out, unsigned rank, const struct rank_ops *ops)
{
	bool even = !ops->behind && !ops->ahead && !ops->odd && !ops->gone;

	text_printf(out, "ops %u %s%s%s%s%s %" PRIu64 " %" PRIu64 " %" PRIu32 "\n", rank,
		ops->behind ? "b" : "", ops->ahead ? "a" : "", ops->odd ? "o" : "",
		ops->gone ? "g" : "", even ? "=" : "", ops->started, ops->most, ops->still_ms);
}

int rank_ops_read(const char *line, unsigned *ret_rank, struct rank_ops *ret)
{
	struct rank_ops ops = { .known = true };
	char words[8];
	unsigned rank;

	if (sscanf(line, "ops %u %7s %" SCNu64 " %" SCNu64 " %" SCNu32, &rank, words, &ops.started,
		    &ops.most, &ops.still_ms) != 5)
		return -EINVAL;
	ops.behind = strchr(words, 'b') != NULL;
	ops.ahead = strchr(words, 'a') != NULL;
	ops.odd = strchr(words, 'o') != NULL;
	ops.gone = strchr(words, 'g') != NULL;
	*ret_rank = rank;
	*ret = ops;
	return 0;
}
