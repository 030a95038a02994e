/* machine_devices.c - GPUs and network devices of a machine; see hwloc_calls.h */
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/fd.h"
#include "common/num.h"
#include "daemon/facts/hwloc_calls.h"

/* PCI's vendors of GPUs that compute. Others show a console (ASPEED, Matrox), or a virtual one. */
enum { VENDOR_NVIDIA = 0x10de, VENDOR_AMD = 0x1002, VENDOR_INTEL = 0x8086 };

/* PCI's classes, without the programming interface */
enum { CLASS_DISPLAY = 0x03, CLASS_ACCELERATOR = 0x1200 };

/* Between devices that share no switch, but a host bridge; no host bridge; no NUMA node. */
enum { FAR_HOST_BRIDGE = 100, FAR_NUMA = 1000, FAR_MACHINE = 10000 };

enum { PORT_ACTIVE = 4 }; /* of InfiniBand's states */

static int compare_bus(hwloc_obj_t a, hwloc_obj_t b)
{
	const struct hwloc_pcidev_attr_s *x = &a->attr->pcidev, *y = &b->attr->pcidev;

	if (x->domain != y->domain)
		return x->domain < y->domain ? -1 : 1;
	if (x->bus != y->bus)
		return x->bus < y->bus ? -1 : 1;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->func < y->func ? -1 : x->func > y->func;
}

static const char *bus_of(const struct hwloc_machine *h, hwloc_obj_t pci)
{
	const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;

	return arena_printf(h->arena, "%04x:%02x:%02x.%x", a->domain, a->bus, a->dev, a->func);
}

static bool is_gpu(hwloc_obj_t o, enum gpu_maker *ret)
{
	const struct hwloc_pcidev_attr_s *a = &o->attr->pcidev;

	if (a->class_id >> 8 != CLASS_DISPLAY && a->class_id != CLASS_ACCELERATOR)
		return false;
	switch (a->vendor_id) {
	case VENDOR_NVIDIA:
		*ret = GPU_NVIDIA;
		return true;
	case VENDOR_AMD:
		*ret = GPU_AMD;
		return true;
	case VENDOR_INTEL: /* bus 0 is the processor's own: its graphics and its NPU */
		*ret = GPU_INTEL;
		return a->domain != 0 || a->bus != 0;
	default:
		return false;
	}
}

/* The part of the processors that an I/O object lies at. */
static hwloc_obj_t place_of(hwloc_obj_t o)
{
	while (o && !o->cpuset)
		o = o->parent;
	return o;
}

/* Where the firmware says nothing, a device lies at the whole machine: that tells a NUMA node only
 * where there is one. */
static int numa_of_device(const struct hwloc_machine *h, hwloc_obj_t o)
{
	const struct machine *m = h->m;
	hwloc_obj_t place = place_of(o);
	int found = MACHINE_NOWHERE;

	for (size_t i = 0; place && i < m->cpu_count; i++) {
		int numa = m->cpus[i].numa;

		if (numa == found || !h->call->isset(place->cpuset, m->cpus[i].number))
			continue;
		if (found != MACHINE_NOWHERE && place->type == HWLOC_OBJ_MACHINE)
			return MACHINE_NOWHERE;
		if (found == MACHINE_NOWHERE)
			found = numa;
	}
	if (found == MACHINE_NOWHERE && place && place->nodeset) { /* at memory without CPUs */
		int number = h->call->first(place->nodeset);

		for (size_t i = 0; i < m->numa_count && number >= 0; i++)
			if (m->numas[i].number == (unsigned)number && m->numas[i].has_cpus)
				found = (int)i;
	}
	return found;
}

/* The PCI devices, by their addresses. */
static hwloc_obj_t *pci_devices(const struct hwloc_machine *h, unsigned *ret)
{
	unsigned count = h->call->count(h->topology, HWLOC_TYPE_DEPTH_PCI_DEVICE);
	hwloc_obj_t *at = arena_alloc(h->arena, (count + 1) * sizeof *at);

	*ret = at ? count : 0;
	for (unsigned i = 0; i < *ret; i++) {
		hwloc_obj_t o = h->call->object(h->topology, HWLOC_TYPE_DEPTH_PCI_DEVICE, i);
		unsigned k = i;

		for (; k > 0 && compare_bus(at[k - 1], o) > 0; k--)
			at[k] = at[k - 1];
		at[k] = o;
	}
	return at;
}

static const char *info_of(hwloc_obj_t o, const char *name)
{
	for (unsigned i = 0; i < o->infos_count; i++)
		if (strcmp(o->infos[i].name, name) == 0)
			return o->infos[i].value;
	return NULL;
}

/* A PCI device's child of that kind; n: the n-th. */
static hwloc_obj_t os_device(hwloc_obj_t pci, hwloc_obj_osdev_type_t type, unsigned n)
{
	for (hwloc_obj_t o = pci->io_first_child; o; o = o->next_sibling)
		if (o->type == HWLOC_OBJ_OS_DEVICE && o->attr->osdev.type == type && n-- == 0)
			return o;
	return NULL;
}

/* What doesn't say is taken to be up. */
static bool interface_is_up(const struct hwloc_machine *h, const char *name)
{
	char path[PATH_MAX], state[32];

	if (!h->m->is_this)
		return true;
	(void)snprintf(path, sizeof path, "/sys/class/net/%s/operstate", name);
	return fd_read_file(path, state, sizeof state) < 0 || strncmp(state, "down", 4) != 0;
}

