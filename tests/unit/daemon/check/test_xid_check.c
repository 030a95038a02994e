/* test_xid_check.c - the check of Xids: how they are read from the kernel's log, and which of them
 * count. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/check/finding.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"
#include "daemon/check/xid.h"
#include "daemon/check/xid_check.h"

static struct findings found;
static struct xid_gpus gpus;

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
	xid_check_sum_up(in, all, &gpus, &found);
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

#define XID(where, rest)     "4,1,1,-;NVRM: Xid (PCI:" where "): " rest "\n"
#define STARTED(where, uuid) "4,1,1,-;NVRM: GPU at PCI:" where ": " uuid "\n"
#define CB                   "0000:cb:00"

/* GPU 1 is at cb:00, GPU 2 at 1b:00. */
static const struct fate_row {
	const char *says, *log, *visible;
	bool sound; /* the driver asks for no recovery of GPU 1 */
	enum health health;
	const char *text; /* of the first finding */
} fates[] = {
	{ "one that is older than the driver's start",
		XID(CB, "119, pid=1") "5,2,1,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.65.06\n",
		NULL, false, HEALTH_GOOD,
		"Xid 119 in the kernel's log, before this GPU was last initialised" },
	{ "one that is older than its GPU's last start",
		XID(CB, "95, pid=1") STARTED(CB, "GPU-8f3a") XID(CB, "31, pid=7"), NULL, false,
		HEALTH_GOOD, "Xid 95 in the kernel's log, before this GPU was last initialised" },
	{ "one that is older than another GPU's start",
		XID(CB, "95") STARTED("0000:1b:00", "GPU-2"), NULL, false, HEALTH_BAD,
		"Xid 95 in the kernel's log" },
	{ "one that is newer than the start", STARTED(CB, "GPU-8f3a") XID(CB, "95"), NULL, false,
		HEALTH_BAD, "Xid 95 in the kernel's log" },
	{ "the same before and after", XID(CB, "95") STARTED(CB, "GPU-8f3a") XID(CB, "95"), NULL,
		false, HEALTH_BAD, "Xid 95 in the kernel's log" },
	{ "one before a start that failed",
		XID(CB, "119")
			STARTED(CB, "GPU-8f3a") "4,1,1,-;NVRM: GPU 0000:cb:00.0: RmInitAdapter "
						"failed! (0x62:0x40:2477)\n",
		NULL, false, HEALTH_BAD, "Xid 119 in the kernel's log" },
	{ "one before a reset that NVSentinel notes",
		STARTED(CB, "GPU-8f3a-1") XID(CB, "119") "12,1,1,-;GPU reset executed: GPU-8f3a-1, "
							 "success: true\n",
		NULL, false, HEALTH_GOOD,
		"Xid 119 in the kernel's log, before this GPU was last initialised" },
	{ "one before a reset that failed",
		STARTED(CB, "GPU-8f3a-1") XID(CB, "119") "12,1,1,-;GPU reset executed: GPU-8f3a-1, "
							 "success: false\n",
		NULL, false, HEALTH_BAD, "Xid 119 in the kernel's log" },
	{ "one before another GPU's reset",
		STARTED(CB, "GPU-8f3a-1")
			XID(CB, "119") "12,1,1,-;GPU reset executed: GPU-8f3a-2\n",
		NULL, false, HEALTH_BAD, "Xid 119 in the kernel's log" },
	{ "one after which its driver asks for nothing", XID(CB, "119, pid=1"), NULL, true,
		HEALTH_GOOD, "Xid 119 in the kernel's log, but its driver asks for no recovery" },
	{ "one of another GPU than that", XID("0000:1b:00", "119, pid=1"), NULL, true, HEALTH_BAD,
		"Xid 119 in the kernel's log" },
	{ "a recovery that is asked for",
		XID(CB, "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
		NULL, false, HEALTH_BAD, "Xid 154 in the kernel's log" },
	{ "a recovery that is no longer asked for",
		XID(CB, "109") XID(CB,
			"154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)") XID(CB,
			"154, GPU recovery action changed from 0x3 (Drain P2P) to 0x0 (None)"),
		NULL, false, HEALTH_GOOD,
		"Xid 109 in the kernel's log, but its driver asks for no recovery" },
	{ "an NVLink error that is fatal",
		XID(CB, "149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)"), NULL,
		false, HEALTH_BAD, "Xid 149 in the kernel's log" },
	{ "an NVLink error that is not",
		XID(CB, "149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 08 (0x00000013 0x00000001)"),
		NULL, false, HEALTH_GOOD,
		"none that is fatal in the kernel's log; 0 of applications, 1 others" },
	{ "a GPU that the job uses, by number", XID(CB, "79"), "1", false, HEALTH_BAD,
		"Xid 79 in the kernel's log" },
	{ "a GPU that the job does not use", XID("0000:1b:00", "79"), "1", false, HEALTH_GOOD,
		"none that is fatal in the kernel's log; 1 of GPUs that the job does not use" },
	{ "a MIG device of one that it does not use", XID("0000:1b:00 GPU-I:05", "95"), "1", false,
		HEALTH_GOOD,
		"none that is fatal in the kernel's log; 1 of GPUs that the job does not use" },
	{ "a GPU that NVML no longer has", XID("0000:2b:00", "79"), NULL, false, HEALTH_BAD,
		"Xid 79 in the kernel's log" },
	{ "one that NVML no longer has, where all of the job's are known", XID("0000:2b:00", "79"),
		"1", false, HEALTH_GOOD,
		"none that is fatal in the kernel's log; 1 of GPUs that the job does not use" },
	{ "one that NVML no longer has, and may be the job's", XID("0000:2b:00", "79"), "0,1",
		false, HEALTH_BAD, "Xid 79 in the kernel's log" },
	{ "what old drivers say of a GPU after its Xid",
		XID(CB, "79, GPU has fallen off the bus.") "4,1,1,-;NVRM: GPU at 0000:cb:00.0 has "
							   "fallen off the bus.\n",
		NULL, false, HEALTH_BAD, "Xid 79 in the kernel's log" },
	{ "a GPU of which it isn't known whether the job uses it", XID("0000:1b:00", "79"), "0,1",
		false, HEALTH_UNKNOWN,
		"Xid 79 in the kernel's log: whether the job uses this GPU isn't known" },
	{ "the same before its last start", XID("0000:1b:00", "79") STARTED("0000:1b:00", "GPU-2"),
		"0,1", false, HEALTH_GOOD,
		"Xid 79 in the kernel's log, before this GPU was last initialised" },
	{ "as old drivers write the place",
		"4,1,1,-;NVRM: Xid (0000:cb:00): 62, pid=1\n4,1,1,-;NVRM: GPU at 0000:cb:00: GPU-1\n",
		NULL, false, HEALTH_GOOD,
		"Xid 62 in the kernel's log, before this GPU was last initialised" },
};

static void test_fate(void **state)
{
	const struct fate_row *row = *state;
	char path[] = "/tmp/launchd-kmsg-XXXXXX";
	const struct quick_input in = { .kmsg = path, .visible = row->visible };
	unsigned used = row->visible ? 1 : 2;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, row->log, strlen(row->log)), strlen(row->log));
	close(fd);
	gpus = (struct xid_gpus){ .count = 2,
		.shown = row->visible ? 1 + (strlen(row->visible) > 1) : 2,
		.at = { { 1, true, { 0, 0xcb, 0 }, 1, row->sound },
			{ 2, true, { 0, 0x1b, 0 }, used - 1, false } } };
	look(&in);
	gpus.count = gpus.shown = 0;
	unlink(path);
	assert_string_equal(found.at[0].text, row->text);
	assert_int_equal(found.at[0].health, row->health);
}

