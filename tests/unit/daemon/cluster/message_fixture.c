/* message_fixture.c - see message_fixture.h */
#include "tests/unit/daemon/cluster/message_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/net/wire.h"
#include "daemon/net/wire.h"
#include "tests/unit/unit.h"

struct message message_of(struct wire_out *w)
{
	struct message m = { malloc(w->len), w->len };

	assert_false(w->failed);
	assert_non_null(m.at);
	memcpy(m.at, w->at, w->len);
	wire_out_done(w);
	return m;
}

/* 1: a message of that type has no content. */
static int read_as(enum message_type type, const unsigned char *at, size_t len)
{
	struct arena arena = { 0 };
	struct message_join join;
	struct message_welcome welcome;
	struct message_refused refused;
	struct message_start start;
	struct message_record record;
	struct verdict verdict;
	struct outcome o, *list;
	struct stop stop;
	struct node_end end;
	char text[MESSAGE_TEXT_SIZE];
	unsigned attempt, *ranks;
	size_t count;
	int signal, rc = 1;

	switch (type) {
	case MESSAGE_JOIN:
		rc = message_get_join(at, len, &join);
		break;
	case MESSAGE_WELCOME:
		rc = message_get_welcome(at, len, &arena, &welcome);
		break;
	case MESSAGE_REFUSED:
		rc = message_get_refused(at, len, &refused);
		break;
	case MESSAGE_WAITING:
		rc = message_get_text(at, len, text);
		break;
	case MESSAGE_FAILED:
		rc = message_get_failed(at, len, &o);
		break;
	case MESSAGE_STOP:
		rc = message_get_stop(at, len, &stop);
		break;
	case MESSAGE_SIGNAL:
		rc = message_get_signal(at, len, &signal);
		break;
	case MESSAGE_OUTCOMES:
		rc = message_get_outcomes(at, len, &arena, &attempt, &list, &count);
		break;
	case MESSAGE_RECORD:
		rc = message_get_record(at, len, &arena, &record);
		break;
	case MESSAGE_ENDED:
		rc = message_get_ended(at, len, &end);
		break;
	case MESSAGE_START:
		rc = message_get_start(at, len, &start);
		break;
	case MESSAGE_VERDICT:
		rc = message_get_verdict(at, len, &verdict);
		break;
	case MESSAGE_JOINED:
		rc = message_get_ranks(at, len, &arena, &attempt, &ranks, &count);
		break;
	case MESSAGE_LOG_ROOM:
		rc = message_get_log_room(at, len, &count);
		break;
	case MESSAGE_READY:
	case MESSAGE_LEAVE:
	case MESSAGE_LOG: /* of any length */
	case MESSAGE_END:
		break;
	}
	arena_done(&arena);
	return rc;
}

void assert_whole(enum message_type type, struct message *m)
{
	unsigned char *longer = malloc(m->len + 1);

	assert_int_equal(read_as(type, m->at, m->len), 0);
	for (size_t len = 0; len < m->len; len++) {
		unsigned char *exact = malloc(len + (len == 0));

		assert_non_null(exact);
		memcpy(exact, m->at, len);
		/* outcomes have their number from the length, so that fewer are a message, too */
		if (type == MESSAGE_OUTCOMES && len >= 4 && (len - 4) % OUTCOME_BYTES == 0)
			assert_int_equal(read_as(type, exact, len), 0);
		else
			assert_int_equal(read_as(type, exact, len), -EPROTO);
		free(exact);
	}
	assert_non_null(longer);
	memcpy(longer, m->at, m->len);
	longer[m->len] = 0;
	assert_int_equal(read_as(type, longer, m->len + 1), -EPROTO);
	free(longer);
	free(m->at);
}
