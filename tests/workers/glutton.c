/* glutton.c - tells "ready"; rank $TAKER waits for the test's word and takes memory until it is
 * ended for it, but no more than 1 GiB; the others wait for a signal. */
#include <sys/mman.h>

#include "worker.h"

enum { CHUNK = 4 << 20, CHUNKS = 256 };

int main(void)
{
	const char *rank = getenv("RANK"), *taker = getenv("TAKER");

	tell("ready");
	while (!rank || !taker || strcmp(rank, taker) != 0)
		(void)pause();
	wait_for_go();
	for (int i = 0; i < CHUNKS; i++) {
		void *p = mmap(
			NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return 2;
		memset(p, 1, CHUNK);
	}
	return 3; /* there is no limit */
}
