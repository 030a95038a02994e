/* test_xid.c - Xids: which condemn a node, and how they are kept while a job runs. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/check/nvml.h"
#include "daemon/check/xid.h"

static const struct kind_row {
	const char *says;
	uint64_t xid;
	enum xid_kind kind;
} kinds[] = {
	{ "a graphics exception is the application's", 13, XID_APPLICATION },
	{ "a page fault is", 31, XID_APPLICATION },
	{ "a reset channel is", 43, XID_APPLICATION },
	{ "a preemptive clean-up is", 45, XID_APPLICATION },
	{ "a video exception is", 68, XID_APPLICATION },
	{ "a corrupted push buffer is", 32, XID_APPLICATION },
	{ "a context switch that took too long is fatal", 109, XID_FATAL },
	{ "the first of Blackwell's NVLink errors is", 144, XID_FATAL },
	{ "the last one is", 150, XID_FATAL },
	{ "a key that can't be rotated is", 151, XID_FATAL },
	{ "a resource that is retired is", 156, XID_FATAL },
	{ "one that could not be retired is not", 157, XID_OTHER },
	{ "another recovery action is not: the driver is asked", 154, XID_OTHER },
	{ "a double bit error is fatal", 48, XID_FATAL },
	{ "a GPU off the bus is", 79, XID_FATAL },
	{ "a GSP that does not answer is", 119, XID_FATAL },
	{ "an uncontained error is", 95, XID_FATAL },
	{ "a contained one is not", 94, XID_OTHER },
	{ "a row that is remapped is not", 63, XID_OTHER },
	{ "what is not known is not", 4711, XID_OTHER },
};

static void test_kind(void **state)
{
	const struct kind_row *row = *state;

	assert_int_equal(xid_kind(row->xid), row->kind);
}

static void test_end(void **state)
{
	struct xids x = { .state = XIDS_WATCHING };

	(void)state;
	xids_end(&x, "killed");
	assert_int_equal(x.state, XIDS_FAILED);
	assert_string_equal(x.text, "killed");
	xids_end(&x, "again");
	assert_string_equal(x.text, "killed");
}

/* --- the child --- */

enum { GPUS = 3, EVENTS = XIDS_MAX + 5 };

static struct played {
	int load, init, count, set, register_, wait;
	bool old;
	unsigned registered, waited;
} played;

static char device[GPUS], set;

static int play_init(void)
{
	return played.init;
}

static int play_count(unsigned *ret)
{
	if (played.count == NVML_OK)
		*ret = GPUS;
	return played.count;
}

static int play_device(unsigned index, void **ret)
{
	if (index == 1)
		return NVML_GPU_IS_LOST;
	*ret = &device[index];
	return NVML_OK;
}

static int play_set(void **ret)
{
	if (played.set == NVML_OK)
		*ret = &set;
	return played.set;
}

static int play_register(void *d, unsigned long long types, void *to)
{
	(void)d;
	assert_ptr_equal(to, &set);
	assert_int_equal(types, NVML_EVENT_XID);
	played.registered++;
	return played.register_;
}

static int play_wait(void *of, struct nvml_event *ret, unsigned timeout_ms)
{
	assert_ptr_equal(of, &set);
	assert_true(timeout_ms > 0);
	played.waited++;
	if (played.waited == 1)
		return NVML_TIMEOUT;
	if (played.waited == EVENTS + 2)
		return NVML_GPU_IS_LOST;
	*ret = (struct nvml_event){ &device[played.waited == 2 ? 1 : 2], NVML_EVENT_XID, 79, 0, 0 };
	return NVML_OK;
}

int __wrap_nvml_load(struct nvml_api *ret, struct failure *why);

int __wrap_nvml_load(struct nvml_api *ret, struct failure *why)
{
	if (played.load < 0)
		return failure_set(why, played.load, "NVML can't be loaded");
	*ret = (struct nvml_api){ .init = play_init,
		.device_count = play_count,
		.device = play_device,
		.event_set = play_set,
		.event_register = play_register,
		.event_wait = played.old ? NULL : play_wait };
	return 0;
}

static void test_watch(void **state)
{
	struct xids x = { 0 };

	(void)state;
	played = (struct played){ 0 };
	xid_watch(&x, NULL);
	assert_int_equal(played.registered, GPUS - 1); /* without the lost one */
	assert_int_equal(x.count, EVENTS);
	assert_int_equal(x.at[0].gpu, XID_GPU_UNKNOWN); /* what was never registered */
	assert_int_equal(x.at[XIDS_MAX - 1].gpu, 2);
	assert_int_equal(x.at[XIDS_MAX - 1].xid, 79);
	assert_int_equal(x.state, XIDS_FAILED);
	assert_contains(x.text, "nvmlEventSetWait");
}

static const struct watch_row {
	const char *says;
	struct played played;
	const char *text, *visible;
} watches[] = {
	{ "no library", { .load = -2 }, "can't be loaded", NULL },
	{ "no driver", { .init = NVML_DRIVER_NOT_LOADED }, "nvmlInit: the driver is not loaded",
		NULL },
	{ "a library of old", { .old = true }, "nvmlEventSetWait: not supported", NULL },
	{ "no count", { .count = NVML_UNKNOWN_ERROR }, "nvmlDeviceGetCount", NULL },
	{ "no set", { .set = NVML_UNKNOWN_ERROR }, "nvmlEventSetCreate", NULL },
	{ "no GPU that tells", { .register_ = NVML_NOT_SUPPORTED }, "nvmlDeviceRegisterEvents",
		NULL },
	{ "a job that uses no GPU", { 0 }, "the job uses no GPU", "" },
};

static void test_watch_fails(void **state)
{
	const struct watch_row *row = *state;
	struct xids x = { 0 };

	played = row->played;
	xid_watch(&x, row->visible);
	assert_int_equal(x.state, XIDS_FAILED);
	assert_int_equal(x.count, 0);
	assert_contains(x.text, row->text);
}

TESTS(xid)
{
	static struct suite s;

	SUITE_ROWS(&s, test_kind, kinds);
	suite_add(&s, "a child that has ended", test_end, NULL, NULL);
	suite_add(&s, "a child keeps what comes", test_watch, NULL, NULL);
	SUITE_ROWS(&s, test_watch_fails, watches);
	return suite_run(&s);
}
