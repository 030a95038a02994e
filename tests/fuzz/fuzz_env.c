/* fuzz_env.c - environments, from the settings in them to the workers' own. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/words.h"
#include "config/sources.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"
#include "daemon/report/explain.h"
#include "tests/unit/json.h"

enum { EXPLAINED_MAX = 8 }; /* workers; more of them cost time and show nothing new */

static const struct attempt attempt = { 0, "12345", "/run/x", NULL };

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool user_says(const struct settings *s, const char *entry)
{
	size_t len = env_name_length(entry);

	for (const struct env_change *c = s->env; c; c = c->next)
		if (strlen(c->name) == len && strncmp(c->name, entry, len) == 0)
			return true;
	return false;
}

static const char *edited(const struct env_edits *edits, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < edits->count; i++)
		if (strcmp(edits->at[i].name, name) == 0) {
			PROMISE(value == NULL); /* one edit a name */
			value = edits->at[i].value;
			PROMISE(value != NULL);
		}
	PROMISE(value != NULL);
	return value;
}

static void check_number(const struct env_edits *edits, const char *name, unsigned n)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%u", n);
	PROMISE(strcmp(edited(edits, name), text) == 0);
}

/* No wire-up is left, and what is no business of ours is left as it was. */
static void check_untouched(const struct plan *p, const struct env_edits *edits, struct arena *a,
	const struct settings *s)
{
	static const char *const wire_up[] = { "PMIX_", "PMI_", "PMI2_", "PRTE_", "OMPI_MCA_orte_",
		"OMPI_MCA_ess", "OMPI_MCA_plm",
		"SLURM_PROCID=", "SLURM_STEP_ID=", "RANK=", "WORLD_SIZE=", "MASTER_ADDR=" };
	struct vec left = { 0 };
	size_t at = 0;

	plan_untouched(p, edits, a, &left);
	for (size_t i = 0; i < left.count; i++) {
		while (p->env[at] && p->env[at] != left.at[i])
			at++;
		PROMISE(p->env[at] != NULL); /* the same entries in the same order */
		PROMISE(!begins(left.at[i], "LAUNCHD_KEY="));
		for (size_t k = 0; k < sizeof wire_up / sizeof *wire_up; k++)
			PROMISE(!strchr(left.at[i], '=') || !begins(left.at[i], wire_up[k]) ||
				p->mpi_env == MPI_ENV_KEEP || user_says(s, left.at[i]));
	}
}

static void check_worker(
	const struct plan *p, unsigned i, struct arena *a, const struct settings *s)
{
	struct worker_rank r = plan_rank(p, i);
	struct env_edits edits = { 0 };
	struct vec argv = { 0 };

	PROMISE(r.rank < r.world_size && r.local_rank < r.local_world_size);
	plan_environment(p, i, &attempt, a, &edits);
	check_number(&edits, "RANK", r.rank);
	check_number(&edits, "WORLD_SIZE", r.world_size);
	check_number(&edits, "LOCAL_RANK", p->virtual_local_rank ? 0 : i);
	check_number(&edits, "GROUP_WORLD_SIZE", r.nnodes);
	PROMISE(strcmp(edited(&edits, "MASTER_ADDR"), p->master_addr) == 0);
	for (size_t k = 0; k < edits.count; k++) {
		PROMISE((edits.at[k].how == ENV_REMOVED) == (edits.at[k].value == NULL));
		PROMISE(edits.at[k].why && *edits.at[k].why);
	}
	check_untouched(p, &edits, a, s);
	plan_command(p, i, &attempt, a, &argv);
	PROMISE(argv.count >= p->args->count + 1 + (plan_is_wrapped(p, i) ? p->wrap.count : 0));
	if (p->start_count > 0 && i >= p->start_first && i < p->start_first + p->start_count)
		PROMISE(plan_program(p, i) != NULL);
}

static void check_explained(const struct explained *e, struct arena *a)
{
	struct text first = { 0 }, second = { 0 }, text = { 0 };

	explain_json(e, a, &first);
	explain_json(e, a, &second);
	explain_text(e, a, &text);
	PROMISE(!first.failed && !second.failed && !text.failed);
	PROMISE(json_is_valid(text_string(&first), first.len));
	PROMISE(strcmp(text_string(&first), text_string(&second)) == 0);
	text_done(&first);
	text_done(&second);
	text_done(&text);
}

/* No signal that is taken is without a source, and CONT never ends anything. */
static void check_reactions(const struct reactions *all)
{
	for (int n = 0; n < REACTION_SIGNALS; n++)
		PROMISE((all->of[n].kind == REACTION_NONE) == (all->of[n].from == NULL));
	PROMISE(all->of[SIGCONT].kind == REACTION_RESUME);
	PROMISE(all->of[SIGKILL].kind == REACTION_NONE);
}

