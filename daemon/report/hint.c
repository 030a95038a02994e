/* hint.c - see hint.h */
#include "daemon/report/hint.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/job/ending.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/report_input.h"
#include "daemon/report/said.h"

enum { EXIT_USAGE = 2 }; /* argparse's, click's and absl's */

/* Whether a line refuses an argument, in the words of argparse, absl, click, fire,
 * HfArgumentParser, clap or getopt_long(3). */
static bool is_refusal(const char *line)
{
	static const char *const words[] = {
		"unrecognized",
		"unknown",
		"no such option",
		"not used by",
		"could not consume",
		"unexpected argument",
		"invalid option",
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasestr(line, words[i]))
			return true;
	return false;
}

/* Whether a line of the text refuses the argument of this name; it stands there as --name, or as
 * 'name'. */
static bool is_refused(const char *text, const char *name, struct arena *arena)
{
	for (const char *at = text; at && (at = strstr(at, name)); at++) {
		const char *before = memrchr(text, '\n', (size_t)(at - text));
		const char *line = before ? before + 1 : text;
		const char *copy;

		if (at == line || !strchr("-'", at[-1]))
			continue;
		copy = arena_strndup(arena, line, strcspn(line, "\n"));
		if (copy && is_refusal(copy))
			return true;
	}
	return false;
}

/* "--local-rank" for "--local_rank", and back; NULL: it can't be spelled otherwise. */
static const char *other_spelling(const char *argument, struct arena *arena)
{
	char *other = arena_strdup(arena, argument);
	char *mark = other ? strpbrk(other + strspn(other, "-"), "-_") : NULL;

	if (!mark)
		return NULL;
	for (char from = *mark; (mark = strchr(mark, from)); mark++)
		*mark = from == '_' ? '-' : '_';
	return other;
}

/* The culprit's words: of its error file, and its last lines; each may be NULL. */
struct words {
	const char *message, *lines;
};

static bool refuses(const struct report_input *in, const struct words *w, const char *name)
{
	return is_refused(w->lines, name, in->arena) || is_refused(w->message, name, in->arena);
}

/* Nobody has read its words, but its exit code is that of a wrong command line. */
static bool may_refuse(const struct report_input *in, const struct words *w)
{
	return in->result->cause.culprit.end.value == EXIT_USAGE && !w->lines && !w->message;
}

/* "launchd train.py --nproc_per_node 2": whatever follows the script is the script's. */
static const char *misplaced(const struct report_input *in, const struct words *w)
{
	const struct vec *args = in->plan->args;

	for (size_t i = 0; args && i < args->count; i++) {
		const char *name = args->at[i] + 2;
		size_t len;

		if (strncmp(args->at[i], "--", 2) != 0)
			continue;
		len = strcspn(name, "=");
		name = arena_strndup(in->arena, name, len);
		if (settings_find(name, len) == SETTING_COUNT)
			continue;
		if (refuses(in, w, name) || may_refuse(in, w))
			return arena_printf(in->arena,
				"--%s comes after the script, so %sit went to the script: launchd's own options go before the script",
				name, may_refuse(in, w) ? "if it is launchd's, " : "");
	}
	return NULL;
}

/* Python reads a shell's script without a word about it, up to the first line that is no Python. */
static const char *foreign(const struct report_input *in, const struct words *w)
{
	const char *line = in->plan->foreign_line;
	bool is_no_python =
		w->lines && (strstr(w->lines, "SyntaxError: ") || strstr(w->lines, "NameError: "));

	if (!line || (w->lines && !is_no_python))
		return NULL;
	return arena_printf(in->arena,
		"Python runs %s, whose first line is %s: for a program that isn't a Python script give --no_python --use_env",
		in->plan->script, line);
}

