/* waits.c - see waits.h */
#include "daemon/job/waits.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/job/ending.h"

/* Seen in the sources of torch 1.13 to 2.15 and of gloo, and in the reports that blames.c names. */
static const char *const waits_of_groups[] = {
	"failed to pass monitoredBarrier",
	"successfully reached monitoredBarrier", /* "..., but received errors": rank 0 knows more */
	"timed out in monitoredBarrier",
	"collective operation timeout", /* NCCL's watchdog, and those of XCCL and HCCL */
	"due to collective timeout", "in store based barrier",
	"DEADLINE_EXCEEDED: Barrier timed out", /* JAX's coordination service */
};

/* Where other libraries may say the same. */
static const char *const waits_of_others[] = {
	"for recv operation to complete",
	"for send operation to complete",
	"Application timeout caused pair closure",
	"wait timeout after",
	"Timeout waiting for key",
	"Socket Timeout",
	"client socket has timed out",
	"clients joined",
};

#define HAS(text, list) waits_has_any((text), (list), sizeof(list) / sizeof *(list))

static bool waits_has_any(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(text, list[i]))
			return true;
	return false;
}

bool waits_says_clearly(const char *message)
{
	return HAS(message, waits_of_groups);
}

bool waits_says(const char *message)
{
	return HAS(message, waits_of_groups) || HAS(message, waits_of_others);
}

static void waits_add(struct waited *w, unsigned rank)
{
	for (unsigned i = 0; i < w->count; i++)
		if (w->ranks[i] == rank)
			return;
	if (w->count < WAITED_RANKS)
		w->ranks[w->count++] = rank;
	else
		w->more = true;
}

static void waits_add_all(struct waited *w, const struct waited *named)
{
	for (unsigned i = 0; i < named->count; i++)
		waits_add(w, named->ranks[i]);
	w->more |= named->more;
}

/* Reads a number of at most 6 digits. NULL: there is none. */
static const char *waits_number(const char *at, unsigned *ret)
{
	size_t len = strspn(at, "0123456789");

	if (len == 0 || len > 6)
		return NULL;
	*ret = (unsigned)strtoul(at, NULL, 10);
	return at + len;
}

/* "1, 2", "1,2", "1-3, 5" */
static const char *waits_add_list(struct waited *w, const char *at)
{
	unsigned first, last;
	const char *end = waits_number(at, &first), *more;

	while (end) {
		at = end;
		last = first;
		more = *at == '-' ? waits_number(at + 1, &last) : NULL;
		at = more ? more : at;
		for (unsigned i = first; i <= last && i - first <= WAITED_RANKS; i++)
			waits_add(w, i);
		end = NULL;
		if (*at == ',')
			end = waits_number(at + 1 + strspn(at + 1, " "), &first);
	}
	return at;
}

/* Whether the largest rank that is named is below one that is a rank of the job and of the group
 * alike: groups are sorted, so those before it are, too. */
static bool waits_are_below(const struct waited *w, unsigned rank)
{
	for (unsigned i = 0; i < w->count; i++)
		if (w->ranks[i] > rank)
			return false;
	return true;
}

/* A line of the traceback calls monitored_barrier() without naming a group. */
static bool waits_for_all(const char *lines)
{
	static const char call[] = "monitored_barrier(";

	for (const char *at = lines; at && (at = strstr(at, call));) {
		const char *given = at + sizeof call - 1, *end = given + strcspn(given, "\n");
		size_t first = strcspn(given, ",)=\n"); /* the group, if it has no name before it */
		const char *before = at;

		while (before > lines && before[-1] != '\n')
			before--;
		at = end;
		if (memmem(before, (size_t)(end - before), "group_to_use", 12))
			continue; /* torch's own line */
		return !memmem(given, (size_t)(end - given), "group", 5) &&
			(first == 0 || given[first] == '=');
	}
	return false;
}

/* "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms", "[Rank 0]: Ranks 1, 2 failed ..."
 */
static void waits_read_barrier(
	const char *message, const char *lines, unsigned own_rank, struct waited *ret)
{
	struct waited named = { .count = 0 };
	const char *end = strstr(message, " failed to pass monitoredBarrier"), *at = end;
	const char *stop;

	while (at && at > message && strchr("0123456789, -", at[-1]))
		at--;
	if (!at || at - message < 4 ||
		(memcmp(at - 4, "Rank", 4) != 0 &&
			(at - message < 5 || memcmp(at - 5, "Ranks", 5) != 0)))
		return;
	stop = waits_add_list(&named, at + strspn(at, " "));
	if (stop == end && own_rank == 0 && waits_for_all(lines))
		waits_add_all(ret, &named);
}

enum { KEY_PARTS = 8 };

/* Of a key, between two '/'. */
struct waits_part {
	const char *at;
	size_t len;
};

/* Splits "/default_pg/0//cpu//0/1"; returns 0 if there are more parts than fit. */
static size_t waits_split(const char *at, size_t len, struct waits_part ret[KEY_PARTS])
{
	const char *end = at + len;
	size_t count = 0;

	while (at < end) {
		size_t n = 0;

		while (at + n < end && at[n] != '/')
			n++;
		if (n > 0 && count == KEY_PARTS)
			return 0;
		if (n > 0)
			ret[count++] = (struct waits_part){ at, n };
		at += n + 1;
	}
	return count;
}

