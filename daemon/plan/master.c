/* master.c - where worker 0 listens; see topology.h. The places, in their order:
 *
 * 1. --standalone: 127.0.0.1 (::1 where there is no other loopback address) and a free port
 * 2. given: --rdzv-endpoint or --master_addr; on one node --local-addr; on several the first of the
 *    nodes that [cluster] lists
 * 3. in Azure ML's jobs under Open MPI, the rule of its launch.py
 * 4. MASTER_ADDR, and MASTER_PORT with it; on one node only if it is this host
 * 5. the system's file, and the list in it; 6. Slurm's first host; 7. on one node, and where mpirun
 * or mpiexec started all launchers on this host, 127.0.0.1; 8. where PMIx is left to the worker,
 * mpirun's own host */
#include "daemon/plan/topology.h"

#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/siphash.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"

#define BY_MEETING "rendezvous"
#define ONE_HOST   "all launchers on one host"

enum {
	PORT_TORCHRUN = 29500,
	PORT_C10D = 29400,
	PORT_AZURE_ONE_NODE = 54965,
	PORT_AZURE = 6105,
};

/* where nothing else says an address */
static const char by_one_node[] = "one node";

struct master_search {
	const struct deciding *d;
	const struct identity *id;
	bool will_meet;
	struct master m; /* addr NULL: not found yet; port_from NULL: none yet */
};

static bool asks_c10d(const struct settings *s)
{
	return settings_is(s, SET_RDZV_BACKEND, "c10d");
}

static bool one_node(const struct master_search *f)
{
	return f->id->nnodes == 1;
}

static const char *variable(const struct master_search *f, const char *name)
{
	return env_value(f->d->facts->env, name);
}

/* NULL: none, or a service called MASTER. */
static const char *master_port(const struct master_search *f)
{
	const char *port = variable(f, "MASTER_PORT");

	if (!port || !env_is_service_link(port))
		return port;
	notes_add(f->d->notes, NOTE_INFO,
		"MASTER_PORT=%s is ignored: Kubernetes sets it for a service called MASTER", port);
	return NULL;
}

static void set_addr(struct master_search *f, const char *addr, const char *from)
{
	f->m.addr = addr;
	f->m.addr_from = from;
}

static void set_port(struct master_search *f, unsigned port, const char *from)
{
	f->m.port = port;
	f->m.port_from = from;
}

static int parse_port(struct master_search *f, const char *text, uint64_t min, const char *where)
{
	uint64_t n;

	if (num_parse(text, min, 65535, &n) < 0)
		return failure_usage(f->d->why, "%s: \"%s\" is not a port from %u to 65535", where,
			text, (unsigned)min);
	set_port(f, (unsigned)n, where);
	return 0;
}

static int from_endpoint(struct master_search *f)
{
	const char *where = settings_where(f->d->s, SET_RDZV_ENDPOINT);
	const char *text = settings_text(f->d->s, SET_RDZV_ENDPOINT), *port;
	bool c10d = asks_c10d(f->d->s);

	if (endpoint_check(where, text, f->d->why) < 0)
		return f->d->why->code;
	if (endpoint_split(f->d->s->arena, text, &f->m.addr, &port) < 0)
		return failure_usage(
			f->d->why, "%s: \"%s\" is not HOST[:PORT] or [IPV6]:PORT", where, text);
	f->m.addr_from = where;
	if (port &&
		parse_port(f, port, 0, arena_printf(f->d->s->arena, "%s: \"%s\"", where, text)) < 0)
		return f->d->why->code;
	if (port)
		f->m.port_from = where;
	if (port && text[0] != '[' && strchr(f->m.addr, ':'))
		notes_add(f->d->notes, NOTE_INFO,
			"%s: \"%s\" is read as port %u of %s; write [%s]:%u to make that clear",
			where, text, f->m.port, f->m.addr, f->m.addr, f->m.port);
	if (!port && c10d)
		set_port(f, PORT_C10D, where);
	if (c10d)
		f->m.meet_port = f->m.port, f->m.meet_from = where;
	return 0;
}

