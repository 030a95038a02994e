/* streams.h - which of a worker's streams a setting means, as torchrun's --redirects and --tee have
 * it: "3" for all workers, or by local rank ("0:1,4-7:3"). Pure. */
#ifndef LAUNCHD_CONFIG_STREAMS_H
#define LAUNCHD_CONFIG_STREAMS_H

#include <stdint.h>

/* The bit of each descriptor that can be meant is the descriptor's own number. */
enum { STREAMS_NONE = 0, STREAMS_STDOUT = 1, STREAMS_STDERR = 2, STREAMS_BOTH = 3 };

/* 0, or -EINVAL: text is malformed. */
int streams_check(const char *text);

/* The streams of a local rank, from a text once checked. A rank that a list does not name has none;
 * of two entries that name it the later one counts. */
unsigned streams_of(const char *checked, unsigned local_rank);

/* The highest local rank that a checked text names; 0 where it names none. */
uint64_t streams_last(const char *checked);

#endif
