/* ctl_link.c - see ctl_link.h */
#include "daemon/ctl/ctl_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "daemon/control/protocol.h"
#include "daemon/os/procfs.h"

enum {
	LOOK_MS = 300,    /* before it is looked at whether the launcher is stopped */
	TRACED_MS = 5000, /* strace and the like stop it again and again, and for moments */
	LINE_MOST = 256 << 20,
};

int ctl_link_open(
	const struct cjson *cjson, const char *path, struct ctl_link *ret, struct failure *why)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof peer;
	autoclose fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*ret = (struct ctl_link){ .cjson = cjson, .fd = -1 };
	if (strlen(path) >= sizeof at.sun_path)
		return failure_set(why, -ENAMETOOLONG, "%s: %s", path, strerror(ENAMETOOLONG));
	memcpy(at.sun_path, path, strlen(path) + 1);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
		int rc = -errno;

		return failure_set(why, rc, "%s: %s", path, strerror(-rc));
	}
	ret->supervisor = peer.pid;
	ret->uid = peer.uid;
	ret->fd = fd_take(&fd);
	return 0;
}

void ctl_link_close(struct ctl_link *l)
{
	fd_closep(&l->fd);
	text_done(&l->in);
}

/* A request that was sent is carried out when it resumes, even if nobody waits any more. */
static int refused_as_stopped(struct ctl_link *l, bool sent, int64_t waited_ms, struct failure *why)
{
	const char *later = sent ? ", and it will then carry out this request" : "";
	struct process p;

	l->stopped = l->supervisor > 0 && process_read(l->supervisor, &p) == 0 &&
		(p.state == 'T' || (p.state == 't' && waited_ms >= TRACED_MS));
	if (!l->stopped)
		return 0;
	if (p.state == 't')
		return failure_set(why, -ETIMEDOUT,
			"the supervisor, pid %d, is stopped by a debugger, which must let it go%s",
			(int)l->supervisor, later);
	return failure_set(why, -ETIMEDOUT,
		"the supervisor, pid %d, is stopped by a signal; kill -CONT %d resumes it%s",
		(int)l->supervisor, (int)l->supervisor, later);
}

static int refused_by_silence(struct ctl_link *l, bool sent, int64_t waited_ms, struct failure *why)
{
	int rc = refused_as_stopped(l, sent, waited_ms, why);

	if (rc < 0 || waited_ms < CTL_PATIENCE_MS)
		return rc;
	return failure_set(why, -ETIMEDOUT,
		"the supervisor, pid %d, has not answered for %d s; it may still carry out this "
		"request",
		(int)l->supervisor, CTL_PATIENCE_MS / 1000);
}

static int lost(struct failure *why)
{
	return failure_set(why, -ECONNRESET, "the job has ended");
}

static int wait_for(struct ctl_link *l, short events, bool patient, struct failure *why)
{
	struct pollfd p = { .fd = l->fd, .events = events };
	int64_t began = monotonic_ms();

	for (;;) {
		int n = poll(&p, 1, patient ? -1 : LOOK_MS), rc;

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return failure_set(why, -errno, "poll: %s", strerror(errno));
		rc = n < 0 ? 0 :
			     refused_by_silence(l, events == POLLIN, monotonic_ms() - began, why);
		if (rc < 0)
			return rc;
	}
}

int ctl_link_wait(const struct ctl_link *l, int ms, struct failure *why)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	bool is_there =
		l->in.len > l->used && memchr(l->in.at + l->used, '\n', l->in.len - l->used);
	int n = is_there ? 1 : poll(&p, 1, ms);

	if (n < 0 && errno != EINTR)
		return failure_set(why, -errno, "poll: %s", strerror(errno));
	return n > 0;
}

const char *ctl_link_raw(const struct ctl_link *l, const char *name, size_t *ret_len)
{
	const char *end = l->in.at + l->used - 2, *at; /* "}\n" */
	char mark[32];
	int len = snprintf(mark, sizeof mark, "\"%s\":", name);

	at = memmem(l->in.at, l->used, mark, (size_t)len);
	if (!at)
		return NULL;
	*ret_len = (size_t)(end - at) - (size_t)len;
	return at + len;
}

