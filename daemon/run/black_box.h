/* black_box.h - --blackbox: what can be known of a failure is taken while it can be.
 *
 * At the first sign of an end, before any signal goes out, /proc is asked about all workers, for
 * 10 ms at most. While they end, or are held (--blackbox-hold), a child asks what takes longer of
 * those that still live; when all have ended, another child writes the bundle, and node rank 0
 * hears where it is before it hears of the end. Both have limits, and nothing waits for them beyond
 * these. Nothing of all that is in a job that goes well: no process, no file. */
#ifndef LAUNCHD_DAEMON_RUN_BLACK_BOX_H
#define LAUNCHD_DAEMON_RUN_BLACK_BOX_H

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/text.h"
#include "daemon/blackbox/bundle_name.h"
#include "daemon/job/ending.h"
#include "daemon/os/helper.h"
#include "daemon/plan/plan.h"

struct attempt;
struct bus;
struct evidence;
struct findings;
struct gpu_watch;
struct job_end;
struct left_words;
struct member;
struct message_bundle;
struct pool;
struct quick_look;
struct sm;
struct source_worker;

enum box_state {
	BOX_NONE,
	BOX_CLEARING, /* a bundle of an attempt that went on is dropped, as the attempt fails now */
	BOX_TAKING,   /* a child asks the sources */
	BOX_TAKEN,    /* it has; workers still end */
	BOX_WRITING,  /* another child writes */
	BOX_STATES,
};

/* Of enum box_state. */
extern const struct sm box_life;

/* After the workers' end: for the sources, and for the files. */
enum { BOX_SOURCES_MS = 1500, BOX_FILES_MS = 2000 };

static_assert(
	BOX_SOURCES_MS + BOX_FILES_MS + 1500 <= BOX_REST_MS, "the other nodes wait that long");

/* How an attempt has ended on this node. */
struct box_end {
	const struct outcome *outcomes; /* one for each worker */
	const struct left_words *words; /* likewise; NULL: not known */
	const struct evidence *said;    /* what those that failed say */
	size_t said_count;
};

struct black_box {
	/* the owner's, before it enters; all are borrowed */
	const struct plan *plan; /* the final one before the first attempt */
	struct pool *pool;
	struct bus *bus;
	struct member *member;
	const struct attempt *attempt;
	const struct cause *known; /* why the attempt ends, as far as this node knows */
	uv_loop_t *loop;
	char **argv;      /* as struct helper has it */
	const char *host; /* this node's */
	const struct gpu_watch *gpu_watch;
	/* What can be kept of an attempt's end is kept. */
	void (*on_kept)(void *owner);
	void *owner;

	/* private; all of it is { 0 } without --blackbox */
	enum box_state state;
	bool open;      /* in the loop */
	bool ends;      /* it is the attempt's end that is taken */
	bool finishing; /* all workers have ended, and wait for this */
	bool held;
	uint64_t started_ns; /* the attempt; CLOCK_MONOTONIC */
	unsigned looks;      /* bundles of this attempt while it went on */
	uint64_t began_ns;   /* CLOCK_MONOTONIC */
	int64_t wall_ms;     /* CLOCK_REALTIME */
	char name[BUNDLE_NAME_SIZE];
	char why[400];
	struct quick_look *seen, *later; /* one for each worker; later NULL: not looked at again */
	struct source_worker *alive;
	size_t alive_count;
	struct findings *found; /* NULL: nothing */
	struct box_end end;
	struct helper taker, writer, indexer;
	uv_timer_t timer;
	struct text events; /* the last ones, as lines of JSON */
	/* what was kept of this attempt's end */
	bool kept;
	char path[PATH_MAX];         /* of this node's part; "": there is none */
	struct message_bundle *told; /* on node rank 0: by node; NULL: none */
	struct text index;
	bool indexed; /* whatever ends the job before the next attempt is not what failed */
	char index_name[BUNDLE_NAME_SIZE];
	bool index_due;              /* the child that writes the one before has not gone yet */
	char failure_path[PATH_MAX]; /* of the failure's directory */
};

/* Takes a bundle now, though the attempt goes on; why: a sentence. Nothing where --blackbox is off,
 * one is being taken, or the workers do not run. */
void black_box_take(struct black_box *b, const char *why);

/* Into the loop, where --blackbox is on; out of it; and the memory, when the loop has ended. */
void black_box_enter(struct black_box *b);
void black_box_leave(struct black_box *b);
void black_box_done(struct black_box *b);

/* An attempt starts. */
void black_box_start(struct black_box *b);

/* The first sign of an attempt's end: see before_stop() of struct pool. */
uint64_t black_box_first_sign(struct black_box *b);

/* All workers have ended, and their words are read: on_kept() follows, perhaps before this returns.
 * What the end points to is borrowed until then. */
void black_box_finish(struct black_box *b, const struct box_end *end);

/* Where this node's part of the bundle of this attempt's end is; NULL: there is none. */
const char *black_box_path(const struct black_box *b);

/* On node rank 0: another node has told. */
void black_box_told(struct black_box *b, unsigned node, const struct message_bundle *told);

/* The attempt is over for the whole job, as far as this node knows: node rank 0 writes the index.
 * Where the bundle is, which is as long as *b; NULL: there is none. */
const char *black_box_over(struct black_box *b, const struct job_end *end);

#endif
