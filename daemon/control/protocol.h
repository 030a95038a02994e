/* protocol.h - the control socket's lines, for both of its ends: launchd-control(7) describes them,
 * so that others can write clients. A change here is one there. */
#ifndef LAUNCHD_DAEMON_CONTROL_PROTOCOL_H
#define LAUNCHD_DAEMON_CONTROL_PROTOCOL_H

enum {
	CONTROL_VERSION = 1,
	CONTROL_LINE_MAX = 4096, /* bytes of a request, with its newline */
	CONTROL_CLIENTS = 64,    /* of one launcher */
	CONTROL_ROOTS = 8,       /* more of them, if they are root's */
	CONTROL_ALL = CONTROL_CLIENTS + CONTROL_ROOTS,
	CONTROL_STREAM_MAX = 1 << 20, /* bytes of a stream that wait for a client */
	CONTROL_TAIL_LINES = 10,      /* of "tail", where none are named */
	CONTROL_TAIL_LINES_MAX = 1000,
};

/* Why a request was not carried out. */
enum control_error {
	CONTROL_OK,
	CONTROL_MALFORMED,
	CONTROL_OTHER_VERSION,
	CONTROL_UNKNOWN_OP,
	CONTROL_UNKNOWN_FIELD,
	CONTROL_TOO_LONG,
	CONTROL_DENIED,
	CONTROL_BUSY,
	CONTROL_ELSEWHERE,
	CONTROL_NO_RANK,
	CONTROL_NOT_NOW,
	CONTROL_OVER,
	CONTROL_UNAVAILABLE,
	CONTROL_FAILED,
	CONTROL_ERRORS
};

/* What can be asked for. */
enum control_op {
	OP_STATUS,
	OP_TAIL,
	OP_SIGNAL,
	OP_STOP,
	OP_RESTART,
	OP_REOPEN,
	OP_ENV,
	OP_EVENTS,
	OP_METRICS,
	OP_LOGLEVEL,
	OP_LOGS,
	OPS
};

#endif
