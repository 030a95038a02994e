/* gpu_watch.c - see gpu_watch.h */
#include "daemon/run/gpu_watch.h"

#include "common/text.h"
#include "daemon/check/xid.h"
#include "daemon/os/nvidia.h"
#include "daemon/plan/plan.h"

struct watched {
	struct helper_answer helper;
	struct xids xids;
};

static struct xids *xids_of(const struct helper *h)
{
	return h->answer ? &((struct watched *)h->answer)->xids : NULL;
}

static void work(struct helper *h)
{
	const struct gpu_watch *w = h->owner;

	xid_watch(xids_of(h), w->visible);
}

/* By itself: what it has not said of that is said here, and its notes stay. */
static void on_end(struct helper *h, bool succeeded)
{
	struct text t = { 0 };

	if (succeeded)
		text_add(&t, "its process has ended");
	else
		helper_explain(h, "NVML", &t);
	xids_end(xids_of(h), text_string(&t));
	text_done(&t);
}

bool gpu_watch_may_see(const struct plan *plan)
{
	const struct visible *v = &plan->visible;

	return nvidia_gpus_here() || (v->known && v->own.maker == GPU_NVIDIA);
}

void gpu_watch_start(struct gpu_watch *w, uv_loop_t *loop, const char *visible, char **argv)
{
	if (w->tried)
		return;
	w->tried = true;
	w->visible = visible;
	w->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.owner = w,
		.name = "gpu-watch",
		.argv = argv,
		.group = true,
		.lasting = true,
	};
	(void)helper_start(&w->helper, loop, sizeof(struct watched), 0);
}

bool gpu_watch_is_reading(const struct gpu_watch *w)
{
	const struct xids *x = xids_of(&w->helper);

	return x && w->helper.state == HELPER_RUNNING && x->levels == 0 &&
		x->state == XIDS_STARTING;
}

const struct xids *gpu_watch_xids(const struct gpu_watch *w)
{
	return xids_of(&w->helper);
}

void gpu_watch_stop(struct gpu_watch *w)
{
	helper_close(&w->helper);
}
