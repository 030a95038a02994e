/* test_xid.c - Xids: which condemn a node, how they are read from the kernel's log, and how they
 * are kept while a job runs. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/check/finding.h"
#include "daemon/check/nvml.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"
#include "daemon/check/xid.h"

static struct findings found;

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
	{ "a context switch that took too long is", 109, XID_APPLICATION },
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

/* --- the kernel's log --- */

#define FELL \
	"4,987,12345678,-;NVRM: Xid (PCI:0000:cb:00): 79, pid=1234, GPU has fallen off the bus.\n"

static const struct log_row {
	const char *says, *log;
	unsigned count;
	enum health health; /* of the first */
	const char *subject, *text;
} logs[] = {
	{ "an empty log", "", 1, HEALTH_GOOD, "", "none that is fatal in the kernel's log" },
	{ "one that is fatal", "6,1,1,-;Linux version 6\n" FELL "6,2,3,-;more\n", 1, HEALTH_BAD,
		"PCI:0000:cb:00", "Xid 79 in the kernel's log" },
	{ "the same one again", FELL FELL, 1, HEALTH_BAD, "PCI:0000:cb:00",
		"Xid 79 in the kernel's log" },
	{ "of another GPU, too", FELL "4,1,1,-;NVRM: Xid (PCI:0000:1b:00): 48, DBE\n", 2,
		HEALTH_BAD, "PCI:0000:cb:00", "Xid 79 in the kernel's log" },
	{ "an application's", "4,1,1,-;NVRM: Xid (PCI:0000:1b:00): 31, pid=1\n", 1, HEALTH_GOOD, "",
		"none that is fatal in the kernel's log; 1 of applications, 0 others" },
	{ "without its number", "4,1,1,-;NVRM: Xid (PCI:0000:1b:00): none\n4,1,1,-;NVRM: Xid (PCI",
		1, HEALTH_GOOD, "", "none that is fatal in the kernel's log" },
	{ "a user's line that quotes one", "12,1,1,-;Xid (PCI:0000:1b:00): 79\n", 1, HEALTH_GOOD,
		"", "none that is fatal in the kernel's log" },
};

static void look(const struct quick_input *in)
{
	struct tasks *all = calloc(1, sizeof *all);

	assert_non_null(all);
	assert_int_equal(tasks_init(all), 0);
	memset(&found, 0, sizeof found);
	xid_check_add(in, all);
	tasks_run(all, &found);
	tasks_done(all);
	free(all);
}

static void test_log(void **state)
{
	const struct log_row *row = *state;
	char path[] = "/tmp/launchd-kmsg-XXXXXX";
	struct quick_input in = { .kmsg = path };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, row->log, strlen(row->log)), strlen(row->log));
	close(fd);
	look(&in);
	unlink(path);
	assert_int_equal(found.count, row->count);
	assert_string_equal(found.at[0].text, row->text);
	assert_int_equal(found.at[0].health, row->health);
	assert_string_equal(found.at[0].subject, row->subject);
}

/* --- what a child has kept --- */

static void test_nobody_can_tell(void **state)
{
	const struct quick_input in = { .kmsg = "/nonexistent" };

	(void)state;
	look(&in);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.at[0].health, HEALTH_UNKNOWN);
	assert_contains(found.at[0].text, "No such file");
}

static void test_watched(void **state)
{
	struct xids x = { .state = XIDS_WATCHING, .count = 2, .at = { { 1, 31 }, { 3, 79 } } };
	const struct quick_input in = { .xids = &x };

	(void)state;
	look(&in);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.at[0].health, HEALTH_BAD);
	assert_string_equal(found.at[0].subject, "GPU 3");
	assert_string_equal(found.at[0].text, "Xid 79 since launchd has watched");
	x.count = 1;
	look(&in);
	assert_int_equal(found.at[0].health, HEALTH_GOOD);
	x.state = XIDS_FAILED;
	strcpy(x.text, "no NVML");
	look(&in);
	assert_int_equal(found.at[0].health, HEALTH_UNKNOWN);
	assert_contains(found.at[0].text, "no NVML");
	x.count = 2; /* what it had seen before stands */
	look(&in);
	assert_int_equal(found.at[0].health, HEALTH_BAD);
	assert_true(xid_was_checked(&found));
	x = (struct xids){ 0 };
	look(&in);
	assert_int_equal(found.at[0].health, HEALTH_UNKNOWN);
	assert_contains(found.at[0].text, "NVML has not begun to watch");
	assert_false(xid_was_checked(&(const struct findings){ 0 }));
}

/* The log has what the child has seen, under another name. */
static void test_watched_and_logged(void **state)
{
	struct xids x = { .state = XIDS_WATCHING, .count = 1, .at = { { 3, 79 } } };
	char path[] = "/tmp/launchd-kmsg-XXXXXX";
	const struct quick_input in = { .kmsg = path, .xids = &x };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	look(&in);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.at[0].text, "Xid 79 since launchd has watched");
	assert_int_equal(write(fd, FELL, strlen(FELL)), strlen(FELL));
	close(fd);
	look(&in);
	unlink(path);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.at[0].text, "Xid 79 in the kernel's log");
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
	xid_watch(&x);
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
	const char *text;
} watches[] = {
	{ "no library", { .load = -2 }, "can't be loaded" },
	{ "no driver", { .init = NVML_DRIVER_NOT_LOADED }, "nvmlInit: the driver is not loaded" },
	{ "a library of old", { .old = true }, "nvmlEventSetWait: not supported" },
	{ "no count", { .count = NVML_UNKNOWN_ERROR }, "nvmlDeviceGetCount" },
	{ "no set", { .set = NVML_UNKNOWN_ERROR }, "nvmlEventSetCreate" },
	{ "no GPU that tells", { .register_ = NVML_NOT_SUPPORTED }, "nvmlDeviceRegisterEvents" },
};

static void test_watch_fails(void **state)
{
	const struct watch_row *row = *state;
	struct xids x = { 0 };

	played = row->played;
	xid_watch(&x);
	assert_int_equal(x.state, XIDS_FAILED);
	assert_int_equal(x.count, 0);
	assert_contains(x.text, row->text);
}

TESTS(xid)
{
	static struct suite s;

	SUITE_ROWS(&s, test_kind, kinds);
	SUITE_ROWS(&s, test_log, logs);
	suite_add(&s, "without a log nobody can tell", test_nobody_can_tell, NULL, NULL);
	suite_add(&s, "what was kept since launchd has watched counts", test_watched, NULL, NULL);
	suite_add(&s, "a log that has it, too", test_watched_and_logged, NULL, NULL);
	suite_add(&s, "a child that has ended", test_end, NULL, NULL);
	suite_add(&s, "a child keeps what comes", test_watch, NULL, NULL);
	SUITE_ROWS(&s, test_watch_fails, watches);
	return suite_run(&s);
}
