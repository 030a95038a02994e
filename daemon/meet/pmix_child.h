/* pmix_child.h - the process that talks to PMIx for the launcher, and what it leaves behind. */
#ifndef LAUNCHD_DAEMON_MEET_PMIX_CHILD_H
#define LAUNCHD_DAEMON_MEET_PMIX_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PMIX_BYTES_MAX = 4096 };

enum pmix_stage {
	PMIX_STAGE_BIRTH, /* becoming a process of its own */
	PMIX_STAGE_LOAD,
	PMIX_STAGE_INIT,
	PMIX_STAGE_PUT,
	PMIX_STAGE_FENCE,
	PMIX_STAGE_GET,
	PMIX_STAGE_LEAVE, /* waiting until all have got it */
	PMIX_STAGE_FINALIZE,
	PMIX_STAGE_DONE,
};

/* Memory that both share. The stage stands here before the step is taken, so that it is known
 * whatever becomes of the child. */
struct pmix_answer {
	volatile enum pmix_stage stage;
	volatile uint32_t rank, size; /* in the job; size 0: not known yet */
	volatile uint32_t timed_out;  /* the fence was left, as its time was over */
	volatile uint32_t len;        /* of the bytes; counts at PMIX_STAGE_DONE only */
	char text[512];               /* why the stage failed; "": it did not say */
	unsigned char bytes[PMIX_BYTES_MAX];
};

struct pmix_child {
	const void *mine;
	size_t len;
	uint64_t timeout_ms; /* of the fence, from the call on */
	pid_t parent;
	int chatter; /* takes what PMIx prints; once it is full, it refuses more without blocking */
	char **argv; /* see struct pmix_exchange */
	struct pmix_answer *answer;
};

/* Everything from the fork on. Blocks as long as PMIx does; never returns. Exits with 0 where all
 * steps succeeded, else with 1. */
_Noreturn void pmix_child_main(const struct pmix_child *c);

#endif
