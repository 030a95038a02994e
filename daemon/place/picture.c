/* picture.c - see picture.h */
#include "daemon/place/picture.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/num.h"
#include "common/text.h"
#include "common/vec.h"
#include "daemon/facts/machine.h"
#include "daemon/place/near_nic.h"
#include "daemon/place/placing.h"

enum {
	CPUS_WIDTH = 40,
	CELLS = 5,
	/* in the place of a NUMA node, besides MACHINE_NOWHERE: there is none */
	SEVERAL = -2,
	UNBOUND = -3,
	INDENT = 6, /* of rows below a NUMA node */
};

struct drawing {
	const struct picture *p;
	const struct machine *m;
	struct arena *arena;
	struct vec *lines;
};

/* Rows whose cells stand below one another; what comes last need not fit into the width. */
struct row {
	const char *cells[CELLS];
	const char *last; /* NULL: none */
};

struct rows {
	struct row *at;
	size_t count;
};

static const char *plural(unsigned long n)
{
	return n == 1 ? "" : "s";
}

/* The same distance between all numbers, above 1; 0: it isn't. */
static unsigned stride_of(const struct bits *b)
{
	int first = bits_next(b, 0), second = first < 0 ? -1 : bits_next(b, (unsigned)first + 1);
	int stride = second - first;

	for (int n = second, next; stride > 1 && n >= 0; n = next) {
		next = bits_next(b, (unsigned)n + 1);
		if (next >= 0 && next - n != stride)
			return 0;
	}
	return second >= 0 && stride > 1 ? (unsigned)stride : 0;
}

const char *picture_cpus(const struct bits *cpus, struct arena *arena)
{
	const char *all = bits_text(cpus, arena);
	unsigned stride = stride_of(cpus), last = 0;
	size_t cut = CPUS_WIDTH;

	if (strlen(all) <= CPUS_WIDTH)
		return all;
	for (int n = bits_next(cpus, 0); n >= 0; n = bits_next(cpus, last + 1))
		last = (unsigned)n;
	if (stride > 0)
		return arena_printf(
			arena, "%d-%u in steps of %u", bits_next(cpus, 0), last, stride);
	while (cut > 0 && all[cut] != ',')
		cut--;
	return arena_printf(arena, "%.*s,... (%u CPUs)", (int)cut, all, bits_count(cpus));
}

static void add_line(struct drawing *d, const char *line)
{
	vec_add(d->arena, d->lines, line);
}

static void add_rows(struct drawing *d, const struct rows *rows, size_t indent)
{
	size_t widths[CELLS] = { 0 };

	for (size_t i = 0; i < rows->count; i++)
		for (size_t c = 0; c < CELLS; c++)
			if (rows->at[i].cells[c] && strlen(rows->at[i].cells[c]) > widths[c])
				widths[c] = strlen(rows->at[i].cells[c]);
	for (size_t i = 0; i < rows->count; i++) {
		const struct row *r = &rows->at[i];
		struct text line = { 0 };

		text_printf(&line, "%*s", (int)indent, "");
		for (size_t c = 0; c < CELLS; c++)
			if (widths[c] > 0)
				text_printf(&line, "%-*s  ", (int)widths[c],
					r->cells[c] ? r->cells[c] : "");
		if (r->last && line.len + strlen(r->last) <= PICTURE_WIDTH)
			text_add(&line, r->last);
		while (line.len > 0 && line.at[line.len - 1] == ' ')
			line.at[--line.len] = '\0';
		add_line(d, arena_strdup(d->arena, text_string(&line)));
		if (r->last && !strstr(text_string(&line), r->last))
			add_line(d, arena_printf(d->arena, "%*s%s", (int)indent + 4, "", r->last));
		text_done(&line);
	}
}

static struct row *row_new(struct rows *rows)
{
	return &rows->at[rows->count++];
}

/* Room for so many; without any memory for none. */
static struct rows rows_make(struct drawing *d, size_t room)
{
	return (struct rows){ arena_alloc(d->arena, (room + 1) * sizeof(struct row)), 0 };
}

static struct bits cpus_of(const struct drawing *d, int numa, bool usable)
{
	const struct machine *m = d->m;
	unsigned most = 0;
	struct bits b;

