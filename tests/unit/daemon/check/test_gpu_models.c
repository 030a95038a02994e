/* test_gpu_models.c - models by their names. */
#include "tests/unit/unit.h"

#include "daemon/check/gpu_models.h"

static const struct model_row {
	const char *says, *name;
	unsigned nvlinks;
} rows[] = {
	{ "V100 on an HGX board", "Tesla V100-SXM2-32GB", 6 },
	{ "V100 on a card", "Tesla V100-PCIE-16GB", 0 },
	{ "A100 on an HGX board", "NVIDIA A100-SXM4-80GB", 12 },
	{ "A100 on a card", "NVIDIA A100 80GB PCIe", 0 },
	{ "H100 on an HGX board", "NVIDIA H100 80GB HBM3", 18 },
	{ "H100 on a card", "NVIDIA H100 PCIe", 0 },
	{ "H100 NVL, whose bridge is an option", "NVIDIA H100 NVL", 0 },
	{ "H200", "NVIDIA H200", 18 },
	{ "H200 NVL", "NVIDIA H200 NVL", 0 },
	{ "B200", "NVIDIA B200", 18 },
	{ "GB200", "NVIDIA GB200", 18 },
	{ "GB300", "NVIDIA GB300", 18 },
	{ "GH200, of which a node may have two without links", "NVIDIA GH200 480GB", 0 },
	{ "another word that ends like one", "NVIDIA XA100-SXM4", 0 },
	{ "not known", "NVIDIA GeForce RTX 4090", 0 },
	{ "no name", "", 0 },
};

static void test_nvlinks(void **state)
{
	const struct model_row *row = *state;

	assert_int_equal(gpu_model_nvlinks(row->name), row->nvlinks);
}

static const struct numa_row {
	const char *says, *name;
	bool numa;
} numa[] = {
	{ "a Grace Hopper", "NVIDIA GH200 480GB", true },
	{ "a Grace Blackwell", "NVIDIA GB200", true },
	{ "its successor", "NVIDIA GB300", true },
	{ "a GPU on a PCIe bus", "NVIDIA H200", false },
};

static void test_numa(void **state)
{
	const struct numa_row *row = *state;

	assert_int_equal(gpu_model_is_numa(row->name), row->numa);
}

TESTS(gpu_models)
{
	static struct suite s;

	SUITE_ROWS(&s, test_nvlinks, rows);
	SUITE_ROWS(&s, test_numa, numa);
	return suite_run(&s);
}
