/* python_stack.c - see python_stack.h */
#include "daemon/blackbox/python_stack.h"

#include <string.h>

#include "common/text.h"

enum { FRAMES_TOLD = 3, FRAME_MAX = 60 };

static size_t line_length(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? (size_t)(newline - at) : (size_t)(end - at);
}

static bool begins(const char *at, size_t len, const char *word)
{
	return len >= strlen(word) && memcmp(at, word, strlen(word)) == 0;
}

static bool has(const char *at, size_t len, const char *word)
{
	return memmem(at, len, word, strlen(word)) != NULL;
}

/* The line of the thread that counts, "Thread 12 (idle): \"MainThread\""; NULL: there is none. */
static const char *find_thread(const char *at, const char *end)
{
	const char *first = NULL;

	while (at < end) {
		size_t len = line_length(at, end);

		if (begins(at, len, "Thread ")) {
			if (has(at, len, "MainThread"))
				return at;
			first = first ? first : at;
		}
		at += len + 1;
	}
	return first;
}

/* Of a path that is long its end, which says more. */
static void add_frame(const char *at, size_t len, struct text *out)
{
	const char *path = memchr(at, '(', len);

	while (len > 0 && *at == ' ') {
		at++;
		len--;
	}
	if (path && len > FRAME_MAX) {
		const char *slash = memrchr(path, '/', (size_t)(at + len - path));

		text_add_shown(out, at, (size_t)(path + 1 - at));
		path = slash ? slash + 1 : path + 1;
		text_add_shown(out, path, (size_t)(at + len - path));
		return;
	}
	text_add_shown(out, at, len);
}

bool python_stack_read(const char *dump, size_t len, struct text *out)
{
	const char *end = dump + len, *at = find_thread(dump, end);
	unsigned frames = 0;
	const char *state;
	size_t n;

	if (!at)
		return false;
	n = line_length(at, end);
	state = has(at, n, "(idle)") ? "idle in " : has(at, n, "(active") ? "runs " : "in ";
	for (at += n + 1; at < end && frames < FRAMES_TOLD; at += n + 1) {
		n = line_length(at, end);
		if (!begins(at, n, "    "))
			break;
		if (begins(at, n, "        ")) /* a local variable */
			continue;
		text_add(out, frames == 0 ? state : frames == 1 ? ", from " : ", ");
		add_frame(at, n, out);
		frames++;
	}
	if (frames == 0)
		text_add(out,
			*state == 'r' ? "active, but in no frame of Python" :
					"in no frame of Python");
	return true;
}
