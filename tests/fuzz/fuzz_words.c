/* fuzz_words.c - commands in one text. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "common/words.h"

static void read_bytes(struct arena *a, const uint8_t *bytes, size_t len, struct vec *ret)
{
	const char *fault = NULL;
	int rc = words_split(arena_strndup(a, (const char *)bytes, len), a, ret, &fault);

	PROMISE(rc == 0 || rc == -EINVAL);
	PROMISE((fault != NULL) == (rc < 0));
	PROMISE(rc == 0 || ret->count == 0);
	PROMISE(!arena_failed(a));
}

/* In single quotes, which every byte may stand in but the quote itself. */
static void add_quoted(struct text *t, const char *word)
{
	text_add(t, " '");
	for (; *word; word++)
		if (*word == '\'')
			text_add(t, "'\\''");
		else
			text_add_bytes(t, word, 1);
	text_add(t, "'");
}

/* Words that are quoted again are the same words. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct arena arena = { 0 };
	struct vec first = { 0 }, second = { 0 };
	struct text again = { 0 };

	read_bytes(&arena, bytes, len, &first);
	for (size_t i = 0; i < first.count; i++) {
		PROMISE(strlen(first.at[i]) <= len);
		add_quoted(&again, first.at[i]);
	}
	PROMISE(!again.failed);
	read_bytes(&arena, (const uint8_t *)text_string(&again), again.len, &second);
	PROMISE(first.count == second.count);
	for (size_t i = 0; i < first.count; i++)
		PROMISE(strcmp(first.at[i], second.at[i]) == 0);
	text_done(&again);
	arena_done(&arena);
	return 0;
}
