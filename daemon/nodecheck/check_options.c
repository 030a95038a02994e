/* check_options.c - see check_options.h */
#include "daemon/nodecheck/check_options.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/failure.h"
#include "common/num.h"
#include "common/text.h"

enum option_id {
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_JSON,
	OPTION_FINDINGS,
	OPTION_SHARE_GPU,
	OPTION_ONLY,
	OPTION_LEAST,
	OPTION_PEERS,
	OPTION_MEMORY,
	OPTION_MESSAGE,
	OPTION_LIMIT,
	OPTION_KEYS,
	OPTION_PART,
	OPTIONS,
};

static const struct {
	const char *name, *value, *help; /* help NULL: launchd's own business */
} rows[OPTIONS] = {
	[OPTION_HELP] = { "help", NULL, "show this" },
	[OPTION_VERSION] = { "version", NULL, "show the version" },
	[OPTION_JSON] = { "json", NULL, "rank 0 prints one JSON document instead of a table" },
	[OPTION_FINDINGS] = { "findings", NULL, NULL },
	[OPTION_SHARE_GPU] = { "share-gpu", NULL,
		"let ranks share a GPU where there are fewer GPUs than ranks: to try it out" },
	[OPTION_ONLY] = { "only", "LIST", "stages, of gpu,node,nics,pairs,job; default: all" },
	[OPTION_LEAST] = { "least", "NAME=RATE,...",
		"demand a rate of memory, node, nics, pairs or job (GB/s) or compute (TFLOP/s)" },
	[OPTION_PEERS] = { "peers", "PERCENT",
		"what is slower than this part of its peers' median is bad; default: 80; 0: nothing is" },
	[OPTION_MEMORY] = { "memory", "PERCENT",
		"how much of the free GPU memory to test; default: 90" },
	[OPTION_MESSAGE] = { "message", "MIB", "the largest all-reduce, in MiB; default: 4096" },
	[OPTION_LIMIT] = { "limit", "SECONDS", "of each step; default: 60" },
	[OPTION_KEYS] = { "keys", "PREFIX", NULL },
	[OPTION_PART] = { "part", "ORDER", NULL },
};

static const struct {
	const char *name;
	enum check_stage stage;
} stages[] = {
	{ "gpu", STAGE_GPU },
	{ "node", STAGE_NODE },
	{ "nics", STAGE_NICS },
	{ "pairs", STAGE_PAIRS },
	{ "job", STAGE_JOB },
};

static const char *const demands[DEMANDS] = {
	[DEMAND_MEMORY] = "memory",
	[DEMAND_COMPUTE] = "compute",
	[DEMAND_NODE] = "node",
	[DEMAND_NICS] = "nics",
	[DEMAND_PAIRS] = "pairs",
	[DEMAND_JOB] = "job",
};

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(at, word, len) == 0;
}

static int read_only(const char *list, struct check_demands *d, struct failure *why)
{
	memset(d->stages, 0, sizeof d->stages);
	for (const char *at = list;; at++) {
		size_t len = strcspn(at, ",");
		bool known = false;

		for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
			if (is_word(at, len, stages[i].name))
				d->stages[stages[i].stage] = known = true;
		if (!known)
			return failure_usage(why,
				"--only: \"%.*s\" is none of gpu, node, nics, pairs and job",
				(int)len, at);
		at += len;
		if (!*at)
			return 0;
	}
}

static int read_demand(const char *at, size_t len, struct check_demands *d, struct failure *why)
{
	const char *equals = memchr(at, '=', len);
	size_t name = equals ? (size_t)(equals - at) : len;
	char value[32];
	uint64_t thousandths;

	if (!equals || len - name - 1 >= sizeof value)
		return failure_usage(
			why, "--least: \"%.*s\" is no NAME=RATE, as node=400", (int)len, at);
	memcpy(value, equals + 1, len - name - 1);
	value[len - name - 1] = '\0';
	if (num_parse_thousandths(value, 1000000, &thousandths) < 0)
		return failure_usage(why,
			"--least: \"%s\" of %.*s is no rate: a number such as 400 or 18.5", value,
			(int)name, at);
	for (unsigned i = 0; i < DEMANDS; i++)
		if (is_word(at, name, demands[i])) {
			d->least[i] = thousandths * (i == DEMAND_COMPUTE ? 1000 : 1);
			return 0;
		}
	return failure_usage(why,
		"--least: \"%.*s\" is none of memory, compute, node, nics, pairs and job",
		(int)name, at);
}

