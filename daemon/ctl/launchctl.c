/* launchctl.c - see launchctl.h */
#include "daemon/ctl/launchctl.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/ctl/columns.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/ctl_link.h"
#include "daemon/ctl/gpu_column.h"
#include "daemon/ctl/job_find.h"
#include "daemon/ctl/job_sockets.h"
#include "daemon/ctl/job_view.h"
#include "daemon/ctl/print.h"
#include "daemon/ctl/rank_logs.h"
#include "daemon/ctl/rank_stack.h"

enum { EXIT_REFUSED = 1, EXIT_WORDS = 2, EXIT_NO_JOB = 3 };

/* One command on its way. */
struct ctl_run {
	struct ctl_command command;
	const char *const *env;
	struct arena arena;
	struct cjson cjson;
	struct ctl_link link;
	struct failure why;
};

const char *const *launchctl_words(const char *const *argv)
{
	const char *name = argv[0] ? basename(argv[0]) : "";

	if (strcmp(name, "launchctl") == 0)
		return argv + 1;
	return strcmp(name, "launchd") == 0 && argv[1] && strcmp(argv[1], "ctl") == 0 ? argv + 2 :
											NULL;
}

/* Of a terminal; 0: it is none. */
static size_t width_of_output(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* The result or the event of the line last read, as the launcher has written it. */
static void add_raw(const struct ctl_link *l, const char *name, struct text *out)
{
	size_t len = 0;
	const char *at = ctl_link_raw(l, name, &len);

	if (at)
		text_add_bytes(out, at, len);
}

/* Of all nodes the one that has answered, node rank 0: the first. */
static const cJSON *own_of(const struct ctl_run *r, const cJSON *all)
{
	const cJSON *nodes = member_object(&r->cjson, all, "nodes");

	return nodes ? nodes->child : NULL;
}

/* What those of its workers hold that run. */
static void look_at_gpus(
	struct ctl_run *r, const cJSON *status, struct view_frame *frame, struct text *said)
{
	enum { WORKERS_MAX = 4096 };
	static pid_t pids[WORKERS_MAX];

	frame->gpu_count = job_view_pids(&r->cjson, status, pids, WORKERS_MAX);
	if (frame->gpu_count > 0)
		frame->gpus = gpu_column(pids, frame->gpu_count, &r->arena, said);
	if (!frame->gpus)
		frame->gpu_count = 0;
}

/* As the launcher has written it, and one member more. */
static void add_status_json(
	const struct ctl_run *r, const struct view_frame *frame, struct text *out)
{
	size_t len = 0;
	const char *result = ctl_link_raw(&r->link, "result", &len);

	if (result && len > 0)
		text_add_bytes(out, result, len - 1); /* "}" */
	text_add(out, frame->gpus ? ",\"gpu_memory\":[" : "");
	for (size_t i = 0; frame->gpus && i < frame->gpu_count; i++)
		text_printf(out, "%s{\"pid\":%d,\"bytes\":%llu}", i > 0 ? "," : "",
			(int)frame->gpus[i].worker, (unsigned long long)frame->gpus[i].bytes);
	text_add(out, frame->gpus ? "]}\n" : "}\n");
}

static int show_status(struct ctl_run *r)
{
	struct view_frame frame = { .width = width_of_output() };
	const cJSON *status;
	struct text out = { 0 }, said = { 0 };
	cJSON *root;
	bool all = r->command.all_nodes;
	int rc = ctl_link_ask(
		&r->link, "status", all ? ",\"nodes\":\"all\"" : "", &root, &status, &r->why);

	if (rc < 0)
		return rc;
	if (r->command.watch_ms > 0 && isatty(STDOUT_FILENO) == 1)
		text_add(&out, "\033[H\033[J"); /* from the top of an empty screen: ECMA-48 */
	look_at_gpus(r, all ? own_of(r, status) : status, &frame, &said);
	if (r->command.json) {
		add_status_json(r, &frame, &out);
	} else {
		(all ? job_view_nodes : job_view_status)(
			&r->cjson, status, &frame, &r->arena, &out);
		if (said.len > 0)
			text_printf(&out, "%s\n", text_string(&said));
	}
	text_done(&said);
	r->cjson.free(root);
	return print_done(&out, &r->why);
}

static int run_status(struct ctl_run *r)
{
	int rc = show_status(r);

	while (rc == 0 && r->command.watch_ms > 0) {
		struct arena_mark mark = arena_mark(&r->arena);

		rc = ctl_link_wait(&r->link, (int)r->command.watch_ms, &r->why);
		rc = rc < 0 ? rc : show_status(r);
		arena_rewind(&r->arena, mark);
	}
	return r->command.watch_ms > 0 && rc == -ECONNRESET ? 0 : rc; /* its end was waited for */
}

static const char *user_name(struct ctl_run *r, uid_t uid)
{
	const struct passwd *known = getpwuid(uid);

	return known ? arena_strdup(&r->arena, known->pw_name) :
		       arena_printf(&r->arena, "%u", (unsigned)uid);
}

/* The answer as its launcher has written it, if that is one object and harmless: another user's may
 * say more than that, or that it is another job, or what a terminal takes as commands. */
static void add_listed(const struct job_seen *j, struct text *out)
{
	const struct ctl_link *l = &j->link;
	const char *end = NULL, *at;
	size_t len = 0;
	bool harmless;
	double guard;
	cJSON *root;

	at = ctl_link_raw(l, "result", &len);
	root = at ? l->cjson->parse_to_end(at, len, &end, false) : NULL;
	harmless = root && root->type & cJSON_Object && end == at + len &&
		(!member_number(l->cjson, root, "guard_pid", &guard) || guard == j->guard);
	for (size_t i = 0; harmless && i < len; i++)
		harmless = (unsigned char)at[i] >= ' ' && at[i] != 0x7f;
	l->cjson->free(root);
	if (!harmless)
		return;
	text_add(out, out->len > 1 ? "," : "");
	text_add_bytes(out, at, len);
}

/* One that does not answer has a row, too. */
static void list_job(
	struct ctl_run *r, const struct job_seen *j, struct columns *table, struct text *json)
{
	if (j->root) {
		job_view_row(&r->cjson, j->status, j->guard, user_name(r, j->uid), table);
		add_listed(j, json);
	} else if (j->why.code != -ECONNRESET) {
		columns_add(table, NULL);
		columns_add(table, NULL);
		columns_add(table, arena_printf(&r->arena, "%d", (int)j->guard));
		columns_add(table, user_name(r, j->uid));
		columns_add(table,
			j->link.fd < 0 || j->why.code == -EBUSY ? "busy" :
				j->link.stopped                 ? "does not answer: stopped" :
								  "does not answer");
		columns_add(table, NULL);
		columns_add(table, NULL);
		columns_add(table, NULL);
	}
}

static int run_list(struct ctl_run *r)
{
	static const char cut[] =
		"launchctl: warning: a user has more sockets than are looked at: some are "
		"missing here\n";
	struct columns table = { .arena = &r->arena };
	struct text out = { 0 }, json = { 0 };
	struct jobs jobs;

	job_view_head(&table);
	jobs_open(&jobs, r->env, 0, &r->cjson, &r->arena);
	jobs_ask(&jobs, jobs_own_answered, NULL);
	text_add(&json, "[");
	for (size_t i = 0; i < jobs.count; i++)
		list_job(r, &jobs.at[i], &table, &json);
	jobs_close(&jobs);
	if (arena_failed(&r->arena))
		return failure_oom(&r->why);
	if (jobs.cut)
		(void)fd_write_all(STDERR_FILENO, cut, sizeof cut - 1);
	columns_print(&table, width_of_output(), &out);
	text_add(&json, "]\n");
	if (r->command.json) {
		text_done(&out);
		return print_done(&json, &r->why);
	}
	text_done(&json);
	return print_done(&out, &r->why);
}

/* An operation that has no result. */
static int do_it(struct ctl_run *r, const char *op, const char *members)
{
	const cJSON *result;
	cJSON *root;
	int rc = ctl_link_ask(&r->link, op, members, &root, &result, &r->why);

	if (rc == 0)
		r->cjson.free(root);
	return rc;
}

static int run_signal(struct ctl_run *r)
{
	struct text members = { 0 };
	int rc;

	text_printf(&members, ",\"signal\":\"%s\"", r->command.signal);
	for (size_t i = 0; i < r->command.rank_count; i++)
		text_printf(&members, "%s%u", i > 0 ? "," : ",\"ranks\":[", r->command.ranks[i]);
	text_add(&members, r->command.rank_count > 0 ? "]" : "");
	rc = do_it(r, "signal", text_string(&members));
	text_done(&members);
	return rc;
}

/* The result's member of that name: a text, or a list of texts. */
static int print_member(struct ctl_run *r, const char *op, const char *members, const char *name)
{
	struct text out = { 0 };
	const cJSON *result, *list;
	const char *text;
	cJSON *root;
	int rc = ctl_link_ask(&r->link, op, members, &root, &result, &r->why);

	if (rc < 0)
		return rc;
	text = member_text(&r->cjson, result, name);
	list = member_object(&r->cjson, result, name);
	if (text)
		text_printf(
			&out, "%s%s", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
	for (const cJSON *one = list ? list->child : NULL; one; one = one->next)
		text_printf(&out, "%s\n", one->valuestring ? one->valuestring : "");
	r->cjson.free(root);
	return print_done(&out, &r->why);
}

static int run_env(struct ctl_run *r)
{
	char members[32];

	(void)snprintf(members, sizeof members, ",\"rank\":%u", r->command.ranks[0]);
	return print_member(r, "env", members, "env");
}

static int run_loglevel(struct ctl_run *r)
{
	char members[48] = "";

	if (r->command.level)
		(void)snprintf(members, sizeof members, ",\"level\":\"%s\"", r->command.level);
	return print_member(r, "loglevel", members, "level");
}

/* A line of --events, or of how many were lost. */
static void add_event(const struct ctl_link *l, struct text *out)
{
	add_raw(l, "event", out);
	if (out->len == 0)
		text_add_bytes(out, l->in.at, l->used - 1);
	text_add(out, "\n");
}

static int run_events(struct ctl_run *r)
{
	int rc = ctl_link_follow(&r->link, "events", "", &r->why);

	while (rc == 0) {
		struct text out = { 0 };
		cJSON *root;

		rc = ctl_link_next(&r->link, &root, &r->why);
		if (rc <= 0)
			break;
		r->cjson.free(root);
		add_event(&r->link, &out);
		rc = print_done(&out, &r->why);
	}
	return rc;
}

static int run_in_job(struct ctl_run *r)
{
	switch (r->command.what) {
	case CTL_STATUS:
		return run_status(r);
	case CTL_LOGS:
		return rank_logs(&r->link, &r->command, &r->why);
	case CTL_SIGNAL:
		return run_signal(r);
	case CTL_STOP:
		return do_it(r, "stop", r->command.now ? ",\"now\":true" : "");
	case CTL_RESTART:
		return do_it(r, "restart", "");
	case CTL_REOPEN:
		return do_it(r, "reopen", "");
	case CTL_ENV:
		return run_env(r);
	case CTL_STACK:
		return rank_stack(&r->link, &r->command, &r->why);
	case CTL_EVENTS:
		return run_events(r);
	case CTL_METRICS:
		return print_member(r, "metrics", "", "text");
	case CTL_LOGLEVEL:
		return run_loglevel(r);
	case CTL_LIST:
	case CTL_HELP:
	case CTL_VERSION:
	case CTL_COMMANDS:
		break;
	}
	__builtin_unreachable();
}

static int run_command(struct ctl_run *r)
{
	struct text out = { 0 };
	int rc;

	if (r->command.what == CTL_HELP) {
		ctl_command_help(&out);
		return print_done(&out, &r->why);
	}
	if (r->command.what == CTL_VERSION) {
		text_add(&out, "launchctl " LAUNCHD_VERSION "\n");
		return print_done(&out, &r->why);
	}
	rc = cjson_open(NULL, &r->cjson, &r->why);
	if (rc < 0)
		return rc;
	if (r->command.what == CTL_LIST) {
		rc = run_list(r);
	} else {
		rc = job_find(r->env, r->command.job, &r->cjson, &r->link, &r->why);
		rc = rc < 0 ? rc : run_in_job(r);
		ctl_link_close(&r->link);
	}
	cjson_close(&r->cjson);
	return rc;
}

static int exit_code_of(const struct failure *why)
{
	if (why->class == FAILURE_USAGE || why->code == -ENOTUNIQ)
		return EXIT_WORDS;
	return why->code == -ESRCH ? EXIT_NO_JOB : EXIT_REFUSED;
}

int launchctl(const char *const *words, const char *const *env)
{
	struct ctl_run r = { .env = env, .link.fd = -1 };
	int rc;

	(void)signal(SIGPIPE, SIG_IGN);
	rc = ctl_command_read(words, &r.arena, &r.command, &r.why);
	if (rc == 0)
		rc = run_command(&r);
	if (rc < 0) {
		struct text said = { 0 };

		text_printf(&said, "launchctl: error: %s\n", r.why.text);
		(void)fd_write_all(STDERR_FILENO, text_string(&said), said.len);
		text_done(&said);
	}
	arena_done(&r.arena);
	return rc < 0 ? exit_code_of(&r.why) : 0;
}
