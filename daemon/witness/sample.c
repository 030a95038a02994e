/* sample.c - see sample.h */
#include "daemon/witness/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

static const char *const wait_words[WAITS] = {
	[WAIT_UNKNOWN] = "unknown",
	[WAIT_RUNS] = "runs",
	[WAIT_FUTEX] = "futex",
	[WAIT_SLEEP] = "sleep",
	[WAIT_POLL] = "poll",
	[WAIT_PIPE] = "pipe",
	[WAIT_SOCKET] = "socket",
	[WAIT_DISK] = "disk",
	[WAIT_CHILD] = "child",
	[WAIT_SIGNAL] = "signal",
	[WAIT_OTHER] = "other",
};

static const char *const gpu_words[GPU_ACTIVITIES] = {
	[GPU_NONE] = "none",
	[GPU_UNKNOWN] = "unknown",
	[GPU_BUSY] = "busy",
	[GPU_IDLE] = "idle",
	[GPU_WAITS] = "waits",
};

/* Names of functions in the kernel, by how they begin; the first that fits counts. */
static const struct {
	const char *begins;
	enum waiting_in is;
} wchans[] = {
	{ "futex", WAIT_FUTEX },
	{ "hrtimer_nanosleep", WAIT_SLEEP },
	{ "do_nanosleep", WAIT_SLEEP },
	{ "common_nsleep", WAIT_SLEEP },
	{ "ep_poll", WAIT_POLL },
	{ "do_epoll", WAIT_POLL },
	{ "do_poll", WAIT_POLL },
	{ "poll_", WAIT_POLL },
	{ "do_select", WAIT_POLL },
	{ "do_sys_poll", WAIT_POLL },
	{ "pipe_", WAIT_PIPE },
	{ "anon_pipe_", WAIT_PIPE },
	{ "wait_for_partner", WAIT_PIPE },
	{ "unix_stream_", WAIT_PIPE },
	{ "sock_", WAIT_SOCKET },
	{ "wait_woken", WAIT_SOCKET },
	{ "sk_wait", WAIT_SOCKET },
	{ "sk_stream", WAIT_SOCKET },
	{ "inet_", WAIT_SOCKET },
	{ "tcp_", WAIT_SOCKET },
	{ "skb_", WAIT_SOCKET },
	{ "__skb_", WAIT_SOCKET },
	{ "request_wait_answer", WAIT_DISK },
	{ "fuse_", WAIT_DISK },
	{ "rpc_", WAIT_DISK },
	{ "nfs", WAIT_DISK },
	{ "cl_", WAIT_DISK },
	{ "ceph", WAIT_DISK },
	{ "io_schedule", WAIT_DISK },
	{ "folio_wait", WAIT_DISK },
	{ "wait_on_page", WAIT_DISK },
	{ "wait_on_bit", WAIT_DISK },
	{ "bit_wait", WAIT_DISK },
	{ "jbd2", WAIT_DISK },
	{ "ext4", WAIT_DISK },
	{ "xfs", WAIT_DISK },
	{ "xlog", WAIT_DISK },
	{ "blk", WAIT_DISK },
	{ "submit_bio", WAIT_DISK },
	{ "do_wait", WAIT_CHILD },
	{ "kernel_wait", WAIT_CHILD },
	{ "do_signal_stop", WAIT_SIGNAL },
	{ "ptrace_stop", WAIT_SIGNAL },
};

const char *waiting_word(enum waiting_in w)
{
	return wait_words[w];
}

enum waiting_in waiting_of(const char *wchan)
{
	if (!*wchan)
		return WAIT_UNKNOWN;
	if (strcmp(wchan, "0") == 0)
		return WAIT_RUNS;
	for (size_t i = 0; i < sizeof wchans / sizeof *wchans; i++)
		if (strncmp(wchan, wchans[i].begins, strlen(wchans[i].begins)) == 0)
			return wchans[i].is;
	return WAIT_OTHER;
}

void sample_add(struct text *out, const struct worker_sample *s)
{
	text_printf(out, "rank=%u at=%" PRIu64 " state=%c wait=%s", s->rank, s->at_ms, s->state,
		wait_words[s->waits]);
	text_printf(out, " mcpu=%" PRIu64 " mio=%" PRIu64 " mflt=%" PRIu64 " rest=%" PRIu64,
		s->main_cpu_ms, s->main_bytes, s->main_faults, s->rest_cpu_ms);
	text_printf(out, " rd=%" PRIu64 " rdn=%" PRIu64 " wr=%" PRIu64 " wrn=%" PRIu64,
		s->read_bytes, s->reads, s->written_bytes, s->writes);
	text_printf(out, " net=%" PRIu64 " kids=%u kidcpu=%" PRIu64 " kidmax=%u", s->net_bytes,
		s->kids, s->kid_cpu_ms, s->kid_busiest_ms);
	text_printf(out, " dead=%u stuck=%u stop=%d traced=%d", s->dead, s->stuck, s->stop_signal,
		s->traced);
	text_printf(out, " gpu=%s store=%u", gpu_words[s->gpu], s->store_port);
	if (s->working_set != WORKING_SET_UNKNOWN)
		text_printf(out, " ws=%" PRId64, s->working_set);
	for (unsigned i = 0; i < s->talk_count; i++) {
		const struct tcp_talk *t = &s->talks[i];

		text_printf(out, " talk=%" PRIx64 ",%" PRIu32 ",%" PRIu32, t->id, t->sent_ms,
			t->heard_ms);
		text_printf(out, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32, t->unread, t->unacked,
			t->retries);
	}
	text_add(out, "\n");
}

