/* identity.c - node rank and number of nodes; see topology.h */
#include "daemon/plan/topology.h"

#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"

/* The variables in which each launcher tells a process its rank and the number of processes. Never
 * OMPI_COMM_WORLD_NODE_RANK: that is the rank within the node. */
static const struct {
	const char *name, *rank, *size;
	const char *mark; /* what neither the launcher's own process has nor a worker of ours */
} says[] = {
	[LAUNCHER_NONE] = { "the environment", "NODE_RANK", "NNODES", NULL },
	[LAUNCHER_OPEN_MPI] = { "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
		"PMIX_NAMESPACE" },
	[LAUNCHER_HYDRA] = { "mpiexec", "PMI_RANK", "PMI_SIZE", "PMI_RANK" },
	[LAUNCHER_SLURM] = { "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_TASK_PID" },
};

const char *launcher_name(enum launcher l)
{
	return says[l].name;
}

const char *launcher_mark(enum launcher l, const char *const *env)
{
	return says[l].mark && !env_get(env, says[l].mark) ? says[l].rank : says[l].mark;
}

/* A step that srun started: Slurm numbers batch script, external and interactive steps from
 * 0xfffffff0 up (slurm.h), and those run one process, whatever the job's size. */
static bool in_slurm_step(const char *const *env)
{
	const char *step = env_get(env, "SLURM_STEP_ID");
	uint64_t n;

	return step && num_parse(step, 0, 0xffffffefu, &n) == 0 && env_get(env, "SLURM_PROCID");
}

bool inside_worker(const char *const *env)
{
	return env_get(env, "TORCHELASTIC_RUN_ID") && env_get(env, "LOCAL_RANK") &&
		!env_get(env, "PMIX_RANK") && !env_get(env, "PMI_RANK") && !in_slurm_step(env);
}

enum launcher launcher_of(const char *const *env)
{
	if (inside_worker(env))
		return LAUNCHER_NONE;
	if (env_get(env, "OMPI_COMM_WORLD_RANK") || env_get(env, "OMPI_COMM_WORLD_SIZE"))
		return LAUNCHER_OPEN_MPI;
	if (env_get(env, "PMI_RANK") || env_get(env, "PMI_SIZE"))
		return LAUNCHER_HYDRA;
	return in_slurm_step(env) ? LAUNCHER_SLURM : LAUNCHER_NONE;
}

/* A number with its place. */
struct found {
	bool there;
	unsigned n;
	const char *where;
};

static int from_environment(
	const struct deciding *d, const char *name, unsigned min, struct found *ret)
{
	const char *text = env_get(d->facts->env, name);
	uint64_t n;

	*ret = (struct found){ .where = name };
	if (!text || !*text)
		return 0;
	if (num_parse(text, min, setting_rows[SET_NNODES].max, &n) < 0)
		return failure_usage(d->why, "%s: \"%s\" is not a whole number from %u to %llu",
			name, text, min, (unsigned long long)setting_rows[SET_NNODES].max);
	ret->n = (unsigned)n;
	ret->there = true;
	return 0;
}

/* Settings above the environment are given; one of the system's file only fills a gap. */
static struct found from_settings(const struct deciding *d, enum setting_id id, bool given)
{
	enum level level = d->s->value[id].from.level;
	bool there = given ? level > LEVEL_ENVIRONMENT : level == LEVEL_SYSTEM_FILE;

	return (struct found){ there, (unsigned)settings_number(d->s, id),
		settings_where(d->s, id) };
}

/* The given number: a setting's, or else that of a list of nodes, which must not say another size
 * than the setting. theirs: what the environment says, above a list that only fills gaps. */
