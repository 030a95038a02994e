/* ras_talk.h - what NCCL's RAS says of a job: the sentence that counts, out of the report that it
 * gives in answer to VERBOSE STATUS. Pure.
 *
 * NCCL has a thread for that in each process from 2.24 on, and none of its libraries brings the
 * program `ncclras` by pip; the protocol is lines of text, the answer ends with the connection. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_RAS_TALK_H
#define LAUNCHD_DAEMON_BLACKBOX_RAS_TALK_H

#include <stdbool.h>
#include <stddef.h>

struct text;

/* UNCLEAR: it is not such a report, or was cut before its errors. */
enum ras_says { RAS_WELL, RAS_ERRORS, RAS_UNCLEAR };

/* Of an answer of len bytes, whatever they are; more than that need not have come. Adds what stands
 * first under "Errors", else under "Warnings": "MISMATCH: Communicator ranks have different
 * collective operation counts"; where it is UNCLEAR, its first line. */
enum ras_says ras_talk_read(const char *answer, size_t len, struct text *out);

/* "HOST:PORT" or "[ADDRESS]:PORT". False: it is not that, or longer than there is room. */
bool ras_talk_address(const char *at, char *host, size_t host_size, char *port, size_t port_size);

#endif
