/* test_death_notice.c - what a guard tells other nodes of its supervisor's death, and how they hear
 * it. The guard is a child of the test's process, which is the supervisor and the others, too. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/net/death_notice.h"
#include "tests/unit/daemon/net/channel.h"

enum { TIMEOUT_MS = 20000, TYPE = 77 };

struct trial {
	struct channel c;
	struct death_notice o;
};

static void on_message(struct link *l, unsigned type, const unsigned char *payload, size_t len)
{
	struct end *e = l->owner;

	(void)payload;
	assert_int_equal(type, TYPE);
	e->messages++;
	e->bytes += len;
}

/* `dialers` of them; the dying one is the hub, where it has several, else the only dialer. */
static void make(struct trial *t, const char *key, unsigned dialers)
{
	channel_make(&t->c, key, key, on_message);
	channel_beat(&t->c, TIMEOUT_MS);
	death_notice_make(&t->o);
	for (unsigned i = 0; i < dialers; i++)
		channel_dial(&t->c, i);
	channel_run_until(&t->c, CHANNEL_READY, dialers);
	*(dialers > 1 ? &t->c.hub_beat.death_notice : &t->c.dialer_beat.death_notice) = &t->o;
	for (unsigned i = 0; i < dialers; i++) { /* as both do when the job begins */
		beat_entrust(&t->c.hub_beat, &t->c.hub[i].link);
		beat_entrust(&t->c.dialer_beat, &t->c.dialer[i].link);
	}
	for (unsigned i = 0; i < dialers; i++) /* the first may have come too early */
		beat_answer(&t->c.dialer_beat, &t->c.dialer[i].link);
	channel_run_ms(&t->c, 100);
}

static void done(struct trial *t)
{
	channel_done(&t->c);
	death_notice_done(&t->o);
}

/* One of the two processes is killed: nothing of what it had open is heard or closed by it. */
static void die(struct trial *t, bool hub)
{
	if (hub)
		for (unsigned i = 0; i < t->c.hub_beat.sockets; i++)
			(void)uv_udp_recv_stop(&t->c.hub_beat.udp[i]);
	else
		(void)uv_udp_recv_stop(&t->c.dialer[0].link.udp);
	(void)uv_timer_stop(hub ? &t->c.hub_beat.timer : &t->c.dialer_beat.timer);
	for (unsigned i = 0; i < CHANNEL_ENDS; i++) {
		struct link *l = hub ? &t->c.hub[i].link : &t->c.dialer[i].link;
		uv_os_fd_t fd;

		if (!l->tcp || uv_fileno((uv_handle_t *)l->tcp, &fd) < 0)
			continue;
		(void)uv_read_stop((uv_stream_t *)l->tcp);
		(void)shutdown(fd, SHUT_WR);
	}
}

static pid_t tell(struct trial *t, int signal)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(death_notice_tell(&t->o, signal) ? 1 : 0);
	return pid;
}

/* Whether the guard says that all know. */
static bool all_know(pid_t guard)
{
	int status;

	assert_int_equal(waitpid(guard, &status, 0), guard);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 1;
}

/* A dialer's death, and what it said last. */
static void test_dialer(void **state)
{
	struct trial t;
	pid_t guard;

	make(&t, *state, 1);
	for (int i = 0; i < 50; i++)
		assert_int_equal(link_send(&t.c.dialer[0].link, TYPE, "last", 4), 0);
	die(&t, false);
	guard = tell(&t, SIGSEGV);
	channel_run_until(&t.c, CHANNEL_HUBS_CLOSED, 1);
	assert_true(all_know(guard));
	assert_int_equal(t.c.hub[0].messages, 50);
	assert_int_equal(t.c.hub[0].link.end, LINK_END_LOST);
	assert_string_equal(t.c.hub[0].why, "its supervisor was killed by SIGSEGV");
	assert_true(t.c.hub[0].link.agreed && t.c.hub[0].link.killed_by == SIGSEGV);
	done(&t);
}

static void test_hub(void **state)
{
	struct trial t;
	pid_t guard;

	make(&t, *state, 3);
	die(&t, true);
	guard = tell(&t, SIGKILL);
	channel_run_until(&t.c, CHANNEL_DIALERS_CLOSED, 3);
	assert_true(all_know(guard));
	for (unsigned i = 0; i < 3; i++) {
		assert_true(t.c.dialer[i].link.agreed);
		assert_string_equal(t.c.dialer[i].why, "its supervisor was killed by SIGKILL");
	}
	done(&t);
}

