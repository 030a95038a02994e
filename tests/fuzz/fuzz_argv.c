/* fuzz_argv.c - command lines. The first word is the program's name, as the launcher has it. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "config/sources.h"

static void read_words(struct reading *r, const struct words *w)
{
	const char *const *argv = (const char *const *)(void *)w->at;

	reading_init(r, w->count > 0 && strcmp(w->at[0], "torchrun") == 0);
	r->rc = settings_read_argv(&r->s, argv, &r->why);
	reading_check(r);
	if (r->rc == 0)
		r->rc = settings_check(&r->s, &r->notes, &r->why);
	reading_check(r);
}

/* Everything behind the script is the script's, but for one "--" directly behind it. */
static void check_script(const struct settings *s, const struct words *w)
{
	size_t at = 1;

	PROMISE(s->script || s->args.count == 0);
	if (!s->script)
		return;
	while (at < w->count && w->at[at] != s->script)
		at++;
	PROMISE(at < w->count); /* it is the word itself, no copy */
	at++;
	at += at < w->count && strcmp(w->at[at], "--") == 0;
	PROMISE(s->args.count == w->count - at);
	for (size_t i = 0; i < s->args.count; i++)
		PROMISE(s->args.at[i] == w->at[at + i]);
	PROMISE(vec_argv(&s->args)[s->args.count] == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct words w = words_make(bytes, len);
	struct reading first, second;

	read_words(&first, &w);
	read_words(&second, &w);
	reading_compare(&first, &second);
	if (first.rc == 0)
		check_script(&first.s, &w);
	reading_done(&first);
	reading_done(&second);
	words_done(&w);
	return 0;
}