/* 2. What is given, of the two spellings the one of the higher level. */
static int from_given(struct master_search *f)
{
	const struct value *addr = &f->d->s->value[SET_MASTER_ADDR];
	const struct value *endpoint = &f->d->s->value[SET_RDZV_ENDPOINT];
	const struct value *local = &f->d->s->value[SET_LOCAL_ADDR];
	bool has_addr = addr->from.level > LEVEL_ENVIRONMENT;
	bool has_endpoint = endpoint->from.level > LEVEL_ENVIRONMENT && *endpoint->text;
	bool c10d = asks_c10d(f->d->s);
	int rc = 0;

	if (has_endpoint && (!has_addr || endpoint->from.level >= addr->from.level))
		rc = from_endpoint(f);
	if (rc < 0)
		return rc;
	if (has_addr && f->m.addr && strcmp(f->m.addr, addr->text) != 0)
		notes_add(f->d->notes, NOTE_WARNING, "%s=%s is overridden by %s, as with torchrun",
			addr->from.where, addr->text, endpoint->from.where);
	if (has_addr && !f->m.addr)
		set_addr(f, addr->text, addr->from.where);
	/* on several nodes it is what this node tells the others of itself */
	if (local->from.level > LEVEL_DEFAULT && one_node(f) &&
		(!f->m.addr || (has_endpoint && c10d)))
		set_addr(f, local->text, local->from.where);
	return 0;
}

/* The first node of a list, which is given or else fills a gap. */
static void from_list(struct master_search *f, const struct launcher *launcher, bool given)
{
	bool above;
	const struct listed_nodes *list = listed_nodes(f->d, launcher, &above);

	if (list && above == given && !f->m.addr && !one_node(f))
		set_addr(f, list->hosts.at[0].name, list->hosts.at[0].where);
}

/* Whether all launchers of the job run on this host. */
static int find_one_host(const struct master_search *f, const struct launcher *launcher, bool *ret)
{
	const char *name = launcher_variable(launcher->local_size, f->d->facts->env);
	uint64_t n = 0;

	if (name && !launcher->slurm_lists && num_parse(variable(f, name), 1, UINT32_MAX, &n) < 0)
		return failure_usage(f->d->why, "%s: \"%s\" is not a whole number above 0", name,
			variable(f, name));
	if (launcher->pmix_size)
		n = f->d->facts->task.local_size;
	*ret = n == f->id->nnodes;
	return 0;
}

static bool is_loopback(const char *addr)
{
	struct address a;

	return strcmp(addr, "localhost") == 0 ||
		(address_parse(addr, 0, &a) == 0 && address_is_loopback(&a));
}

/* The address of a job on one host. */
static const char *own_loopback(const struct master_search *f)
{
	return f->d->facts->loopback == LOOPBACK_V6 ? "::1" : "127.0.0.1";
}

/* Workers would hang. But one alone, or programs on one node, may never use the address that
 * launchd has chosen.
 */
static int check_loopback(const struct master_search *f, unsigned nproc)
{
	static const char *const here[] = { "", ": ::1 is",
		": it has no loopback address at all (ip link set lo up)" };
	enum loopback is = f->d->facts->loopback;
	struct address a;

	if (!f->m.addr || address_parse(f->m.addr, 0, &a) < 0 || !address_is_loopback(&a) ||
		is == LOOPBACK_V4 || (is == LOOPBACK_V6 && a.any.sa_family == AF_INET6))
		return 0;
	if ((f->m.addr_from == by_one_node || settings_flag(f->d->s, SET_STANDALONE)) &&
		(nproc == 1 || !f->d->facts->torch_version)) {
		notes_add(f->d->notes, NOTE_WARNING,
			"this host has no loopback address (ip link set lo up): workers can't meet at %s",
			f->m.addr);
		return 0;
	}
	return failure_usage(f->d->why, "the master address, %s (%s), is no address of this host%s",
		f->m.addr, f->m.addr_from, here[is]);
}

