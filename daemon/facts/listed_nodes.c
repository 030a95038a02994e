/* listed_nodes.c - see listed_nodes.h */
#include "daemon/facts/listed_nodes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/vec.h"
#include "daemon/os/rehearsal.h"

enum {
	FILE_MAX_BYTES = 8 << 20, /* of a host file */
	LOOKUP_LIMIT_MS = 30000,
};

bool listed_nodes_given(const struct settings *s)
{
	return !settings_flag(s, SET_STANDALONE) &&
		(settings_given(s, SET_CLUSTER_NODES) || settings_given(s, SET_CLUSTER_HOSTFILE));
}

int host_file_read(const char *label, const char *path, struct arena *arena, struct hosts *ret,
	struct failure *why)
{
	int rc = path_answers(label, path, why);
	char *bytes;
	long len;

	if (rc < 0)
		return rc;
	bytes = malloc(FILE_MAX_BYTES);
	if (!bytes)
		return failure_oom(why);
	len = fd_read_file(path, bytes, FILE_MAX_BYTES);
	rc = len < 0 ? failure_usage(why, "%s: %s: %s", label, path, strerror((int)-len)) :
		       hosts_read_file(arena, bytes, (size_t)len, path, ret, why);
	free(bytes);
	return rc;
}

/* A name or an address that is each machine's own. */
static bool is_everyones(const struct host *h)
{
	struct address a;

	return h->is_address ? address_parse(h->name, 0, &a) == 0 && address_is_loopback(&a) :
			       strcasecmp(h->name, "localhost") == 0;
}

static int check(const struct listed_nodes *l, struct failure *why)
{
	for (size_t i = 0; l->hosts.count > 1 && i < l->hosts.count; i++)
		if (is_everyones(&l->hosts.at[i]))
			return failure_usage(why,
				"%s: %s is each node itself: give a name or an address by which "
				"the other nodes know it",
				l->hosts.at[i].where, l->hosts.at[i].name);
	return 0;
}

/* Asks for the names that may be this machine's: of several hosts that have only its first label in
 * common with it, these; else, where none has, all. */
static int look_up(const struct settings *s, const char *hostname, const struct vec *addresses,
	struct arena *arena, struct listed_nodes *l, struct failure *why)
{
	uint64_t limit_ms = settings_number(s, SET_JOIN_TIMEOUT);
	bool *wanted = arena_alloc(arena, l->hosts.count * sizeof *wanted);
	size_t names = 0;
	int rc;

	if (!wanted)
		return failure_oom(why);
	for (size_t i = 0; i < l->hosts.count; i++) {
		const struct host *h = &l->hosts.at[i];

		wanted[i] = !h->is_address &&
			(l->own.count == 0 || own_host_is(h->name, hostname) != OWN_NAME_NOT);
		names += wanted[i];
	}
	if (names == 0)
		return 0;
	if (limit_ms > LOOKUP_LIMIT_MS)
		limit_ms = LOOKUP_LIMIT_MS;
	rc = host_lookup(&l->hosts, wanted, addresses, limit_ms, arena, &l->answers, why);
	if (rc < 0)
		return rc;
	l->own = l->answers.own;
	l->asked_names = true;
	return 0;
}

int listed_nodes_read(const struct settings *s, const char *hostname, const struct vec *addresses,
	struct arena *arena, struct listed_nodes *ret, struct failure *why)
{
	/* of two that list nodes the one of the higher level: settings_check() refuses equals */
	bool file =
		s->value[SET_CLUSTER_HOSTFILE].from.level > s->value[SET_CLUSTER_NODES].from.level;
	struct listed_nodes l = { .id = file ? SET_CLUSTER_HOSTFILE : SET_CLUSTER_NODES };
	int rc;

	l.where = file ? settings_text(s, l.id) : settings_where(s, l.id);
	rc = file ? host_file_read(settings_label(s, l.id), l.where, arena, &l.hosts, why) :
		    hosts_add_list(arena, settings_text(s, l.id), l.where, &l.hosts, why);
	if (rc == 0)
		rc = check(&l, why);
	if (rc == 0 && s->value[SET_NODE_RANK].from.level <= LEVEL_ENVIRONMENT) {
		own_host_find(&l.hosts, hostname, addresses, &l.own);
		if (l.own.count == 0 || (l.own.count > 1 && !l.own.certain))
			rc = look_up(s, hostname, addresses, arena, &l, why);
	}
	if (rc == 0)
		*ret = l;
	return rc;
}
