/* step_file.c - see step_file.h */
#include "daemon/run/watch/step_file.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/utc.h"
#include "daemon/plan/step_source.h"

/* A longer one is no mere number. */
enum { SHORT = 256, NS_PER_S = 1000000000 };

/* Shared with the child. */
struct file_watched {
	struct helper_answer helper;
	_Atomic uint64_t changes, number, at_ns;
	_Atomic bool numbered;
};

/* How the file is; all zeros: it is not there. */
struct file_look {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	uint64_t at_ns; /* of the look */
};

static struct file_watched *seen_of(const struct step_file *f)
{
	return (struct file_watched *)f->helper.answer;
}

static struct file_look state_of(const char *path, bool *ret_short)
{
	struct stat st;

	*ret_short = false;
	if (stat(path, &st) < 0)
		return (struct file_look){ 0 };
	*ret_short = S_ISREG(st.st_mode) && st.st_size <= SHORT;
	return (struct file_look){ st.st_dev, st.st_ino, st.st_size, st.st_mtim, 0 };
}

static bool is_same(const struct file_look *a, const struct file_look *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
		a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool read_number(const char *path, uint64_t *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char text[SHORT];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);

	if (fd >= 0)
		(void)close(fd);
	return n > 0 && progress_in_file(text, (size_t)n, ret);
}

/* When it changed: since the last look, whatever the clock of its file server says. */
static uint64_t time_of_change(const struct file_look *l, uint64_t last_ns)
{
	uint64_t now_ns = uv_hrtime();
	int64_t ago = utc_now_ns() - ((int64_t)l->changed.tv_sec * NS_PER_S + l->changed.tv_nsec);

	if (ago < 0)
		return now_ns;
	return (uint64_t)ago < now_ns - last_ns ? now_ns - (uint64_t)ago : last_ns;
}

static void look_once(struct step_file *f, struct file_look *before, bool first)
{
	struct file_watched *s = seen_of(f);
	bool is_short;
	uint64_t number = 0, at_ns = uv_hrtime(), last_ns = before->at_ns;
	struct file_look now = state_of(f->path, &is_short);

	before->at_ns = now.at_ns = at_ns;
	if (!first && is_same(before, &now))
		return;
	*before = now;
	if (first || now.inode == 0) /* one that has gone is no step */
		return;
	atomic_store(&s->numbered, is_short && read_number(f->path, &number));
	atomic_store(&s->number, number);
	atomic_store(&s->at_ns, time_of_change(&now, last_ns));
	atomic_fetch_add(&s->changes, 1); /* last: whoever sees it sees the others */
}

/* In the child, until it is killed. */
static void work(struct helper *h)
{
	struct file_look before = { 0 };

	for (bool first = true;; first = false) {
		const struct timespec pause = { .tv_sec = STEP_FILE_EVERY_S };

		look_once(h->owner, &before, first);
		(void)nanosleep(&pause, NULL);
	}
}

static void on_end(struct helper *h, bool succeeded)
{
	(void)succeeded;
	helper_close(h);
}

void step_file_start(struct step_file *f, uv_loop_t *loop, const char *path, char **argv)
{
	if (f->helper.state != HELPER_NONE)
		return;
	f->path = path;
	f->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.owner = f,
		.name = "step-file",
		.argv = argv,
		.group = true,
		.lasting = true,
	};
	(void)helper_start(&f->helper, loop, sizeof(struct file_watched), 0);
}

struct step_file_seen step_file_look(const struct step_file *f)
{
	const struct file_watched *s = f->helper.answer ? seen_of(f) : NULL;
	uint64_t changes = s ? atomic_load(&s->changes) : 0;

	if (changes == 0)
		return (struct step_file_seen){ 0 };
	return (struct step_file_seen){ changes, atomic_load(&s->number), atomic_load(&s->numbered),
		atomic_load(&s->at_ns) };
}

void step_file_stop(struct step_file *f)
{
	helper_close(&f->helper);
}