/* 3. Azure ML: one node where all launchers of the job run on this host. */
static int from_azure(struct master_search *f, bool one_host)
{
	const char *const *env = f->d->facts->env;
	const char *batch = variable(f, "AZ_BATCH_MASTER_NODE"), *from = "AZ_BATCH_MASTER_NODE";
	const char *node = variable(f, "AZ_BATCHAI_MPI_MASTER_NODE");
	const char *port = master_port(f), *ignored;

	if (!env_has_prefix(env, "AZ_") && !env_has_prefix(env, "AZUREML_"))
		return 0;
	if (one_host) {
		set_addr(f, node ? node : own_loopback(f),
			node ? "AZ_BATCHAI_MPI_MASTER_NODE" : ONE_HOST);
		set_port(f, PORT_AZURE_ONE_NODE, "Azure ML's rule for one node");
		return 0;
	}
	if (!batch && node && !is_loopback(node))
		batch = node, from = "AZ_BATCHAI_MPI_MASTER_NODE";
	if (!batch)
		return 0;
	if (endpoint_split(f->d->s->arena, batch, &f->m.addr, &ignored) < 0)
		return failure_usage(f->d->why, "%s: \"%s\" is not HOST[:PORT]", from, batch);
	f->m.addr_from = from;
	if (port)
		return parse_port(f, port, 1, "MASTER_PORT");
	set_port(f, PORT_AZURE, "Azure ML's rule");
	return 0;
}

static bool is_this_host(const struct master_search *f, const char *addr)
{
	const char *hostname = f->d->facts->hostname;
	size_t label = strcspn(hostname, ".");
	struct address a;

	if (address_parse(addr, 0, &a) == 0)
		return address_find_host(&f->d->facts->addresses, &a) ||
			(a.any.sa_family == AF_INET && address_is_loopback(&a));
	/* with or without its domain; names are not resolved, as that can take minutes */
	return strcmp(addr, "localhost") == 0 ||
		(label > 0 && strncmp(addr, hostname, label) == 0 &&
			(addr[label] == '\0' ||
				(addr[label] == '.' &&
					(hostname[label] == '\0' || strcmp(addr, hostname) == 0))));
}

/* 4. */
static int from_environment(struct master_search *f)
{
	const char *addr = variable(f, "MASTER_ADDR"), *port;
	const char *host = addr, *ignored;

	if (inside_worker(f->d->facts->env) || f->d->s->as_torchrun)
		return 0;
	port = master_port(f);
	if (!addr && port)
		notes_add(f->d->notes, NOTE_VERBOSE,
			"MASTER_PORT=%s is ignored because MASTER_ADDR is not set", port);
	if (!addr)
		return 0;
	(void)endpoint_split(f->d->s->arena, addr, &host, &ignored);
	if (one_node(f) && !is_this_host(f, host)) {
		notes_add(f->d->notes, NOTE_INFO,
			"MASTER_ADDR=%s is not this host (%s), so it is ignored: the job has one node",
			addr, f->d->facts->hostname);
		return 0;
	}
	set_addr(f, addr, "MASTER_ADDR");
	return port ? parse_port(f, port, 1, "MASTER_PORT") : 0;
}

/* 5. */
static void from_system_file(struct master_search *f)
{
	const struct value *addr = &f->d->s->value[SET_MASTER_ADDR];

	if (addr->from.level != LEVEL_SYSTEM_FILE)
		return;
	set_addr(f, addr->text, addr->from.where);
}

/* Slurm's list is sorted: it has the order of ranks where each node has one task and the numbers
 * agree. */
static bool has_order(const struct master_search *f, const struct launcher *l)
{
	const char *how = variable(f, "SLURM_DISTRIBUTION"), *node = variable(f, l->node);
	const char *nodes = variable(f, l->nodes);
	uint64_t n;

	if (how && strncmp(how, "arbitrary", strlen("arbitrary")) == 0)
		return false;
	return !node || !nodes || num_parse(nodes, 1, UINT32_MAX, &n) < 0 || n != f->id->nnodes ||
		num_parse(node, 0, UINT32_MAX, &n) < 0 || n == f->id->node_rank;
}

