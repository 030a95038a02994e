/* ctl_server.c - see ctl_server.h */
#include "daemon/control/ctl_server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/sm.h"
#include "common/text.h"

enum follows { FOLLOWS_NOTHING, FOLLOWS_EVENTS, FOLLOWS_LINES };

/* At the end a client that takes nothing for so long is given up; any is after LOOKS times that. */
enum { LOOK_MS = 1000, LOOKS = 5 };

/* So few in a turn of the loop that each is heard before a crowd behind it can push it out. */
enum { AT_ONCE = 16 };

struct ctl_client {
	struct ctl_client *next;
	struct ctl_server *server;
	enum ctl_state state;
	struct ctl_peer peer;
	int fd;
	uv_poll_t poll;
	size_t got;
	bool skips;     /* the rest of a line that is too long */
	bool ended;     /* no more requests come */
	bool lost;      /* its other end is gone, while the owner has its request */
	uint64_t moved; /* the server's count when it came, asked or took something */
	int64_t id;     /* of the request */
	bool has_id;
	struct text out; /* yet to be written */
	enum follows follows;
	unsigned *ranks; /* FOLLOWS_LINES: whose; none: everybody's */
	size_t rank_count;
	int64_t followed_id;
	uint64_t missed; /* of the stream's lines, as it did not read */
	bool full;       /* nor has it since the last of them */
	size_t held;     /* of out, when CTL_LEAVING was looked at last */
	char line[CONTROL_LINE_MAX];
};

static const struct sm_state states[CTL_STATES] = {
	[CTL_READING] = { "reading", SM_TO(CTL_ASKING) | SM_TO(CTL_LEAVING) | SM_TO(CTL_CLOSING) },
	[CTL_ASKING] = { "asking", SM_TO(CTL_READING) | SM_TO(CTL_CLOSING) },
	[CTL_LEAVING] = { "leaving", SM_TO(CTL_CLOSING) },
	[CTL_CLOSING] = { "closing", 0 },
};

const struct sm ctl_life = { "control client", states, CTL_STATES };

static void on_client(uv_poll_t *p, int status, int events);

static void free_if_over(struct ctl_server *s)
{
	if (s->listening < 0 && !s->clients)
		cjson_close(&s->cjson);
}

static void on_client_closed(uv_handle_t *h)
{
	struct ctl_client *c = h->data, **at = &c->server->clients;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->server->count--;
	free_if_over(c->server);
	text_done(&c->out);
	free(c->ranks);
	free(c);
}

/* With the last of them nothing has to be looked at any more. */
static void count_leaving(struct ctl_server *s, enum ctl_state before, enum ctl_state next)
{
	s->leaving += next == CTL_LEAVING;
	s->leaving -= before == CTL_LEAVING;
	if (before == CTL_LEAVING && s->leaving == 0)
		uv_close((uv_handle_t *)&s->look, NULL);
}

static void client_goto(struct ctl_client *c, enum ctl_state next)
{
	enum ctl_state before = c->state;

	c->state = sm_go(&ctl_life, before, next);
	if (next < CTL_LEAVING)
		return;
	c->server->followers -= c->follows == FOLLOWS_EVENTS;
	c->server->line_followers -= c->follows == FOLLOWS_LINES;
	c->follows = FOLLOWS_NOTHING;
	count_leaving(c->server, before, next);
	if (next != CTL_CLOSING)
		return;
	uv_close((uv_handle_t *)&c->poll, on_client_closed);
	fd_closep(&c->fd); /* libuv polls it no more */
}

/* What it waits for now. Requests wait for the answer to the one before, and for its reader. */
static void watch(struct ctl_client *c)
{
	int events = 0;

	if (c->state == CTL_CLOSING)
		return;
	if (c->out.len > 0 && !c->lost)
		events = UV_WRITABLE;
	else if (c->state == CTL_READING)
		events = UV_READABLE;
	if (events)
		(void)uv_poll_start(&c->poll, events, on_client); /* can't fail */
	else
		(void)uv_poll_stop(&c->poll);
}