struct nic_list {
	struct machine_nic *at;
	hwloc_obj_t *objects; /* PCI devices */
	size_t count, room;
};

static void add_nic(
	const struct hwloc_machine *h, struct nic_list *l, hwloc_obj_t pci, struct machine_nic nic)
{
	if (l->count == l->room)
		return;
	nic.bus = bus_of(h, pci);
	nic.numa = numa_of_device(h, pci);
	l->objects[l->count] = pci;
	l->at[l->count++] = nic;
}

/* Each port of an InfiniBand or RoCE device, with the interface that goes with it where there are
 * as many. */
static void add_ports(
	const struct hwloc_machine *h, struct nic_list *l, hwloc_obj_t pci, hwloc_obj_t device)
{
	for (unsigned port = 1;; port++) {
		hwloc_obj_t net = os_device(pci, HWLOC_OBJ_OSDEV_NETWORK, port - 1);
		const char *state = info_of(device, arena_printf(h->arena, "Port%uState", port));
		uint64_t number = 0;

		if (!state && port > 1)
			return;
		add_nic(h, l, pci,
			(struct machine_nic){
				.device = arena_strdup(h->arena, device->name),
				.port = port,
				.net = net ? arena_strdup(h->arena, net->name) : NULL,
				.up = !state ||
					(num_parse_len(state, strspn(state, "0123456789"), 0, 9,
						 &number) == 0 &&
						number == PORT_ACTIVE),
			});
	}
}

static void add_nics(const struct hwloc_machine *h, struct nic_list *l, hwloc_obj_t pci)
{
	hwloc_obj_t device = os_device(pci, HWLOC_OBJ_OSDEV_OPENFABRICS, 0), net;

	if (device && device->name) {
		add_ports(h, l, pci, device);
		return;
	}
	for (unsigned n = 0; (net = os_device(pci, HWLOC_OBJ_OSDEV_NETWORK, n)); n++)
		if (net->name)
			add_nic(h, l, pci,
				(struct machine_nic){ .net = arena_strdup(h->arena, net->name),
					.up = interface_is_up(h, net->name) });
}

static unsigned steps_up(hwloc_obj_t from, hwloc_obj_t to)
{
	unsigned bridges = 0;

	for (hwloc_obj_t o = from; o && o != to; o = o->parent)
		bridges += o->type == HWLOC_OBJ_BRIDGE;
	return bridges;
}

static bool is_above(hwloc_obj_t ancestor, hwloc_obj_t o)
{
	while (o && o != ancestor)
		o = o->parent;
	return o != NULL;
}

static unsigned distance(
	const struct machine *m, hwloc_obj_t gpu, int gpu_numa, hwloc_obj_t nic, int nic_numa)
{
	hwloc_obj_t meet = gpu;
	unsigned far, steps;

	while (meet && !is_above(meet, nic))
		meet = meet->parent;
	steps = steps_up(gpu, meet) + steps_up(nic, meet);
	if (gpu == nic)
		return 0;
	if (meet && meet->type == HWLOC_OBJ_BRIDGE)
		return steps + 1 +
			(meet->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST ?
					FAR_HOST_BRIDGE :
					0);
	if (gpu_numa == nic_numa)
		return FAR_NUMA + steps;
	far = m->numa_distance && gpu_numa != MACHINE_NOWHERE && nic_numa != MACHINE_NOWHERE ?
		m->numa_distance[(size_t)gpu_numa * m->numa_count + (size_t)nic_numa] :
		0;
	return FAR_MACHINE + 10 * far + steps;
}

static void measure(const struct hwloc_machine *h, hwloc_obj_t *gpus, const struct nic_list *nics)
{
	struct machine *m = h->m;
	size_t n = m->gpu_count * m->nic_count;
	unsigned *far = n ? arena_alloc(h->arena, n * sizeof *far) : NULL;

	for (size_t i = 0; far && i < m->gpu_count; i++)
		for (size_t k = 0; k < m->nic_count; k++)
			far[i * m->nic_count + k] = distance(
				m, gpus[i], m->gpus[i].numa, nics->objects[k], m->nics[k].numa);
	m->gpu_nic_distance = far;
}

void machine_devices(const struct hwloc_machine *h)
{
	unsigned count, next[GPU_MAKERS] = { 0 };
	hwloc_obj_t *pci = pci_devices(h, &count), *gpus;
	struct nic_list nics = {
		.room = h->call->count(h->topology, HWLOC_TYPE_DEPTH_OS_DEVICE) * 2 + 1
	};
	struct machine *m = h->m;

	m->gpus = arena_alloc(h->arena, (count + 1) * sizeof *m->gpus);
	gpus = arena_alloc(h->arena, (count + 1) * sizeof *gpus);
	nics.at = arena_alloc(h->arena, nics.room * sizeof *nics.at);
	nics.objects = arena_alloc(h->arena, nics.room * sizeof(hwloc_obj_t));
	if (arena_failed(h->arena))
		return;
	for (unsigned i = 0; i < count; i++) {
		enum gpu_maker maker;

		if (is_gpu(pci[i], &maker)) {
			gpus[m->gpu_count] = pci[i];
			m->gpus[m->gpu_count++] = (struct machine_gpu){ .maker = maker,
				.index = next[maker]++,
				.bus = bus_of(h, pci[i]),
				.numa = numa_of_device(h, pci[i]) };
		} else {
			add_nics(h, &nics, pci[i]);
		}
	}
	m->nics = nics.at;
	m->nic_count = nics.count;
	measure(h, gpus, &nics);
}
