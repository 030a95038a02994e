/* finding_read.c - see finding_read.h */
#include "daemon/check/finding_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "daemon/check/finding.h"
#include "daemon/os/cjson.h"

static const char *string_of(const struct cjson *c, const cJSON *object, const char *name)
{
	const cJSON *item = c->item(object, name);

	return item && (item->type & 0xff) == cJSON_String ? item->valuestring : NULL;
}

/* A word of a later launchd's is one that this one doesn't know. */
static enum health health_of(const char *word)
{
	for (int h = 0; h < HEALTHS; h++)
		if (strcmp(health_word((enum health)h), word) == 0)
			return (enum health)h;
	return HEALTH_UNKNOWN;
}

static void read_all(const struct cjson *c, const cJSON *list, struct findings *ret)
{
	for (const cJSON *item = list->child; item; item = item->next) {
		const char *check, *subject, *health, *text;

		if ((item->type & 0xff) != cJSON_Object)
			continue;
		check = string_of(c, item, "check");
		subject = string_of(c, item, "subject");
		health = string_of(c, item, "health");
		text = string_of(c, item, "text");
		if (check && health)
			findings_add(ret, health_of(health), check, subject ? subject : "", "%s",
				text ? text : "");
	}
}

/* The array of an object that says what it is. */
static const cJSON *list_of(const struct cjson *c, const cJSON *root)
{
	const cJSON *list, *kind;

	if (!root || (root->type & 0xff) != cJSON_Object)
		return NULL;
	kind = c->item(root, "launchd_node_check");
	list = c->item(root, "findings");
	return kind && list && (list->type & 0xff) == cJSON_Array ? list : NULL;
}

int findings_parse(const char *json, size_t len, struct findings *ret, struct failure *why)
{
	struct cjson c;
	const cJSON *list, *left_out;
	char *copy; /* with a NUL, which cJSON 1.7.15 needs behind a number (CVE-2023-53154) */
	cJSON *root;
	int rc = cjson_open(NULL, &c, why);

	if (rc < 0)
		return rc;
	copy = malloc(len + 1);
	if (!copy) {
		cjson_close(&c);
		return failure_oom(why);
	}
	memcpy(copy, json, len);
	copy[len] = '\0';
	root = c.parse(copy, len + 1);
	list = list_of(&c, root);
	if (list) {
		memset(ret, 0, sizeof *ret);
		left_out = c.item(root, "left_out");
		if (left_out && (left_out->type & 0xff) == cJSON_Number && left_out->valueint > 0)
			ret->left_out = (unsigned)left_out->valueint;
		read_all(&c, list, ret);
	} else {
		rc = failure_set(why, -EINVAL, "findings of a node: not what launchd writes");
	}
	c.free(root);
	free(copy);
	cjson_close(&c);
	return rc;
}