/* One of three hears nothing: the others know how it was, and that not all do. */
static void test_deaf(void **state)
{
	struct trial t;
	pid_t guard;

	(void)state;
	make(&t, "k", 3);
	(void)uv_udp_recv_stop(&t.c.dialer[1].link.udp);
	die(&t, true);
	guard = tell(&t, SIGKILL);
	channel_run_until(&t.c, CHANNEL_DIALERS_CLOSED, 3);
	assert_false(all_know(guard));
	assert_string_equal(t.c.dialer[0].why, "its supervisor was killed by SIGKILL");
	assert_contains(t.c.dialer[1].why, "ended");
	for (unsigned i = 0; i < 3; i++)
		assert_false(t.c.dialer[i].link.agreed);
	done(&t);
}

/* Both processes were killed: nobody waits for long. */
static void test_nobody_tells(void **state)
{
	struct trial t;
	uint64_t since;

	(void)state;
	make(&t, "k", 1);
	die(&t, false);
	since = uv_hrtime();
	channel_run_until(&t.c, CHANNEL_HUBS_CLOSED, 1);
	assert_true(uv_hrtime() - since < TIMEOUT_MS / 2 * UINT64_C(1000000));
	assert_int_equal(t.c.hub[0].link.end, LINK_END_LOST);
	assert_contains(t.c.hub[0].why, "the connection to ");
	assert_contains(t.c.hub[0].why, " ended");
	assert_int_equal(t.c.hub[0].link.killed_by, 0);
	done(&t);
}

/* A peer that has left, or has no way by UDP. */
static void test_who_is_told(void **state)
{
	struct death_notice_peer p = { .session = 7 };
	struct death_notice o;
	int place;

	(void)state;
	death_notice_make(&o);
	assert_false(death_notice_tell(&o, SIGKILL)); /* there is nobody */
	place = death_notice_add(&o, &p);
	assert_int_equal(place, 0);
	assert_int_equal(death_notice_add(&o, &p), 1);
	death_notice_drop(&o, place);
	assert_int_equal(death_notice_add(&o, &p), 0);
	assert_false(death_notice_tell(&o, SIGKILL)); /* there is no way */
	death_notice_done(&o);
}

static const struct forged_row {
	const char *says;
	int byte; /* one of its bits is flipped; -1: none */
	bool answer, other_key;
	size_t len;
	bool good;
} forged[] = {
	{ "a notice", -1, false, false, NOTICE_DATAGRAM, true },
	{ "an altered kind", 4, false, false, NOTICE_DATAGRAM, false },
	{ "an altered signal", 6, false, false, NOTICE_DATAGRAM, false },
	{ "an altered session", 8, false, false, NOTICE_DATAGRAM, false },
	{ "an altered tag", 16, false, false, NOTICE_DATAGRAM, false },
	{ "a notice of the other direction", -1, false, true, NOTICE_DATAGRAM, false },
	{ "an answer", -1, true, false, NOTICE_DATAGRAM, false },
	{ "half a notice", -1, false, false, NOTICE_DATAGRAM / 2, false },
};

static void test_forged(void **state)
{
	const struct forged_row *row = *state;
	unsigned char d[NOTICE_DATAGRAM], key[NOTICE_KEY];
	const struct link *l;
	struct notice n;
	struct trial t;

	make(&t, "k", 1);
	l = &t.c.dialer[0].link;
	notice_key(&t.c.sodium, row->other_key ? l->beat_in : l->beat_out, key);
	n = (struct notice){ NOTICE_KILLED, row->answer, SIGKILL, l->session };
	notice_write(&n, key, d);
	if (row->byte >= 0)
		d[row->byte] ^= 2;
	assert_int_equal(send(l->udp.io_watcher.fd, d, row->len, 0), row->len);
	channel_run_ms(&t.c, 50);
	assert_int_equal(t.c.hub[0].link.killed_by, row->good ? SIGKILL : 0);
	assert_int_equal(t.c.hub_beat.bad, row->good ? 0 : 1);
	done(&t);
}

TESTS(death_notice)
{
	static char key[] = "k";
	static struct suite s;

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	suite_add(&s, "a dialer's death", test_dialer, NULL, NULL);
	suite_add(&s, "a dialer's death, with a key", test_dialer, NULL, NULL);
	s.at[s.count - 1].initial_state = key;
	suite_add(&s, "a hub's death", test_hub, NULL, NULL);
	suite_add(&s, "a hub's death, with a key", test_hub, NULL, NULL);
	s.at[s.count - 1].initial_state = key;
	suite_add(&s, "one does not hear of it", test_deaf, NULL, NULL);
	suite_add(&s, "nobody tells", test_nobody_tells, NULL, NULL);
	suite_add(&s, "who is told", test_who_is_told, NULL, NULL);
	SUITE_ROWS(&s, test_forged, forged);
	return suite_run(&s);
}
