/* nodecheck.c - see nodecheck.h */
#include "daemon/nodecheck/nodecheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/nodecheck/check_options.h"
#include "daemon/nodecheck/conduct.h"
#include "daemon/nodecheck/gpu_ops.h"
#include "daemon/nodecheck/part.h"
#include "daemon/nodecheck/verdict_text.h"

static int say(const struct failure *why)
{
	struct text t = { 0 };

	text_printf(&t, "launchd-nodecheck: error: %s\n", why->text);
	(void)fd_write_all(STDERR_FILENO, text_string(&t), t.len);
	text_done(&t);
	return failure_exit_code(why);
}

/* A verdict that nobody can read is none. */
static int print(const struct text *t)
{
	struct failure why = { 0 };
	int rc = fd_write_all(STDOUT_FILENO, text_string(t), t->len);

	if (rc == 0)
		return 0;
	(void)failure_set(&why, rc, "the verdict can't be written to stdout");
	return say(&why);
}

static int end_lead(const struct check_options *o, const struct check_case *c, struct arena *arena)
{
	struct findings *room = arena_alloc(arena, sizeof *room);
	enum nodecheck_exit code = verdict_exit(c);
	struct failure why = { 0 };
	struct text out = { 0 };
	int rc;

	if (!room) {
		(void)failure_oom(&why);
		return say(&why);
	}
	if (code == NODECHECK_NO_GPU) {
		(void)failure_set(&why, -1, "%s", c->no_gpu_text);
		(void)say(&why);
	}
	if (o->json) {
		verdict_json(c, room, &out);
	} else if (o->findings) {
		case_findings(c, 0, room);
		findings_json(room, c->nodes[0].host, &out);
	} else if (code != NODECHECK_NO_GPU) {
		verdict_table(c, room, &out);
	}
	rc = print(&out);
	text_done(&out);
	return rc ? rc : (int)code;
}

static int take_part(struct conduct *c)
{
	struct check_case verdict;
	struct failure why = { 0 };
	struct text said = { 0 };
	int rc;

	if (c->place->rank == 0) {
		rc = conduct_lead(c, &verdict, &why);
		return rc < 0 ? say(&why) : end_lead(c->o, &verdict, c->arena);
	}
	rc = conduct_follow(c, &said, &why);
	if (rc > 0)
		rc = print(&said);
	text_done(&said);
	return rc < 0 ? say(&why) : rc;
}

static const char *variable(const char *name)
{
	return getenv(name);
}

int nodecheck_main(
	int argc, char **argv, const struct gpu_ops *gpu, const struct collective_ops *collective)
{
	struct check_options o;
	struct check_place place = { 0 };
	struct failure why = { 0 };
	struct arena arena = { 0 };
	struct conduct c = { .o = &o, .place = &place, .argv = argv, .arena = &arena };
	struct text out = { 0 };
	int rc = check_options_read(argc, argv, &o, &why);

	if (rc == 0 && o.help)
		check_options_help(&out);
	else if (rc == 0 && o.version)
		text_printf(&out, "launchd-nodecheck " LAUNCHD_VERSION "\n%s%s",
			gpu->serves ? gpu->serves : "", gpu->serves ? "\n" : "");
	else if (rc == 0)
		rc = check_place_read(variable, &place, &why);
	if (rc < 0)
		return say(&why);
	if (out.len) {
		rc = print(&out);
		text_done(&out);
		return rc;
	}
	if (o.part)
		return part_main(&o, &place, gpu, collective);
	rc = take_part(&c);
	arena_done(&arena);
	return rc;
}
