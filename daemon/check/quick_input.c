/* quick_input.c - see quick_input.h */
#include "daemon/check/quick_input.h"

#include <inttypes.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/vec.h"
#include "common/words.h"
#include "config/lists.h"
#include "config/settings.h"
#include "daemon/facts/devices.h"
#include "daemon/facts/program.h"

static bool counts_now(const struct settings *s, bool restart)
{
	const char *when = settings_text(s, SET_CHECK_WHEN);

	return restart ? strcmp(when, "start") != 0 : strcmp(when, "restart") != 0;
}

/* The command with its first word as a path. */
static int find_command(const struct settings *s, const char *const *env, struct arena *arena,
	const char *const **ret, struct failure *why)
{
	const char *text = settings_text(s, SET_CHECK_COMMAND), *fault;
	const char *where = settings_label(s, SET_CHECK_COMMAND);
	struct vec words = { 0 };
	const char *path;
	int rc;

	if (words_split(text, arena, &words, &fault) < 0)
		return failure_usage(why, "%s: \"%s\" is not a command: %s", where, text, fault);
	if (words.count == 0)
		return failure_usage(why, "%s: it contains no command", where);
	rc = program_search(arena, env, words.at[0], &path);
	if (rc < 0)
		return failure_usage(why, "%s: %s: %s", where, words.at[0], strerror(-rc));
	words.at[0] = path;
	*ret = (const char *const *)vec_argv(&words);
	return 0;
}

/* Those of --gpus, else of CUDA_VISIBLE_DEVICES. For a job its plan has put the former into the
 * latter. */
static const char *chosen_gpus(
	const struct settings *s, const char *const *env, struct arena *arena)
{
	const char *at = settings_text(s, SET_GPUS), *name, *list = NULL;
	struct range range;
	size_t len;
	int kind;

	if (strcmp(at, "all") == 0)
		return env_get(env, CUDA_DEVICES);
	while ((kind = gpus_next(&at, &range, &name, &len)) > 0) {
		const char *comma = list ? "," : "", *before = list ? list : "";

		if (kind == 2)
			list = arena_printf(arena, "%s%s%.*s", before, comma, (int)len, name);
		for (uint64_t n = range.first; kind == 1 && n <= range.last; n++)
			list = arena_printf(
				arena, "%s%s%" PRIu64, list ? list : "", list ? "," : "", n);
	}
	return list;
}

int quick_input_make(const struct settings *s, const char *const *env, bool restart, bool alone,
	struct arena *arena, struct quick_input *ret, struct failure *why)
{
	const char *tmp = env_get(env, "TMPDIR");
	struct quick_input in = {
		.settings = s,
		.gpus = (unsigned)settings_number(s, SET_CHECK_GPUS),
		.gpus_given = settings_given(s, SET_CHECK_GPUS),
		.gpu_uuids = settings_text(s, SET_CHECK_GPU_UUIDS),
		.visible = alone ? chosen_gpus(s, env, arena) : env_get(env, CUDA_DEVICES),
		.log_dir = settings_text(s, SET_LOG_DIR),
		.tmp_dir = tmp && *tmp ? tmp : "/tmp",
		.work_dir = ".",
		.sys_root = "",
		.kmsg = "/dev/kmsg",
		.restart = restart,
		.command_limit_ms = settings_number(s, SET_CHECK_TIMEOUT),
	};
	int rc = 0;

	if (in.log_dir && strcmp(in.log_dir, "/dev/null") == 0)
		in.log_dir = NULL;
	if (settings_given(s, SET_CHECK_COMMAND) && (alone || counts_now(s, restart)))
		rc = find_command(s, env, arena, &in.command, why);
	if (rc == 0 && arena_failed(arena))
		rc = failure_oom(why);
	if (rc == 0)
		*ret = in;
	return rc;
}
