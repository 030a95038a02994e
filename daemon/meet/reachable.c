/* reachable.c - see reachable.h */
#include "daemon/meet/reachable.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "common/vec.h"
#include "common/words.h"
#include "daemon/facts/interfaces.h"

/* In the order in which they are tried. */
enum kind {
	KIND_IPV4,
	KIND_IPV6,
	KIND_INNER,
	KIND_LOOPBACK,
	KIND_COUNT,
	KIND_USELESS = KIND_COUNT
};

/* Of networks within this host. A container's own end of one is called eth0. */
static bool is_inner(const char *name)
{
	static const char *const beginnings[] = { "br-", "cali", "cilium", "cni", "docker",
		"flannel", "kube", "lxc", "lxd", "podman", "veth", "virbr", "vmnet" };

	for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static enum kind kind_of(const struct interface *i)
{
	struct address a;

	if (!i->up || address_parse(i->address, 0, &a) < 0 || address_is_link_local(&a))
		return KIND_USELESS;
	if (i->loopback)
		return KIND_LOOPBACK;
	if (is_inner(i->name))
		return KIND_INNER;
	return a.any.sa_family == AF_INET ? KIND_IPV4 : KIND_IPV6;
}

static void add_once(struct arena *arena, struct vec *v, const char *address)
{
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(v->at[i], address) == 0)
			return;
	vec_add(arena, v, address);
}

/* Adds the addresses of one kind; name NULL: of all interfaces. */
static void add_kind(struct arena *arena, const struct interfaces *all, enum kind kind,
	const char *name, size_t len, struct vec *ret)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct interface *one = &all->at[i];
		bool named = !name || (strlen(one->name) == len && !strncmp(one->name, name, len));

		if (named && kind_of(one) == kind)
			add_once(arena, ret, one->address);
	}
}

static bool is_ipv6_link_local(const struct interface *i)
{
	struct address a;

	return address_parse(i->address, 0, &a) == 0 && a.any.sa_family == AF_INET6 &&
		address_is_link_local(&a);
}

/* Those that a user would choose from: neither loopback nor networks within this host, and no
 * link-local address but where there is no other. */
static bool is_choice(const struct interfaces *all, const struct interface *one)
{
	if (one->loopback || is_inner(one->name))
		return false;
	for (size_t i = 0; is_ipv6_link_local(one) && i < all->count; i++)
		if (strcmp(all->at[i].name, one->name) == 0 && !is_ipv6_link_local(&all->at[i]))
			return false;
	return true;
}

static struct interfaces choices_of(struct arena *arena, const struct interfaces *all)
{
	struct interface *at = arena_alloc(arena, (all->count + 1) * sizeof *at);
	struct interfaces left = { .at = at };

	for (size_t i = 0; at && i < all->count; i++)
		if (is_choice(all, &all->at[i]))
			at[left.count++] = all->at[i];
	return left;
}

/* "lo (127.0.0.1, ::1), eth0 (10.0.0.1, down)": an interface's addresses stand together. */
static const char *list_all(struct arena *arena, const struct interfaces *all)
{
	struct text t = { 0 };
	const char *copy;

	for (size_t i = 0; i < all->count; i++) {
		const struct interface *one = &all->at[i];
		size_t first = 0;

		while (strcmp(all->at[first].name, one->name) != 0)
			first++;
		if (first != i)
			continue; /* told with the first one */
		text_printf(&t, "%s%s (", i > 0 ? ", " : "", one->name);
		for (size_t j = i; j < all->count; j++)
			if (strcmp(all->at[j].name, one->name) == 0)
				text_printf(&t, "%s%s", j > i ? ", " : "", all->at[j].address);
		text_add(&t, one->up ? ")" : ", down)");
	}
	copy = arena_strdup(arena, t.len > 0 ? text_string(&t) : "no interface with an address");
	text_done(&t);
	return copy;
}

static const char *list_choices(struct arena *arena, const struct interfaces *all)
{
	const struct interfaces left = choices_of(arena, all);

	return list_all(arena, &left);
}

