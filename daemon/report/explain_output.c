/* explain_output.c - see explain_output.h */
#include "daemon/report/explain_output.h"

#include "common/arena.h"
#include "common/text.h"
#include "common/vec.h"
#include "daemon/plan/plan.h"

static const char *const stream_names[] = { "stdin", "stdout", "stderr" };

const char *explain_log_tree(const struct plan *p, struct arena *arena)
{
	const char *tmp = env_get(p->env, "TMPDIR");
	const char *dir = p->output.log_dir;

	if (!p->output.tree)
		return NULL;
	if (!dir)
		dir = arena_printf(arena, "%s/launchd_logs_XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return arena_printf(arena, "%s/%s_XXXXXXXX", dir, p->run_id);
}

/* What a path is added with, for people or as JSON. */
typedef void add_fn(struct text *out, const char *s);

static void add_path(
	const struct attempt *a, unsigned local_rank, int fd, add_fn *add, struct text *out)
{
	struct text path = { 0 };

	text_printf(&path, "%s/%u/%s.log", a->log_dir, local_rank, stream_names[fd]);
	add(out, text_string(&path));
	out->failed |= path.failed;
	text_done(&path);
}

static void add_stream(const struct plan *p, unsigned local_rank, int fd, const struct attempt *a,
	struct text *out)
{
	const struct stream_plan s = plan_stream(p, local_rank, fd);

	text_printf(out, "    %-9s ", stream_names[fd]);
	if (s.file)
		add_path(a, local_rank, fd, text_add_shell, out);
	if (s.way == STREAM_INHERIT)
		text_add(out, "launchd's own, a terminal");
	else if (s.console)
		text_add(out, s.file ? " and the console" : "the console, by whole lines");
	else if (s.way == STREAM_PIPE)
		text_add(out, s.file ? ", written by launchd" : "kept for the report only");
	if (s.prefix) {
		text_add(out, ", with the prefix ");
		text_add_shell(out, s.prefix);
	}
	if (s.filtered)
		text_printf(out, ", and some lines to filtered_%s.log", stream_names[fd]);
	text_add(out, "\n");
}

void explain_streams_text(
	const struct plan *p, unsigned local_rank, const struct attempt *attempt, struct text *out)
{
	for (int fd = 1; fd < 3; fd++)
		add_stream(p, local_rank, fd, attempt, out);
}

static void add_stream_json(const struct plan *p, unsigned local_rank, int fd,
	const struct attempt *a, struct text *out)
{
	static const char *const ways[] = {
		[STREAM_INHERIT] = "inherit",
		[STREAM_DIRECT] = "file",
		[STREAM_PIPE] = "pipe",
	};
	const struct stream_plan s = plan_stream(p, local_rank, fd);

	text_printf(out, "\"%s\":{\"way\":\"%s\",\"file\":", stream_names[fd], ways[s.way]);
	if (s.file)
		add_path(a, local_rank, fd, text_add_json, out);
	else
		text_add_json(out, NULL);
	text_printf(out, ",\"console\":%s,\"prefix\":", s.console ? "true" : "false");
	text_add_json(out, s.prefix);
	text_printf(out, ",\"filtered\":%s}", s.filtered ? "true" : "false");
}

void explain_streams_json(
	const struct plan *p, unsigned local_rank, const struct attempt *attempt, struct text *out)
{
	add_stream_json(p, local_rank, 1, attempt, out);
	text_add(out, ",");
	add_stream_json(p, local_rank, 2, attempt, out);
}
