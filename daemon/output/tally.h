/* tally.h - how much workers have written: counted by the threads that read and write it, read by
 * any thread. */
#ifndef LAUNCHD_DAEMON_OUTPUT_TALLY_H
#define LAUNCHD_DAEMON_OUTPUT_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

/* By stream, all workers together: stdout, stderr. */
struct tally {
	_Atomic uint64_t read_bytes[2]; /* from their pipes */
	_Atomic uint64_t log_bytes[2];  /* of these, what launchd has put into log files; at the end
					 * of an attempt also what workers have put there */
	_Atomic uint64_t dropped_lines[2]; /* that a slow console never showed */
};

/* The same at one moment. */
struct output_counts {
	uint64_t read_bytes[2], log_bytes[2], dropped_lines[2];
};

/* NULL counts nothing. */
void tally_add(_Atomic uint64_t *count, uint64_t more);

struct output_counts tally_read(const struct tally *t);

#endif