static int given(const struct deciding *d, enum setting_id id, enum launcher launcher,
	const struct found *theirs, struct found *ret)
{
	bool above;
	const struct listed_nodes *list = listed_nodes(d, launcher, &above);

	*ret = from_settings(d, id, true);
	if (!list)
		return 0;
	if (id == SET_NNODES && ret->there && ret->n != list->hosts.count)
		return failure_usage(d->why,
			"%s says %u, but %s lists %zu node%s: leave out the one that is wrong "
			"(--standalone starts a job of this node alone)",
			ret->where, ret->n, list->where, list->hosts.count,
			list->hosts.count == 1 ? "" : "s");
	if (ret->there || (theirs->there && !above))
		return 0;
	*ret = (struct found){ true, (unsigned)list->hosts.count, list->where };
	return id == SET_NNODES ? 0 : listed_rank(d, list, &ret->n, &ret->where);
}

/* Whether something goes above anyone's variables. */
static bool is_given(const struct deciding *d, enum setting_id id)
{
	bool above = false;

	return from_settings(d, id, true).there ||
		(listed_nodes(d, LAUNCHER_NONE, &above) && above);
}

/* A number of the environment is looked at where it counts: MPI's always, as a given one must agree
 * with it; NODE_RANK and NNODES where nothing is given, and outside workers of another launcher. */
static int said(
	const struct deciding *d, enum setting_id id, enum launcher launcher, struct found *ret)
{
	const char *name = id == SET_NODE_RANK ? says[launcher].rank : says[launcher].size;
	const char *anyones = env_get(d->facts->env, says[LAUNCHER_NONE].size);
	bool of_nodes = launcher == LAUNCHER_NONE && settings_is(d->s, SET_ENV_RANKS, "node");
	int rc;

	if (of_nodes)
		name = id == SET_NODE_RANK ? "RANK" : "WORLD_SIZE";
	else if (launcher == LAUNCHER_NONE && id == SET_NNODES && (!anyones || !*anyones))
		name = AZURE_NODES; /* beside NODE_RANK, where no MPI is asked for */
	if (launcher == LAUNCHER_SLURM && id == SET_NNODES && !env_get(d->facts->env, name))
		name = "SLURM_NTASKS";
	*ret = (struct found){ .where = name };
	if (launcher == LAUNCHER_NONE && (inside_worker(d->facts->env) || is_given(d, id)))
		return 0;
	rc = from_environment(d, name, id == SET_NODE_RANK ? 0 : 1, ret);
	if (rc == 0 && of_nodes && !ret->there)
		return failure_usage(d->why, "%s node: %s is not set; it must be %s",
			settings_label(d->s, SET_ENV_RANKS), name,
			id == SET_NODE_RANK ? "this node's rank" : "the number of nodes");
	return rc;
}

/* The given number, else the launcher's, else the system's file's; given and launcher must agree.
 * NODE_RANK and NNODES are anyone's: what is given goes above them. */
static int choose(const struct deciding *d, enum setting_id id, enum launcher launcher,
	struct found theirs, struct found *ret)
{
	struct found ours;

	if (given(d, id, launcher, &theirs, &ours) < 0)
		return d->why->code;
	if (ours.there && theirs.there && launcher != LAUNCHER_NONE && ours.n != theirs.n)
		return failure_usage(d->why,
			"%s says %u, but %s says %u: leave out the one that is wrong (--standalone "
			"starts a job of this node alone)",
			ours.where, ours.n, theirs.where, theirs.n);
	*ret = ours.there ? ours : theirs.there ? theirs : from_settings(d, id, false);
	return 0;
}

static int standalone(const struct deciding *d, struct identity *ret)
{
	struct found nnodes = from_settings(d, SET_NNODES, true);
	struct found node_rank = from_settings(d, SET_NODE_RANK, true);
	const char *where = settings_where(d->s, SET_STANDALONE);

	if (nnodes.there && nnodes.n != 1)
		return failure_usage(
			d->why, "%s means one node, but %s says %u", where, nnodes.where, nnodes.n);
	if (node_rank.there && node_rank.n != 0)
		return failure_usage(d->why, "%s means one node, but %s says %u", where,
			node_rank.where, node_rank.n);
	*ret = (struct identity){ 1, 0, where, where, true };
	return 0;
}

