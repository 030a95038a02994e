/* hub_join.c - who may take part in the job, who is turned away and what is said of it; see
 * hub_parts.h */
#include "daemon/cluster/hub_parts.h"

#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/job/phrases.h"

enum {
	NPROC_MAX = 1 << 20, /* far above what a node can have */
	ID_SHOWN = 40,       /* characters of a run's id */
	NAMES_SHOWN = 16,
	BROUGHT_BACK_MS =
		2000, /* shortest silence after which a node may join again under its rank */
	NS_PER_MS = 1000000,
};

/* --- nodes that contradict one another, and launchers of other jobs --- */

/* A node whose rank is taken: either its own launcher, restarted before its first connection ended,
 * or a second one. A broken connection is its own: the kernel resets those of a launcher that was
 * killed before it had read everything, and the link waits for it to come back (rescue.h). */
static bool replaces(const struct caller *p, const struct caller *old)
{
	uint64_t quarter_ms = p->hub->party->config->node_timeout_ms / 4; /* three beats */
	uint64_t least_ms = quarter_ms > BROUGHT_BACK_MS ? quarter_ms : BROUGHT_BACK_MS;

	return strcmp(p->about.name, old->about.name) == 0 &&
		(old->link.broke_ns != 0 ||
			uv_hrtime() - old->link.heard_ns > least_ms * NS_PER_MS);
}

/* Refuses the job where p contradicts what is known. */
static bool is_contradiction(struct hub *h, const struct caller *p)
{
	unsigned rank = p->about.node_rank, nnodes = h->job.nnodes;
	const struct caller *old = rank < nnodes ? h->peers[rank] : NULL;
	bool taken = rank == h->self || (old && !replaces(p, old));
	struct text self = { 0 };

	place_add(&self, h->party->config->name, h->self);
	if (p->about.nnodes != nnodes)
		hub_refuse(h, -EINVAL,
			"%s says that the job has %u nodes, but %s says %u: give all nodes the "
			"same --nnodes",
			hub_peer(p).text, p->about.nnodes, text_string(&self), nnodes);
	else if (rank >= nnodes && rank != NODE_RANK_UNKNOWN)
		hub_refuse(h, -EINVAL, "%s has node rank %u, but the job has %u nodes",
			hub_peer(p).text, rank, nnodes);
	else if (taken)
		hub_refuse(h, -EINVAL,
			"two launchers have node rank %u: %s and %s: give each node a different "
			"--node_rank",
			rank, old ? hub_peer(old).text : text_string(&self), hub_peer(p).text);
	text_done(&self);
	return h->state >= HUB_OVER;
}

static bool differ(uint64_t ours, uint64_t theirs, bool lenient)
{
	return ours != theirs && (!lenient || (ours != 0 && theirs != 0));
}

/* Launchers that PMIx brought together are one job, even if the variable is set on one node
 * only. */
static bool is_of_another_job(const struct hub *h, const struct caller *p)
{
	const struct member_config *c = h->party->config;
	bool lenient = c->way == MEET_EXCHANGE;

	return differ(message_hash(c->run_id), p->about.run_hash, lenient) ||
		differ(message_hash(c->job), p->about.job_hash, lenient);
}

/* Each of them NULL: it has none. */
static void add_job(struct text *t, const char *run_id, const char *job)
{
	size_t len = run_id ? strlen(run_id) : 0;

	if (!run_id && !job) {
		text_add(t, "a job without --rdzv-id");
		return;
	}
	if (job)
		text_add_shown(t, job, strlen(job));
	if (!run_id)
		return;
	text_add(t, job ? ", --rdzv-id \"" : "job \"");
	text_add_shown(t, run_id, len < ID_SHOWN ? len : ID_SHOWN);
	text_add(t, len > ID_SHOWN ? "...\"" : "\"");
}

