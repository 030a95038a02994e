/* one_process.c - --per-process: where a launcher with one worker stands on its host; see
 * topology.h */
#include "daemon/plan/topology.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"
#include "daemon/plan/introduction.h"

static int number_of(const struct deciding *d, const char *name, uint64_t min, unsigned *ret)
{
	const char *text = env_get(d->facts->env, name);
	uint64_t n;

	if (!text)
		return failure_usage(d->why, "--per-process: %s is not set", name);
	if (num_parse(text, min, setting_rows[SET_NNODES].max, &n) < 0)
		return failure_usage(d->why, "%s: \"%s\" is not a whole number from %llu to %llu",
			name, text, (unsigned long long)min,
			(unsigned long long)setting_rows[SET_NNODES].max);
	*ret = (unsigned)n;
	return 0;
}

/* Slurm's "4(x2),3": of the node with that index (srun(1)). 0: it has none. */
static unsigned tasks_of_node(const char *list, unsigned node)
{
	while (*list) {
		size_t len = strcspn(list, ","), digits = strspn(list, "0123456789");
		uint64_t tasks = 0, times = 1;

		if (num_parse_len(list, digits, 1, UINT32_MAX, &tasks) < 0 ||
			(digits < len &&
				(len < digits + 4 || strncmp(list + digits, "(x", 2) != 0 ||
					list[len - 1] != ')' ||
					num_parse_len(list + digits + 2, len - digits - 3, 1,
						UINT32_MAX, &times) < 0)))
			return 0;
		if (node < times)
			return (unsigned)tasks;
		node -= (unsigned)times;
		list += len + (list[len] == ',');
	}
	return 0;
}

static int local_size(
	const struct deciding *d, const struct launcher *l, const char *name, struct one_process *p)
{
	unsigned node = 0;

	if (!l->slurm_lists)
		return number_of(d, name, 1, &p->local_world_size);
	if (number_of(d, l->node, 0, &node) < 0)
		return d->why->code;
	p->local_world_size = tasks_of_node(env_get(d->facts->env, name), node);
	return p->local_world_size ?
		0 :
		failure_usage(d->why, "%s: \"%s\" has no number of tasks for node %u (%s)", name,
			env_get(d->facts->env, name), node, l->node);
}

/* Several workers, or nobody to ask for ranks. */
static int check_alone(const struct deciding *d, const struct topology *t)
{
	const char *hosts = settings_given(d->s, SET_CLUSTER_NODES) ?
		settings_where(d->s, SET_CLUSTER_NODES) :
		settings_given(d->s, SET_CLUSTER_HOSTFILE) ?
		settings_where(d->s, SET_CLUSTER_HOSTFILE) :
		NULL;

	if (settings_given(d->s, SET_NPROC_PER_NODE) &&
		settings_number(d->s, SET_NPROC_PER_NODE) != 1)
		return failure_usage(d->why,
			"%s=%s: with --per-process each launcher starts one worker: leave it out",
			settings_where(d->s, SET_NPROC_PER_NODE),
			settings_text(d->s, SET_NPROC_PER_NODE));
	if (settings_is(d->s, SET_MPI_ENV, "rewrite-slurm") ||
		settings_is(d->s, SET_MPI_ENV, "rewrite-pmi"))
		return failure_usage(d->why,
			"%s: %s makes tasks of several workers of one launcher; with "
			"--per-process a worker has its task's own variables: leave it out",
			settings_where(d->s, SET_MPI_ENV), settings_text(d->s, SET_MPI_ENV));
	if (hosts)
		return failure_usage(d->why,
			"%s lists nodes, but with --per-process there are several launchers on a node: "
			"leave it out",
			hosts);
	if (settings_flag(d->s, SET_STANDALONE))
		return failure_usage(d->why,
			"%s means one launcher, but --per-process several: leave one of them out",
			settings_where(d->s, SET_STANDALONE));
	if (t->launcher->kind != LAUNCHER_TASK)
		return failure_usage(d->why,
			"--per-process takes ranks from mpirun, mpiexec or srun, and none of them has "
			"started this launcher: start one for each worker, as in mpirun -n 8 launchd "
			"--per-process ..., or leave it out and give --nproc_per_node");
	return 0;
}

