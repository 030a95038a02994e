/* fuzz_hosts.c - host files: whatever their bytes are, each host is there once, and all have slots
 * or none has; written out plainly they are the same hosts. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "config/hosts.h"

static int read_copy(struct arena *a, const char *bytes, size_t len, struct hosts *ret)
{
	struct failure why = { 0 };
	char *copy = malloc(len + (len == 0)); /* no NUL behind, no byte too many */
	int rc;

	PROMISE(copy != NULL);
	if (len > 0)
		memcpy(copy, bytes, len);
	rc = hosts_read_file(a, copy, len, "f", ret, &why);
	free(copy);
	PROMISE(rc == 0 || (rc == -EINVAL && strncmp(why.text, "f", 1) == 0));
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct arena arena = { 0 };
	struct hosts hosts = { 0 }, again = { 0 };
	struct text plain = { 0 };
	const struct host *first;

	if (read_copy(&arena, (const char *)bytes, len, &hosts) == 0) {
		PROMISE(hosts.count > 0 && hosts.count <= HOSTS_MAX);
		PROMISE(!hosts_twice(&arena, &hosts, &first));
		for (size_t i = 0; i < hosts.count; i++) {
			const struct host *h = &hosts.at[i];

			PROMISE((h->slots > 0) == (hosts.at[0].slots > 0));
			PROMISE(h->slots <= HOSTS_MAX &&
				(!h->max_slots || h->slots <= h->max_slots));
			text_add(&plain, h->name);
			if (strcmp(h->name, "rank") == 0) /* a word of its own otherwise */
				text_add(&plain, ".");
			if (h->slots)
				text_printf(&plain, " slots=%u", h->slots);
			text_add(&plain, "\n");
		}
		PROMISE(read_copy(&arena, text_string(&plain), plain.len, &again) == 0);
		PROMISE(again.count == hosts.count);
		for (size_t i = 0; i < hosts.count; i++)
			PROMISE(strcmp(again.at[i].name, hosts.at[i].name) == 0 &&
				again.at[i].slots == hosts.at[i].slots);
	}
	text_done(&plain);
	arena_done(&arena);
	return 0;
}
