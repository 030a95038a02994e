/* machine_fixture.c - see machine_fixture.h */
#include "tests/unit/daemon/place/machine_fixture.h"

#include <string.h>

#include "common/arena.h"
#include "tests/unit/daemon/place/models.h"

enum { MORE_MAX = 32 };

struct machine machine_make(
	struct arena *a, unsigned packages, unsigned numas, unsigned cores, unsigned threads)
{
	const struct model model = { packages, numas, 1, cores, threads, "", NULL, NULL, NULL, 0 };
	struct machine m = model_make(&model, a);
	struct machine_numa *nodes = arena_alloc(a, (m.numa_count + MORE_MAX) * sizeof *nodes);

	memcpy(nodes, m.numas, m.numa_count * sizeof *nodes);
	m.numas = nodes;
	m.gpus = arena_alloc(a, MORE_MAX * sizeof *m.gpus);
	m.nics = arena_alloc(a, MORE_MAX * sizeof *m.nics);
	return m;
}

static void measure(struct machine *m, struct arena *a)
{
	unsigned *far = arena_alloc(a, (m->gpu_count * m->nic_count + 1) * sizeof *far);

	for (size_t i = 0; i < m->gpu_count; i++)
		for (size_t k = 0; k < m->nic_count; k++)
			far[i * m->nic_count + k] = strcmp(m->gpus[i].bus, m->nics[k].bus) == 0 ?
				1 :
				m->gpus[i].numa == m->nics[k].numa ? 100 :
								     1000;
	m->gpu_nic_distance = far;
}

void machine_add_gpu(struct machine *m, struct arena *a, int numa, const char *bus)
{
	m->gpus[m->gpu_count] = (struct machine_gpu){ GPU_NVIDIA, (unsigned)m->gpu_count, bus,
		"NVIDIA H100 80GB HBM3", NULL, numa };
	m->gpu_count++;
	measure(m, a);
}

void machine_add_nic(struct machine *m, struct arena *a, int numa, const char *bus,
	const char *device, const char *net, bool up)
{
	m->nics[m->nic_count++] =
		(struct machine_nic){ device, device ? 1 : 0, net, bus, numa, up };
	measure(m, a);
}
