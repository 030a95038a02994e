/* error_file.c - see error_file.h */
#include "daemon/report/error_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/num.h"
#include "common/python_json.h"
#include "daemon/job/evidence.h"
#include "daemon/os/cjson.h"

enum { RAW_MAX_BYTES = 4096 };

/* The member of an object; NULL: there is none, or the item is no object. */
static const cJSON *member(const struct cjson *c, const cJSON *item, const char *name)
{
	return item && (item->type & 0xff) == cJSON_Object ? c->item(item, name) : NULL;
}

static const char *string_of(const cJSON *item, struct arena *arena)
{
	bool is_string = item && (item->type & 0xff) == cJSON_String && item->valuestring;

	return is_string ? arena_strdup(arena, item->valuestring) : NULL;
}

/* torch writes it as text; others may take a number. */
static int64_t seconds_of(const cJSON *item)
{
	static const uint64_t most = 1ULL << 40;
	uint64_t n;

	if (!item)
		return 0;
	if ((item->type & 0xff) == cJSON_String && item->valuestring)
		return num_parse(item->valuestring, 0, most, &n) == 0 ? (int64_t)n : 0;
	if ((item->type & 0xff) != cJSON_Number ||
		!(item->valuedouble >= 0 && item->valuedouble <= (double)most))
		return 0;
	return (int64_t)item->valuedouble;
}

/* {"message": {"message": text, "extraInfo": {"py_callstack": text, "timestamp": "s"}}}, or the
 * short form {"message": text, "timestamp": s}. False: neither. */
static bool read_root(
	const struct cjson *c, const cJSON *root, struct arena *arena, struct error_record *ret)
{
	const cJSON *message = member(c, root, "message");
	const cJSON *extra = member(c, message, "extraInfo");

	ret->message = string_of(message, arena);
	ret->timestamp = seconds_of(member(c, root, "timestamp"));
	if (!ret->message) {
		ret->message = string_of(member(c, message, "message"), arena);
		ret->traceback = string_of(member(c, extra, "py_callstack"), arena);
		ret->timestamp = seconds_of(member(c, extra, "timestamp"));
	}
	return ret->message || ret->traceback;
}

static void set_raw(const char *text, size_t len, const char *why, struct arena *arena,
	struct error_record *ret)
{
	size_t shown = len < RAW_MAX_BYTES ? len : RAW_MAX_BYTES;
	char *raw = arena_strndup(arena, text, shown);

	for (size_t i = 0; i < shown && !arena_failed(arena); i++)
		if (raw[i] == '\0')
			raw[i] = ' ';
	*ret = (struct error_record){ .raw = raw, .raw_why = why };
}

/* Of a file that is longer than what is read, all that was read counts; of one that was not written
 * to its end, what is whole. */
static void parse_copy(const struct cjson *c, const char *text, size_t len, char *copy,
	struct arena *arena, struct error_record *ret)
{
	struct python_json json;
	bool is_cut;
	cJSON *root;

	memcpy(copy, text, len);
	copy[len] = '\0';
	python_json_mend(&json, copy, len);
	is_cut = json.depth > 0;
	/* half a sentence may name another cause than the whole one */
	python_json_close(&json, len >= RECORD_MAX_BYTES);
	copy[json.len] = '\0';
	/* with its NUL: cJSON 1.7.15 reads one byte too far in a text that ends in a number
	 * (CVE-2023-53154) */
	root = c->parse(copy, json.len + 1);
	if (!root || !read_root(c, root, arena, ret))
		set_raw(text, len,
			len >= RECORD_MAX_BYTES ? "too long to be read whole" :
				root && !is_cut ? "without a message" :
						  "truncated, or not JSON",
			arena, ret);
	c->free(root);
}

void record_parse(const struct cjson *c, const char *missing, const char *text, size_t len,
	struct arena *arena, struct error_record *ret)
{
	char *copy = c && len > 0 ? malloc(len + PYTHON_JSON_CLOSE + 1) : NULL;

	*ret = (struct error_record){ 0 };
	if (copy)
		parse_copy(c, text, len, copy, arena, ret);
	else
		set_raw(text, len,
			len == 0  ? "empty" :
				c ? "not parsed (out of memory)" :
				    arena_printf(arena, "not parsed (%s)", missing),
			arena, ret);
	free(copy);
}

void record_read(const char *path, struct arena *arena, struct record_text *ret)
{
	/* a FIFO must not hold us up, nor a link of a worker's that is another user lead us on */
	autoclose fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	struct stat st;
	char *text;
	long len;

	*ret = (struct record_text){ 0 };
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return;
	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)failure_set(&ret->why, -errno, "%s can't be read: %s", path, strerror(errno));
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		(void)failure_set(&ret->why, -EINVAL, "%s is not a regular file", path);
		return;
	}
	text = arena_alloc(arena, RECORD_MAX_BYTES + 1);
	if (!text) {
		(void)failure_oom(&ret->why);
		return;
	}
	len = fd_read_up_to(fd, text, RECORD_MAX_BYTES);
	if (len < 0)
		(void)failure_set(
			&ret->why, (int)len, "%s can't be read: %s", path, strerror((int)-len));
	else
		*ret = (struct record_text){ .at = text, .len = (size_t)len };
}

int record_load(const struct record_text *text, struct arena *arena, struct error_record *ret,
	struct failure *why)
{
	struct failure missing = { 0 };
	struct cjson c = { 0 };
	int rc;

	if (!text->at)
		return failure_copy(why, &text->why);
	rc = cjson_open(NULL, &c, &missing);
	record_parse(rc == 0 ? &c : NULL, missing.text, text->at, text->len, arena, ret);
	cjson_close(&c);
	return arena_failed(arena) ? failure_oom(why) : 1;
}
