/* picture_json.c - see picture.h */
#include "daemon/place/picture.h"

#include "common/arena.h"
#include "common/json.h"
#include "common/vec.h"
#include "daemon/facts/machine.h"
#include "daemon/place/near_nic.h"
#include "daemon/place/placing.h"

/* The kernel's number. */
static void add_node(struct json *j, const struct machine *m, int numa)
{
	json_number_if(j, "numa_node", numa != MACHINE_NOWHERE,
		numa == MACHINE_NOWHERE ? 0 : m->numas[numa].number);
}

static void add_nic_name(struct json *j, const struct machine *m, int nic, struct arena *arena)
{
	json_string(j, "nic", nic == MACHINE_NOWHERE ? NULL : nic_name(&m->nics[nic], arena));
}

static struct bits cpus_of(const struct machine *m, int numa, bool usable, struct arena *arena)
{
	struct bits b = bits_make(arena, BITS_MAX);

	for (size_t i = 0; i < m->cpu_count; i++)
		if (m->cpus[i].numa == numa && (m->cpus[i].usable || !usable))
			bits_add(&b, m->cpus[i].number);
	return b;
}

static void add_numas(struct json *j, const struct machine *m, struct arena *arena)
{
	json_array_begin(j, "numa_nodes");
	for (size_t i = 0; i < m->numa_count; i++) {
		const struct machine_numa *n = &m->numas[i];
		struct bits all = cpus_of(m, (int)i, false, arena);
		struct bits usable = cpus_of(m, (int)i, true, arena);

		json_object_begin(j, NULL);
		json_number(j, "number", n->number);
		json_number_if(j, "socket", n->package != MACHINE_NOWHERE, n->package);
		json_number_if(j, "memory_bytes", n->memory_bytes != 0, (long long)n->memory_bytes);
		json_string(j, "cpus", bits_text(&all, arena));
		json_string(j, "usable_cpus", bits_text(&usable, arena));
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_gpus(struct json *j, const struct machine *m, struct arena *arena)
{
	static const char *const makers[GPU_MAKERS] = { "NVIDIA", "AMD", "Intel" };

	if (!m->devices_read) {
		json_string(j, "gpus", NULL);
		return;
	}
	json_array_begin(j, "gpus");
	for (size_t i = 0; i < m->gpu_count; i++) {
		const struct machine_gpu *g = &m->gpus[i];

		json_object_begin(j, NULL);
		json_string(j, "maker", makers[g->maker]);
		json_number_if(j, "index", g->index != GPU_HIDDEN, g->index);
		json_string(j, "bus", g->bus);
		json_string(j, "name", g->name);
		json_string(j, "uuid", g->uuid);
		add_node(j, m, g->numa);
		add_nic_name(j, m, near_nic(m, (int)i), arena);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_nics(struct json *j, const struct machine *m, struct arena *arena)
{
	if (!m->devices_read) {
		json_string(j, "nics", NULL);
		return;
	}
	json_array_begin(j, "nics");
	for (size_t i = 0; i < m->nic_count; i++) {
		json_object_begin(j, NULL);
		json_string(j, "name", nic_name(&m->nics[i], arena));
		json_string(j, "interface", m->nics[i].net);
		json_string(j, "bus", m->nics[i].bus);
		add_node(j, m, m->nics[i].numa);
		json_bool(j, "up", m->nics[i].up);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_worker(
	struct json *j, const struct picture *p, unsigned local_rank, struct arena *arena)
{
	const struct worker_place *w = &p->placement->of[local_rank];
	const struct machine *m = p->machine;

	json_object_begin(j, NULL);
	json_number_if(j, "rank", p->ranks_known, p->first_rank + local_rank);
	json_number(j, "local_rank", local_rank);
	json_string(j, "cpus", bits_are_empty(&w->cpus) ? NULL : bits_text(&w->cpus, arena));
	json_string(j, "memory", w->memory == MEMORY_LEFT ? NULL : memory_word(w->memory));
	json_string(
		j, "memory_nodes", bits_are_empty(&w->nodes) ? NULL : bits_text(&w->nodes, arena));
	json_array_begin(j, "gpus"); /* their places in machine.gpus */
	for (unsigned n = 0; p->gpus_of && n < p->per_worker; n++) {
		int gpu = p->gpus_of[local_rank * p->per_worker + n];

		if (gpu != MACHINE_NOWHERE)
			json_number(j, NULL, gpu);
	}
	json_array_end(j);
	add_nic_name(j, m, w->nic, arena);
	json_string(j, "why", w->why);
	json_object_end(j);
}

void picture_json(const struct picture *p, struct arena *arena, struct json *j)
{
	const struct machine *m = p->machine;
	struct vec lines = { 0 };

	json_object_begin(j, "machine");
	json_string(j, "from", m->from);
	json_number(j, "sockets", m->package_count);
	json_number(j, "cores", m->core_count);
	json_number(j, "cpus", (long long)m->cpu_count);
	if (m->quota)
		json_decimal(j, "cpu_quota", m->quota, 3);
	else
		json_string(j, "cpu_quota", NULL);
	add_numas(j, m, arena);
	add_gpus(j, m, arena);
	add_nics(j, m, arena);
	json_object_end(j);
	json_array_begin(j, "workers");
	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		add_worker(j, p, i, arena);
	json_array_end(j);
	picture_lines(p, arena, &lines);
	json_strings(j, "picture", &lines);
}
