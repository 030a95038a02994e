/* detector.h - says whether a job hangs, of what kind that is, and when it may be acted on. Pure:
 * it is told the time, and what others have seen.
 *
 *   MOVING --nothing moves or works for SUSPECT_MS, and looks show a hang--> SUSPECT
 *   SUSPECT --for long enough, see below--> CERTAIN
 *   SUSPECT, CERTAIN --something moves, or a worker works in some looks in a row--> MOVING
 *
 * What moves is a line of output, a step, a change in the store, and workers that talk. What work
 * is depends on what a rank did while the job moved: see rank_work.h.
 *
 * A healthy worker that sleeps before it tries again looks exactly as a hung one, so CERTAIN has to
 * wait: for after_ms, and for LEARNED times the longest quiet that this job has come back from.
 * It also waits while somebody works in a third of the looks, which is too seldom to clear a
 * suspicion, as hung jobs with irregular monitors do something now and then.
 * Only where a process is stopped by somebody's SIGSTOP it comes after STOPPED_MS. */
#ifndef LAUNCHD_DAEMON_WITNESS_DETECTOR_H
#define LAUNCHD_DAEMON_WITNESS_DETECTOR_H

#include "daemon/witness/classify.h"

struct sm;

enum {
	SUSPECT_MS = 5000, /* 10 s, less what it takes until looks show no more than a mean */
	SILENT_MS = 60000, /* the same where nothing shows what kind of hang it is */
	UNSEEN_MS = 5000,  /* longer where not all have been looked at */
	STOPPED_MS = 60000,
	LEARNED = 3,
	DOUBT_MS = 15000, /* until it is known what work was worth: see below */
	LEFT_OUT = 2,     /* looks at the end of a long quiet: they are of no job that moves */
	TALK_MS = 8000,   /* as long as talk that looks have shown counts: they come each 5 s */
	/* work that clears no suspicion: it is made up for by so many looks without any, and no
	   more than that */
	STIRS_FOR = 3,
	STIRS_MAX = 30,
	LOOKS_AGREE = 2, /* looks in a row that must show the same */
	/* and more: the kernel counts CPU time in steps of 10 ms, which of 20 ms would be half a
	   CPU */
	LOOKS_APART_MS = 500,
};

enum detector_state { DETECTOR_MOVING, DETECTOR_SUSPECT, DETECTOR_CERTAIN, DETECTOR_STATES };

extern const struct sm detector_life;

/* What is new after a look. */
enum detector_news {
	NEWS_NONE,
	NEWS_SUSPECT, /* also where what is suspected has changed */
	NEWS_CLEARED,
	NEWS_CERTAIN,
};

/* Why what seemed to be work may have been none. */
enum unsure {
	UNSURE_NOT,
	UNSURE_NET, /* only sockets work: perhaps those of NCCL's RAS, which has not answered yet */
	UNSURE_CPU, /* a worker uses CPU time: perhaps it spins, which later looks show */
};

struct detector {
	/* the owner's, set before the first call; the rest is { 0 } */
	uint64_t after_ms;
	bool no_habits;            /* what workers do while the job moves is not learnt */
	struct rank_sight *sights; /* one of each rank, { 0 } at first */
	struct talk_end *room;     /* TALKS_MAX for each rank */
	unsigned ranks;

	/* to be read */
	enum detector_state state;
	struct hang_finding finding; /* SUSPECT, CERTAIN */
	uint64_t moved_ms;           /* when something moved last */
	uint64_t longest_ms;         /* quiet that was no hang, in this job */

	/* private */
	bool talked;        /* workers did, by the latest looks */
	uint64_t looked_ms; /* when the latest look before the current one was judged */
	struct hang_finding latest;
	enum unsure unsure;
	uint64_t doubted_ms; /* moved_ms before that */
	uint32_t ras_bytes;
	unsigned stirs;  /* looks without work that are lacking, in a suspicion */
	unsigned agreed; /* looks in a row that have shown `latest` */
	bool began;
};

/* The workers of an attempt were started: what was seen of others is forgotten, not the longest
 * quiet. */
void detector_begin(struct detector *d, uint64_t now_ms);

/* Something has moved: a line of output, a step, a change in the store; or the job was suspended by
 * its user, so that nothing could. at_ms: when. NEWS_CLEARED or NEWS_NONE. */
enum detector_news detector_moved(struct detector *d, uint64_t at_ms);

/* A look at one worker; one that comes too soon behind another is left out. */
void detector_see(struct detector *d, const struct worker_sample *s);

/* Its parent has learned which signal has stopped it. */
void detector_stopped(struct detector *d, unsigned rank, int signal);

/* It waits in the store for that key; "": it does not. */
void detector_awaits(struct detector *d, unsigned rank, const char *key);

/* Whether its monitor of NCCL asks the store no more, while others do. */
void detector_late(struct detector *d, unsigned rank, bool late);

/* NCCL's RAS has answered, with so many bytes: what was known by the answer before is forgotten. 0:
 * it does not answer any more. */
void detector_ras(struct detector *d, uint32_t bytes);

/* What that answer says of a rank. */
void detector_ops(struct detector *d, unsigned rank, const struct rank_ops *ops);

/* All workers that can be seen were: what does that mean? */
enum detector_news detector_judge(struct detector *d, uint64_t now_ms);

/* Workers talk with one another, by the latest looks; unknown once looks have stopped. */
bool detector_hears_talk(const struct detector *d, uint64_t now_ms);

/* For how long nothing has moved. */
uint64_t detector_quiet_ms(const struct detector *d, uint64_t now_ms);

#endif
