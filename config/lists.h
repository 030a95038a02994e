/* lists.h - lists with commas whose entries are ranges ("0,4-7"): of ranks, of streams by local
 * rank, of ways in which a worker can end. Pure.
 *
 * All are kept as texts: what a list says is found by reading it once more. Of a text that nobody
 * checked, what stands before its first mistake counts. */
#ifndef LAUNCHD_CONFIG_LISTS_H
#define LAUNCHD_CONFIG_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t first, last;
};

/* "7" or "4-7": the len bytes at text, within min..max. Negative errno: not a range. */
int range_parse(const char *text, size_t len, uint64_t min, uint64_t max, struct range *ret);

/* Ranks: "0,4-7". 0, or negative errno: text isn't such a list. */
int ranks_check(const char *text);

bool ranks_contain(const char *ranks, unsigned rank);

/* The highest rank in it. */
uint64_t ranks_last(const char *ranks);

/* Which of a worker's streams a setting means, as torchrun's --redirects and --tee have it: "3" for
 * all workers, or by local rank: "0:1,4-7:3". The bit of each descriptor that can be meant is the
 * descriptor's own number. */
enum { STREAMS_NONE = 0, STREAMS_STDOUT = 1, STREAMS_STDERR = 2, STREAMS_BOTH = 3 };

/* 0, or -EINVAL: text is malformed. */
int streams_check(const char *text);

/* The streams of a local rank. A rank that a list does not name has none; of two entries that name
 * it the later one counts. */
unsigned streams_of(const char *streams, unsigned local_rank);

/* The highest local rank that it names; 0 where it names none. */
uint64_t streams_last(const char *streams);

/* GPUs, as --gpus has them: "all"; numbers and ranges, "0,2,4-7"; parts of one as Intel numbers
 * them, "0.1"; or names, "GPU-...", "MIG-...". Numbers and names don't mix, and none is there
 * twice. 0, or -EINVAL: text isn't such a list. */
int gpus_check(const char *text);

/* Takes the next entry off a list of GPUs that is not "all": *at moves past it. 1: a range, of one
 * or more, is in *ret; 2: a name, or a part, of *ret_len bytes at *ret_name; 0: the list is over.
 */
int gpus_next(const char **at, struct range *ret, const char **ret_name, size_t *ret_len);

/* Ways in which a worker can end, as --restart-on has them: exit codes, ranges of them and names of
 * signals, "1,64-77,SIGSEGV", with blanks around them. A number is always an exit code, never a
 * signal: a shell's 139 is exit code 139. Exit code 0 can't be in it, as it is no failure.
 * 0, or -EINVAL: text isn't such a list. */
int ends_check(const char *text);

/* Whether it has the end, of either kind of list: a signal's number, or an exit code. */
bool ends_contain(const char *ends, bool is_signal, int value);

/* The same where the list may also have the word "repeat", which is no end. */
int ends_or_repeat_check(const char *text);
bool ends_have_repeat(const char *ends);

/* Whether two such lists have an end in common; which one, in *ret_is_signal and *ret_value. */
bool ends_overlap(const char *one, const char *other, bool *ret_is_signal, int *ret_value);

#endif