static bool waits_is_number(const struct waits_part *p, unsigned *ret)
{
	return waits_number(p->at, ret) == p->at + p->len;
}

/* Each rank of gloo writes a key of the group of all, which ends in its number:
 * "default_pg/0//cpu//0/1" or, before torch 2.0, "default_pg/0//0/1"; in NCCL's only rank 0 writes:
 * "default_pg/0//cuda//0". */
static void waits_read_key(const char *at, size_t len, struct waited *ret)
{
	struct waits_part part[KEY_PARTS];
	size_t count = waits_split(at, len, part), i = 0;
	unsigned number, rank;

	while (i < count && !(part[i].len == 10 && memcmp(part[i].at, "default_pg", 10) == 0))
		i++;
	if (count - i < 4 || !waits_is_number(&part[i + 1], &number))
		return;
	i += 2;
	if (part[i].len == 4 && memcmp(part[i].at, "cuda", 4) == 0 && count - i == 2 &&
		waits_is_number(&part[i + 1], &number)) {
		waits_add(ret, 0);
		return;
	}
	if (count - i == 3 && part[i].len == 3 && memcmp(part[i].at, "cpu", 3) == 0)
		i++;
	if (count - i == 2 && waits_is_number(&part[i], &number) &&
		waits_is_number(&part[i + 1], &rank))
		waits_add(ret, rank);
}

static void waits_read_keys(const char *message, struct waited *ret)
{
	for (const char *at = message; (at = strstr(at, "default_pg/"));) {
		size_t len = strcspn(at, " \t\r\n,;'\")]");

		waits_read_key(at, len, ret);
		at += len;
	}
}

/* "[4] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d ..." */
static void waits_read_nccl_id(const char *message, unsigned own_rank, struct waited *ret)
{
	const char *at = strstr(message, "] is setting up NCCL communicator"), *from;
	struct waited named = { .count = 0 };
	unsigned self;

	from = at ? strstr(at, "ncclUniqueId from [") : NULL;
	while (at && at > message && at[-1] >= '0' && at[-1] <= '9')
		at--;
	if (!from || !waits_number(at, &self) || self != own_rank)
		return;
	(void)waits_add_list(&named, from + strlen("ncclUniqueId from ["));
	if (waits_are_below(&named, own_rank))
		waits_add_all(ret, &named);
}

/* With TORCH_NCCL_DESYNC_DEBUG: "ranks [1, 2] are the lagging ranks", or "[2] finished collective
 * #3, but didn't join collective #4". */
static void waits_read_desync(const char *message, unsigned own_rank, struct waited *ret)
{
	static const char *const after[] = { "] are the lagging ranks", "] finished collective #" };
	struct waited named = { .count = 0 };
	const char *self = strstr(message, "Rank ");
	unsigned group_rank = 0;

	for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
		const char *end = strstr(message, after[i]), *at = end;

		while (at && at > message && *at != '[')
			at--;
		if (at && *at == '[')
			(void)waits_add_list(&named, at + 1);
	}
	if (!strstr(message, "(default_pg)") &&
		(!self || !waits_number(self + 5, &group_rank) || group_rank != own_rank ||
			!waits_are_below(&named, own_rank)))
		return;
	waits_add_all(ret, &named);
}

/* JAX: "Some timed out task names:\n/job:jax_worker/replica:0/task:1" */
static void waits_read_tasks(const char *message, struct waited *ret)
{
	const char *at = strstr(message, "timed out task names:");
	unsigned rank;

	while (at && (at = strstr(at, "/task:"))) {
		at += strlen("/task:");
		if (waits_number(at, &rank))
			waits_add(ret, rank);
	}
}

/* "... has timed out after 60000ms while trying to connect to (10.0.0.1, 29500)." */
static bool waits_dials(const char *message, const char *port)
{
	const char *at = strstr(message, "client socket has timed out");
	const char *to = at ? strstr(at, "connect to (") : NULL;
	const char *number = to ? strchr(to, ',') : NULL;
	size_t len = port ? strlen(port) : 0;

	return number && len > 0 && strncmp(number + 1 + strspn(number + 1, " "), port, len) == 0;
}

void waits_read(const char *message, const char *lines, unsigned own_rank, const char *master_port,
	struct waited *ret)
{
	static const char *const in_store[] = { "Socket Timeout", "wait timeout after",
		"Timeout waiting for key", "clients joined", "in store based barrier",
		"store->get(", "client socket has timed out" };

	*ret = (struct waited){ .in_store = HAS(message, in_store) };
	ret->dials = own_rank != 0 && waits_dials(message, master_port);
	if (ret->dials)
		waits_add(ret, 0);
	waits_read_barrier(message, lines, own_rank, ret);
	waits_read_keys(message, ret);
	waits_read_nccl_id(message, own_rank, ret);
	waits_read_desync(message, own_rank, ret);
	waits_read_tasks(message, ret);
}
