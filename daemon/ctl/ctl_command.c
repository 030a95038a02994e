/* ctl_command.c - see ctl_command.h */
#include "daemon/ctl/ctl_command.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "common/words.h"
#include "daemon/control/demand.h"

enum {
	RANKS_MAX = 1000,
	RANK_MOST = INT32_MAX,
	WATCH_MS = 2000,
	DAY_S = 86400,
	HELP_AT = 34,
	HELP_WIDTH = 96
};

/* What a command takes, as bits of a set. */
enum taken {
	TAKES_JSON = 1 << 0,
	TAKES_WATCH = 1 << 1,
	TAKES_FOLLOW = 1 << 2,
	TAKES_LINES = 1 << 3,
	TAKES_NOW = 1 << 4,
	TAKES_JOB = 1 << 5, /* as a word */
	TAKES_RANKS = 1 << 6,
	TAKES_RANK = 1 << 7, /* exactly one */
	TAKES_SIGNAL = 1 << 8,
	TAKES_LEVEL = 1 << 9,
	NEEDS_FOLLOW = 1 << 10,
	NO_JOB = 1 << 11,
	TAKES_ALL_NODES = 1 << 12,
};

static const struct command_row {
	const char *name, *operands;
	unsigned takes; /* enum taken */
	const char *help;
} commands[CTL_COMMANDS] = {
	[CTL_LIST] = { "list", "[--json]", TAKES_JSON | NO_JOB,
		"List the jobs of this host that you may ask." },
	[CTL_STATUS] = { "status", "[JOB] [--all-nodes] [--json] [--watch[=SECONDS]]",
		TAKES_JOB | TAKES_ALL_NODES | TAKES_JSON | TAKES_WATCH,
		"Show the job and the workers of this node, or on node 0 those of all." },
	[CTL_LOGS] = { "logs", "[-n LINES] [-f] [RANK...]",
		TAKES_LINES | TAKES_FOLLOW | TAKES_RANKS,
		"Show workers' last lines; with -f, follow what they write." },
	[CTL_SIGNAL] = { "signal", "SIGNAL [RANK...]", TAKES_SIGNAL | TAKES_RANKS,
		"Send a signal to workers." },
	[CTL_STOP] = { "stop", "[JOB] [--now]", TAKES_JOB | TAKES_NOW,
		"Stop the job on all nodes; with --now, by SIGKILL at once." },
	[CTL_RESTART] = { "restart", "[JOB]", TAKES_JOB,
		"Stop all workers on all nodes and start them again." },
	[CTL_REOPEN] = { "reopen", "[JOB]", TAKES_JOB,
		"Reopen log files, after logrotate has moved them." },
	[CTL_ENV] = { "env", "RANK", TAKES_RANK,
		"Show the environment that a worker was started with." },
	[CTL_STACK] = { "stack", "RANK", TAKES_RANK,
		"Show where a worker is: its threads, and its stack by py-spy or gdb." },
	[CTL_EVENTS] = { "events", "-f [JOB]", TAKES_JOB | TAKES_FOLLOW | NEEDS_FOLLOW,
		"Print events as JSON, from now on until the job ends." },
	[CTL_METRICS] = { "metrics", "[JOB]", TAKES_JOB,
		"Print the job's metrics in Prometheus' text format." },
	[CTL_LOGLEVEL] = { "loglevel", "[verbose|info|warning|quiet]", TAKES_LEVEL,
		"Show how much launchd logs, or change it." },
	[CTL_HELP] = { "help", "", NO_JOB, "Show this text." },
	[CTL_VERSION] = { "version", "", NO_JOB, "Show launchctl's version." },
};

struct command_reading {
	struct ctl_command *to;
	const struct command_row *row; /* NULL: not named yet */
	unsigned given;                /* enum taken, of options */
	struct arena *arena;
	unsigned *ranks;
	struct failure *why;
};

static int take_job(struct command_reading *r, const char *text)
{
	r->to->job = text;
	return 0;
}

static int take_json(struct command_reading *r, const char *text)
{
	(void)text;
	r->to->json = true;
	return 0;
}