/* A log has room for so many; those that count are kept. */
static void test_many(void **state)
{
	char path[] = "/tmp/launchd-kmsg-XXXXXX";
	const struct quick_input in = { .kmsg = path };
	FILE *log = fdopen(mkstemp(path), "w");

	(void)state;
	assert_non_null(log);
	for (unsigned i = 0; i < XID_LOG_MAX; i++)
		(void)fprintf(log, XID("0000:%02x:00", "119"), i);
	(void)fputs("4,1,1,-;NVRM: loading NVIDIA UNIX\n" XID("0000:cb:00", "79"), log);
	(void)fclose(log);
	look(&in);
	unlink(path);
	assert_int_equal(findings_find(&found, "gpu_xid", "PCI:0000:cb:00")->health, HEALTH_BAD);
}

/* A GPU that starts again and again is one name. */
static void test_starts(void **state)
{
	char path[] = "/tmp/launchd-kmsg-XXXXXX";
	const struct quick_input in = { .kmsg = path };
	FILE *log = fdopen(mkstemp(path), "w");

	(void)state;
	assert_non_null(log);
	for (unsigned i = 0; i < 64; i++)
		(void)fputs(STARTED("0000:1b:00", "GPU-2"), log);
	(void)fputs(STARTED(CB, "GPU-8f3a") XID(CB, "119") "12,1,1,-;GPU reset executed: "
							   "GPU-8f3a\n",
		log);
	(void)fclose(log);
	look(&in);
	unlink(path);
	assert_int_equal(findings_find(&found, "gpu_xid", "PCI:" CB)->health, HEALTH_GOOD);
}