	for (size_t i = 0; i < m->cpu_count; i++)
		most = m->cpus[i].number > most ? m->cpus[i].number : most;
	b = bits_make(d->arena, (size_t)most + 1);
	for (size_t i = 0; i < m->cpu_count; i++)
		if (m->cpus[i].numa == numa && (!usable || m->cpus[i].usable))
			bits_add(&b, m->cpus[i].number);
	return b;
}

static unsigned cores_of(const struct machine *m, int numa)
{
	unsigned count = 0;
	int last = MACHINE_NOWHERE;

	for (size_t i = 0; i < m->cpu_count; i++) {
		if (m->cpus[i].numa != numa)
			continue;
		count += m->cpus[i].core != last; /* a core's CPUs stand together */
		last = m->cpus[i].core;
	}
	return count;
}

static bool starts(const struct picture *p, unsigned local_rank)
{
	return local_rank >= p->start_first && local_rank < p->start_first + p->start_count;
}

/* The NUMA node in which a worker's CPUs are, or what stands in its place. */
static int numa_of(const struct drawing *d, unsigned local_rank)
{
	const struct bits *cpus = &d->p->placement->of[local_rank].cpus;
	int numa = UNBOUND;

	for (size_t i = 0; i < d->m->cpu_count; i++) {
		const struct machine_cpu *c = &d->m->cpus[i];

		if (!bits_have(cpus, c->number) || c->numa == numa)
			continue;
		if (numa != UNBOUND)
			return SEVERAL;
		numa = c->numa;
	}
	return numa;
}

static const char *gpu_label(const struct drawing *d, int gpu)
{
	static const char *const makers[GPU_MAKERS] = { "GPU", "AMD GPU", "Intel GPU" };
	const struct machine_gpu *g = &d->m->gpus[gpu];
	bool mixed = false;

	if (g->index == GPU_HIDDEN)
		return "a GPU not for this job";
	for (size_t i = 0; i < d->m->gpu_count; i++)
		mixed = mixed || d->m->gpus[i].maker != g->maker;
	return arena_printf(d->arena, "%s %u", mixed ? makers[g->maker] : "GPU", g->index);
}

static bool has_gpu(const struct picture *p, unsigned local_rank, int gpu)
{
	for (unsigned n = 0; p->gpus_of && n < p->per_worker; n++)
		if (p->gpus_of[local_rank * p->per_worker + n] == gpu)
			return true;
	return false;
}

/* "rank 3", "ranks 0,4"; "": nobody's. */
static const char *ranks_of_gpu(const struct drawing *d, int gpu)
{
	const struct picture *p = d->p;
	struct bits ranks = bits_make(d->arena, (size_t)p->first_rank + p->placement->count);
	unsigned first = p->ranks_known ? p->first_rank : 0;

	for (unsigned i = 0; i < p->placement->count; i++)
		if (starts(p, i) && has_gpu(p, i, gpu))
			bits_add(&ranks, first + i);
	if (bits_are_empty(&ranks))
		return "";
	return arena_printf(d->arena, "%srank%s %s", p->ranks_known ? "" : "local ",
		plural(bits_count(&ranks)), bits_text(&ranks, d->arena));
}

static const char *nic_of_gpu(const struct drawing *d, int gpu)
{
	int nic = near_nic(d->m, gpu), numa = nic < 0 ? MACHINE_NOWHERE : d->m->nics[nic].numa;

	if (nic < 0)
		return "";
	if (numa == MACHINE_NOWHERE || numa == d->m->gpus[gpu].numa)
		return arena_printf(d->arena, "NIC %s", nic_name(&d->m->nics[nic], d->arena));
	return arena_printf(d->arena, "NIC %s of NUMA node %u",
		nic_name(&d->m->nics[nic], d->arena), d->m->numas[numa].number);
}

static void add_gpus(struct drawing *d, int numa, size_t indent)
{
	struct rows rows = rows_make(d, d->m->gpu_count);

	for (size_t i = 0; rows.at && i < d->m->gpu_count; i++) {
		const struct machine_gpu *g = &d->m->gpus[i];

		if (g->numa == numa)
			*row_new(&rows) = (struct row){ { gpu_label(d, (int)i), g->bus, g->name,
								nic_of_gpu(d, (int)i) },
				ranks_of_gpu(d, (int)i) };
	}
	add_rows(d, &rows, indent);
}