/* 6. What the launcher or the platform says, or its first host. */
static void from_launcher(struct master_search *f, const struct launcher *l)
{
	const char *const *env = f->d->facts->env;
	const char *name = launcher_variable(l->addr, env), *list, *host;
	struct arena *arena = f->d->s->arena;
	size_t len;

	if (name) {
		set_addr(f, variable(f, name), name);
		return;
	}
	for (size_t i = 0; l->hosts[i] && !f->m.addr; i++) {
		list = variable(f, l->hosts[i]);
		if (!list || (l->slurm_lists && !has_order(f, l)))
			continue;
		host = l->slurm_lists ? hostlist_first(arena, list) : launcher_host(list, 0, &len);
		if (host && *host)
			set_addr(f, l->slurm_lists ? host : arena_strndup(arena, host, len),
				l->hosts[i]);
	}
}

/* The launchers meet where no other job's do: at a port below the kernel's own range (32768 up)
 * that follows from the job's id. Numbers of mpiruns that were started one after the other are
 * close, as they are made of pids, and remain different modulo a prime. Worker 0 gets a free port,
 * unless nobody is to meet. */
static void meet_at_job_port(struct master_search *f, const struct launcher *launcher)
{
	enum { FIRST = 16384, PORTS = 16381 };
	/* "3267297281", "prterun-host-4711@1" */
	const char *job = launcher_job(launcher, f->d->facts->env);
	unsigned n = 0;

	if (launcher->job_by_parent)
		job = arena_printf(f->d->s->arena, "%d", f->d->facts->parent);
	if (!job)
		return;
	for (; *job; job++)
		if (*job >= '0' && *job <= '9')
			n = (n * 10 + (unsigned)(*job - '0')) % PORTS;
	f->m.meet_port = FIRST + n;
	f->m.meet_from = arena_printf(f->d->s->arena,
		launcher->job_by_parent ? "%s's proxy" : "%s's job id", launcher->name);
	set_port(f, f->m.meet_port, f->m.meet_from);
}

/* The host that mpirun itself runs on. Open MPI 4:
 * "3267297280.0;tcp://10.0.0.4,10.1.0.4:40001;tcp6:..." has its addresses; 5: "prterun-HOST-4711@1"
 * its name. NULL: it doesn't say. */
static const char *mpirun_host(const struct master_search *f, const char **ret_from)
{
	static const char tcp[] = ";tcp://", job_name[] = "prterun-";
	const char *uri = variable(f, "OMPI_MCA_orte_hnp_uri");
	const char *job = variable(f, "PMIX_NAMESPACE");
	const char *at = uri ? strstr(uri, tcp) : NULL, *end;

	if (at) {
		at += sizeof tcp - 1;
		*ret_from = "OMPI_MCA_orte_hnp_uri";
		return arena_strndup(f->d->s->arena, at, strcspn(at, ",:"));
	}
	if (!job || strncmp(job, job_name, sizeof job_name - 1) != 0)
		return NULL;
	at = job + sizeof job_name - 1;
	end = strrchr(at, '-');
	*ret_from = "PMIX_NAMESPACE";
	return end ? arena_strndup(f->d->s->arena, at, (size_t)(end - at)) : NULL;
}

/* 8. Right where rank 0 runs beside mpirun, which is mostly so; rank 0 looks. */
static int from_mpirun_host(struct master_search *f, const struct launcher *launcher)
{
	const char *from, *host = mpirun_host(f, &from);

	if (!host || !*host)
		return 0;
	if (f->id->node_rank == 0 && !is_this_host(f, host))
		return failure_usage(f->d->why,
			"mpirun runs on %s (%s) and rank 0 on another host, %s: give --master_addr "
			"to all launchers, the address of rank 0's host, as PMIx is left to the "
			"workers",
			host, from, f->d->facts->hostname);
	set_addr(f, host, from);
	meet_at_job_port(f, launcher);
	return 0;
}