static int read_least(const char *list, struct check_demands *d, struct failure *why)
{
	for (const char *at = list;; at++) {
		size_t len = strcspn(at, ",");
		int rc = read_demand(at, len, d, why);

		at += len;
		if (rc < 0 || !*at)
			return rc;
	}
}

static int read_number(enum option_id id, const char *value, uint64_t min, uint64_t max,
	uint64_t *ret, struct failure *why)
{
	if (num_parse(value, min, max, ret) == 0)
		return 0;
	return failure_usage(why, "--%s: \"%s\" is not a whole number from %llu to %llu",
		rows[id].name, value, (unsigned long long)min, (unsigned long long)max);
}

static int put_number(
	enum option_id id, const char *value, struct check_options *o, struct failure *why)
{
	uint64_t n = 0;
	int rc;

	if (id == OPTION_LIMIT) {
		if (num_parse_seconds(value, 3600, &o->demands.limit_ms) < 0 ||
			o->demands.limit_ms == 0)
			return failure_usage(why,
				"--limit: \"%s\" is no time above 0 and up to 1 hour, as 60 or 90s",
				value);
		return 0;
	}
	rc = id == OPTION_PEERS     ? read_number(id, value, 0, 100, &n, why) :
		id == OPTION_MEMORY ? read_number(id, value, 1, 100, &n, why) :
				      read_number(id, value, 1, 1 << 20, &n, why);
	if (rc < 0)
		return rc;
	if (id == OPTION_PEERS)
		o->demands.percent = (unsigned)n;
	else if (id == OPTION_MEMORY)
		o->memory_percent = (unsigned)n;
	else
		o->message_bytes = n << 20;
	return 0;
}

static int put(enum option_id id, const char *value, struct check_options *o, struct failure *why)
{
	switch (id) {
	case OPTION_HELP:
		o->help = true;
		return 0;
	case OPTION_VERSION:
		o->version = true;
		return 0;
	case OPTION_JSON:
		o->json = true;
		return 0;
	case OPTION_FINDINGS:
		o->findings = true;
		return 0;
	case OPTION_SHARE_GPU:
		o->share_gpu = true;
		return 0;
	case OPTION_ONLY:
		return read_only(value, &o->demands, why);
	case OPTION_LEAST:
		return read_least(value, &o->demands, why);
	case OPTION_KEYS:
		o->keys = value;
		return 0;
	case OPTION_PART:
		o->part = value;
		return 0;
	case OPTION_PEERS:
	case OPTION_MEMORY:
	case OPTION_MESSAGE:
	case OPTION_LIMIT:
	case OPTIONS:
		break;
	}
	return put_number(id, value, o, why);
}

/* The option that a word names; OPTIONS: none. *ret_value is behind its "=", if it has one. */
static enum option_id find(const char *word, const char **ret_value)
{
	size_t len = strcspn(word, "=");

	*ret_value = word[len] ? word + len + 1 : NULL;
	if (strncmp(word, "--", 2) != 0)
		return OPTIONS;
	for (unsigned id = 0; id < OPTIONS; id++)
		if (is_word(word + 2, len - 2, rows[id].name))
			return (enum option_id)id;
	return OPTIONS;
}

