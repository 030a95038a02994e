/* test_verdicts.c - what other checks say, and mean. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "daemon/check/verdicts.h"

#define EXITED(code) ((code) << 8)

/* As NVIDIA's Health Validation has it, cut to what is read. */
#define CRITICAL \
	"{\"node\": \"n7\", \"overall_severity\": \"CRITICAL\", \"affected_components\": [" \
	"{\"category\": \"cpu\", \"check_ids\": [\"cpu_count\"], \"entities\": [], " \
	"\"max_severity\": \"INFO\"}, {\"category\": \"xid\", \"check_ids\": [\"gpu_xid_79\"], " \
	"\"entities\": [\"GPU-8f6a\"], \"max_severity\": \"CRITICAL\"}]}"

static const struct verdict_row {
	const char *says, *out, *err;
	int status;
	enum health health;
	const char *text;
} rows[] = {
	{ "0 is good", "fine\n", "", EXITED(0), HEALTH_GOOD, "exit code 0" },
	{ "another code is bad, with the last line of stderr", "x\n", "a\nno disk\n\n", EXITED(3),
		HEALTH_BAD, "exit code 3: no disk" },
	{ "or of stdout", "a\r\nb\r\n", " \n", EXITED(1), HEALTH_BAD, "exit code 1: b" },
	{ "or none", "", "", EXITED(1), HEALTH_BAD, "exit code 1" },
	{ "NHC's sentence",
		"ERROR:  nhc:  Health check failed:  check_fs_mount:  /scratch not "
		"mounted\nmore\n",
		"", EXITED(1), HEALTH_BAD, "exit code 1: check_fs_mount:  /scratch not mounted" },
	{ "NHC's sentence on stderr", "20261125 [slurm] /usr/libexec/nhc/node-mark-offline n7\n",
		"ERROR:  nhc:  Health check failed:  check_hw_ib: no port up\nlast\n", EXITED(1),
		HEALTH_BAD, "exit code 1: check_hw_ib: no port up" },
	{ "a signal tells nothing", "", "", SIGSEGV, HEALTH_UNKNOWN, "it was killed by SIGSEGV" },
	{ "127 is a shell that found nothing", "", "sh: 1: nhc: not found\n", EXITED(127),
		HEALTH_UNKNOWN, "exit code 127: sh: 1: nhc: not found" },
	{ "126 is one that may not run it", "", "", EXITED(126), HEALTH_UNKNOWN, "exit code 126" },
	{ "a critical verdict is bad", CRITICAL, "", EXITED(1), HEALTH_BAD,
		"its verdict is CRITICAL: xid gpu_xid_79 (GPU-8f6a)" },
	{ "whatever the exit code is, and what stands around it", "note\n" CRITICAL, "", EXITED(0),
		HEALTH_BAD, "its verdict is CRITICAL: xid gpu_xid_79 (GPU-8f6a)" },
	{ "a warning is good", "{\"overall_severity\": \"WARNING\"}", "", EXITED(0), HEALTH_GOOD,
		"its verdict is WARNING" },
	{ "numbers that only Python writes",
		"{\"overall_severity\": \"CRITICAL\", \"gbps\": [NaN, -Infinity]}", "", EXITED(1),
		HEALTH_BAD, "its verdict is CRITICAL" },
	{ "a pass", "{\"overall_severity\": \"PASS\"}\n", "", EXITED(0), HEALTH_GOOD,
		"its verdict is PASS" },
	{ "unknown is unknown, whose exit code is 1", "{\"overall_severity\": \"UNKNOWN\"}", "",
		EXITED(1), HEALTH_UNKNOWN, "its verdict is UNKNOWN" },
	{ "a word that isn't known leaves the exit code", "{\"overall_severity\": \"GREAT\"}", "",
		EXITED(0), HEALTH_GOOD, "exit code 0" },
	{ "so does JSON that is none", "{\"overall_severity\": \"PASS\"", "", EXITED(2), HEALTH_BAD,
		"exit code 2: {\"overall_severity\": \"PASS\"" },
	{ "and another object", "{\"overall\": \"PASS\"}", "why\n", EXITED(2), HEALTH_BAD,
		"exit code 2: why" },
	{ "components of any other kind",
		"{\"overall_severity\": \"CRITICAL\", "
		"\"affected_components\": [3, {\"max_severity\": \"CRITICAL\"}]}",
		"", EXITED(1), HEALTH_BAD, "its verdict is CRITICAL" },
};

static void test_verdict(void **state)
{
	const struct verdict_row *row = *state;
	const struct said said = { row->out, strlen(row->out), row->err, strlen(row->err),
		row->status };
	char text[224] = "";

	assert_int_equal(verdict_of(&said, text, sizeof text), row->health);
	assert_string_equal(text, row->text);
}

TESTS(verdicts)
{
	static struct suite s;

	SUITE_ROWS(&s, test_verdict, rows);
	return suite_run(&s);
}