/* What the variables say, or else PMIx. */
static int find_local(const struct deciding *d, const struct launcher *l, struct one_process *p)
{
	const char *rank = launcher_variable(l->local_rank, d->facts->env);
	const char *size = launcher_variable(l->local_size, d->facts->env);

	if (l->pmix_size && d->facts->task.local_size > 0) {
		p->from = "PMIx";
		p->local_rank = d->facts->task.local_rank;
		p->local_world_size = d->facts->task.local_size;
		return 0;
	}
	if (!rank || !size)
		return failure_usage(d->why,
			"--per-process: %s has not said which process on this host this is%s%s%s",
			l->name, l->local_rank[0] ? ": " : "",
			l->local_rank[0] ? (rank ? l->local_size[0] : l->local_rank[0]) : "",
			l->local_rank[0] ? " is not set" : "");
	p->from = rank;
	return number_of(d, rank, 0, &p->local_rank) < 0 ? d->why->code : local_size(d, l, size, p);
}

/* Whether ranks are dealt out host by host, or one to each host in turn. What can't be told from
 * these numbers, as hosts have different ones, counts as the former. */
static bool is_dealt(unsigned rank, unsigned size, const struct one_process *p)
{
	unsigned hosts = size / p->local_world_size;

	return hosts * p->local_world_size != size || rank % p->local_world_size == p->local_rank ||
		(hosts > 1 && rank / hosts == p->local_rank);
}

/* Open MPI 5 deals ranks out to NUMA nodes or caches in turn, and numbers local ranks by those:
 * "0 2 1 3". Libraries take the GPU of rank modulo local size. Rank 1 is among those that are
 * wrong, and speaks for all. */
static void note_order(const struct deciding *d, const struct launcher *l,
	const struct identity *id, const struct one_process *p)
{
	if (l->maps_by && id->node_rank == 1 && !is_dealt(id->node_rank, id->nnodes, p))
		notes_warn_own(d->notes,
			"--per-process: %s gave rank %u local rank %u of %u: a script that takes its GPU from the rank gets another worker's; %s --map-by ppr:%u:node, or --map-by slot, keeps their order",
			l->name, id->node_rank, p->local_rank, p->local_world_size, l->name,
			p->local_world_size);
}

int process_find(const struct deciding *d, const struct topology *t, struct one_process *ret)
{
	const struct identity *id = &t->identity;
	struct one_process p = { .is = true };

	if (check_alone(d, t) < 0 || find_local(d, t->launcher, &p) < 0)
		return d->why->code;
	if (p.local_rank >= p.local_world_size || p.local_world_size > id->nnodes)
		return failure_usage(d->why,
			"--per-process: local rank %u of %u (%s) can't be rank %u (%s) of %u (%s)",
			p.local_rank, p.local_world_size, p.from, id->node_rank, id->node_rank_from,
			id->nnodes, id->nnodes_from);
	note_order(d, t->launcher, id, &p);
	*ret = p;
	return 0;
}

/* Slurm says it; else ranks are dealt out host by host, or one to each host in turn. */
static bool guess_host(const struct deciding *d, const struct launcher *l,
	const struct identity *id, struct one_process *p)
{
	const char *node = l->node ? env_get(d->facts->env, l->node) : NULL;
	const char *nodes = l->nodes ? env_get(d->facts->env, l->nodes) : NULL;
	unsigned hosts = id->nnodes / p->local_world_size, rank = id->node_rank;
	uint64_t host, of;

	if (node && nodes && num_parse(nodes, 1, id->nnodes, &of) == 0 &&
		num_parse(node, 0, of - 1, &host) == 0) {
		p->host = (unsigned)host;
		p->hosts = (unsigned)of;
		return true;
	}
	if (hosts * p->local_world_size != id->nnodes)
		return false;
	if (hosts == 1 || rank % p->local_world_size == p->local_rank)
		p->host = rank / p->local_world_size;
	else if (rank / hosts == p->local_rank)
		p->host = rank % hosts;
	else
		return false;
	p->hosts = hosts;
	return true;
}

int process_find_host(const struct deciding *d, struct topology *t)
{
	struct one_process *p = &t->process;
	struct among hosts;

	if (t->peers) {
		if (peers_host(t->peers, t->identity.nnodes, t->identity.node_rank,
			    p->local_world_size, &hosts, d->why) < 0)
			return d->why->code;
		p->host = hosts.first;
		p->hosts = hosts.count;
	}
	if (p->hosts > 0 || guess_host(d, t->launcher, &t->identity, p) ||
		t->control.how != CONTROL_NONE)
		return 0;
	return failure_usage(d->why,
		"--per-process: which host has which number shows only when the launchers meet, "
		"which %s prevents",
		settings_label(d->s, SET_CONTROL));
}
