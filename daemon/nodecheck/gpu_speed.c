/* gpu_speed.c - see gpu_speed.h
 *
 * Memory: NVIDIA's data sheets. All-reduce of a whole node: the least that Oracle's
 * oci-hpc-oke/ncclscout.py asks of it, and Azure's node health checks where they ask for less
 * (AzNHC, conf/nd*.conf: H200 431 GB/s, A100 228, H100 460). */
#include "daemon/nodecheck/gpu_speed.h"

#include <stddef.h>

#include "common/words.h"

/* More special names stand before those that are a part of them. */
const struct gpu_speed gpu_speeds[] = {
	{ "GB300", 8000000, 0, 0 },
	{ "GB200", 8000000, 0, 0 },
	{ "B300", 8000000, 750000, 8 },
	{ "B200", 7700000, 440000, 8 },
	{ "GH200", 4000000, 0, 0 },
	{ "H200 NVL", 4800000, 0, 0 },
	{ "H200", 4800000, 431000, 8 },
	{ "H100 PCIe", 2000000, 0, 0 },
	{ "H100 NVL", 3900000, 0, 0 },
	{ "H100", 3350000, 440000, 8 },
	{ "H800", 3350000, 0, 0 },
	{ "H20", 4000000, 0, 0 },
	{ "A100-SXM4-40GB", 1555000, 185000, 8 },
	{ "A100-SXM4-80GB", 2039000, 185000, 8 },
	{ "A100-PCIE-40GB", 1555000, 0, 0 },
	{ "A100 80GB PCIe", 1935000, 0, 0 },
	{ "A800", 1935000, 0, 0 },
	{ "A30", 933000, 0, 0 },
	{ "A40", 696000, 0, 0 },
	{ "A10", 600000, 0, 0 },
	{ "A10G", 600000, 0, 0 },
	{ "L40S", 864000, 0, 0 },
	{ "L40", 864000, 0, 0 },
	{ "L4", 300000, 0, 0 },
	{ "T4", 320000, 0, 0 },
	{ NULL, 0, 0, 0 },
};

const struct gpu_speed *gpu_speed_find(const char *name)
{
	for (const struct gpu_speed *m = gpu_speeds; m->words; m++)
		if (words_have(name, m->words))
			return m;
	return NULL;
}