static int no_address(const struct identity *id, bool c10d, bool reads, struct failure *why)
{
	return failure_usage(why, "the job has %u nodes (%s), but %s", id->nnodes, id->nnodes_from,
		c10d ? "no address to meet at: give all nodes --rdzv-endpoint HOST:PORT, the address "
		       "of one of them" :
			reads ?
		       "no address of node rank 0: give --master_addr to all nodes, or set "
		       "MASTER_ADDR" :
		       "no address of node rank 0: give --master_addr to all nodes");
}

/* What is there and can't be used. */
static int refuse_address(const struct master_search *f, const struct launcher *l)
{
	const char *batchai = variable(f, "AZ_BATCHAI_MPI_MASTER_NODE");
	const char *how = variable(f, "SLURM_DISTRIBUTION");
	const struct identity *id = f->id;

	if (l->azure && batchai && is_loopback(batchai))
		return failure_usage(f->d->why,
			"AZ_BATCHAI_MPI_MASTER_NODE=%s is no address for %u nodes (%s): give --master_addr to all nodes",
			batchai, id->nnodes, id->nnodes_from);
	if (l->slurm_lists && id->by_launcher && !has_order(f, l))
		return failure_usage(f->d->why,
			"%s%s: Slurm's list of nodes is sorted, and task 0 may run on any of them: start the tasks with srun --mpi=pmix or --mpi=pmi2, or give --master_addr to all nodes, the address of task 0's",
			how ? "SLURM_DISTRIBUTION=" : l->node, how ? how : " is not SLURM_PROCID");
	if (l->kind == LAUNCHER_TASK)
		return failure_usage(f->d->why,
			"the job has %u nodes (%s), of which this is one (%s), but %s gives no address of node rank 0: give --master_addr to all nodes%s",
			id->nnodes, id->nnodes_from, id->node_rank_from, l->name,
			f->d->s->as_torchrun ? "" : ", or set MASTER_ADDR");
	return no_address(id, asks_c10d(f->d->s), !f->d->s->as_torchrun, f->d->why);
}

static int find_address(struct master_search *f, const struct launcher *launcher)
{
	const struct launcher *platform = NULL;
	bool one_host = false;
	int rc = from_given(f);

	if (rc == 0)
		from_list(f, launcher, true);
	if (rc == 0 && launcher->kind == LAUNCHER_TASK && !f->m.addr)
		rc = find_one_host(f, launcher, &one_host);
	if (rc == 0 && launcher->azure && !f->m.addr)
		rc = from_azure(f, one_host);
	if (rc == 0 && !f->m.addr)
		rc = from_environment(f);
	if (rc < 0)
		return rc;
	if (!f->m.addr)
		from_system_file(f);
	from_list(f, launcher, false);
	if (!f->m.addr && !one_node(f)) {
		if (f->id->by_launcher)
			from_launcher(f, launcher);
		while (!f->m.addr && (platform = platform_of(f->d->facts->env, platform)))
			from_launcher(f, platform);
		f->m.by_list = f->m.addr;
	}
	if (!f->m.addr && one_node(f))
		set_addr(f, own_loopback(f), by_one_node);
	if (!f->m.addr && one_host) {
		set_addr(f, own_loopback(f), ONE_HOST);
		meet_at_job_port(f, launcher);
	}
	if (!f->m.addr && launcher->own_host && f->id->by_launcher &&
		mpi_env_of(f->d->s) == MPI_ENV_KEEP && from_mpirun_host(f, launcher) < 0)
		return f->d->why->code;
	if (f->m.addr)
		return address_check(
			f->m.addr_from, f->m.addr, f->d->s->arena, &f->m.addr, f->d->why);
	f->m.addr_from = BY_MEETING;
	return f->will_meet ? 0 : refuse_address(f, launcher);
}

/* Jobs share nodes: each has a port of its own, and the one above it, below the kernel's range. */
static unsigned port_of(const char *job)
{
	enum { FIRST = 16384, PAIRS = 8191 };
	static const uint8_t key[SIPHASH_KEY_SIZE + 1] = "launchd's ports.";

	return FIRST + 2 * (unsigned)(siphash(key, (const uint8_t *)job, strlen(job)) % PAIRS);
}

