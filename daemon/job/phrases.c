/* phrases.c - see phrases.h */
#include "daemon/job/phrases.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "daemon/job/ending.h"

enum { EXCLUDED_SHOWN = 128 }; /* bytes */
enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000, MS_PER_S = 1000, RANGES_SHOWN = 16 };

void span_format(uint64_t ns, char ret[SPAN_SIZE])
{
	uint64_t ms = ns / NS_PER_MS;

	if (ms < 10000)
		(void)snprintf(ret, SPAN_SIZE, "%.2f s", (double)ms / (double)MS_PER_S);
	else if (ms < 600000)
		(void)snprintf(ret, SPAN_SIZE, "%.1f s", (double)ms / (double)MS_PER_S);
	else if (ms < 36000000)
		(void)snprintf(ret, SPAN_SIZE, "%u min %02u s", (unsigned)(ms / 60000),
			(unsigned)(ms / 1000 % 60));
	else
		(void)snprintf(ret, SPAN_SIZE, "%u h %02u min", (unsigned)(ms / 3600000),
			(unsigned)(ms / 60000 % 60));
}

void span_add(struct text *out, uint64_t from_ns, uint64_t to_ns)
{
	char span[SPAN_SIZE];

	span_format(to_ns > from_ns ? to_ns - from_ns : 0, span);
	text_add(out, span);
}