int check_options_read(int argc, char *const *argv, struct check_options *ret, struct failure *why)
{
	struct check_options o = {
		.keys = "nodecheck/",
		.memory_percent = 90,
		.message_bytes = 4ULL << 30,
		.demands = { .percent = 80, .limit_ms = 60000 },
	};

	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		o.demands.stages[stages[i].stage] = true;
	for (int i = 1; i < argc; i++) {
		const char *value;
		enum option_id id = find(argv[i], &value);
		int rc;

		if (id == OPTIONS)
			return failure_usage(why,
				"\"%s\" is no option of launchd-nodecheck: --help lists them",
				argv[i]);
		if (!rows[id].value && value)
			return failure_usage(why, "--%s takes no value", rows[id].name);
		if (rows[id].value && !value)
			value = i + 1 < argc ? argv[++i] : NULL;
		if (rows[id].value && !value)
			return failure_usage(
				why, "--%s wants a value: %s", rows[id].name, rows[id].value);
		rc = put(id, value, &o, why);
		if (rc < 0)
			return rc;
	}
	*ret = o;
	return 0;
}

void check_options_help(struct text *out)
{
	text_add(out,
		"usage: launchd [OPTIONS] --nproc_per_node GPUS --no_python launchd-nodecheck [OPTIONS]\n"
		"Checks the GPUs of all nodes of a job, their links and their network cards, and names the\n"
		"bad ones. It is started as a job's workers are, one process for each GPU.\n\n");
	for (unsigned id = 0; id < OPTIONS; id++) {
		struct text name = { 0 };

		if (!rows[id].help)
			continue;
		text_printf(&name, "--%s%s%s", rows[id].name, rows[id].value ? " " : "",
			rows[id].value ? rows[id].value : "");
		text_printf(out, "  %-22s ", text_string(&name));
		text_add_wrapped(out, rows[id].help, 25, 25, 99);
		text_add(out, "\n");
		text_done(&name);
	}
	text_add(out,
		"\nExit codes: 0 all is good or unknown, 2 usage, 3 a node is bad, 4 no GPU or no driver.\n");
}

static int place_number(const char *(*variable)(const char *name), const char *name, uint64_t max,
	unsigned preset, unsigned *ret, struct failure *why)
{
	const char *value = variable(name);
	uint64_t n = preset;

	if (value && num_parse(value, 0, max, &n) < 0)
		return failure_usage(why, "%s: \"%s\" is not a whole number from 0 to %llu", name,
			value, (unsigned long long)max);
	*ret = (unsigned)n;
	return 0;
}

int check_place_read(
	const char *(*variable)(const char *name), struct check_place *ret, struct failure *why)
{
	enum { MOST = 1 << 20 };
	struct check_place p = { .ranks = 1, .local_ranks = 1 };
	int rc;

	if (!variable("RANK")) { /* by hand, not as a worker */
		*ret = p;
		return 0;
	}
	rc = place_number(variable, "WORLD_SIZE", MOST, 1, &p.ranks, why);
	if (rc == 0)
		rc = place_number(variable, "RANK", p.ranks ? p.ranks - 1 : 0, 0, &p.rank, why);
	if (rc == 0)
		rc = place_number(variable, "LOCAL_WORLD_SIZE", p.ranks, 1, &p.local_ranks, why);
	if (rc == 0)
		rc = place_number(variable, "LOCAL_RANK", p.rank, 0, &p.local_rank, why);
	if (rc == 0)
		rc = place_number(variable, variable("GROUP_RANK") ? "GROUP_RANK" : "NODE_RANK",
			MOST, 0, &p.node, why);
	if (rc == 0)
		rc = place_number(variable, "MASTER_PORT", 65535, 0, &p.port, why);
	if (rc < 0)
		return rc;
	if (p.ranks == 0 || p.local_rank >= p.local_ranks ||
		p.rank - p.local_rank + p.local_ranks > p.ranks)
		return failure_usage(why,
			"RANK %u, WORLD_SIZE %u, LOCAL_RANK %u and LOCAL_WORLD_SIZE %u don't fit together",
			p.rank, p.ranks, p.local_rank, p.local_ranks);
	p.host = p.ranks > 1 ? variable("MASTER_ADDR") : NULL;
	if (p.ranks > 1 && (!p.host || p.port == 0))
		return failure_usage(why,
			"MASTER_ADDR and MASTER_PORT aren't set: it is launchd that starts %u ranks",
			p.ranks);
	*ret = p;
	return 0;
}
