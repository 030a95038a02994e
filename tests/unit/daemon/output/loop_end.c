/* loop_end.c - see loop_end.h */
#include "tests/unit/daemon/output/loop_end.h"

#include "tests/unit/unit.h"

static void close_handle(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (!uv_is_closing(h))
		uv_close(h, NULL);
}

void loop_end(uv_loop_t *loop)
{
	uv_walk(loop, close_handle, NULL);
	assert_int_equal(uv_run(loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(loop), 0);
}
