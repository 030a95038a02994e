/* test_foreign.c - what is said about an option that there isn't: a typo, another launcher's, or
 * neither. */
#include "tests/unit/unit.h"

#include <string.h>

#include "config/foreign.h"

static const struct name_row {
	const char *says;    /* the name */
	const char *nearest; /* NULL: none may be suggested */
} names[] = {
	/* typos */
	{ "nproc_per_nodes", "nproc_per_node" },
	{ "nprocs_per_node", "nproc_per_node" },
	{ "nproc-per-mode", "nproc_per_node" },
	{ "nporc_per_ndoe", "nproc_per_node" },
	{ "nprocs", "nproc_per_node" },
	{ "nndoes", "nnodes" },
	{ "nnode_s", "nnodes" },
	{ "node_rnak", "node_rank" },
	{ "master_adr", "master_addr" },
	{ "master-prot", "master_port" },
	{ "max-restrats", "max-restarts" },
	{ "shutdown-timeoout", "shutdown-timeout" },
	{ "logdir", "log-dir" },
	{ "redirect_s", "redirects" },
	{ "wrapp", "wrap" },
	{ "expand-arg_s", "expand-args" },
	{ "rdvz_endpoint", "rdzv-endpoint" },
	{ "use-evn", "use_env" },
	{ "confgi", "config" },
	/* other names */
	{ "yaml-config", NULL },
	{ "server-roles", NULL },
	{ "keras-env", NULL },
	{ "tr", NULL },
	{ "end", NULL },
	{ "mode", NULL },
	{ "batch-size", NULL },
	{ "epochs", NULL },
	{ "seed", NULL },
	{ "lr", NULL },
	{ "data-dir", NULL },
	{ "output-dir", NULL },
	{ "model", NULL },
	{ "local_world_size", NULL },
	{ "fp16", NULL },
	{ "bogus", NULL },
};

static void test_nearest(void **state)
{
	const struct name_row *row = *state;
	const char *nearest = settings_nearest(row->says, strlen(row->says));

	if (row->nearest)
		assert_string_equal(nearest, row->nearest);
	else if (nearest)
		fail_msg("\"%s\" is suggested", nearest);
}

static const struct foreign_row {
	const char *says;
	const char *part; /* NULL: it isn't known */
} foreign[] = {
	{ "num_gpus", "--nproc_per_node" },
	{ "num-gpus", "--nproc_per_node" },
	{ "num_processes", "--nproc_per_node" },
	{ "num_nodes", "--nnodes" },
	{ "num_machines", "--nnodes" },
	{ "machine_rank", "--node_rank" },
	{ "main_process_ip", "--master_addr" },
	{ "main_process_port", "--master_port" },
	{ "hostfile", "--cluster-hostfile" },
	{ "hosts", "--cluster-nodes" },
	{ "H", "--cluster-nodes" },
	{ "include", "--cluster-nodes" },
	{ "gpu_ids", "--gpus" },
	{ "start-timeout", "--join-timeout" },
	{ "x", "--env NAME=VALUE" },
	{ "map-by", "mpirun" },
	{ "mixed_precision", "behind the script" },
	{ "mixed", NULL },
	{ "hostfiles", NULL },
	{ "", NULL },
};

static void test_foreign(void **state)
{
	const struct foreign_row *row = *state;
	const char *hint = foreign_hint(row->says, strlen(row->says));

	if (row->part)
		assert_contains(hint ? hint : "", row->part);
	else
		assert_null(hint);
}

/* A hint may only name options that there are, and none that there are needs one. */
static void test_hints_are_true(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		const char *hint = foreign_hint(foreign[i].says, strlen(foreign[i].says));

		assert_int_equal(
			settings_find(foreign[i].says, strlen(foreign[i].says)), SETTING_COUNT);
		for (const char *at = hint ? strstr(hint, "--") : NULL; at; at = strstr(at, "--")) {
			size_t len = strspn(at += 2, "abcdefghijklmnopqrstuvwxyz_-");

			if (strncmp(at, "local_rank", len) == 0)
				continue; /* the script's */
			assert_int_not_equal(settings_find(at, len), SETTING_COUNT);
		}
	}
	for (int id = 0; id < SETTING_COUNT; id++)
		assert_null(foreign_hint(setting_rows[id].flag, strlen(setting_rows[id].flag)));
}

TESTS(foreign)
{
	static struct suite s;

	SUITE_ROWS(&s, test_nearest, names);
	SUITE_ROWS(&s, test_foreign, foreign);
	suite_add(&s, "hints name options that there are", test_hints_are_true, NULL, NULL);
	return suite_run(&s);
}
