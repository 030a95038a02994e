/* quick.c - see quick.h */
#include "daemon/check/quick.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/check/command_check.h"
#include "daemon/check/finding.h"
#include "daemon/check/gpu_check.h"
#include "daemon/check/ib_check.h"
#include "daemon/check/mount_check.h"
#include "daemon/check/node_check.h"

int quick_check(const struct quick_input *in, struct findings *ret)
{
	struct tasks *all = calloc(1, sizeof *all);
	int rc = all ? tasks_init(all) : -ENOMEM;

	if (rc == 0) {
		gpu_check_add(in, all);
		ib_check_add(in, all);
		node_check_add(in, all);
		mount_check_add(all);
		command_check_add(in, all);
		tasks_run(all, ret);
		gpu_check_sum_up(in, all, ret);
		tasks_done(all);
	}
	free(all);
	return rc;
}
