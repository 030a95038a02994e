/* gpu_models.c - see gpu_models.h */
#include "daemon/check/gpu_models.h"

#include <stddef.h>

#include "common/words.h"

/* From NVIDIA's data sheets and nvidia-smi nvlink -s on HGX and DGX; what Azure's (AzNHC) and
 * Oracle's checks of such nodes expect. Words of
 * the names that NVML has; the first that fits counts. */
static const struct {
	const char *name;
	unsigned nvlinks;
} models[] = {
	{ "H100 NVL", 0 }, /* by bridges, which not every node has */
	{ "H100 PCIe", 0 },
	{ "H200 NVL", 0 },
	{ "V100-SXM2", 6 },
	{ "V100-SXM3", 6 },
	{ "A100-SXM", 12 }, /* a partner's own, with 64 GB */
	{ "A100-SXM4", 12 },
	{ "H100 80GB HBM3", 18 },
	{ "H200", 18 },
	{ "B200", 18 },
	{ "B300", 18 },
	{ "GB200", 18 },
	{ "GB300", 18 },
};

unsigned gpu_model_nvlinks(const char *name)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		if (words_have(name, models[i].name))
			return models[i].nvlinks;
	return 0;
}

bool gpu_model_is_numa(const char *name)
{
	static const char *const numa[] = { "GH200", "GB200", "GB300" };

	for (size_t i = 0; i < sizeof numa / sizeof *numa; i++)
		if (words_have(name, numa[i]))
			return true;
	return false;
}