/* "mlx5_0:1 (ib0)", "eth0 (down)" */
static const char *nic_shown(const struct drawing *d, const struct machine_nic *n)
{
	const char *net = n->device && n->net ? n->net : NULL;

	return arena_printf(d->arena, "%s%s%s%s%s%s", nic_name(n, d->arena),
		net || !n->up ? " (" : "", net ? net : "", net && !n->up ? ", " : "",
		n->up ? "" : "down", net || !n->up ? ")" : "");
}

static void add_nics(struct drawing *d, int numa, size_t indent)
{
	struct text line = { 0 };

	for (size_t i = 0; i < d->m->nic_count; i++) {
		const char *nic = nic_shown(d, &d->m->nics[i]);

		if (d->m->nics[i].numa != numa)
			continue;
		if (line.len > 0 && indent + line.len + strlen(nic) + 3 > PICTURE_WIDTH) {
			add_line(d,
				arena_printf(
					d->arena, "%*s%s,", (int)indent, "", text_string(&line)));
			text_drop(&line, line.len);
			text_add(&line, "     ");
		} else {
			text_add(&line, line.len > 0 ? ", " : "NICs ");
		}
		text_add(&line, nic);
	}
	if (line.len > 0)
		add_line(d, arena_printf(d->arena, "%*s%s", (int)indent, "", text_string(&line)));
	text_done(&line);
}

static const char *memory_of(const struct drawing *d, const struct worker_place *w)
{
	const char *nodes = bits_text(&w->nodes, d->arena);

	if (w->memory == MEMORY_LEFT)
		return "";
	return arena_printf(
		d->arena, "memory %s%s%s", memory_word(w->memory), *nodes ? " " : "", nodes);
}

static const char *gpus_of_worker(const struct drawing *d, unsigned local_rank)
{
	const struct picture *p = d->p;
	const char *list = "";

	for (unsigned n = 0; p->gpus_of && n < p->per_worker; n++) {
		int gpu = p->gpus_of[local_rank * p->per_worker + n];

		if (gpu != MACHINE_NOWHERE)
			list = arena_printf(
				d->arena, "%s%s%s", list, *list ? ", " : "", gpu_label(d, gpu));
	}
	return list;
}

static const char *cpus_labelled(const struct drawing *d, const struct bits *cpus)
{
	return arena_printf(
		d->arena, "CPU%s %s", plural(bits_count(cpus)), picture_cpus(cpus, d->arena));
}

/* Those of one NUMA node, or of what stands in its place. */
static void add_workers(struct drawing *d, int numa, size_t indent)
{
	const struct picture *p = d->p;
	struct rows rows = rows_make(d, p->placement->count);

	for (unsigned i = 0; rows.at && i < p->placement->count; i++) {
		const struct worker_place *w = &p->placement->of[i];
		struct row *r;

		if (!starts(p, i) || numa_of(d, i) != numa)
			continue;
		r = row_new(&rows);
		r->cells[0] =
			arena_printf(d->arena, "%s %u", p->ranks_known ? "rank" : "local rank",
				(p->ranks_known ? p->first_rank : 0) + i);
		r->cells[1] = bits_are_empty(&w->cpus) ? "any CPU" : cpus_labelled(d, &w->cpus);
		r->cells[2] = memory_of(d, w);
		r->cells[3] = gpus_of_worker(d, i);
		r->last = bits_are_empty(&w->cpus) ? NULL : w->why;
	}
	add_rows(d, &rows, indent);
}

static const char *memory_size(const struct drawing *d, uint64_t bytes)
{
	const uint64_t gib = 1ull << 30;

	if (bytes == 0)
		return "memory unknown";
	if (bytes >= gib)
		return arena_printf(
			d->arena, "%llu GiB", (unsigned long long)((bytes + gib / 2) / gib));
	return arena_strdup(d->arena, num_size(bytes).text);
}

static void add_numa(struct drawing *d, size_t index)
{
	const struct machine_numa *n = &d->m->numas[index];
	struct bits all = cpus_of(d, (int)index, false), usable = cpus_of(d, (int)index, true);
	unsigned cores = cores_of(d->m, (int)index);
	const char *limited = "";

	if (bits_are_empty(&usable))
		limited = ", not for this job";
	else if (bits_count(&usable) < bits_count(&all))
		limited = arena_printf(
			d->arena, ", of which %s for this job", picture_cpus(&usable, d->arena));
	add_line(d,
		arena_printf(d->arena, "  NUMA node %u: %u core%s, %s%s, %s", n->number, cores,
			plural(cores), cpus_labelled(d, &all), limited,
			memory_size(d, n->memory_bytes)));
	add_gpus(d, (int)index, INDENT);
	add_nics(d, (int)index, INDENT);
	add_workers(d, (int)index, INDENT);
}

