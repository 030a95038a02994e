/* ctl_server.h - those who ask and steer a job: connections to the control socket, in the event
 * loop. What is asked, the owner answers.
 *
 * In a turn of the loop each client has one request answered at most, and no other one until its
 * answer is written: neither many requests nor a slow reader hold up the workers' launcher. Only
 * this launcher's user and root are answered. Where all places are taken, the client that was idle
 * the longest, and has no stream, makes room; root's does so only for root. */
#ifndef LAUNCHD_DAEMON_CONTROL_CTL_SERVER_H
#define LAUNCHD_DAEMON_CONTROL_CTL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/failure.h"
#include "daemon/control/demand.h"
#include "daemon/os/acceptor.h"
#include "daemon/os/cjson.h"

struct ctl_client;
struct sm;
struct text;

/* Who has asked, for the report of what came of it. */
struct ctl_peer {
	pid_t pid;
	uid_t uid;
};

/* What it needs where few ask: its socket and the watch for that, one in reserve, and some clients.
 */
enum { CTL_DESCRIPTORS = 6 };

enum ctl_state {
	CTL_READING, /* or a stream's lines are being written */
	CTL_ASKING,  /* the owner has its request */
	CTL_LEAVING, /* the server is closed, and its last lines are being written */
	CTL_CLOSING, /* the loop has its handle still */
	CTL_STATES
};

extern const struct sm ctl_life;

struct ctl_server {
	/* the owner's, before ctl_server_open() */

	/* A request, which is valid for the call. One of ctl_answer(), ctl_refuse(), ctl_follow()
	 * and ctl_follow_lines() is due: now, or until ctl_server_close(). */
	void (*asked)(void *owner, struct ctl_client *c, const struct demand *d);
	void *owner;

	/* private */
	int listening; /* -1: it is not open */
	uv_poll_t poll;
	struct acceptor acceptor;
	struct ctl_client *clients;
	unsigned count, followers, line_followers, leaving;
	uint64_t moves;  /* of all clients */
	uv_timer_t look; /* while some are leaving */
	unsigned looks;
	struct cjson cjson; /* from the first request on */
	struct failure no_cjson;
	struct demand demand;
};

/* Answers those who come to a socket that listens, which is taken over. On failure it is closed. */
int ctl_server_open(struct ctl_server *s, uv_loop_t *loop, int listening, struct failure *why);

/* Takes over another socket, which replaces the one it listened to. Connections are kept. */
void ctl_server_move(struct ctl_server *s, int listening);

/* Ends streams, and all else. The loop must run on, for a second at most: clients read what they
 * have been told so far. For a server that was never opened, too, if listening is -1. */
void ctl_server_close(struct ctl_server *s);

/* Who asks. */
struct ctl_peer ctl_peer(const struct ctl_client *c);

/* The result, as JSON; NULL: {}. */
void ctl_answer(struct ctl_client *c, const char *result);

/* It was not done, for a reason in one sentence. */
void ctl_refuse(struct ctl_client *c, enum control_error e, const char *why);

/* Its request began a stream: it hears of all events from now on. */
void ctl_follow(struct ctl_client *c);

/* Whether what another launcher has written can be a part of a result: one JSON object, in one
 * line. A NUL follows it. */
bool ctl_server_takes(struct ctl_server *s, const char *json, size_t len);

/* An event, as JSON without a newline, for those who follow. */
void ctl_tell(struct ctl_server *s, const char *event, size_t len);

/* Likewise of lines that workers write: those of these ranks, which are copied; none: of all. */
void ctl_follow_lines(struct ctl_client *c, const unsigned *ranks, size_t count);

/* Whether any of those who follow this rank has room; else lines need not be rendered. */
bool ctl_takes_lines(const struct ctl_server *s, unsigned rank);
void ctl_tell_line(struct ctl_server *s, unsigned rank, const char *event, size_t len);

/* So many lines can't be told. */
void ctl_lose_lines(struct ctl_server *s, unsigned rank, uint64_t count);

#endif