/* The job that owns this port must not end because of it. */
static void turn_away_another_job(struct hub *h, struct caller *p)
{
	const struct member_config *c = h->party->config;
	const char *theirs = p->about.run_hash != 0 ? p->about.run_id : NULL;
	struct text this_job = { 0 }, other_job = { 0 };

	add_job(&this_job, c->run_id, c->job);
	add_job(&other_job, theirs, p->about.job_hash != 0 ? p->about.job : NULL);
	if (!h->met_another_job)
		party_say(h->party, NOTE_WARNING, "a launcher of %s was turned away: %s",
			text_string(&other_job), hub_peer(p).text);
	h->met_another_job = true;
	if (c->run_id && !theirs)
		hub_turn_away(p, REFUSED_JOB, -EINVAL,
			"this port belongs to %s (--rdzv-id), and this launcher has none: give it "
			"the same one or, if it belongs to another job, another --rdzv-endpoint "
			"or --control-port",
			text_string(&this_job));
	else
		hub_turn_away(p, REFUSED_JOB, -EINVAL,
			"this port belongs to %s%s: give %s another --rdzv-endpoint or "
			"--control-port%s",
			text_string(&this_job), c->run_id ? " (--rdzv-id)" : "",
			text_string(&other_job),
			c->job && p->about.job_hash == 0 ?
				", or if they are one job the same --rdzv-id and ranks by flags to all" :
				"");
	text_done(&this_job);
	text_done(&other_job);
}

/* --- who comes when the job has begun --- */

static bool never_came(const struct hub *h, unsigned node)
{
	enum node_state state = h->job.nodes[node].state;

	if (h->late[node])
		return false;
	return state == NODE_ABSENT || (h->state < HUB_RUNNING && state == NODE_AWAITED);
}

/* Whether this can be one of the nodes that the job started without. */
static bool is_missed(const struct hub *h, const struct caller *p)
{
	unsigned rank = p->about.node_rank;

	if (p->about.nnodes != h->job.nnodes)
		return false;
	if (rank != NODE_RANK_UNKNOWN)
		return rank < h->job.nnodes && never_came(h, rank);
	for (unsigned i = 0; i < h->job.nnodes; i++)
		if (never_came(h, i))
			return true;
	return false;
}

/* Whether ranks are as a node computes them that only knows its own number of workers. */
static bool has_right_ranks(const struct hub *h, const struct caller *p)
{
	for (unsigned i = 0; i < h->job.nnodes; i++)
		if (h->nproc[i] != p->about.nproc)
			return false;
	return true;
}

static bool has_name(const struct hub *h, unsigned node, const struct caller *p)
{
	return node != h->self && strcmp(h->job.nodes[node].about.name, p->about.name) == 0;
}

static void turn_away_surplus(const struct hub *h, struct caller *p)
{
	unsigned nnodes = h->job.nnodes;
	struct text names = { 0 };

	for (unsigned i = 0; i < nnodes && i < NAMES_SHOWN; i++) {
		const char *name = h->job.nodes[i].about.name;

		text_add(&names, i > 0 ? ", " : "");
		if (*name)
			text_add_shown(&names, name, strlen(name));
		else
			text_add(&names, "one that never joined");
	}
	hub_turn_away(p, REFUSED_RUNNING, -ETIMEDOUT,
		"the job already has all of its %u nodes (%s%s)", nnodes, text_string(&names),
		nnodes > NAMES_SHOWN ? ", ..." : "");
	text_done(&names);
}

static void say_late(const struct hub *h, const struct caller *p)
{
	if (p->about.node_rank == NODE_RANK_UNKNOWN)
		party_say(h->party, NOTE_INFO, "a node arrived after --join-timeout: %s",
			hub_peer(p).text);
	else
		party_say(h->party, NOTE_INFO, "node %u arrived after --join-timeout: %s",
			p->about.node_rank, hub_peer(p).text);
}

/* Why the workers of a missing node can't start any more; NULL: they can. */
static const char *hindrance(const struct hub *h, const struct caller *p)
{
	if (h->state == HUB_RUNNING && h->job.state != JOB_RUNNING)
		return ", and is ending";
	if (!has_right_ranks(h, p))
		return ": its number of workers differs from the other nodes', so it can't tell "
		       "its ranks";
	return NULL;
}

/* A late node that knows all that its workers need may start them: the others' workers wait for
 * them, and would otherwise wait in vain. */
static void turn_away_missed(struct hub *h, struct caller *p)
{
	const char *hinders = hindrance(h, p);

	say_late(h, p);
	/* its workers start now: if its launcher comes again, new ones can't join the others */
	if (!hinders && p->about.node_rank < h->job.nnodes)
		h->late[p->about.node_rank] = true;
	hub_turn_away(p, hinders ? REFUSED_RUNNING : REFUSED_UNABLE, -ETIMEDOUT,
		"the job has started without this node, which arrived after --join-timeout%s",
		hinders ? hinders : "");
}

/* Whether a job that has lost this node's former launcher goes on all the same. */
static bool does_without(const struct hub *h, unsigned node)
{
	enum node_state state = h->job.nodes[node].state;

	return h->state == HUB_RUNNING && h->job.state == JOB_RUNNING &&
		(h->late[node] || state == NODE_ABSENT || state == NODE_LEFT);
}