/* What other GPUs have met leaves room for the last one. */
static void test_storm(void **state)
{
	static const unsigned fatal[] = { 74, 79, 119, 144, 145, 146, 147, 148, 149, 150 };
	char path[] = "/tmp/launchd-kmsg-XXXXXX";
	const struct quick_input in = { .kmsg = path };
	FILE *log = fdopen(mkstemp(path), "w");

	(void)state;
	assert_non_null(log);
	for (unsigned gpu = 0; gpu < 7; gpu++)
		for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
			(void)fprintf(log, XID("0000:%02x:00", "%u, pid=1"), gpu, fatal[i]);
	(void)fputs(XID("0000:cb:00", "79"), log);
	(void)fclose(log);
	look(&in);
	unlink(path);
	assert_non_null(findings_find(&found, "gpu_xid", "PCI:0000:cb:00"));
	for (unsigned gpu = 0; gpu < 7; gpu++) {
		char where[32];

		(void)snprintf(where, sizeof where, "PCI:0000:%02x:00", gpu);
		assert_non_null(findings_find(&found, "gpu_xid", where));
	}
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
	assert_false(xid_was_checked(&found)); /* no driver has answered */
	findings_add(&found, HEALTH_GOOD, "driver_version", "", "580.65.06");
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

/* GPU 3's driver asks for nothing: what a job has met is over, but for a GPU that fell off the bus.
 */
static void test_watched_and_recovered(void **state)
{
	struct xids x = { .state = XIDS_WATCHING, .count = 1, .at = { { 3, 119 } } };
	const struct quick_input in = { .xids = &x };

	(void)state;
	gpus = (struct xid_gpus){
		.count = 1, .shown = 1, .at = { { 3, false, { 0, 0, 0 }, 1, true } }
	};
	look(&in);
	assert_int_equal(found.at[0].health, HEALTH_GOOD);
	assert_string_equal(found.at[0].text,
		"Xid 119 since launchd has watched, but its driver asks for no recovery");
	x.at[0].xid = 79;
	look(&in);
	assert_int_equal(found.at[0].health, HEALTH_BAD);
	gpus.at[0].sound = false;
	x.at[0].xid = 119;
	look(&in);
	assert_int_equal(found.at[0].health, HEALTH_BAD);
	gpus.count = 0;
}

TESTS(xid_check)
{
	static struct suite s;

	SUITE_ROWS(&s, test_log, logs);
	SUITE_ROWS(&s, test_fate, fates);
	suite_add(&s, "a log that has more than there is room for", test_many, NULL, NULL);
	suite_add(&s, "a GPU that starts often", test_starts, NULL, NULL);
	suite_add(&s, "a storm of other GPUs leaves room", test_storm, NULL, NULL);
	suite_add(&s, "without a log nobody can tell", test_nobody_can_tell, NULL, NULL);
	suite_add(&s, "what was kept since launchd has watched counts", test_watched, NULL, NULL);
	suite_add(&s, "a log that has it, too", test_watched_and_logged, NULL, NULL);
	suite_add(&s, "a GPU that needs no recovery", test_watched_and_recovered, NULL, NULL);
	return suite_run(&s);
}
