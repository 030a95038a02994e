/* fuzz_message.c - messages between launchers. The first byte is the message's type; what can be
 * read is written again, byte by byte the same. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/message.h"
#include "daemon/net/wire.h"

/* A message, and room for what it says. */
struct trial {
	const unsigned char *at;
	size_t len;
	struct arena arena;
	struct wire_out out;
};

static int again_meeting(struct trial *t, enum message_type type)
{
	struct message_join join;
	struct message_welcome welcome;
	struct message_refused refused;
	char text[MESSAGE_TEXT_SIZE];
	int rc;

	if (type == MESSAGE_JOIN) {
		rc = message_get_join(t->at, t->len, &join);
		if (rc == 0)
			message_put_join(&t->out, &join);
	} else if (type == MESSAGE_WAITING) {
		rc = message_get_text(t->at, t->len, text);
		if (rc == 0)
			message_put_text(&t->out, text);
	} else if (type == MESSAGE_WELCOME) {
		rc = message_get_welcome(t->at, t->len, &t->arena, &welcome);
		if (rc == 0)
			message_put_welcome(&t->out, &welcome);
	} else {
		rc = message_get_refused(t->at, t->len, &refused);
		if (rc == 0)
			message_put_refused(&t->out, &refused);
	}
	return rc;
}

static int again_stop(struct trial *t, enum message_type type)
{
	struct outcome failed;
	struct stop stop;
	int signal, rc;

	if (type == MESSAGE_FAILED) {
		rc = message_get_failed(t->at, t->len, &failed);
		if (rc == 0)
			message_put_failed(&t->out, &failed);
	} else if (type == MESSAGE_STOP) {
		rc = message_get_stop(t->at, t->len, &stop);
		if (rc == 0)
			message_put_stop(&t->out, &stop);
	} else {
		rc = message_get_signal(t->at, t->len, &signal);
		if (rc == 0)
			message_put_signal(&t->out, signal);
	}
	return rc;
}

static int again_ends(struct trial *t, enum message_type type)
{
	struct message_record record;
	struct node_end end;
	struct outcome *list;
	unsigned attempt;
	size_t count;
	int rc;

	if (type == MESSAGE_OUTCOMES) {
		rc = message_get_outcomes(t->at, t->len, &t->arena, &attempt, &list, &count);
		if (rc == 0)
			message_put_outcomes(&t->out, attempt, list, count);
	} else if (type == MESSAGE_RECORD) {
		rc = message_get_record(t->at, t->len, &t->arena, &record);
		if (rc == 0)
			message_put_record(&t->out, &record);
	} else {
		rc = message_get_ended(t->at, t->len, &end);
		if (rc == 0)
			message_put_ended(&t->out, &end);
	}
	return rc;
}

static int again_over(struct trial *t, enum message_type type)
{
	struct message_start start;
	struct verdict verdict;
	unsigned attempt, *ranks;
	size_t count;
	int rc;

	if (type == MESSAGE_START) {
		rc = message_get_start(t->at, t->len, &start);
		if (rc == 0)
			message_put_start(&t->out, &start);
	} else if (type == MESSAGE_VERDICT) {
		rc = message_get_verdict(t->at, t->len, &verdict);
		if (rc == 0)
			message_put_verdict(&t->out, &verdict);
	} else {
		rc = message_get_ranks(t->at, t->len, &t->arena, &attempt, &ranks, &count);
		if (rc == 0)
			message_put_ranks(&t->out, attempt, ranks, count);
	}
	return rc;
}

static int again_log(struct trial *t, enum message_type type)
{
	const char *bytes;
	size_t len;
	int stream, rc;

	if (type == MESSAGE_LOG) {
		rc = message_get_log(t->at, t->len, &stream, &bytes, &len);
		if (rc == 0)
			message_put_log(&t->out, stream, bytes, len);
	} else {
		rc = message_get_log_room(t->at, t->len, &len);
		if (rc == 0)
			message_put_log_room(&t->out, len);
	}
	return rc;
}

/* Reads a message and writes it again; what the reader returns, 1 for a type without content. */
static int again(struct trial *t, enum message_type type)
{
	switch (type) {
	case MESSAGE_JOIN:
	case MESSAGE_WAITING:
	case MESSAGE_WELCOME:
	case MESSAGE_REFUSED:
		return again_meeting(t, type);
	case MESSAGE_FAILED:
	case MESSAGE_STOP:
	case MESSAGE_SIGNAL:
		return again_stop(t, type);
	case MESSAGE_OUTCOMES:
	case MESSAGE_RECORD:
	case MESSAGE_ENDED:
		return again_ends(t, type);
	case MESSAGE_START:
	case MESSAGE_VERDICT:
	case MESSAGE_JOINED:
		return again_over(t, type);
	case MESSAGE_LOG:
	case MESSAGE_LOG_ROOM:
		return again_log(t, type);
	case MESSAGE_READY:
	case MESSAGE_LEAVE:
	case MESSAGE_END:
		break;
	}
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned char *exact = malloc(len + 1);
	struct trial t = { .at = exact, .len = len > 0 ? len - 1 : 0 };
	int rc;

	PROMISE(exact != NULL);
	if (t.len > 0)
		memcpy(exact, bytes + 1, t.len);
	/* memory of the message's own size: a byte too far is seen */
	exact = realloc(exact, t.len + (t.len == 0));
	PROMISE(exact != NULL);
	t.at = exact;
	rc = len == 0 ? 1 : again(&t, (enum message_type)(MESSAGE_JOIN + bytes[0] % 17));
	PROMISE(rc == 0 || rc == 1 || rc == -EPROTO);
	PROMISE(!t.out.failed && !arena_failed(&t.arena));
	if (rc == 0) {
		PROMISE(t.out.len == t.len);
		PROMISE(t.len == 0 || memcmp(t.out.at, exact, t.len) == 0);
	}
	wire_out_done(&t.out);
	arena_done(&t.arena);
	free(exact);
	return 0;
}