static const char *local_rank(const struct report_input *in, const struct words *w)
{
	const char *argument = in->plan->local_rank_arg, *other;

	if (in->plan->use_env || !argument)
		return NULL;
	other = other_spelling(argument, in->arena);
	if (refuses(in, w, argument + strspn(argument, "-"))) {
		if (other && w->lines && strstr(w->lines, other)) /* in its usage */
			return arena_printf(in->arena,
				"the script takes %s, not %s: give --local_rank_arg=%s", other,
				argument, other);
		return arena_printf(in->arena,
			"the script refused %s, which launchd passes to it: give --use_env (the "
			"script then reads LOCAL_RANK)",
			argument);
	}
	return may_refuse(in, w) ?
		arena_printf(in->arena,
			"if the script refused %s, which launchd passes to it, give --use_env",
			argument) :
		NULL;
}

static bool words_have(const struct words *w, const char *part)
{
	return (w->lines && strcasestr(w->lines, part)) ||
		(w->message && strcasestr(w->message, part));
}

/* A script of its own that listens on MASTER_PORT: JAX beside torch, TCPStore(is_master=True), Ray.
 * Or one that waits for worker 0's store at another port. */
static const char *hint_of_port(const struct report_input *in, const struct words *w)
{
	if (in->plan->store != STORE_AGENT)
		return NULL;
	if (words_have(w, "address already in use") || words_have(w, "EADDRINUSE") ||
		words_have(w, "No address added out of")) /* gRPC's */
		return "if the script listens on MASTER_PORT itself, give --store rank0: launchd hosts the store there";
	if (words_have(w, "client socket has"))
		return "if the script has a MASTER_PORT or init_method of its own, give --store rank0: launchd hosts the store, but at its MASTER_PORT only";
	return NULL;
}

/* What torch's DataLoader says of its own workers, whose memory may be free again when the rank
 * dies: a page of /dev/shm that there is no room for is a SIGBUS, or a file there can't grow. */
static bool tells_of_shm(const struct words *w)
{
	return words_have(w, "insufficient shared memory") ||
		words_have(w, "out of shared memory") ||
		words_have(w, "unable to allocate shared memory(shm)") ||
		(words_have(w, "unable to write to file </torch_") &&
			words_have(w, "No space left on device"));
}

static const char *hint_of_shm(
	const struct report_input *in, const struct outcome *failed, const struct words *w)
{
	static const char remedy[] =
		"give a container more (docker run --shm-size=16g; in Kubernetes an emptyDir with "
		"medium: Memory at /dev/shm), or use fewer DataLoader workers";
	bool told = tells_of_shm(w);
	bool bus = ending_exit_code(&failed->end) == 128 + SIGBUS || words_have(w, "bus error");

	if (failed->shm_full && (told || bus))
		return arena_printf(in->arena, "/dev/shm was full when it failed: %s", remedy);
	return told ? arena_printf(in->arena, "its last words are about too little /dev/shm: %s",
			      remedy) :
		      NULL;
}

const char *report_hint(const struct report_input *in)
{
	const struct words w = { in->record ? in->record->message : NULL, said_last_lines(in) };
	const struct outcome *failed = cause_failed(&in->result->cause);
	const char *hint;

	if (failed && failed->blames == BLAMES_OUTPUT && in->result->cause.kind == CAUSE_HANGUP)
		return "with -t 3 and --log-dir DIR workers write to files as well, and go on when launchd's output has no reader any more";
	if (!failed || result_culprit(in->result) != failed)
		return failed && !result_culprit(in->result) ? hint_of_port(in, &w) : NULL;
	hint = hint_of_shm(in, failed, &w);
	if (hint)
		return hint;
	if (failed->end.how == ENDED_SIGNAL) /* JAX crashes where gRPC fails */
		return hint_of_port(in, &w);
	if (failed->end.how != ENDED_EXIT)
		return NULL;
	hint = misplaced(in, &w);
	if (!hint)
		hint = foreign(in, &w);
	if (!hint)
		hint = hint_of_port(in, &w);
	return hint ? hint : local_rank(in, &w);
}
