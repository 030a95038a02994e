/* fuzz_told.c - what nodes tell one another of a check, by the store of its own, and what the
 * commands that check a node write. The first byte says who reads; what can be read is written, and
 * read again as the same. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/check/finding.h"
#include "daemon/check/finding_read.h"
#include "daemon/check/links_told.h"
#include "daemon/check/verdicts.h"
#include "daemon/nodecheck/check_step.h"
#include "daemon/nodecheck/roll_call.h"
#include "daemon/nodecheck/sighting.h"
#include "daemon/os/cjson.h"

enum { RANK = 5, RANKS = 16 };

static bool same(const struct text *a, const struct text *b)
{
	return strcmp(text_string(a), text_string(b)) == 0;
}

/* What isn't UTF-8 grows where it is written, and may be cut where that is read: once. */
static void tell_findings(const char *said)
{
	static struct findings first, second;
	struct text written[2] = { { 0 }, { 0 } };
	struct failure why = { 0 };
	int rc = findings_parse(said, strlen(said), &first, &why);

	PROMISE(rc == 0 || rc == -EINVAL);
	PROMISE((why.code != 0) == (rc < 0));
	for (int i = 0; rc == 0 && i < 2; i++) {
		PROMISE(first.count <= FINDINGS_MAX);
		findings_json(&first, "n7", &written[i]);
		rc = findings_parse(
			text_string(&written[i]), strlen(text_string(&written[i])), &second, &why);
		PROMISE(rc == 0);
		PROMISE(second.count == first.count && second.left_out == first.left_out);
		PROMISE(findings_worst(&second) == findings_worst(&first));
		first = second;
	}
	if (rc == 0) {
		text_done(&written[0]);
		findings_json(&first, "n7", &written[0]);
		PROMISE(same(&written[0], &written[1]));
	}
	text_done(&written[0]);
	text_done(&written[1]);
}

static void tell_links(const char *said)
{
	struct text written = { 0 };
	struct links_told told;
	struct failure why = { 0 };
	int rc = links_told_read(said, &told, &why);

	PROMISE(rc == 0 || rc == -EPROTO);
	PROMISE((why.code != 0) == (rc < 0));
	if (rc == 0) {
		struct links_told again;
		struct text twice = { 0 };

		links_told_write(&told, &written);
		PROMISE(links_told_read(text_string(&written), &again, &why) == 0);
		links_told_write(&again, &twice);
		PROMISE(same(&written, &twice));
		text_done(&twice);
	}
	text_done(&written);
}

static void tell_sight(const char *said)
{
	struct text written = { 0 }, twice = { 0 };
	struct gpu_sight s;
	int rc = sighting_read(said, &s);

	PROMISE(rc == 0 || rc == -EPROTO);
	if (rc == 0) {
		PROMISE(s.what < SIGHTS);
		sighting_write(&s, &written);
		PROMISE(sighting_read(text_string(&written), &s) == 0);
		sighting_write(&s, &twice);
		PROMISE(same(&written, &twice));
	}
	text_done(&written);
	text_done(&twice);
}

static void tell_step(const char *said)
{
	struct step_part part;
	int rc = check_step_read(said, RANK, &part);

	PROMISE(rc == 0 || rc == -ENOENT || rc == -EPROTO);
	if (rc != -EPROTO)
		PROMISE(part.kind < STEP_KINDS);
	if (rc == 0)
		PROMISE(part.rank < part.ranks);
}

static void tell_roll(const char *said)
{
	struct roll_entry e;
	int rc = roll_entry_read(said, RANK, RANKS, &e);

	PROMISE(rc == 0 || rc == -EPROTO);
	if (rc == 0)
		PROMISE(e.came && e.first <= RANK && RANK - e.first < e.count &&
			e.count <= RANKS - e.first && e.host[0]);
}

/* A command's; its first byte is what has become of it. */
static void tell_command(const char *said)
{
	struct said s = { said, strlen(said), "", 0, 0 };
	char text[224];
	enum health health;

	if (s.out_len > 0) {
		s.status = (unsigned char)*s.out++ << 8;
		s.out_len--;
	}
	memset(text, 'x', sizeof text);
	health = verdict_of(&s, text, sizeof text);
	PROMISE(health == HEALTH_GOOD || health == HEALTH_UNKNOWN || health == HEALTH_BAD);
	PROMISE(text[0] && strnlen(text, sizeof text) < sizeof text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static void (*const readers[])(const char *said) = { tell_findings, tell_links, tell_sight,
		tell_step, tell_roll, tell_command };
	static struct cjson cjson; /* open all the time: each reader opens it anew */
	struct failure none;
	char *said;

	if (!cjson.parse)
		PROMISE(cjson_open(NULL, &cjson, &none) == 0);
	if (len == 0)
		return 0;
	said = malloc(len); /* of its own size, so that a byte too far is seen */
	PROMISE(said != NULL);
	memcpy(said, bytes + 1, len - 1);
	said[len - 1] = '\0';
	readers[bytes[0] % (sizeof readers / sizeof *readers)](said);
	free(said);
	return 0;
}