static int send_all(struct ctl_link *l, const struct text *line, struct failure *why)
{
	size_t sent = 0;

	while (sent < line->len) {
		ssize_t n;
		int rc = wait_for(l, POLLOUT, false, why);

		if (rc < 0)
			return rc;
		n = send(l->fd, line->at + sent, line->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0; /* it may have said why */
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return failure_set(why, -errno, "send: %s", strerror(errno));
		sent += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Whether a whole line has come; then *ret is it, without its newline. seen: so much of what came
 * has none. */
static bool link_take_line(struct ctl_link *l, size_t seen, char **ret, size_t *ret_len)
{
	char *end = l->in.len > seen ? memchr(l->in.at + seen, '\n', l->in.len - seen) : NULL;

	if (!end)
		return false;
	*ret = l->in.at;
	*ret_len = (size_t)(end - l->in.at);
	l->used = *ret_len + 1;
	return true;
}

/* Reads what is there. */
static int link_receive(struct ctl_link *l, size_t most, struct failure *why)
{
	char bytes[65536];
	ssize_t n = recv(l->fd, bytes, sizeof bytes, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return lost(why);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return failure_set(why, -errno, "recv: %s", strerror(errno));
	if (n > 0)
		text_add_bytes(&l->in, bytes, (size_t)n);
	return l->in.failed || l->in.len > most ? failure_oom(why) : 0;
}

/* The line before goes. */
static void link_next_line(struct ctl_link *l)
{
	if (l->used > 0)
		text_drop(&l->in, l->used);
	l->used = 0;
}

/* For an answer that goes on and on. */
static int refused_as_endless(struct ctl_link *l, struct failure *why)
{
	int64_t waited_ms = monotonic_ms() - l->asked_ms;

	return waited_ms < CTL_PATIENCE_MS ? 0 : refused_by_silence(l, true, waited_ms, why);
}

/* The next line, without its newline. */
static int read_line(
	struct ctl_link *l, bool patient, char **ret, size_t *ret_len, struct failure *why)
{
	size_t seen = 0;
	int rc = 0;

	link_next_line(l);
	while ((rc = rc < 0 || patient ? rc : refused_as_endless(l, why)) == 0 &&
		!link_take_line(l, seen, ret, ret_len)) {
		seen = l->in.len;
		rc = wait_for(l, POLLIN, patient, why);
		if (rc == 0)
			rc = link_receive(l, LINE_MOST, why);
	}
	return rc;
}

const cJSON *member_object(const struct cjson *c, const cJSON *of, const char *name)
{
	const cJSON *item = c->item(of, name);

	return item && (item->type & (cJSON_Object | cJSON_Array)) ? item : NULL;
}

const char *member_text(const struct cjson *c, const cJSON *of, const char *name)
{
	const cJSON *item = c->item(of, name);

	return item && item->type & cJSON_String ? item->valuestring : NULL;
}

bool member_number(const struct cjson *c, const cJSON *of, const char *name, double *ret)
{
	const cJSON *item = c->item(of, name);

	*ret = item ? item->valuedouble : 0;
	return item && item->type & cJSON_Number;
}

static int parse_line(
	const struct ctl_link *l, char *line, size_t len, cJSON **ret, struct failure *why)
{
	const char *end = NULL;

	line[len] = '\0';
	*ret = l->cjson->parse_to_end(line, len + 1, &end, true);
	if (*ret && (*ret)->type & cJSON_Object)
		return 0;
	l->cjson->free(*ret);
	*ret = NULL;
	return failure_set(why, -EPROTO, "what came from the control socket is no JSON object");
}

static int read_object(struct ctl_link *l, bool patient, cJSON **ret, struct failure *why)
{
	char *line = NULL;
	size_t len = 0;
	int rc = read_line(l, patient, &line, &len, why);

	return rc < 0 || !line ? rc : parse_line(l, line, len, ret, why);
}

int ctl_link_send(struct ctl_link *l, const char *op, const char *members, struct failure *why)
{
	struct text line = { 0 };
	int rc;

	l->asked_ms = monotonic_ms();
	text_printf(&line, "{\"v\":%d,\"id\":%u,\"op\":\"%s\"%s}\n", CONTROL_VERSION, ++l->asked,
		op, members);
	rc = line.failed ? failure_oom(why) : refused_as_stopped(l, false, 0, why);
	rc = rc < 0 ? rc : send_all(l, &line, why);
	text_done(&line);
	return rc;
}

static int refused(struct ctl_link *l, const cJSON *root, struct failure *why)
{
	const cJSON *error = member_object(l->cjson, root, "error");
	const char *text = error ? member_text(l->cjson, error, "text") : NULL;
	const char *code = error ? member_text(l->cjson, error, "code") : NULL;

	struct text shown = { 0 };
	int rc;

	if (code && strcmp(code, "over") == 0)
		return lost(why);
	text = text ? text : "it was refused, without a reason";
	text_add_shown(&shown, text, strlen(text)); /* it may be another user's */
	rc = code && strcmp(code, "busy") == 0 ? -EBUSY : -EREMOTEIO;
	rc = failure_set(why, rc, "%s", text_string(&shown));
	text_done(&shown);
	return rc;
}

/* Whether it is of the stream, and has been told. */
static bool is_streamed(const struct ctl_link *l, cJSON *root)
{
	double id;

	if (l->followed == 0 || !member_number(l->cjson, root, "id", &id) || id != l->followed)
		return false;
	l->on_event(l->owner, root);
	l->cjson->free(root);
	return true;
}

/* The answer to a request that was given up. */
static bool link_is_late(const struct ctl_link *l, cJSON *root)
{
	double id;

	if (!member_number(l->cjson, root, "id", &id) || id >= l->asked)
		return false;
	l->cjson->free(root);
	return true;
}

/* Frees the root, where it has no result. */
static int find_result(
	struct ctl_link *l, cJSON **root, const cJSON **ret_result, struct failure *why)
{
	int rc;

	*ret_result = member_object(l->cjson, *root, "result");
	if (*ret_result)
		return 0;
	rc = refused(l, *root, why);
	l->cjson->free(*root);
	*root = NULL;
	return rc;
}

int ctl_link_ask(struct ctl_link *l, const char *op, const char *members, cJSON **ret_root,
	const cJSON **ret_result, struct failure *why)
{
	int rc = ctl_link_send(l, op, members, why);

	if (rc == 0)
		do
			rc = read_object(l, false, ret_root, why);
		while (rc == 0 && (is_streamed(l, *ret_root) || link_is_late(l, *ret_root)));
	return rc < 0 ? rc : find_result(l, ret_root, ret_result, why);
}

int ctl_link_try(struct ctl_link *l, int64_t waited_ms, cJSON **ret_root, const cJSON **ret_result,
	struct failure *why)
{
	size_t len = 0;
	char *line;
	int rc = link_receive(l, CTL_TRY_MOST, why);

	if (rc < 0)
		return rc;
	if (!link_take_line(l, 0, &line, &len))
		return refused_by_silence(l, true, waited_ms, why);
	rc = parse_line(l, line, len, ret_root, why);
	rc = rc < 0 ? rc : find_result(l, ret_root, ret_result, why);
	return rc < 0 ? rc : 1;
}

int ctl_link_follow(struct ctl_link *l, const char *op, const char *members, struct failure *why)
{
	struct text all = { 0 };
	int rc;

	text_printf(&all, ",\"follow\":true%s", members);
	rc = all.failed ? failure_oom(why) : ctl_link_send(l, op, text_string(&all), why);
	l->followed = l->asked;
	text_done(&all);
	return rc;
}

int ctl_link_next(struct ctl_link *l, cJSON **ret_root, struct failure *why)
{
	int rc = read_object(l, true, ret_root, why);

	if (rc < 0)
		return rc;
	if (member_object(l->cjson, *ret_root, "event") || l->cjson->item(*ret_root, "lost"))
		return 1;
	if (!member_object(l->cjson, *ret_root, "result"))
		rc = refused(l, *ret_root, why);
	l->cjson->free(*ret_root);
	*ret_root = NULL;
	return rc;
}
