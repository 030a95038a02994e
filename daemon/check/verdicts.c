/* verdicts.c - see verdicts.h */
#include "daemon/check/verdicts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "common/failure.h"
#include "common/python_json.h"
#include "common/signame.h"
#include "daemon/os/cjson.h"

enum { NO_PERMISSION = 126, NOT_FOUND = 127 }; /* as shells have them */

/* --- JSON --- */

static const char *string_of(const struct cjson *c, const cJSON *object, const char *name)
{
	const cJSON *item =
		object && (object->type & 0xff) == cJSON_Object ? c->item(object, name) : NULL;

	return item && (item->type & 0xff) == cJSON_String ? item->valuestring : NULL;
}

/* The list that a member is; NULL: none. */
static const cJSON *list_of(const struct cjson *c, const cJSON *object, const char *name)
{
	const cJSON *item = c->item(object, name);

	return item && (item->type & 0xff) == cJSON_Array ? item->child : NULL;
}

/* "XID gpu_xid_79 (GPU-8f6a2c1d)" of the first of the components that are as bad as the whole. */
static void add_component(
	const struct cjson *c, const cJSON *root, const char *severity, char *text, size_t size)
{
	const cJSON *one = list_of(c, root, "affected_components");
	const char *category, *check, *entity;
	size_t len = strlen(text);

	while (one &&
		strcasecmp(
			string_of(c, one, "max_severity") ? string_of(c, one, "max_severity") : "",
			severity) != 0)
		one = one->next;
	if (!one || (one->type & 0xff) != cJSON_Object)
		return;
	category = string_of(c, one, "category");
	check = list_of(c, one, "check_ids") ? list_of(c, one, "check_ids")->valuestring : NULL;
	entity = list_of(c, one, "entities") ? list_of(c, one, "entities")->valuestring : NULL;
	if (!category && !check && !entity)
		return;
	(void)snprintf(text + len, size - len, ": %s%s%s%s%s%s", category ? category : "",
		category && check ? " " : "", check ? check : "", entity ? " (" : "",
		entity ? entity : "", entity ? ")" : "");
}

/* False: it is no verdict. */
static bool read_severity(
	const struct cjson *c, const cJSON *root, char *text, size_t size, enum health *ret)
{
	static const struct {
		const char *word;
		enum health health;
	} severities[] = {
		{ "PASS", HEALTH_GOOD },
		{ "INFO", HEALTH_GOOD },
		{ "WARNING", HEALTH_GOOD },
		{ "CRITICAL", HEALTH_BAD },
		{ "UNKNOWN", HEALTH_UNKNOWN },
	};
	const char *word = string_of(c, root, "overall_severity");

	for (size_t i = 0; word && i < sizeof severities / sizeof *severities; i++)
		if (strcasecmp(word, severities[i].word) == 0) {
			*ret = severities[i].health;
			(void)snprintf(text, size, "its verdict is %s", severities[i].word);
			if (i > 0)
				add_component(c, root, word, text, size);
			return true;
		}
	return false;
}

/* What stands before it, or behind, are words of a wrapper's. */
static bool read_json(const struct said *s, char *text, size_t size, enum health *ret)
{
	const char *begin = memchr(s->out, '{', s->out_len);
	struct failure unused = { 0 };
	struct python_json json;
	struct cjson c;
	cJSON *root;
	char *copy;
	bool found;

	if (!begin || !strstr(begin, "\"overall_severity\"") || cjson_open(NULL, &c, &unused) < 0)
		return false;
	copy = strdup(begin);
	if (copy)
		python_json_mend(&json, copy, strlen(copy));
	root = copy ? c.parse(copy, json.len + 1) : NULL;
	found = root && read_severity(&c, root, text, size, ret);
	c.free(root);
	free(copy);
	cjson_close(&c);
	return found;
}

/* --- lines --- */

/* What LBNL's NHC says of the check that failed. */
static const char *nhc_reason(const char *out)
{
	static const char mark[] = "Health check failed:";
	const char *at = strstr(out, mark);

	if (!at)
		return NULL;
	at += sizeof mark - 1;
	return at + strspn(at, " \t");
}

/* The last line with anything in it; NULL: there is none. */
static const char *last_line(const char *out, size_t len)
{
	while (len > 0 && strchr(" \t\r\n", out[len - 1]))
		len--;
	if (len == 0)
		return NULL;
	while (len > 0 && out[len - 1] != '\n')
		len--;
	return out + len;
}

enum health verdict_of(const struct said *s, char *text, size_t size)
{
	int code = WIFEXITED(s->status) ? WEXITSTATUS(s->status) : 0;
	const char *reason = nhc_reason(s->out);
	enum health health;

	if (read_json(s, text, size, &health))
		return health;
	if (WIFSIGNALED(s->status)) {
		(void)snprintf(text, size, "it was killed by %s", signal_name(WTERMSIG(s->status)));
		return HEALTH_UNKNOWN;
	}
	if (code == 0) {
		(void)snprintf(text, size, "exit code 0");
		return HEALTH_GOOD;
	}
	reason = reason ? reason : nhc_reason(s->err);
	reason = reason ? reason : last_line(s->err, s->err_len);
	reason = reason ? reason : last_line(s->out, s->out_len);
	(void)snprintf(text, size, "exit code %d%s%.*s", code, reason ? ": " : "",
		reason ? (int)strcspn(reason, "\r\n") : 0, reason ? reason : "");
	return code == NO_PERMISSION || code == NOT_FOUND ? HEALTH_UNKNOWN : HEALTH_BAD;
}
