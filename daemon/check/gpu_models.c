/* gpu_models.c - see gpu_models.h */
#include "daemon/check/gpu_models.h"

#include <stddef.h>
#include <string.h>

/* From NVIDIA's data sheets and nvidia-smi nvlink -s on HGX and DGX; what Azure's (AzNHC) and
 * Oracle's checks of such nodes expect. Names as NVML has them; the first that fits counts. */
static const struct {
	const char *name;
	unsigned nvlinks;
} models[] = {
	{ "H100 NVL", 0 }, /* by bridges, which not every node has */
	{ "H100 PCIe", 0 },
	{ "H200 NVL", 0 },
	{ "V100-SXM", 6 },
	{ "A100-SXM", 12 },
	{ "H100 80GB HBM3", 18 },
	{ "H200", 18 },
	{ "B200", 18 },
	{ "B300", 18 },
};

unsigned gpu_model_nvlinks(const char *name)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (strstr(name, models[i].name))
			return models[i].nvlinks;
	return 0;
}