/* The nodes agree on their ranks when they meet. */
static bool ranks_by_meeting(const struct deciding *d)
{
	return settings_is(d->s, SET_RDZV_BACKEND, "c10d") &&
		!settings_is(d->s, SET_CONTROL, "off");
}

/* One of the two numbers is missing. */
static int complete(const struct deciding *d, enum launcher launcher, struct found size,
	struct found rank, struct identity *ret)
{
	if (!size.there && !rank.there) {
		*ret = (struct identity){ 1, 0, ONE_NODE, ONE_NODE, true };
		return 0;
	}
	if (!size.there && launcher == LAUNCHER_NONE && rank.n == 0) {
		*ret = (struct identity){ 1, 0, ONE_NODE, rank.where, true };
		return 0;
	}
	if (!size.there)
		return failure_usage(d->why,
			"%s says %u, but the number of nodes is not given: use --nnodes (or set "
			"%s)",
			rank.where, rank.n, says[launcher].size);
	if (size.n == 1 && launcher == LAUNCHER_NONE) {
		*ret = (struct identity){ 1, 0, size.where, ONE_NODE, true };
		return 0;
	}
	if (launcher == LAUNCHER_NONE && ranks_by_meeting(d)) {
		notes_add(d->notes, NOTE_VERBOSE,
			"this node's rank is not given: the nodes will agree on ranks when they meet");
		*ret = (struct identity){ size.n, 0, size.where, "rendezvous", false };
		return 0;
	}
	/* torchrun and classic launch take 0, and node 0's command line often leaves it out */
	if (launcher == LAUNCHER_NONE && d->s->value[SET_NNODES].from.level > LEVEL_ENVIRONMENT &&
		settings_is(d->s, SET_RDZV_BACKEND, "static")) {
		notes_add(d->notes, NOTE_WARNING,
			"%s says %u, but this node's rank is not given: assuming 0; every other node "
			"needs --node_rank",
			size.where, size.n);
		*ret = (struct identity){ size.n, 0, size.where, "default", true };
		return 0;
	}
	return failure_usage(d->why,
		"%s says %u, but this node's rank is not given: use --node_rank (or set %s)",
		size.where, size.n, says[launcher].rank);
}

/* Kubernetes numbers the pods of an Indexed Job, those of jobs of one node, too: it counts where
 * the job has several and nothing else says a rank. */
static int from_indexed_job(
	const struct deciding *d, enum launcher launcher, struct found size, struct found *rank)
{
	if (rank->there || !size.there || size.n < 2 || launcher != LAUNCHER_NONE ||
		ranks_by_meeting(d) || inside_worker(d->facts->env))
		return 0;
	return from_environment(d, "JOB_COMPLETION_INDEX", 0, rank);
}

int identity_find(const struct deciding *d, enum launcher launcher, struct identity *ret)
{
	struct found said_rank, said_size, rank = { 0 }, size = { 0 };

	if (settings_flag(d->s, SET_STANDALONE))
		return standalone(d, ret);
	if (said(d, SET_NODE_RANK, launcher, &said_rank) < 0 ||
		said(d, SET_NNODES, launcher, &said_size) < 0 ||
		choose(d, SET_NODE_RANK, launcher, said_rank, &rank) < 0 ||
		choose(d, SET_NNODES, launcher, said_size, &size) < 0 ||
		from_indexed_job(d, launcher, size, &rank) < 0)
		return d->why->code;
	if (!rank.there || !size.there)
		return complete(d, launcher, size, rank, ret);
	if (rank.n >= size.n)
		return failure_usage(d->why,
			"node rank %u (%s) must be below the number of nodes, %u (%s)", rank.n,
			rank.where, size.n, size.where);
	*ret = (struct identity){ size.n, rank.n, size.where, rank.where, true };
	return 0;
}