/* Of GPUs and CXL: those that are alike, and follow one another, in one line. Returns the last. */
static size_t add_bare_numas(struct drawing *d, size_t first)
{
	const struct machine_numa *n = d->m->numas;
	size_t last = first;

	while (last + 1 < d->m->numa_count && !n[last + 1].has_cpus &&
		n[last + 1].package == n[first].package &&
		n[last + 1].memory_bytes == n[first].memory_bytes &&
		n[last + 1].number == n[last].number + 1)
		last++;
	add_line(d,
		last == first ?
			arena_printf(d->arena, "  NUMA node %u: no CPUs, %s", n[first].number,
				n[first].memory_bytes ? memory_size(d, n[first].memory_bytes) :
							"no memory") :
			arena_printf(d->arena, "  NUMA nodes %u-%u: no CPUs, %s%s", n[first].number,
				n[last].number,
				n[first].memory_bytes ? memory_size(d, n[first].memory_bytes) :
							"no memory",
				n[first].memory_bytes ? " each" : ""));
	return last;
}

static void add_package(struct drawing *d, int package)
{
	bool titled = false;

	for (size_t i = 0; i < d->m->numa_count; i++) {
		if (d->m->numas[i].package != package)
			continue;
		if (!titled && package != MACHINE_NOWHERE)
			add_line(d, arena_printf(d->arena, "socket %d", package));
		else if (!titled && d->m->package_count > 0)
			add_line(d, "outside of the sockets");
		titled = true;
		if (d->m->numas[i].has_cpus)
			add_numa(d, i);
		else
			i = add_bare_numas(d, i);
	}
}

static void add_title(struct drawing *d)
{
	const struct machine *m = d->m;
	unsigned long each = m->core_count ? m->cpu_count / m->core_count : 0;
	const char *quota = m->quota ?
		arena_printf(d->arena, "; the cgroup allows %s CPUs", num_seconds(m->quota).text) :
		"";

	const char *devices = !m->devices_read ?
		"" :
		arena_printf(d->arena, ", %zu GPU%s, %zu NIC%s", m->gpu_count, plural(m->gpu_count),
			m->nic_count, plural(m->nic_count));

	add_line(d,
		arena_printf(d->arena, "%u socket%s, %zu NUMA node%s, %u core%s%s%s (%s)%s",
			m->package_count, plural(m->package_count), m->numa_count,
			plural(m->numa_count), m->core_count, plural(m->core_count),
			each > 1 ? arena_printf(d->arena, " with %lu CPUs each", each) : "",
			devices, m->from, quota));
}

/* What has no NUMA node of its own, below its title; nothing, where nothing has. */
static void add_rest(struct drawing *d, int numa, const char *title)
{
	size_t before = d->lines->count;
	struct bits cpus = cpus_of(d, numa, false);

	add_line(d, title);
	if (!bits_are_empty(&cpus))
		add_line(d, arena_printf(d->arena, "  %s", cpus_labelled(d, &cpus)));
	add_gpus(d, numa, 2);
	add_nics(d, numa, 2);
	add_workers(d, numa, 2);
	if (d->lines->count == before + 1)
		d->lines->at[--d->lines->count] = NULL;
}

void picture_lines(const struct picture *p, struct arena *arena, struct vec *ret)
{
	struct drawing d = { p, p->machine, arena, ret };
	bool ports = false;

	add_title(&d);
	for (unsigned i = 0; i < p->machine->package_count; i++)
		add_package(&d, (int)i);
	add_package(&d, MACHINE_NOWHERE);
	add_rest(&d, MACHINE_NOWHERE, "without a NUMA node");
	add_rest(&d, SEVERAL, "on several NUMA nodes");
	add_rest(&d, UNBOUND, "not bound to CPUs");
	for (size_t i = 0; i < p->machine->gpu_count; i++)
		ports = ports || near_nic(p->machine, (int)i) != MACHINE_NOWHERE;
	if (ports)
		add_line(&d,
			"A GPU's NIC is the closest port that is up: NCCL's likely choice, and --nic gpu's.");
}
