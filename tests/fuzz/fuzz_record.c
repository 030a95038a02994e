/* fuzz_record.c - error files, and last lines, from any bytes to the report that shows them. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/evidence.h"
#include "daemon/job/verdict.h"
#include "daemon/os/cjson.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/report.h"
#include "tests/unit/json.h"

static struct cjson library;

static void open_library(void)
{
	struct failure why = { 0 };

	if (!library.library)
		PROMISE(cjson_open(NULL, &library, &why) == 0);
}

/* Every line is ours, or the worker's and then indented or empty; it is short and does nothing to a
 * terminal. */
static void check_lines(const char *text)
{
	enum { LINES_MAX = 82, LINE_MAX_BYTES = 2000 };
	size_t lines = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");

		PROMISE(text[len] == '\n' && len <= LINE_MAX_BYTES);
		PROMISE(len == 0 || strncmp(text, "    ", 4) == 0 ||
			strncmp(text, "launchd: ", 9) == 0);
		for (size_t i = 0; i < len; i++)
			PROMISE((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
		text += len + 1;
		lines++;
	}
	PROMISE(lines <= LINES_MAX);
}

/* All that is shown is UTF-8: as a JSON string it is valid, but for what must be escaped there. */
static void check_utf8(const char *text)
{
	struct text quoted = { 0 };

	text_add(&quoted, "\"");
	for (; *text; text++)
		if (*text != '"' && *text != '\\' && *text != '\n')
			text_add_bytes(&quoted, text, 1);
	text_add(&quoted, "\"");
	PROMISE(json_is_valid(text_string(&quoted), quoted.len));
	text_done(&quoted);
}

static void check_report(const struct error_record *record, const char *lines, struct arena *arena)
{
	const struct outcome o = { .pid = 10, .end = { ENDED_EXIT, 1, false } };
	const struct result r = { .outcomes = &o, .count = 1, .cause = cause_of_failure(&o) };
	const struct vec args = { 0 };
	const struct plan plan = { .script = "./x",
		.local_rank_arg = "--local_rank",
		.args = &args,
		.output.tail_lines = 20 };
	const struct report_input in = { .result = &r,
		.plan = &plan,
		.hostname = "host",
		.record = record,
		.words = { lines, lines },
		.arena = arena };
	struct text text = { 0 }, json = { 0 };

	report_text(&in, &text);
	report_json(&in, &json);
	PROMISE(!text.failed && !json.failed);
	check_lines(text_string(&text));
	check_utf8(text_string(&text));
	PROMISE(json_is_valid(text_string(&json), json.len));
	text_done(&text);
	text_done(&json);
}

static void check_record(const struct error_record *record, const uint8_t *bytes, size_t len)
{
	PROMISE((record->raw == NULL) == (record->raw_why == NULL));
	PROMISE((record->raw == NULL) == (record->message || record->traceback));
	PROMISE(record->timestamp >= 0);
	if (!record->raw)
		return;
	PROMISE(strlen(record->raw) <= len);
	for (size_t i = 0; record->raw[i]; i++)
		PROMISE((uint8_t)record->raw[i] == (bytes[i] ? bytes[i] : ' '));
	if (json_is_valid((const char *)bytes, len))
		PROMISE(strcmp(record->raw_why, "without a message") == 0);
}

/* The same bytes as what a worker wrote last, which has no NUL. */
static const char *lines_of(const uint8_t *bytes, size_t len, struct arena *arena)
{
	char *lines = arena_alloc(arena, len + 1);

	PROMISE(lines != NULL);
	for (size_t i = 0; i < len; i++)
		lines[i] = bytes[i] ? (char)bytes[i] : ' ';
	return lines;
}

static void check(const struct cjson *c, const uint8_t *bytes, size_t len)
{
	const struct ending failed = { ENDED_EXIT, 1, false };
	char *exact = malloc(len + 1);
	const char *lines;
	struct error_record record;
	struct arena arena = { 0 };
	const struct speaker by = { .rank = 0, .master_port = "29500" };
	struct waited waited;

	PROMISE(exact != NULL);
	if (len > 0)
		memcpy(exact, bytes, len);
	exact[len] = '\0';
	record_parse(c, "it is not there", exact, len, &arena, &record);
	free(exact);
	PROMISE(!arena_failed(&arena));
	if (c)
		check_record(&record, bytes, len);
	check_report(&record, NULL, &arena);
	lines = lines_of(bytes, len, &arena);
	check_report(&record, lines, &arena);
	PROMISE(blames_of_lines(&failed, lines, &by, &waited) <= BLAMES_A_WAIT);
	PROMISE(blames_of(record.message, lines, &by, &waited) <= BLAMES_A_WAIT);
	if (blames_find_own(lines, &arena, &record))
		PROMISE(*record.message && strstr(record.traceback, record.message));
	arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	open_library();
	check(&library, bytes, len);
	check(NULL, bytes, len);
	return 0;
}