bool moment_add(struct text *out, const struct result *r, uint64_t at_ns, bool iso)
{
	int64_t ms = (r->started_wall_ns + (int64_t)(at_ns - r->started_ns)) / NS_PER_MS;
	time_t seconds = (time_t)(ms / MS_PER_S);
	char when[32], zone[8];
	struct tm tm;

	if (r->started_wall_ns <= 0 || at_ns == 0 || ms < 0 || !localtime_r(&seconds, &tm))
		return false;
	(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
	(void)strftime(zone, sizeof zone, "%z", &tm);
	if (iso)
		text_printf(out, "%.10sT%s.%03d%.3s:%s", when, when + 11, (int)(ms % MS_PER_S),
			zone, zone + 3);
	else
		text_printf(out, "%s.%03d %s", when, (int)(ms % MS_PER_S), zone);
	return true;
}

int64_t moment_seconds(const struct result *r, uint64_t at_ns)
{
	int64_t ns = r->started_wall_ns + (int64_t)(at_ns - r->started_ns);

	return r->started_wall_ns <= 0 || at_ns == 0 || ns < 0 ? 0 : ns / NS_PER_S;
}

uint64_t cause_ns(const struct result *r)
{
	const struct outcome *failed = cause_failed(&r->cause);

	return failed && failed->ended_ns ? failed->ended_ns : r->cause.at_ns;
}

const char *preemption_source(const struct cause *c)
{
	return c->signal ? signal_name(c->signal) : "--preempt-watch";
}

void cause_add(const struct cause *c, uint64_t max_runtime_ms, struct text *out)
{
	switch (c->kind) {
	case CAUSE_NONE:
	case CAUSE_FAILURE:
	case CAUSE_NODE_LOST:
		return;
	case CAUSE_SIGNAL:
		text_printf(out, "launchd received %s", signal_name(c->signal));
		return;
	case CAUSE_MAX_RUNTIME:
		text_add(out, "--max-runtime ");
		if (max_runtime_ms) {
			text_add(out, "(");
			span_add(out, 0, max_runtime_ms * NS_PER_MS);
			text_add(out, ") ");
		}
		text_add(out, "expired");
		return;
	case CAUSE_GUARD:
		text_add(out, "launchd itself was killed");
		return;
	case CAUSE_LAUNCHER:
		text_add(out, "launchd's parent process (mpirun, srun) ended");
		return;
	case CAUSE_HANGUP:
		text_add(out,
			cause_failed(c) ?
				"launchd's output lost its reader (the program or terminal that it goes to has ended), and a worker wrote there" :
				"mpirun or srun has ended (nobody reads launchd's output any more)");
		return;
	case CAUSE_RESTART:
		text_add(out, "a restart was requested");
		return;
	case CAUSE_BAD_NODE:
		text_add(out, "a node is bad");
		return;
	case CAUSE_PREEMPTED:
		text_printf(out, "preemption was announced by %s", preemption_source(c));
		text_add(out, *c->detail ? " (" : "");
		text_add_shown(out, c->detail, strnlen(c->detail, sizeof c->detail));
		text_add(out, *c->detail ? ")" : "");
		return;
	case CAUSE_TIMEOUT:
		text_add_shown(out, c->detail, strnlen(c->detail, sizeof c->detail));
		return;
	case CAUSE_HANG:
		text_add(out, "the job hung");
		text_add(out, *c->detail ? ": " : "");
		text_add_shown(out, c->detail, strnlen(c->detail, sizeof c->detail));
		return;
	}
}

void bad_add(struct text *out, const struct cause *c)
{
	const char *list = c->exclude ? c->exclude : "";
	size_t shown = strlen(list), count = *list ? 1 : 0;

	for (const char *comma = strchr(list, ','); comma; comma = strchr(comma + 1, ','))
		count++;
	text_add(out, " is bad: ");
	text_add_shown(out, c->detail, strnlen(c->detail, sizeof c->detail));
	if (count > 1)
		text_printf(out, "; %zu nodes are bad", count);
	text_add(out, *list ? "; exclude: " : "");
	if (shown > EXCLUDED_SHOWN)
		for (shown = EXCLUDED_SHOWN; shown > 0 && list[shown] != ',';)
			shown--;
	text_add_shown(out, list, shown);
	if (list[shown])
		text_add(out, ",... (--report has all)");
}

void cause_brief_add(const struct cause *c, uint64_t max_runtime_ms, struct text *out)
{
	if (c->kind == CAUSE_FAILURE)
		text_add(out, "a worker failed");
	else if (c->kind == CAUSE_NODE_LOST)
		text_add(out, "a node was lost");
	else if (c->kind == CAUSE_PREEMPTED)
		text_printf(out, "preemption was announced by %s", preemption_source(c));
	else if (c->kind == CAUSE_HANG)
		text_add(out, "the job hung");
	else if (c->kind == CAUSE_TIMEOUT)
		text_add(out, "workers timed out waiting for another rank");
	else
		cause_add(c, max_runtime_ms, out);
}

/* The i-th number of a list of any kind. */
typedef unsigned number_at(const void *list, size_t i);

static void ranges_add(
	struct text *out, const char *noun, number_at *at, const void *list, size_t count)
{
	size_t ranges = 0, last;

	text_printf(out, "%s%s ", noun, count == 1 ? "" : "s");
	for (size_t i = 0; i < count; i = last + 1) {
		last = i;
		while (last + 1 < count && at(list, last + 1) == at(list, last) + 1)
			last++;
		text_add(out, i ? ", " : "");
		if (ranges++ == RANGES_SHOWN) {
			text_printf(out, "... (%zu in all)", count);
			return;
		}
		text_printf(out, "%u", at(list, i));
		if (last > i)
			text_printf(out, last > i + 1 ? "-%u" : ", %u", at(list, last));
	}
}

static unsigned plain_at(const void *list, size_t i)
{
	return ((const unsigned *)list)[i];
}

static unsigned rank_at(const void *list, size_t i)
{
	return ((const struct outcome *const *)list)[i]->rank;
}

void numbers_add(struct text *out, const char *noun, const unsigned *list, size_t count)
{
	ranges_add(out, noun, plain_at, list, count);
}

void ranks_add(struct text *out, const struct outcome *const *list, size_t count)
{
	ranges_add(out, "rank", rank_at, list, count);
}

/* A result's i-th lost node. */
static unsigned lost_at(const void *result, size_t i)
{
	const struct result *r = result;
	unsigned node = 0;

	for (size_t seen = 0; node < r->node_count; node++)
		if (r->nodes[node].lost && seen++ == i)
			break;
	return node;
}

void loss_add(struct text *out, const struct cause *c)
{
	if (c->asleep)
		text_add(out, " was itself frozen or suspended");
	else if (!c->contact)
		text_add(out, " was lost");
}

void losses_add(struct text *out, const struct result *r)
{
	size_t count = 0;

	if (r->cause.asleep)
		return;
	for (unsigned i = 0; i < r->node_count; i++)
		count += r->nodes[i].lost ? 1 : 0;
	if (count < 2 || count * 2 < r->node_count)
		return;
	text_printf(out, "; %zu of %u nodes were lost: ", count, r->node_count);
	ranges_add(out, "node", lost_at, r, count);
}

static void name_add(struct text *out, const char *name)
{
	text_add_shown(out, name, strnlen(name, NODE_NAME_SIZE - 1));
}

void place_add(struct text *out, const char *name, unsigned node)
{
	name_add(out, name);
	text_printf(out, *name ? " (node %u)" : "node %u", node);
}

void node_name_add(struct text *out, unsigned node, const char *name)
{
	text_printf(out, *name ? "node %u (" : "node %u", node);
	name_add(out, name);
	text_add(out, *name ? ")" : "");
}

void nodes_add(struct text *out, const unsigned *list, size_t count, const char *const *names,
	size_t room_bytes)
{
	static const char more[] = " and 65535 more";
	size_t end = out->len + room_bytes, i = 0;

	if (!names) {
		numbers_add(out, "node", list, count);
		return;
	}
	for (; i < count; i++) {
		size_t rest = i + 1 < count ? sizeof more - 1 : 0;
		struct text one = { 0 };
		bool fits;

		text_add(&one, i ? ", " : "");
		place_add(&one, names[list[i]], list[i]);
		fits = i == 0 || out->len + one.len + rest <= end;
		text_add(out, fits ? text_string(&one) : "");
		text_done(&one);
		if (!fits)
			break;
	}
	if (i < count)
		text_printf(out, " and %zu more", count - i);
}

void worker_add(struct text *out, const struct outcome *o)
{
	text_printf(out, "rank %u (local rank %u", o->rank, o->local_rank);
	if (o->pid)
		text_printf(out, ", pid %d", (int)o->pid);
	text_add(out, ")");
}

/* Whose memory was used up; nothing where that is not known. */
static void oom_limit_add(struct text *out, const struct outcome *o)
{
	switch (o->oom_limit) {
	case OOM_LIMIT_UNKNOWN:
		return;
	case OOM_LIMIT_OWN:
		text_add(out, " at its memory limit");
		break;
	case OOM_LIMIT_ABOVE:
		text_add(out, " at the memory limit of launchd's own cgroup or one above");
		break;
	case OOM_LIMIT_NONE:
		text_add(out, " because the machine was out of memory");
		return;
	}
	if (o->oom_bytes)
		text_printf(out, ", %s%s", num_size(o->oom_bytes).text,
			o->oom_limit == OOM_LIMIT_OWN ? " (--cgroup-memory)" : "");
}

/* OOM_YES and OOM_LIKELY are looked for only after a SIGKILL that launchd has not sent. */
void outcome_add(struct text *out, const struct outcome *o)
{
	if (o->oom == OOM_YES) {
		text_add(out, "killed by the kernel's OOM killer (SIGKILL)");
		oom_limit_add(out, o);
		return;
	}
	ending_describe(&o->end, out);
	if (o->shm_full && ending_exit_code(&o->end) == 128 + SIGBUS)
		text_add(out, " (/dev/shm was full)");
	if (o->oom == OOM_LIKELY)
		text_add(out, " (likely by the kernel's OOM killer)");
	if (o->oom == OOM_CHILD) {
		text_add(out,
			" (a process that it had started was killed by the kernel's OOM killer");
		oom_limit_add(out, o);
		text_add(out, ")");
	}
}