/* Whoever still has its request must find it when it answers. */
static void lose(struct ctl_client *c)
{
	c->lost = true;
	if (c->state != CTL_ASKING)
		client_goto(c, CTL_CLOSING);
}

/* There is no memory for what it should hear. */
static void check_memory(struct ctl_client *c)
{
	if (c->out.failed && c->state == CTL_READING)
		client_goto(c, CTL_CLOSING);
}

static void add_head(struct ctl_client *c, bool has_id, int64_t id)
{
	text_add(&c->out, "{\"v\":1,\"id\":");
	if (has_id)
		text_printf(&c->out, "%" PRId64, id);
	else
		text_add(&c->out, "null");
}

static void add_error(struct text *out, enum control_error e, const char *why)
{
	text_printf(
		out, ",\"ok\":false,\"error\":{\"code\":\"%s\",\"text\":", control_error_name(e));
	text_add_json(out, why);
	text_add(out, "}}\n");
}

/* The owner has answered. */
static void end_request(struct ctl_client *c)
{
	client_goto(c, CTL_READING);
	if (c->lost)
		client_goto(c, CTL_CLOSING);
	check_memory(c);
	watch(c);
}

void ctl_answer(struct ctl_client *c, const char *result)
{
	add_head(c, c->has_id, c->id);
	text_printf(&c->out, ",\"ok\":true,\"result\":%s}\n", result ? result : "{}");
	end_request(c);
}

void ctl_refuse(struct ctl_client *c, enum control_error e, const char *why)
{
	add_head(c, c->has_id, c->id);
	add_error(&c->out, e, why);
	end_request(c);
}

struct ctl_peer ctl_peer(const struct ctl_client *c)
{
	return c->peer;
}

static void follow(struct ctl_client *c, enum follows what)
{
	c->follows = what;
	c->followed_id = c->id;
	c->server->followers += what == FOLLOWS_EVENTS;
	c->server->line_followers += what == FOLLOWS_LINES;
	end_request(c);
}

static bool has_stream(struct ctl_client *c)
{
	if (c->follows)
		ctl_refuse(c, CONTROL_NOT_NOW, "this connection has a stream already");
	return c->follows != FOLLOWS_NOTHING;
}

void ctl_follow(struct ctl_client *c)
{
	if (!has_stream(c))
		follow(c, FOLLOWS_EVENTS);
}

void ctl_follow_lines(struct ctl_client *c, const unsigned *ranks, size_t count)
{
	if (has_stream(c))
		return;
	if (count > 0)
		c->ranks = malloc(count * sizeof *c->ranks);
	if (count > 0 && !c->ranks) {
		ctl_refuse(c, CONTROL_FAILED, "out of memory");
		return;
	}
	if (count > 0)
		memcpy(c->ranks, ranks, count * sizeof *c->ranks);
	c->rank_count = count;
	follow(c, FOLLOWS_LINES);
}

static bool wants_lines(const struct ctl_client *c, unsigned rank)
{
	for (size_t i = 0; i < c->rank_count; i++)
		if (c->ranks[i] == rank)
			return c->follows == FOLLOWS_LINES;
	return c->follows == FOLLOWS_LINES && c->rank_count == 0;
}

bool ctl_takes_lines(const struct ctl_server *s, unsigned rank)
{
	for (const struct ctl_client *c = s->clients; c; c = c->next)
		if (wants_lines(c, rank) && !c->full)
			return true;
	return false;
}

/* Of what found no room before. */
static void add_lost(struct ctl_client *c)
{
	if (c->missed == 0)
		return;
	add_head(c, true, c->followed_id);
	text_printf(&c->out, ",\"lost\":%" PRIu64 "}\n", c->missed);
	c->missed = 0;
}