/* A host may have several launchers: who comes back is one that is gone, and rather one that the
 * job can't do without. */
enum likelihood { LIKELY_NOT, LIKELY_SECOND, LIKELY_SPARED, LIKELY_LOST };

/* If it is that node's. */
static enum likelihood how_gone(const struct hub *h, unsigned node, const struct caller *p)
{
	const struct caller *old = h->peers[node];

	if (old && !replaces(p, old))
		return LIKELY_SECOND;
	return does_without(h, node) ? LIKELY_SPARED : LIKELY_LOST;
}

static enum likelihood likelihood(const struct hub *h, unsigned node, const struct caller *p)
{
	return has_name(h, node, p) ? how_gone(h, node, p) : LIKELY_NOT;
}

/* The node of the job whose launcher was started again; nnodes: none of them. */
static unsigned comes_back_as(const struct hub *h, const struct caller *p)
{
	unsigned rank = p->about.node_rank, found = h->job.nnodes;
	enum likelihood best = LIKELY_NOT;

	if (rank < h->job.nnodes && (h->late[rank] || has_name(h, rank, p)))
		return rank;
	for (unsigned i = 0; i < h->job.nnodes; i++) {
		enum likelihood likely = likelihood(h, i, p);

		if (likely > best) {
			best = likely;
			found = i;
		}
	}
	return found;
}

/* How long it lasts, where it doesn't. */
static void add_prospect(struct text *t, const struct hub *h)
{
	const struct member_config *c = h->party->config;

	if (h->state == HUB_OVER || h->job.state == JOB_STOPPING || h->job.state == JOB_OVER)
		text_printf(t, "it is ending there, and gives workers up to %s s for that",
			num_seconds(h->stop_grace_ms ? h->stop_grace_ms : c->grace_ms).text);
	else
		text_printf(t,
			"it ends there within %s s (--node-timeout), as this node's former "
			"launcher is missed, and gives workers up to %s s for that",
			num_seconds(c->node_timeout_ms).text, num_seconds(c->grace_ms).text);
}

/* A launcher that was started again while its job goes on elsewhere. It waits for that job's end,
 * and takes part in the next one: refused for good, it would be started again in vain until systemd
 * has enough of it. A node that is to rejoin a running job would be taken in here: what is known of
 * it is what a joining node says, and the others would have to begin another attempt with it. */
static void turn_away_returned(struct caller *p, unsigned node)
{
	const struct hub *h = p->hub;
	const enum likelihood gone = how_gone(h, node, p);
	struct text prospect = { 0 };

	if (gone == LIKELY_SECOND) {
		hub_turn_away(p, REFUSED_RUNNING, -ETIMEDOUT,
			"the job is already running, and node %u has a launcher in it that is "
			"alive, on this host: there is no place for a second one",
			node);
	} else if (gone == LIKELY_SPARED) {
		hub_turn_away(p, REFUSED_RUNNING, -ETIMEDOUT,
			"the job is already running, and goes on to its end without this node, "
			"which can't rejoin it");
	} else {
		add_prospect(&prospect, h);
		hub_turn_away(p, REFUSED_YET, -ETIMEDOUT,
			"this node can't rejoin its former job, which still runs on other nodes: "
			"%s",
			text_string(&prospect));
	}
	text_done(&prospect);
}

/* Without a rank it may be one that never came, or any of its name. */
static bool is_lost_one(const struct hub *h, const struct caller *p, unsigned node)
{
	return p->about.node_rank == NODE_RANK_UNKNOWN && node < h->job.nnodes &&
		likelihood(h, node, p) == LIKELY_LOST;
}

static void turn_away_late(struct caller *p)
{
	struct hub *h = p->hub;
	unsigned node = comes_back_as(h, p);

	if (is_missed(h, p) && !is_lost_one(h, p, node))
		turn_away_missed(h, p);
	else if (node < h->job.nnodes)
		turn_away_returned(p, node);
	else
		turn_away_surplus(h, p);
}

/* --- joining --- */

/* The job was refused before it came. */
static void turn_away_latecomer(struct hub *h, struct caller *p)
{
	hub_turn_away(p, REFUSED_JOB, h->refusal.code, "%s", h->refusal.text);
	if ((p->about.node_rank >= h->job.nnodes || hub_is_first(h, p)) && --h->awaited == 0)
		hub_refuse_no_more(h);
}

