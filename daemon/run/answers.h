/* answers.h - what is asked through the control socket, answered: launchd-control(7). */
#ifndef LAUNCHD_DAEMON_RUN_ANSWERS_H
#define LAUNCHD_DAEMON_RUN_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/control/ctl_server.h"
#include "daemon/control/ctl_watch.h"
#include "daemon/run/survey.h"

struct bus;
struct followed_lines;
struct run;
struct tails;

/* A client that waits for what the output thread knows. */
struct waiting {
	struct ctl_client *client; /* NULL: node rank 0, which asks for STATUS under the number: */
	unsigned query;
	enum control_op op; /* STATUS or TAIL */
	unsigned index;     /* TAIL: of the worker, among those of this node */
	unsigned lines;
};

struct answers {
	struct run *run;
	struct ctl_server server;
	int64_t since_ns; /* CLOCK_REALTIME: this launcher's start */
	uv_timer_t patience;
	uv_timer_t watching;    /* until the watch begins */
	bool entered;           /* the timers are in the loop */
	bool tried;             /* to open the socket, or it is about to be */
	bool open;              /* it is */
	struct ctl_watch watch; /* of the directory of the socket */
	bool asked;             /* the output thread has been, for that many lines: */
	unsigned lines;
	struct waiting waiting[CONTROL_ALL + 1]; /* each once */
	unsigned waiting_count;
	struct survey survey;
};

/* Hears of events, for those who follow them. */
void answers_init(struct answers *a, struct run *r, struct bus *b);

/* Where the plan wants a socket it is opened: at once where nodes are to meet, else when the
 * workers have started, who need not wait for it. That it can't be had is noted. */
void answers_enter(struct answers *a);

/* Makes the socket anew if it was removed. Called as an attempt begins, after 15 s, and whenever
 * the socket's directory changes then, if the kernel can watch that. */
void answers_renew(struct answers *a);

/* Removes the socket. Also where it was not entered. */
void answers_leave(struct answers *a);

/* Node rank 0 asks how this node is. */
void answers_query(struct answers *a, unsigned query);

/* A node has told node rank 0, which this is, how it is. */
void answers_status(struct answers *a, unsigned node, const struct message_status *told);

/* The output thread has answered; NULL: it has no memory. */
void answers_tails(struct answers *a, const struct tails *t);

/* Lines of a worker, for those who follow them. */
void answers_followed(struct answers *a, const struct followed_lines *f);

#endif