/* A number at *at, which moves behind it. */
static uint64_t number(const char **at, int base, uint64_t max)
{
	char *end;
	unsigned long long n = strtoull(*at, &end, base);

	*at = end;
	return n > max ? max : n;
}

static int word_of(const char *const *words, int count, const char *value)
{
	for (int i = 0; i < count; i++)
		if (strcmp(words[i], value) == 0)
			return i;
	return -1;
}

/* The next of a list of numbers. */
static uint32_t next(const char **at)
{
	*at += **at == ',';
	return (uint32_t)number(at, 10, UINT32_MAX);
}

static void read_talk(struct worker_sample *s, const char *value)
{
	struct tcp_talk *t = &s->talks[s->talk_count];

	if (s->talk_count >= TALKS_MAX)
		return;
	t->id = number(&value, 16, UINT64_MAX);
	t->sent_ms = next(&value);
	t->heard_ms = next(&value);
	t->unread = next(&value);
	t->unacked = next(&value);
	t->retries = next(&value);
	s->talk_count++;
}

enum { U64, UINT, FLAG };

static const struct {
	const char *key;
	int kind;
	size_t at;
} fields[] = {
	{ "rank", UINT, offsetof(struct worker_sample, rank) },
	{ "at", U64, offsetof(struct worker_sample, at_ms) },
	{ "mcpu", U64, offsetof(struct worker_sample, main_cpu_ms) },
	{ "mio", U64, offsetof(struct worker_sample, main_bytes) },
	{ "mflt", U64, offsetof(struct worker_sample, main_faults) },
	{ "rest", U64, offsetof(struct worker_sample, rest_cpu_ms) },
	{ "rd", U64, offsetof(struct worker_sample, read_bytes) },
	{ "rdn", U64, offsetof(struct worker_sample, reads) },
	{ "wr", U64, offsetof(struct worker_sample, written_bytes) },
	{ "wrn", U64, offsetof(struct worker_sample, writes) },
	{ "net", U64, offsetof(struct worker_sample, net_bytes) },
	{ "kidcpu", U64, offsetof(struct worker_sample, kid_cpu_ms) },
	{ "kidmax", UINT, offsetof(struct worker_sample, kid_busiest_ms) },
	{ "kids", UINT, offsetof(struct worker_sample, kids) },
	{ "dead", UINT, offsetof(struct worker_sample, dead) },
	{ "stuck", UINT, offsetof(struct worker_sample, stuck) },
	{ "stop", UINT, offsetof(struct worker_sample, stop_signal) },
	{ "store", UINT, offsetof(struct worker_sample, store_port) },
	{ "traced", FLAG, offsetof(struct worker_sample, traced) },
};

static bool read_number(struct worker_sample *s, const char *key, const char *value)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		char *at = (char *)s + fields[i].at;

		if (strcmp(key, fields[i].key) != 0)
			continue;
		if (fields[i].kind == U64)
			*(uint64_t *)(void *)at = number(&value, 10, INT64_MAX);
		else if (fields[i].kind == UINT)
			*(unsigned *)(void *)at = (unsigned)number(&value, 10, INT_MAX);
		else
			*(bool *)at = *value == '1';
		return true;
	}
	return false;
}

static void read_field(struct worker_sample *s, const char *key, const char *value)
{
	int word;

	if (read_number(s, key, value))
		return;
	if (strcmp(key, "state") == 0) {
		s->state = *value >= 'A' && *value <= 'z' ? *value : '?';
	} else if (strcmp(key, "wait") == 0) {
		word = word_of(wait_words, WAITS, value);
		s->waits = word < 0 ? WAIT_OTHER : (enum waiting_in)word;
	} else if (strcmp(key, "gpu") == 0) {
		word = word_of(gpu_words, GPU_ACTIVITIES, value);
		s->gpu = word < 0 ? GPU_UNKNOWN : (enum gpu_activity)word;
	} else if (strcmp(key, "ws") == 0) {
		s->working_set = (int64_t)number(&value, 10, INT64_MAX);
	} else if (strcmp(key, "talk") == 0) {
		read_talk(s, value);
	}
}

int sample_read(const char *line, size_t len, struct worker_sample *ret)
{
	static const char first[] = "rank=";
	struct worker_sample s = { .state = '?', .working_set = WORKING_SET_UNKNOWN };
	const char *at = line, *end = line + len;
	bool counted = false;

	if (len < sizeof first || memcmp(line, first, sizeof first - 1) != 0)
		return -EINVAL;
	while (at < end) {
		const char *stop = memchr(at, ' ', (size_t)(end - at));
		char field[128], *equals;
		size_t n = (size_t)((stop ? stop : end) - at);

		if (n < sizeof field) {
			memcpy(field, at, n);
			field[n] = '\0';
			equals = strchr(field, '=');
			if (equals) {
				*equals = '\0';
				read_field(&s, field, equals + 1);
				counted |= strcmp(field, "mcpu") == 0;
			}
		}
		at += n + 1;
	}
	if (!counted)
		return -EINVAL;
	*ret = s;
	return 0;
}
