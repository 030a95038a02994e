/* fuzz_bundle.c - the files of a bundle, which may be anybody's, to the story that --explain tells
 * of them. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/blackbox/bundle.h"
#include "daemon/blackbox/story.h"
#include "daemon/os/cjson.h"
#include "tests/unit/json.h"

static struct cjson library;

static void open_library(void)
{
	struct failure why = { 0 };

	if (!library.library)
		PROMISE(cjson_open(NULL, &library, &why) == 0);
}

/* It is bounded, and does nothing to a terminal. */
static void check_story(const struct bundle_index *index, const struct bundle *part)
{
	enum { STORY_MAX = 256 << 10 };
	struct text story = { 0 };
	const char *at;

	story_add(index, part, part ? 1 : 0, &story);
	PROMISE(!story.failed && story.len < STORY_MAX);
	for (at = text_string(&story); *at; at++)
		PROMISE(*at == '\n' || ((unsigned char)*at >= 0x20 && *at != 0x7f));
	text_done(&story);
}

static void check_failure(int rc, const struct failure *why)
{
	PROMISE(rc == why->code && (rc == -EINVAL || rc == -ENOMEM) && *why->text);
}

/* What was understood is written, and understood again. */
static void check_again(const struct text *json, bool is_index)
{
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct bundle_index x;
	struct bundle b;
	int rc = is_index ?
		index_parse(&library, "again", text_string(json), json->len, &arena, &x, &why) :
		bundle_parse(&library, "again", text_string(json), json->len, &arena, &b, &why);

	PROMISE(!json->failed && rc == 0);
	PROMISE(json_is_valid(text_string(json), json->len));
	arena_done(&arena);
}

static void check_part(const char *bytes, size_t len, struct arena *arena)
{
	struct failure why = { 0 };
	struct bundle b = { 0 };
	struct text json = { 0 };
	int rc = bundle_parse(&library, "a file", bytes, len, arena, &b, &why);

	if (rc != 0) {
		check_failure(rc, &why);
		return;
	}
	check_story(NULL, &b);
	bundle_json(&b, &json);
	check_again(&json, false);
	text_done(&json);
}

static void check_index(const char *bytes, size_t len, struct arena *arena)
{
	struct failure why = { 0 };
	struct bundle_index x = { 0 };
	struct text json = { 0 };
	int rc = index_parse(&library, "a file", bytes, len, arena, &x, &why);

	if (rc != 0) {
		check_failure(rc, &why);
		return;
	}
	check_story(&x, NULL);
	index_json(&x, &json);
	check_again(&json, true);
	text_done(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct arena arena = { 0 };
	char *exact = malloc(len + 1);

	open_library();
	PROMISE(exact != NULL);
	if (len > 0)
		memcpy(exact, bytes, len);
	exact[len] = '\0';
	if (!memchr(exact, '\0', len)) { /* as --explain refuses before */
		check_part(exact, len, &arena);
		check_index(exact, len, &arena);
	}
	free(exact);
	arena_done(&arena);
	return 0;
}