static int take_all_nodes(struct command_reading *r, const char *text)
{
	(void)text;
	r->to->all_nodes = true;
	return 0;
}

static int take_follow(struct command_reading *r, const char *text)
{
	(void)text;
	r->to->follow = true;
	return 0;
}

static int take_now(struct command_reading *r, const char *text)
{
	(void)text;
	r->to->now = true;
	return 0;
}

static int take_lines(struct command_reading *r, const char *text)
{
	uint64_t n;

	if (num_parse(text, 1, CONTROL_TAIL_LINES_MAX, &n) < 0)
		return failure_usage(r->why, "--lines: a number from 1 to %d is needed, not \"%s\"",
			CONTROL_TAIL_LINES_MAX, text);
	r->to->lines = (unsigned)n;
	return 0;
}

static int take_watch(struct command_reading *r, const char *text)
{
	r->to->watch_ms = WATCH_MS;
	if (text && (num_parse_seconds(text, DAY_S, &r->to->watch_ms) < 0 || r->to->watch_ms == 0))
		return failure_usage(r->why,
			"--watch: a time such as 2, 0.5, 10s or 1m is needed, not \"%s\"", text);
	return 0;
}

static const struct option_row {
	const char *name;
	char letter;
	unsigned takes; /* enum taken: of the commands that have it; 0: all have */
	enum { VALUE_NONE, VALUE_NEEDED, VALUE_ALLOWED } value;
	int (*take)(struct command_reading *r, const char *text);
} options[] = {
	{ "job", 'j', 0, VALUE_NEEDED, take_job },
	{ "json", 0, TAKES_JSON, VALUE_NONE, take_json },
	{ "all-nodes", 'a', TAKES_ALL_NODES, VALUE_NONE, take_all_nodes },
	{ "watch", 'w', TAKES_WATCH, VALUE_ALLOWED, take_watch },
	{ "follow", 'f', TAKES_FOLLOW, VALUE_NONE, take_follow },
	{ "lines", 'n', TAKES_LINES, VALUE_NEEDED, take_lines },
	{ "now", 0, TAKES_NOW, VALUE_NONE, take_now },
};

/* Of "-n", "--lines" or "--lines=5". */
static const struct option_row *find_option(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		const struct option_row *o = &options[i];

		if (word[1] == '-' ? strlen(o->name) == len - 2 &&
					memcmp(word + 2, o->name, len - 2) == 0 :
				     o->letter && word[1] == o->letter)
			return o;
	}
	return NULL;
}

/* One word, and for its value perhaps the next one. */
static int take_option(struct command_reading *r, const char *const **at)
{
	const char *word = **at, *equals = word[1] == '-' ? strchr(word, '=') : NULL;
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct option_row *o = find_option(word, len);
	const char *value = equals ? equals + 1 : NULL;

	if (!o || (word[1] != '-' && o->value == VALUE_NONE && word[2]))
		return failure_usage(
			r->why, "there is no option %s; launchctl --help lists them", word);
	if (word[1] != '-' && word[2])
		value = word + 2; /* -n5 */
	if (value && o->value == VALUE_NONE)
		return failure_usage(r->why, "--%s takes no value: %s", o->name, word);
	if (!value && o->value == VALUE_NEEDED) {
		value = *++*at;
		if (!value) {
			--*at;
			return failure_usage(r->why, "--%s needs a value", o->name);
		}
	}
	r->given |= o->takes;
	return o->take(r, value);
}

/* A rank, a range of ranks, or several of them with commas: "3", "0-7", "0,2,4-7". */
static int take_ranks(struct command_reading *r, const char *word)
{
	const char *at = word, *entry;
	size_t len;

	while ((len = list_next(&at, &entry)) > 0 || *at) {
		const char *dash = memchr(entry, '-', len);
		size_t first_len = dash ? (size_t)(dash - entry) : len;
		uint64_t first, last;

		if (num_parse_len(entry, first_len, 0, RANK_MOST, &first) < 0 ||
			num_parse_len(dash ? dash + 1 : entry, dash ? len - first_len - 1 : len,
				first, RANK_MOST, &last) < 0)
			return failure_usage(r->why,
				"\"%s\" is not a rank, such as 3, 0-7 or 0,2; a job is named by --job",
				word);
		for (uint64_t rank = first; rank <= last; rank++) {
			if (r->to->rank_count == RANKS_MAX)
				return failure_usage(r->why,
					"more than %d ranks are named; without any, all are taken",
					RANKS_MAX);
			r->ranks[r->to->rank_count++] = (unsigned)rank;
		}
	}
	return 0;
}

