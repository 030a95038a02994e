/* near_nic.c - see near_nic.h */
#include "daemon/place/near_nic.h"

#include <limits.h>
#include <stdbool.h>

#include "common/arena.h"
#include "daemon/facts/machine.h"

static unsigned distance(const struct machine *m, size_t gpu, size_t nic)
{
	return m->gpu_nic_distance[gpu * m->nic_count + nic];
}

static bool is_port(const struct machine_nic *nic)
{
	return nic->device && nic->up;
}

/* UINT_MAX: there is no port. */
static unsigned least(const struct machine *m, size_t gpu)
{
	unsigned best = UINT_MAX;

	for (size_t i = 0; i < m->nic_count; i++)
		if (is_port(&m->nics[i]) && distance(m, gpu, i) < best)
			best = distance(m, gpu, i);
	return best;
}

static bool is_near(const struct machine *m, size_t gpu, size_t nic)
{
	return is_port(&m->nics[nic]) && distance(m, gpu, nic) == least(m, gpu);
}

static bool are_near_the_same(const struct machine *m, size_t a, size_t b)
{
	for (size_t i = 0; i < m->nic_count; i++)
		if (is_near(m, a, i) != is_near(m, b, i))
			return false;
	return true;
}

int near_nic(const struct machine *m, int gpu)
{
	size_t of = (size_t)gpu, before = 0, ports = 0;

	if (gpu < 0 || !m->gpu_nic_distance || least(m, of) == UINT_MAX)
		return MACHINE_NOWHERE;
	for (size_t g = 0; g < of; g++)
		before += are_near_the_same(m, g, of);
	for (size_t i = 0; i < m->nic_count; i++)
		ports += is_near(m, of, i);
	if (ports == 0)
		return MACHINE_NOWHERE;
	before %= ports;
	for (size_t i = 0; i < m->nic_count; i++)
		if (is_near(m, of, i) && before-- == 0)
			return (int)i;
	return MACHINE_NOWHERE;
}

const char *nic_name(const struct machine_nic *nic, struct arena *arena)
{
	if (nic->device)
		return arena_printf(arena, "%s:%u", nic->device, nic->port);
	return nic->net ? nic->net : "?";
}
