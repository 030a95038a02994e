/* control.c - where the launchers of a job meet; see topology.h */
#include "daemon/plan/topology.h"

#include "common/failure.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"

enum { PORT_MAX = 65535 };

bool pmix_is_offered(const char *const *env)
{
	return env_get(env, "PMIX_NAMESPACE") && env_get(env, "PMIX_RANK") &&
		env_has_prefix(env, "PMIX_SERVER_URI");
}

enum mpi_env mpi_env_of(const struct settings *s)
{
	if (settings_flag(s, SET_PER_PROCESS) && !settings_given(s, SET_MPI_ENV))
		return MPI_ENV_KEEP;
	return (enum mpi_env)settings_number(s, SET_MPI_ENV);
}

enum exchange exchange_of(
	const struct settings *s, const struct facts *facts, const struct topology *t)
{
	if (mpi_env_of(s) == MPI_ENV_KEEP || !t->identity.by_launcher)
		return EXCHANGE_NONE;
	if (t->launcher->pmix && pmix_is_offered(facts->env))
		return EXCHANGE_PMIX;
	return t->launcher->pmi && facts->pmi_fd ? EXCHANGE_PMI : EXCHANGE_NONE;
}

/* The address that all know, and its port. */
static int find_static(const struct deciding *d, const struct topology *t, struct control *c)
{
	const struct master *m = &t->master;

	if (c->port_given) {
		c->port = (unsigned)settings_number(d->s, SET_CONTROL_PORT);
		c->from = settings_where(d->s, SET_CONTROL_PORT);
		if (c->port == m->port && c->port != m->meet_port)
			return failure_usage(d->why,
				"%s: worker 0 listens on port %u (%s): the launchers need a different port",
				c->from, m->port, m->port_from);
	} else if (m->meet_port) {
		c->port = m->meet_port;
		c->from = m->meet_from;
	} else if (m->port == 0) {
		return 0;
	} else {
		c->port = m->port < PORT_MAX ? m->port + 1 : m->port - 1;
		c->from = m->port < PORT_MAX ? "master port + 1" : "master port - 1";
	}
	c->addr = m->addr;
	c->takes_master_port = m->addr && c->port == m->port;
	return 0;
}

/* Restarts of one node only, and a store that only one node's launcher knows, help nobody. */
static int check_off(const struct deciding *d)
{
	const char *needs = NULL;

	if (settings_given(d->s, SET_ONLY_RANK))
		return 0;
	if (settings_number(d->s, SET_MAX_RESTARTS) > 0)
		needs = settings_where(d->s, SET_MAX_RESTARTS);
	else if (settings_is(d->s, SET_STORE, "agent"))
		needs = settings_where(d->s, SET_STORE);
	return needs ?
		failure_usage(d->why,
			"%s: on several nodes this needs the control channel, which %s turns "
			"off",
			needs, settings_where(d->s, SET_CONTROL)) :
		0;
}

int control_find(const struct deciding *d, const struct topology *t, struct control *ret)
{
	struct control c = { .how = CONTROL_STATIC,
		.required = settings_is(d->s, SET_CONTROL, "required"),
		.port_given = settings_given(d->s, SET_CONTROL_PORT) };
	bool is_off = settings_is(d->s, SET_CONTROL, "off");
	int rc;

	if (t->identity.nnodes > 1 && is_off && check_off(d) < 0)
		return d->why->code;
	if (t->identity.nnodes == 1 || is_off) {
		*ret = (struct control){ .from = t->identity.nnodes == 1 ?
				t->identity.nnodes_from :
				settings_where(d->s, SET_CONTROL) };
		return 0;
	}
	c.exchange = exchange_of(d->s, d->facts, t);
	if (c.exchange != EXCHANGE_NONE)
		c.how = CONTROL_EXCHANGE;
	rc = find_static(d, t, &c);
	if (rc < 0)
		return rc;
	if (c.how == CONTROL_EXCHANGE)
		c.from = c.exchange == EXCHANGE_PMIX ? "PMIX_NAMESPACE" : "PMI_FD";
	else if (!c.addr)
		return failure_usage(d->why,
			"the job has %u nodes, but no address for their launchers to meet at: give "
			"--master_addr to all nodes",
			t->identity.nnodes);
	*ret = c;
	return 0;
}
