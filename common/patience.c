/* patience.c - see patience.h */
#include "common/patience.h"

#include <errno.h>
#include <stdbool.h>

#include "common/fd.h"
#include "common/monotonic.h"

/* One thread's. */
static sigset_t heeded;
static bool any_heeded;

void patience_heed(const sigset_t *asked)
{
	any_heeded = asked != NULL;
	if (asked)
		heeded = *asked;
}

struct patience patience_begin(int64_t ms)
{
	return (struct patience){ .until_ms = monotonic_ms() + ms };
}

static bool is_asked(void)
{
	sigset_t pending;

	if (!any_heeded || sigpending(&pending) < 0)
		return false;
	for (int n = 1; n < NSIG; n++)
		if (sigismember(&heeded, n) == 1 && sigismember(&pending, n) == 1)
			return true;
	return false;
}

int patience_slice_ms(struct patience *p)
{
	enum { LOOK_MS = 100 };
	int64_t soon_ms = monotonic_ms() + PATIENCE_ASKED_MS;
	int left;

	if (p->until_ms > soon_ms && is_asked())
		p->until_ms = soon_ms;
	left = monotonic_left_ms(p->until_ms);
	return any_heeded && left > LOOK_MS ? LOOK_MS : left;
}

int64_t patience_for_ms(uint64_t grace_ms)
{
	if (grace_ms < PATIENCE_ASKED_MS)
		return PATIENCE_ASKED_MS;
	return grace_ms < PATIENCE_MOST_MS ? (int64_t)grace_ms : PATIENCE_MOST_MS;
}

int patience_write(int fd, const char *bytes, size_t len, int64_t ms)
{
	struct patience p = patience_begin(ms);
	int slice = patience_slice_ms(&p), rc = 0;

	while (len > 0 && rc == 0) {
		size_t done;

		rc = fd_write_within(fd, bytes, len, slice, &done);
		bytes += done;
		len -= done;
		if (done > 0)
			p = patience_begin(ms);
		slice = patience_slice_ms(&p);
		if (slice == 0 && done == 0 && len > 0 && rc == 0)
			rc = -EAGAIN;
	}
	return rc;
}