/* What could not be known is there when the nodes have met. */
static void meet(struct reading *r, struct topology *t)
{
	const struct meeting_facts met = { t->identity.nnodes - 1, "10.0.0.1", 4321 };
	const struct control *c = &t->control;

	PROMISE(c->from && *c->from);
	PROMISE((c->how == CONTROL_NONE) ==
		(t->identity.nnodes == 1 || settings_number(&r->s, SET_CONTROL) == 2));
	PROMISE(c->how != CONTROL_STATIC || (c->addr && c->port > 0));
	PROMISE(c->port <= 65535);
	PROMISE(t->master.addr || c->how == CONTROL_EXCHANGE || t->identity.nnodes > 1);
	r->rc = topology_met(t, &met, &r->why);
	PROMISE(r->rc == 0 && t->identity.node_rank_known);
}

/* Numbers of the other nodes' workers, which need not equal ours. */
static void decide(struct reading *r, const struct facts *facts)
{
	struct topology t;
	struct plan p;
	unsigned *nproc_of_node;
	unsigned long long sum = 0;
	const struct deciding d = { &r->s, facts, &r->notes, &r->why };

	r->rc = topology_begin(&d, &t);
	reading_check(r);
	if (r->rc == 0)
		r->rc = topology_finish(&d, exchange_of(d.s, facts, &t) != EXCHANGE_NONE, &t);
	reading_check(r);
	if (r->rc == 0)
		meet(r, &t);
	reading_check(r);
	if (r->rc < 0)
		return;
	PROMISE(t.nproc >= 1 && t.identity.node_rank < t.identity.nnodes);
	PROMISE(t.identity.nnodes_from && t.identity.node_rank_from && t.nproc_from);
	PROMISE(t.master.addr && *t.master.addr && t.master.addr_from && t.master.port_from);
	PROMISE(t.master.port <= 65535 && (t.master.port > 0 || t.identity.nnodes == 1));
	nproc_of_node = malloc(t.identity.nnodes * sizeof *nproc_of_node);
	PROMISE(nproc_of_node != NULL);
	for (unsigned i = 0; i < t.identity.nnodes; i++) {
		nproc_of_node[i] = i == t.identity.node_rank ? t.nproc : t.nproc + i % 3;
		sum += nproc_of_node[i];
	}
	r->rc = plan_make(&d, &t, nproc_of_node, &p);
	free(nproc_of_node);
	reading_check(r);
	if (r->rc < 0)
		return;
	PROMISE(p.world_size == sum && p.first_rank + p.nproc <= p.world_size);
	PROMISE(p.start_count == p.nproc || p.start_count <= 1);
	PROMISE(p.start_first + p.start_count <= p.nproc);
	check_worker(&p, 0, &r->arena, &r->s);
	check_worker(&p, p.nproc - 1, &r->arena, &r->s);
	check_reactions(&p.reactions);
	if (p.nproc <= EXPLAINED_MAX) {
		const struct explained e = { &r->s, facts, &t, &p, &r->notes, NULL };

		check_explained(&e, &r->arena);
	}
	PROMISE(!arena_failed(&r->arena));
}

/* As facts/program.c has it; what is on this machine must not matter. */
static void find_wrapper(struct reading *r, struct wrapper *ret)
{
	const char *text = settings_text(&r->s, SET_WRAP);
	const char *fault;

	if (!text)
		return;
	r->rc = words_split(text, &r->arena, &ret->words, &fault);
	if (r->rc < 0 || ret->words.count == 0)
		r->rc = failure_set(&r->why, -EINVAL, "no command");
	else if (*ret->words.at[0])
		ret->path = "/usr/bin/wrapper";
	else
		(void)failure_set(&ret->why, -EINVAL, "not there");
}

static void read_words(struct reading *r, const struct words *w)
{
	const char *const *env = (const char *const *)(void *)w->at;
	struct facts facts = { .env = env,
		.hostname = "node7",
		.cpus = 3,
		.gpus = { .known = true, .count = 2 },
		.random_id = "id",
		.program = { .path = "/usr/bin/python3", .from = "PATH" } };

	reading_init(r, false);
	r->s.script = "train.py";
	r->rc = settings_read_environment(&r->s, env, &r->notes, &r->why);
	reading_check(r);
	if (r->rc == 0)
		r->rc = settings_check(&r->s, &r->notes, &r->why);
	reading_check(r);
	if (r->rc == 0)
		find_wrapper(r, &facts.wrapper);
	if (r->rc == 0)
		decide(r, &facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct words w = words_make(bytes, len);
	struct reading first, second;

	read_words(&first, &w);
	read_words(&second, &w);
	reading_compare(&first, &second);
	reading_done(&first);
	reading_done(&second);
	words_done(&w);
	return 0;
}