static int choose_named(const struct interfaces *all, const struct reachable_wish *wish,
	struct arena *arena, struct vec *ret, struct failure *why)
{
	const char *list = wish->interfaces, *name;
	size_t len;

	while (*list) {
		len = list_next(&list, &name);
		for (enum kind kind = 0; len > 0 && kind < KIND_COUNT; kind++)
			add_kind(arena, all, kind, name, len, ret);
	}
	if (ret->count > 0)
		return 0;
	return failure_usage(why,
		"%s: \"%s\" names no interface of this node that is up and has an address others "
		"can reach; it has: %s",
		wish->where, wish->interfaces, list_choices(arena, all));
}

static const char *own_text(const struct interfaces *all, const struct address *a)
{
	struct address one;

	for (size_t i = 0; i < all->count; i++)
		if (address_parse(all->at[i].address, 0, &one) == 0 && address_same_host(a, &one))
			return all->at[i].address;
	return NULL;
}

static int refuse_local(const struct interfaces *all, const struct reachable_wish *wish,
	struct arena *arena, struct failure *why)
{
	struct text t = { 0 };
	struct address ignored;
	int rc;

	if (wish->local_unknown)
		return failure_usage(why,
			"%s: the name \"%s\" can't be resolved (%s); this node's addresses are: %s",
			wish->local_where, wish->local_addr, wish->local_unknown,
			list_choices(arena, all));
	if (address_parse(wish->local_addr, 0, &ignored) < 0)
		for (size_t i = 0; i < wish->meant.count; i++)
			text_printf(&t, "%s%s", i > 0 ? ", " : " (", wish->meant.at[i]);
	rc = failure_usage(why, "%s: \"%s\"%s%s is not an address of this node; it has: %s",
		wish->local_where, wish->local_addr, text_string(&t), t.len > 0 ? ")" : "",
		list_choices(arena, all));
	text_done(&t);
	return rc;
}

/* What --local-addr means of this node. *ret stays empty for a name that is loopback alone. */
static int choose_local(const struct interfaces *all, const struct reachable_wish *wish,
	struct arena *arena, struct vec *ret, struct failure *why)
{
	struct address a;
	struct vec outside = { 0 }, loopback = { 0 };
	bool is_number = address_parse(wish->local_addr, 0, &a) == 0;

	for (size_t i = 0; i < wish->meant.count; i++) {
		if (address_parse(wish->meant.at[i], 0, &a) < 0)
			continue;
		if (address_is_loopback(&a))
			vec_add(arena, &loopback, wish->meant.at[i]);
		else if (own_text(all, &a))
			add_once(arena, &outside, own_text(all, &a));
	}
	if (outside.count == 0 && loopback.count == 0)
		return refuse_local(all, wish, arena, why);
	if (outside.count > 0)
		*ret = outside;
	else if (is_number || strcmp(wish->local_addr, "localhost") == 0)
		*ret = loopback;
	return 0;
}

static int choose_all(const struct interfaces *all, bool loopback, struct arena *arena,
	struct vec *ret, struct failure *why)
{
	for (enum kind kind = 0; kind < KIND_COUNT; kind++)
		if (kind != KIND_LOOPBACK || loopback)
			add_kind(arena, all, kind, NULL, 0, ret);
	if (ret->count > 0)
		return 0;
	return failure_set(why, -EADDRNOTAVAIL,
		"this node has no address that others can reach (--interface and --local-addr say "
		"which to use); it has: %s",
		list_all(arena, all));
}

int reachable_choose(const struct interfaces *all, const struct reachable_wish *wish,
	struct arena *arena, struct vec *ret, struct failure *why)
{
	struct vec found = { 0 };
	int rc = 0;

	if (wish->local_addr && *wish->local_addr)
		rc = choose_local(all, wish, arena, &found, why);
	else if (wish->interfaces && *wish->interfaces)
		rc = choose_named(all, wish, arena, &found, why);
	if (rc == 0 && found.count == 0)
		rc = choose_all(all, wish->one_host, arena, &found, why);
	if (arena_failed(arena))
		return failure_oom(why);
	if (rc == 0)
		*ret = found;
	return rc;
}