static int take_level(struct command_reading *r, const char *word)
{
	enum note_level level;

	if (r->to->level || !control_level_find(word, &level))
		return failure_usage(r->why,
			"\"%s\" is no level: verbose, info, warning or quiet is needed", word);
	r->to->level = word;
	return 0;
}

static int take_signal(struct command_reading *r, const char *word)
{
	int number = signal_number(word, strlen(word));

	if (number <= 0)
		return failure_usage(
			r->why, "\"%s\" is no signal: a name such as USR1 is needed", word);
	r->to->signal = arena_strdup(r->arena, signal_name(number));
	return 0;
}

static int take_command(struct command_reading *r, const char *word)
{
	for (unsigned i = 0; i < CTL_COMMANDS; i++)
		if (strcmp(commands[i].name, word) == 0) {
			r->row = &commands[i];
			r->to->what = (enum ctl_what)i;
			return 0;
		}
	return failure_usage(
		r->why, "there is no command \"%s\"; launchctl --help lists them", word);
}

/* A word that is no option. */
static int take_word(struct command_reading *r, const char *word)
{
	unsigned takes;

	if (!r->row)
		return take_command(r, word);
	takes = r->row->takes;
	if (takes & TAKES_SIGNAL && !r->to->signal)
		return take_signal(r, word);
	if (takes & (TAKES_RANKS | TAKES_RANK))
		return take_ranks(r, word);
	if (takes & TAKES_LEVEL)
		return take_level(r, word);
	if (!(takes & TAKES_JOB))
		return failure_usage(r->why, "%s takes no \"%s\"", r->row->name, word);
	if (r->to->job)
		return failure_usage(
			r->why, "two jobs are named: \"%s\" and \"%s\"", r->to->job, word);
	r->to->job = word;
	return 0;
}