static void tell_one(struct ctl_client *c, const char *event, size_t len)
{
	if (c->lost || c->out.len + len > CONTROL_STREAM_MAX) {
		c->missed++;
		c->full = true;
		return;
	}
	add_lost(c);
	add_head(c, true, c->followed_id);
	text_add(&c->out, ",\"event\":");
	text_add_bytes(&c->out, event, len);
	text_add(&c->out, "}\n");
	check_memory(c);
	watch(c);
}

void ctl_tell(struct ctl_server *s, const char *event, size_t len)
{
	if (s->followers == 0)
		return;
	for (struct ctl_client *c = s->clients; c; c = c->next)
		if (c->follows == FOLLOWS_EVENTS)
			tell_one(c, event, len);
}

void ctl_tell_line(struct ctl_server *s, unsigned rank, const char *event, size_t len)
{
	for (struct ctl_client *c = s->clients; c; c = c->next)
		if (wants_lines(c, rank))
			tell_one(c, event, len);
}

void ctl_lose_lines(struct ctl_server *s, unsigned rank, uint64_t count)
{
	for (struct ctl_client *c = s->clients; c; c = c->next)
		if (wants_lines(c, rank))
			c->missed += count;
}

static bool has_cjson(struct ctl_server *s)
{
	return s->cjson.parse_to_end ||
		(s->no_cjson.code == 0 && cjson_open(NULL, &s->cjson, &s->no_cjson) == 0);
}

bool ctl_server_takes(struct ctl_server *s, const char *json, size_t len)
{
	const char *end = NULL;
	cJSON *root;
	bool takes;

	if (!has_cjson(s) || memchr(json, '\n', len))
		return false;
	root = s->cjson.parse_to_end(json, len + 1, &end, true);
	takes = root && end == json + len && root->type & cJSON_Object;
	s->cjson.free(root);
	return takes;
}

/* A whole line of len bytes; line[len] is its newline. */
static void ask(struct ctl_client *c, size_t len)
{
	struct ctl_server *s = c->server;
	struct text why = { 0 };
	enum control_error e;

	c->has_id = false;
	client_goto(c, CTL_ASKING);
	if (!has_cjson(s)) {
		ctl_refuse(c, CONTROL_FAILED, s->no_cjson.text);
		return;
	}
	e = demand_read(&s->cjson, c->line, len, &s->demand, &why);
	c->has_id = s->demand.has_id;
	c->id = s->demand.id;
	if (e == CONTROL_OK)
		s->asked(s->owner, c, &s->demand);
	else
		ctl_refuse(c, e, text_string(&why));
	text_done(&why);
}

/* There is no end of the line in all that there is room for. */
static void refuse_long(struct ctl_client *c)
{
	c->got = 0;
	c->has_id = false;
	if (c->skips)
		return;
	c->skips = true;
	client_goto(c, CTL_ASKING);
	ctl_refuse(c, CONTROL_TOO_LONG, "a request has at most 4096 bytes, with its newline");
}

/* Serves one request, if a whole one is there. Blank lines are none. */
static void serve(struct ctl_client *c)
{
	while (c->state == CTL_READING && c->out.len == 0) {
		char *end = memchr(c->line, '\n', c->got);
		size_t len = end ? (size_t)(end - c->line) : 0;

		if (!end && c->got == sizeof c->line) {
			refuse_long(c);
		} else if (!end) {
			if (c->ended)
				client_goto(c, CTL_CLOSING);
			break;
		} else {
			if (len > 0 && !c->skips)
				ask(c, len);
			c->skips = false;
			c->got -= len + 1;
			memmove(c->line, end + 1, c->got);
		}
	}
	watch(c);
}

static void read_some(struct ctl_client *c)
{
	ssize_t n = recv(c->fd, c->line + c->got, sizeof c->line - c->got, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		lose(c);
		return;
	}
	c->ended = n == 0;
	c->got += (size_t)n;
	c->moved = ++c->server->moves;
	serve(c);
}

