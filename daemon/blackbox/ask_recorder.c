/* ask_recorder.c - see ask_recorder.h */
#include "daemon/blackbox/ask_recorder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/blackbox/answer_file.h"
#include "daemon/blackbox/bundle.h"
#include "daemon/blackbox/keep.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/task.h"

enum {
	ALL_MAX = 12 << 20, /* bytes of all dumps: a part of one can't be read */
	WAIT_MS = 6000,     /* for dumps that were asked for: less than the task's limit */
	LOOK_MS = 100,
	NS_PER_MS = 1000000,
};

static_assert(ALL_MAX + 2 * BUNDLE_FILE_MAX <= KEEP_MAX_BYTES, "the others are cut, these are not");

/* What was found of them. */
struct dumps {
	unsigned taken, asked;
	uint64_t bytes;
	struct text left_out; /* ranks */
};

static bool path_of(const char *prefix, unsigned rank, const char *end, char ret[PATH_MAX])
{
	return snprintf(ret, PATH_MAX, "%s%u%s", prefix, rank, end) < PATH_MAX;
}

static int64_t changed_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / NS_PER_MS;
}

/* A dump of this attempt; of one before that the file may still be there. */
static bool look_at(
	const struct source_input *in, unsigned rank, char path[PATH_MAX], struct stat *ret)
{
	return path_of(in->recorder.dumps, rank, "", path) && lstat(path, ret) == 0 &&
		S_ISREG(ret->st_mode) && ret->st_size > 0 && changed_ms(ret) >= in->since_ms;
}

static bool is_living(const struct source_input *in, unsigned rank)
{
	for (size_t i = 0; i < in->count; i++)
		if (in->workers[i].rank == rank)
			return true;
	return false;
}

/* False: it has none, or nobody reads it. */
static bool ask_one(const struct source_input *in, unsigned rank)
{
	char path[PATH_MAX];
	struct stat st;

	if (!in->recorder.pipes || !path_of(in->recorder.pipes, rank, ".pipe", path))
		return false;
	autoclose fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && write(fd, "1\n", 2) == 2;
}

static unsigned ask_all(const struct source_input *in)
{
	unsigned asked = 0;

	for (unsigned rank = in->first_rank; rank < in->first_rank + in->ranks; rank++)
		asked += is_living(in, rank) && ask_one(in, rank);
	return asked;
}

/* Until as many as were asked have written since then, and none grew between two looks. */
static void wait_for_dumps(const struct source_input *in, unsigned asked, int64_t since_ms)
{
	int64_t until_ms = monotonic_ms() + WAIT_MS;
	uint64_t before = 0;

	while (monotonic_left_ms(until_ms) > 0) {
		unsigned written = 0;
		uint64_t bytes = 0;

		for (unsigned rank = in->first_rank; rank < in->first_rank + in->ranks; rank++) {
			char path[PATH_MAX];
			struct stat st;

			if (!look_at(in, rank, path, &st) || changed_ms(&st) < since_ms)
				continue;
			written++;
			bytes += (uint64_t)st.st_size;
		}
		if (written >= asked && bytes == before)
			return;
		before = bytes;
		(void)nanosleep(&(struct timespec){ 0, LOOK_MS * NS_PER_MS }, NULL);
	}
}

static void take_all(const struct source_input *in, struct dumps *d)
{
	d->taken = 0;
	d->bytes = 0;
	text_done(&d->left_out);
	for (unsigned rank = in->first_rank; rank < in->first_rank + in->ranks; rank++) {
		char path[PATH_MAX], name[48];
		struct stat st;

		if (!look_at(in, rank, path, &st))
			continue;
		(void)snprintf(name, sizeof name, KEEP_WHOLE "rank-%u", rank);
		if (d->bytes + (uint64_t)st.st_size > ALL_MAX ||
			answer_file_copy(in, name, path, (size_t)st.st_size) < 0) {
			text_printf(&d->left_out, "%s%u", d->left_out.len ? "," : "", rank);
			continue;
		}
		d->bytes += (uint64_t)st.st_size;
		d->taken++;
	}
}

static void say(const struct dumps *d, struct task_answer *a)
{
	if (d->taken > 0)
		findings_add(&a->findings, HEALTH_GOOD, "flight_recorder", "",
			"%u dump%s (flight-recorder.rank-N): read them with torch's fr_trace",
			d->taken, d->taken == 1 ? "" : "s");
	if (d->left_out.len > 0)
		findings_add(&a->findings, HEALTH_UNKNOWN, "flight_recorder", "",
			"dumps of ranks %.100s were left out: too large, or not readable",
			text_string(&d->left_out));
	if (d->asked > 0 && d->taken + (d->left_out.len > 0) == 0)
		findings_add(&a->findings, HEALTH_UNKNOWN, "flight_recorder", "",
			"%u rank%s asked for a dump, and wrote none", d->asked,
			d->asked == 1 ? " was" : "s were");
}

bool has_recorder_files(const struct source_input *in)
{
	return in->recorder.dumps != NULL;
}

void ask_recorder(const struct source_input *in, struct task_answer *a)
{
	struct timespec now;
	struct dumps d = { 0 };

	task_step(a, "the dumps that are there");
	take_all(in, &d);
	(void)clock_gettime(CLOCK_REALTIME, &now); /* can't fail */
	task_step(a, "pipes");
	d.asked = ask_all(in);
	if (d.asked > 0) {
		task_step(a, "the dumps that were asked for");
		wait_for_dumps(in, d.asked, (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS);
		take_all(in, &d);
	}
	say(&d, a);
	text_done(&d.left_out);
}