/* Whether p can't join: it was refused, or the whole job was. */
static bool is_turned_away(struct caller *p)
{
	struct hub *h = p->hub;

	if (is_of_another_job(h, p))
		turn_away_another_job(h, p);
	else if (h->refusal.code)
		turn_away_latecomer(h, p);
	else if (h->state != HUB_MEETING)
		turn_away_late(p);
	else
		return is_contradiction(h, p);
	return true;
}

static void check_version(struct hub *h, const struct caller *p)
{
	struct text theirs = { 0 };

	if (strcmp(p->about.version, LAUNCHD_VERSION) == 0)
		return;
	text_add_shown(&theirs, p->about.version, strlen(p->about.version));
	party_say(h->party, NOTE_WARNING, "%s runs launchd %s, this node " LAUNCHD_VERSION,
		hub_peer(p).text, text_string(&theirs));
	text_done(&theirs);
}

static const char *store_name(bool agent)
{
	return agent ? "agent" : "rank0";
}

/* Node rank 0's settings apply to the whole job. Differences are reported once here, and to each
 * node that has other settings. */
static void check_wishes(struct hub *h, struct caller *p)
{
	const struct member_config *c = h->party->config;
	bool restarts = p->about.max_restarts != c->policy.max_restarts;
	bool is_agent = p->about.store == STORE_WISH_AGENT;
	bool store = p->about.store != STORE_WISH_NONE && is_agent != c->agent_store;
	struct text t = { 0 };
	struct message m;

	if (!restarts && !store)
		return;
	text_printf(&t, "%s has ", hub_peer(p).text);
	if (restarts)
		text_printf(&t, "--max-restarts %u%s", p->about.max_restarts, store ? " and " : "");
	if (store)
		text_printf(&t, "--store %s", store_name(is_agent));
	text_printf(
		&t, ", but node rank 0's value%s: ", restarts && store ? "s apply" : " applies");
	if (restarts)
		text_printf(&t, "%u%s", c->policy.max_restarts, store ? ", " : "");
	if (store)
		text_add(&t, store_name(c->agent_store));
	if (!h->met_other_wishes)
		party_say(h->party, NOTE_WARNING, "%s", text_string(&t));
	h->met_other_wishes = true;
	m = message_waiting(text_string(&t));
	party_send(&p->link, &m);
	text_done(&t);
}

/* Without a rank it can't be told from a node that hasn't come: two launchers on a host are what
 * some want, and others have started by mistake. */
static void tell_second_on_host(struct hub *h, struct caller *p)
{
	const struct address *at = &p->link.peer_address;
	const char *name = NULL;
	struct message m;
	struct text t = { 0 };

	if (p->about.node_rank != NODE_RANK_UNKNOWN)
		return;
	if (address_is_loopback(at) || address_find_host(&h->party->config->local, at))
		name = h->party->config->name;
	for (const struct caller *q = h->all; q && !name; q = q->next)
		if (q != p && q->joined && address_same_host(&q->link.peer_address, at))
			name = q->about.name;
	if (!name)
		return;
	text_printf(&t, "%s is a second launcher on its host, beside ", hub_peer(p).text);
	text_add_shown(&t, name, strlen(name));
	text_printf(&t, "'s: it takes the place of one of the job's %u nodes", h->job.nnodes);
	party_say(h->party, NOTE_WARNING, "%s", text_string(&t));
	m = message_waiting(text_string(&t));
	party_send(&p->link, &m);
	text_done(&t);
}

/* Its launcher was restarted before we noticed that the old one is gone. */
static void replace(struct caller *old)
{
	static const char why[] = "its node has joined again";

	hub_leave_place(old, why);
	link_close(&old->link, false, why);
}

void hub_hear_join(struct caller *p, const struct message *m)
{
	struct hub *h = p->hub;
	unsigned rank = m->join.node_rank;

	if (h->state == HUB_OVER && !h->refusal.code)
		return;
	if (p->joined || m->join.nproc == 0 || m->join.nproc > NPROC_MAX) {
		link_close(&p->link, false, "it sent a malformed message");
		return;
	}
	p->about = m->join;
	if (is_turned_away(p))
		return;
	if (rank != NODE_RANK_UNKNOWN && h->peers[rank])
		replace(h->peers[rank]);
	check_version(h, p);
	check_wishes(h, p);
	tell_second_on_host(h, p);
	h->strangers--;
	p->stranger = false;
	p->joined = true;
	p->node = NODE_RANK_UNKNOWN;
	h->joined++;
	if (rank != NODE_RANK_UNKNOWN)
		hub_take_place(h, p, rank);
	hub_begin_if_complete(h);
}