static void write_some(struct ctl_client *c)
{
	ssize_t n = send(c->fd, c->out.at, c->out.len, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->full = false;
	c->moved = ++c->server->moves;
	if (n < 0) {
		lose(c);
	} else if ((size_t)n < c->out.len) {
		text_drop(&c->out, (size_t)n);
		return;
	} else {
		text_done(&c->out);
		if (c->state == CTL_LEAVING)
			client_goto(c, CTL_CLOSING);
		serve(c);
	}
	watch(c);
}

static void on_client(uv_poll_t *p, int status, int events)
{
	struct ctl_client *c = p->data;

	(void)status; /* what is wrong shows in what follows */
	if (events & UV_WRITABLE || c->out.len > 0)
		write_some(c);
	else
		read_some(c);
}

/* For a connection that is about to be closed: one line. */
static void send_error(int fd, enum control_error e, const char *why)
{
	struct text line = { 0 };

	text_add(&line, "{\"v\":1,\"id\":null");
	add_error(&line, e, why);
	(void)send(fd, text_string(&line), line.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	text_done(&line);
}

/* Closes the connection of a client that is not let in. */
static void turn_away(int fd, enum control_error e, const char *why)
{
	send_error(fd, e, why);
	(void)close(fd);
}

/* The one to go: it has not moved for the longest; the owner has no request of it. streams: of
 * those that have one; roots: of root's, too. */
static struct ctl_client *longest_idle(const struct ctl_server *s, bool streams, bool roots)
{
	struct ctl_client *idle = NULL;

	for (struct ctl_client *c = s->clients; c; c = c->next)
		if (c->state == CTL_READING && streams == (c->follows != FOLLOWS_NOTHING) &&
			(roots || c->peer.uid != 0) && (!idle || c->moved < idle->moved))
			idle = c;
	return idle;
}

/* False: there is none. */
static bool client_evict(struct ctl_client *idle)
{
	if (!idle)
		return false;
	if (idle->out.len == 0)
		send_error(idle->fd, CONTROL_BUSY,
			"busy: this connection, which was idle the longest, makes room for another one");
	client_goto(idle, CTL_CLOSING);
	return true;
}

/* Root has places of its own, which others push nobody out of, and where even those are taken it
 * comes before streams: who may end the job must be heard. False: all clients wait for answers, or
 * have streams. */
static bool client_make_room(struct ctl_server *s, bool for_root)
{
	unsigned open = 0, others = 0;

	for (const struct ctl_client *c = s->clients; c; c = c->next) {
		open += c->state != CTL_CLOSING;
		others += c->state != CTL_CLOSING && c->peer.uid != 0;
	}
	if (open < CONTROL_ALL && (for_root || others < CONTROL_CLIENTS))
		return true;
	return client_evict(longest_idle(s, false, for_root)) ||
		(for_root && client_evict(longest_idle(s, true, true)));
}

/* No descriptor is left for one that may be root's. */
static bool client_give_up(struct acceptor *a)
{
	const struct ctl_server *s = a->owner;

	return client_evict(longest_idle(s, false, false)) ||
		client_evict(longest_idle(s, false, true)) ||
		client_evict(longest_idle(s, true, true));
}

static bool may_ask(int fd, struct ctl_peer *ret)
{
	struct ucred of = { .pid = 0 };
	socklen_t len = sizeof of;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &of, &len) < 0)
		return false;
	*ret = (struct ctl_peer){ of.pid, of.uid };
	return of.uid == 0 || of.uid == geteuid();
}