static int compare_ranks(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static void sort_ranks(struct command_reading *r)
{
	size_t kept = 0;

	qsort(r->ranks, r->to->rank_count, sizeof *r->ranks, compare_ranks);
	for (size_t i = 0; i < r->to->rank_count; i++)
		if (i == 0 || r->ranks[i] != r->ranks[i - 1])
			r->ranks[kept++] = r->ranks[i];
	r->to->rank_count = kept;
	r->to->ranks = r->ranks;
}

/* What a command has too much of, or too little. */
static int check_command(struct command_reading *r)
{
	const struct command_row *row = r->row;

	if (!row)
		return failure_usage(r->why, "no command is given; launchctl --help lists them");
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (options[i].takes & r->given & ~row->takes)
			return failure_usage(
				r->why, "%s has no option --%s", row->name, options[i].name);
	if (row->takes & NO_JOB && r->to->job)
		return failure_usage(r->why, "%s is not about one job", row->name);
	if (row->takes & TAKES_SIGNAL && !r->to->signal)
		return failure_usage(r->why, "signal: which one? A name such as USR1 is needed");
	if (row->takes & TAKES_RANK && r->to->rank_count != 1)
		return failure_usage(r->why, "%s: exactly one rank is needed", row->name);
	if (row->takes & NEEDS_FOLLOW && !r->to->follow)
		return failure_usage(r->why,
			"%s: -f is needed; past events are in the file that launchd's --events "
			"names",
			row->name);
	return 0;
}

static bool is_asked_for(const char *word, const char *name, char letter)
{
	return strcmp(word, name) == 0 || (word[0] == '-' && word[1] == letter && !word[2]);
}

int ctl_command_read(
	const char *const *words, struct arena *arena, struct ctl_command *ret, struct failure *why)
{
	struct command_reading r = { .to = ret, .arena = arena, .why = why };
	bool only_words = false;
	int rc = 0;

	*ret = (struct ctl_command){ .what = CTL_HELP };
	r.ranks = arena_alloc(arena, RANKS_MAX * sizeof *r.ranks);
	if (!r.ranks)
		return failure_oom(why);
	for (; rc == 0 && *words; words++) {
		if (!only_words && is_asked_for(*words, "--help", 'h')) {
			*ret = (struct ctl_command){ .what = CTL_HELP };
			return 0;
		}
		if (!only_words && is_asked_for(*words, "--version", 'V')) {
			*ret = (struct ctl_command){ .what = CTL_VERSION };
			return 0;
		}
		if (!only_words && strcmp(*words, "--") == 0)
			only_words = true;
		else if (!only_words && (*words)[0] == '-' && (*words)[1])
			rc = take_option(&r, &words);
		else
			rc = take_word(&r, *words);
	}
	if (rc == 0)
		rc = check_command(&r);
	if (rc == 0)
		sort_ranks(&r);
	return rc;
}

void ctl_command_help(struct text *out)
{
	text_add(out,
		"usage: launchctl [-j JOB] COMMAND [...]\n"
		"Query and control a job that launchd runs on this host.\n\n");
	for (unsigned i = 0; i < CTL_COMMANDS; i++) {
		const struct command_row *row = &commands[i];
		size_t len = 2 + strlen(row->name) + 1 + strlen(row->operands);

		text_printf(out, "  %s %s", row->name, row->operands);
		if (len + 2 > HELP_AT) {
			text_add(out, "\n");
			len = 0;
		}
		text_printf(out, "%*s", (int)(HELP_AT - len), "");
		text_add_wrapped(out, row->help, HELP_AT, HELP_AT, HELP_WIDTH);
		text_add(out, "\n");
	}
	text_add(out,
		"\n"
		"JOB is the name, the run ID or the launcher's process ID; it may be left out where\n"
		"only one job runs. RANK is a rank of the job, a range or a list of them: 3, 0-7, 0,2.\n"
		"Exit code: 0 done, 1 refused or failed, 2 a wrong command line, 3 no such job.\n"
		"See launchctl(1).\n");
}

/* All options, for completion. */
static void add_options(struct text *out)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		text_printf(out, " --%s%s", options[i].name,
			options[i].value == VALUE_NEEDED ? "=" : "");
	text_add(out, " --help --version");
}

static void add_commands(struct text *out)
{
	for (unsigned i = 0; i < CTL_COMMANDS; i++)
		text_printf(out, "%s%s", i > 0 ? " " : "", commands[i].name);
}

void ctl_command_bash(struct text *out)
{
	text_add(out,
		"# bash completion for launchctl, generated by launchd\n"
		"_launchctl() {\n"
		"    local word=${COMP_WORDS[COMP_CWORD]} i words=\"");
	add_commands(out);
	text_add(out,
		"\"\n"
		"    for ((i = 1; i < COMP_CWORD; i++)); do\n"
		"        case ${COMP_WORDS[i]} in\n"
		"        signal) words=$(compgen -A signal SIG); [[ $word == S* ]] || words=${words//SIG/} ;;\n"
		"        loglevel) words=\"verbose info warning quiet\" ;;\n"
		"        [a-z]*) words= ;;\n"
		"        esac\n"
		"    done\n"
		"    [[ $word == -* ]] && words=\"");
	add_options(out);
	text_add(out,
		"\"\n"
		"    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
		"}\n"
		"complete -F _launchctl launchctl\n");
}

void ctl_command_zsh(struct text *out)
{
	text_add(out, "#compdef launchctl\n# generated by launchd\nlocal -a commands=(\n");
	for (unsigned i = 0; i < CTL_COMMANDS; i++) {
		struct text word = { 0 };

		text_printf(&word, "%s:%s", commands[i].name, commands[i].help);
		text_add(out, "    ");
		text_add_shell(out, text_string(&word));
		text_add(out, "\n");
		text_done(&word);
	}
	text_add(out,
		")\n_arguments '1:command:{_describe command commands}' '*::argument:_default'");
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		text_printf(out, " \\\n    '--%s%s'", options[i].name,
			options[i].value == VALUE_NEEDED ? "=:value:" : "");
	text_add(out, "\n");
}