static int find_port(struct master_search *f, const struct launcher *launcher, const char *job)
{
	const struct value *port = &f->d->s->value[SET_MASTER_PORT];
	const struct value *endpoint = &f->d->s->value[SET_RDZV_ENDPOINT];
	bool by_endpoint = f->m.port_from && f->m.port_from == endpoint->from.where;
	bool given = port->from.level > LEVEL_ENVIRONMENT;

	if (given && by_endpoint && port->from.level <= endpoint->from.level &&
		port->number != f->m.port)
		notes_add(f->d->notes, NOTE_WARNING, "%s=%s is overridden by %s, as with torchrun",
			port->from.where, port->text, endpoint->from.where);
	if (given && (!by_endpoint || port->from.level > endpoint->from.level))
		set_port(f, (unsigned)port->number, port->from.where);
	if (!f->m.port_from && port->from.level == LEVEL_SYSTEM_FILE)
		set_port(f, (unsigned)port->number, port->from.where);
	if (!f->m.port_from && one_node(f))
		set_port(f, 0, "one node: a free port");
	else if (!f->m.port_from && f->m.addr && launcher->own_ports && job)
		set_port(f, port_of(job), job);
	else if (!f->m.port_from && f->m.addr)
		set_port(f, PORT_TORCHRUN, "default");
	else if (!f->m.port_from)
		set_port(f, 0, BY_MEETING);
	if (f->m.port == 0 && !one_node(f) && !f->will_meet)
		return failure_usage(f->d->why,
			"%s: port 0 means a free one, which the other nodes can't know: give a "
			"number above 0",
			f->m.port_from);
	return 0;
}

static void standalone(struct master_search *f)
{
	static const enum setting_id overridden[] = { SET_MASTER_ADDR, SET_MASTER_PORT,
		SET_RDZV_ENDPOINT, SET_RDZV_ID, SET_LOCAL_ADDR, SET_CLUSTER_NODES,
		SET_CLUSTER_HOSTFILE };
	const char *where = settings_where(f->d->s, SET_STANDALONE);

	for (size_t i = 0; i < sizeof overridden / sizeof *overridden; i++)
		if (f->d->s->value[overridden[i]].from.level > LEVEL_ENVIRONMENT)
			notes_add(f->d->notes, NOTE_WARNING, "%s is overridden by %s%s",
				settings_where(f->d->s, overridden[i]), where,
				setting_rows[overridden[i]].original ? ", as with torchrun" : "");
	f->m = (struct master){ own_loopback(f), 0, where, where, false, 0, NULL };
}

int master_find(
	const struct deciding *d, const struct topology *t, bool will_meet, struct master *ret)
{
	struct master_search f = { d, &t->identity, will_meet, { 0 } };
	int rc = 0;

	if (settings_flag(d->s, SET_STANDALONE))
		standalone(&f);
	else
		rc = find_address(&f, t->launcher);
	if (rc == 0 && !settings_flag(d->s, SET_STANDALONE))
		rc = find_port(&f, t->launcher, t->job);
	if (rc == 0)
		rc = check_loopback(&f, t->nproc);
	if (rc < 0)
		return rc;
	*ret = f.m;
	return arena_failed(d->s->arena) ? failure_oom(d->why) : 0;
}

int topology_met(struct topology *t, const struct meeting_facts *met, struct failure *why)
{
	struct master *m = &t->master;
	bool several = t->identity.nnodes > 1;

	if (!m->addr && !met->addr)
		return no_address(&t->identity, false, true, why);
	if (several && m->port == 0 && met->port == 0)
		return failure_usage(why,
			"%s: node rank 0 has sent no port for worker 0: give --master_port",
			m->port_from);
	if (!t->identity.node_rank_known) {
		t->identity.node_rank = met->node_rank;
		t->identity.node_rank_known = true;
	}
	if (met->addr)
		m->addr = met->addr;
	if (met->port && several && (m->port == 0 || t->control.takes_master_port)) {
		m->port = met->port;
		m->port_from = BY_MEETING;
	}
	t->met = true;
	return 0;
}