static void welcome(struct acceptor *a, int fd, const struct address *from)
{
	struct ctl_server *s = a->owner;
	struct ctl_peer peer = { .pid = 0 };
	struct ctl_client *c;

	(void)from;
	if (!may_ask(fd, &peer)) {
		turn_away(fd, CONTROL_DENIED, "this is for the job's user and root");
		return;
	}
	if (!client_make_room(s, peer.uid == 0)) {
		turn_away(fd, CONTROL_BUSY,
			"busy: as many clients as there may be have streams or await answers");
		return;
	}
	c = calloc(1, sizeof *c);
	if (!c || uv_poll_init(s->poll.loop, &c->poll, fd) < 0) {
		free(c);
		(void)close(fd);
		return;
	}
	c->server = s;
	c->fd = fd;
	c->peer = peer;
	c->moved = ++s->moves;
	c->poll.data = c;
	c->next = s->clients;
	s->clients = c;
	s->count++;
	watch(c);
}

static void on_listening(uv_poll_t *p, int status, int events)
{
	struct ctl_server *s = p->data;

	(void)status, (void)events;
	(void)acceptor_run(&s->acceptor, s->listening);
}

int ctl_server_open(struct ctl_server *s, uv_loop_t *loop, int listening, struct failure *why)
{
	int rc = uv_poll_init(loop, &s->poll, listening);

	if (rc < 0) {
		(void)close(listening);
		return failure_set(why, rc, "the control socket: %s", uv_strerror(rc));
	}
	s->listening = listening;
	s->poll.data = s;
	s->acceptor = (struct acceptor){ .on_connection = welcome,
		.make_room = client_give_up,
		.owner = s,
		.spare = -1,
		.at_once = AT_ONCE };
	acceptor_open(&s->acceptor);
	(void)uv_poll_start(&s->poll, UV_READABLE, on_listening); /* can't fail */
	return 0;
}

void ctl_server_move(struct ctl_server *s, int listening)
{
	(void)acceptor_run(&s->acceptor, s->listening);
	(void)uv_poll_stop(&s->poll); /* a handle polls one number for ever */
	(void)dup3(listening, s->listening, O_CLOEXEC);
	(void)close(listening);
	(void)uv_poll_start(&s->poll, UV_READABLE, on_listening); /* neither can fail */
}

/* Who reads slowly is waited for as long as it reads. */
static void on_look(uv_timer_t *t)
{
	struct ctl_server *s = t->data;

	s->looks++;
	for (struct ctl_client *c = s->clients; c; c = c->next)
		if (c->state == CTL_LEAVING && (s->looks == LOOKS || c->out.len == c->held))
			client_goto(c, CTL_CLOSING);
		else
			c->held = c->out.len;
}

/* What a client has yet to be told may be more than a socket holds, and its last lines are why the
 * job has ended. */
static void leave(struct ctl_client *c)
{
	struct ctl_server *s = c->server;

	if (c->out.len == 0 || c->out.failed) {
		client_goto(c, CTL_CLOSING);
		return;
	}
	if (s->leaving == 0) {
		(void)uv_timer_init(s->poll.loop, &s->look); /* can't fail */
		s->look.data = s;
		(void)uv_timer_start(&s->look, on_look, LOOK_MS, LOOK_MS);
	}
	client_goto(c, CTL_LEAVING);
	c->held = c->out.len;
	watch(c);
}

static void end_client(struct ctl_client *c)
{
	if (c->state == CTL_ASKING)
		ctl_refuse(c, CONTROL_OVER, "the job is over");
	if (c->state == CTL_CLOSING)
		return;
	if (c->follows) {
		add_lost(c);
		add_head(c, true, c->followed_id);
		text_add(&c->out, ",\"ok\":true,\"result\":{}}\n");
	}
	leave(c);
}

void ctl_server_close(struct ctl_server *s)
{
	if (s->listening < 0)
		return;
	acceptor_close(&s->acceptor);
	uv_close((uv_handle_t *)&s->poll, NULL);
	fd_closep(&s->listening);
	uv_update_time(s->poll.loop);
	for (struct ctl_client *c = s->clients; c; c = c->next)
		end_client(c);
	free_if_over(s);
}
