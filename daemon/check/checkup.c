/* checkup.c - see checkup.h */
#include "daemon/check/checkup.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/monotonic.h"
#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "daemon/store/visit.h"

/* How long a node is waited for beyond its phase's own limit: at first its launcher still opens
 * files when others are ready. The others wait for node rank 0's judgement for longer than that. */
enum { ANSWER_MS = 5000, ARRIVAL_MS = 5000, REST_MS = 2000, JUDGE_MS = 10000 };
enum { KEY_SIZE = 96, TOLD_MAX = 512 << 10 };
enum { TOLD = '=', FAILED = '?' }; /* the first byte of what a node has to tell */

struct notes_left;

static const char go_on[] = "go", stop_here[] = "stop";

/* One phase on this node. */
struct check_pass {
	const struct checkup_input *in;
	struct checkup_answer *ret;
	struct notes_left *notes;
	const struct phase *phase;
	struct phase_input input;
	char keys[KEY_SIZE];
	int64_t began_ms;
	uint64_t limit_ms;
	unsigned grace_ms; /* for the nodes' answers, beyond the phase's limit */
};

size_t checkup_answer_size(unsigned nnodes)
{
	return sizeof(struct checkup_answer) + nnodes * sizeof(struct checkup_node);
}

static uint64_t limit_of(const struct phase *p, const struct settings *s)
{
	return p->limit_ms + (p->more_ms ? p->more_ms(s) : 0);
}

uint64_t checkup_limit_ms(
	const struct phase *const *phases, unsigned wanted, const struct settings *s)
{
	uint64_t ms = ANSWER_MS + ARRIVAL_MS;

	for (unsigned i = 0; wanted >> i; i++)
		if (wanted & 1U << i)
			ms += limit_of(phases[i], s) + REST_MS + JUDGE_MS;
	return ms;
}

void finding_add(struct text *out, const struct finding *f)
{
	const char *of = *f->subject ? f->subject : f->check;
	size_t room = *f->subject ? sizeof f->subject : sizeof f->check;

	text_add_shown(out, of, strnlen(of, room));
	text_add(out, ": ");
	text_add_shown(out, f->text, strnlen(f->text, sizeof f->text));
}

static struct finding unknown(const char *check, const char *text)
{
	struct finding f = { .health = HEALTH_UNKNOWN };

	(void)snprintf(f.check, sizeof f.check, "%s", check);
	text_fit(f.text, sizeof f.text, text);
	return f;
}

/* --- what a node measures --- */

/* What the process that measures leaves for the one that started it, in memory that both share. */
struct notes_left {
	volatile size_t len; /* of text, once it is whole; 0: it is not */
	char text[TOLD_MAX];
};

/* What this node has to tell, good or not. */
static void measure(const struct check_pass *s, struct notes_left *ret)
{
	struct failure why = { 0 };
	struct text told = { 0 };

	text_add_bytes(&told, &(char){ TOLD }, 1);
	if (s->phase->measure(&s->input, &told, &why) < 0 || told.failed || told.len > TOLD_MAX) {
		text_done(&told);
		text_add_bytes(&told, &(char){ FAILED }, 1);
		text_add(&told, why.code < 0 ? why.text : "it has more to tell than there is room");
	}
	if (told.failed || told.len > TOLD_MAX)
		return;
	memcpy(ret->text, told.at, told.len);
	ret->len = told.len;
}

/* In a process of its own, by a connection of its own: what measures may hang, crash, or be killed
 * within a word to the store. */
static pid_t measure_apart(const struct check_pass *s, struct notes_left *ret)
{
	const pid_t parent = getpid();
	struct visit v = { .fd = -1 };
	struct failure why = { 0 };
	struct check_pass own = *s;
	pid_t child = fork();

	if (child != 0)
		return child;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	if (s->input.visit) {
		own.input.visit = &v;
		(void)visit_open(&v, s->in->host, s->in->port, ANSWER_MS, &why);
	}
	measure(&own, ret);
	_exit(0);
}

/* Waits for the one child of this process, for which SIGCHLD is blocked. False: it still runs. */
static bool await_child(pid_t child, int64_t until_ms, int *ret_status)
{
	const struct timespec at_once = { 0 };
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		int left = monotonic_left_ms(until_ms);
		const struct timespec wait = { left / 1000, left % 1000 * 1000000L };

		if (waitpid(child, ret_status, WNOHANG) == child)
			return true;
		if (left == 0)
			break;
		(void)sigtimedwait(&chld, NULL, &wait);
	}
	/* who hangs in the kernel is left to the launcher, which ends all that is below it */
	(void)kill(child, SIGKILL);
	(void)sigtimedwait(&chld, NULL, &at_once);
	(void)waitpid(child, NULL, WNOHANG);
	return false;
}

static void note_failure(struct notes_left *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void note_failure(struct notes_left *n, const char *fmt, ...)
{
	va_list ap;
	int len;

	n->text[0] = FAILED;
	va_start(ap, fmt);
	len = vsnprintf(n->text + 1, 256, fmt, ap);
	va_end(ap);
	n->len = 1 + (size_t)(len < 255 ? len : 255);
}

/* Measures within the phase's time; what is left there is whole then. */
static void let_measure(const struct check_pass *s, struct notes_left *n)
{
	int64_t until_ms = s->began_ms + (int64_t)s->limit_ms;
	int status = 0;
	pid_t child;

	n->len = 0;
	child = measure_apart(s, n);
	if (child < 0)
		note_failure(n, "it has no process for that: %s", strerror(errno));
	else if (!await_child(child, until_ms, &status))
		note_failure(n, "it did not end within %s s", num_seconds(s->limit_ms).text);
	else if (n->len > TOLD_MAX)
		note_failure(n, "its process left nothing that makes sense");
	else if (n->len == 0 && WIFSIGNALED(status))
		note_failure(n, "its process was killed by %s", signal_name(WTERMSIG(status)));
	else if (n->len == 0)
		note_failure(n, "its process ended early");
}

static void told_key(const struct check_pass *s, unsigned node, char ret[KEY_SIZE])
{
	(void)snprintf(ret, KEY_SIZE, "%.64stold/%u", s->keys, node);
}

static int measure_and_tell(const struct check_pass *s, struct failure *why)
{
	char key[KEY_SIZE];

	let_measure(s, s->notes);
	told_key(s, s->in->node, key);
	return visit_set(s->input.visit, key, s->notes->text, s->notes->len, why);
}

/* --- node rank 0 judges --- */

/* Whether one line tells both: the same of several nodes, or of one thing in several checks. */
static bool is_same_doubt(const struct finding *a, const struct finding *b)
{
	return strcmp(a->text, b->text) == 0 &&
		(strcmp(a->check, b->check) == 0 ||
			(*a->subject && strcmp(a->subject, b->subject) == 0));
}

/* A doubt about several nodes is told once. last: the node that each was counted for last. */
static void add_doubt(
	struct checkup_answer *ret, unsigned node, const struct finding *f, unsigned *last)
{
	for (unsigned i = 0; i < ret->doubts; i++) {
		struct checkup_doubt *d = &ret->doubt[i];

		if (!is_same_doubt(&d->finding, f))
			continue;
		d->nodes += last[i] != node ? 1 : 0;
		d->first = node < d->first ? node : d->first;
		if (strcmp(d->finding.subject, f->subject) != 0)
			d->finding.subject[0] = '\0';
		last[i] = node;
		return;
	}
	if (ret->doubts == DOUBTS_MAX) {
		ret->doubts_left_out++;
		return;
	}
	last[ret->doubts] = node;
	ret->doubt[ret->doubts++] = (struct checkup_doubt){ 1, node, *f };
}

/* Takes down what is said of the nodes. Whether a node is bad. */
static bool record(struct checkup_answer *ret, unsigned nnodes, const struct charges *c)
{
	unsigned last[DOUBTS_MAX];
	bool bad = false;

	memset(last, 0xff, sizeof last);
	for (size_t i = 0; i < c->count; i++) {
		const struct charge *one = &c->at[i];
		struct checkup_node *n = &ret->node[one->node];

		if (one->node >= nnodes || one->finding.health == HEALTH_GOOD)
			continue;
		if (one->finding.health == HEALTH_UNKNOWN) {
			add_doubt(ret, one->node, &one->finding, last);
			n->health = n->health == HEALTH_BAD ? HEALTH_BAD : HEALTH_UNKNOWN;
			continue;
		}
		if (n->bad++ == 0)
			n->reason = one->finding;
		n->health = HEALTH_BAD;
		bad = true;
	}
	return bad;
}

/* What a node that has nothing for the judge is charged with. NULL: it has. */
static const char *excuse(
	const struct check_pass *s, unsigned node, const char *told, char room[224])
{
	if (told && *told == TOLD)
		return NULL;
	if (told)
		return told + 1;
	if (s->in->absent && s->in->absent[node])
		return "its launchd has not joined the job";
	(void)snprintf(room, 224, "it did not answer within %s s", num_seconds(s->limit_ms).text);
	return room;
}

/* Whether the check ends here. told: as it came, NULL where nothing did. */
static bool judge(const struct check_pass *s, char *const *told, unsigned nnodes)
{
	unsigned mute = 0;
	const char **words = calloc(nnodes, sizeof *words);
	struct charges charges = { 0 };
	struct failure why = { 0 };
	char room[224];
	bool bad;

	for (unsigned i = 0; words && i < nnodes; i++) {
		const char *none = excuse(s, i, told[i], room);
		struct finding f = unknown(s->phase->name, none ? none : "");

		mute += none ? 1 : 0;
		if (none)
			charges_add(&charges, i, &f);
		else
			words[i] = told[i] + 1;
	}
	if (!words || charges.failed)
		(void)failure_oom(&why);
	else
		(void)s->phase->judge(&s->input, words, &charges, &why);
	for (unsigned i = 0; why.code < 0 && i < nnodes; i++) {
		struct finding f = unknown(s->phase->name, why.text);

		charges_add(&charges, i, &f);
	}
	bad = record(s->ret, nnodes, &charges);
	s->ret->mute = mute > s->ret->mute ? mute : s->ret->mute;
	s->ret->judged++;
	charges_done(&charges);
	free(words);
	return bad && s->in->stop;
}

/* What the nodes tell, until the phase's time is over. */
static int collect(const struct check_pass *s, char **told, struct failure *why)
{
	int64_t until_ms = s->began_ms + (int64_t)s->limit_ms + s->grace_ms;
	int rc = 0;

	for (unsigned i = 0; i < s->in->nnodes && rc == 0; i++) {
		struct text t = { 0 };
		char key[KEY_SIZE];

		if (s->in->absent && s->in->absent[i])
			continue;
		told_key(s, i, key);
		rc = visit_get(s->input.visit, key, monotonic_left_ms(until_ms), &t, why);
		told[i] = rc == 0 && t.len > 0 ? t.at : NULL;
		rc = rc == -ETIMEDOUT && why->code == 0 ? 0 : rc;
	}
	return rc;
}

/* --- a phase, on each kind of node: 0, 1 where the check ends with it, or negative errno --- */

static int lead(const struct check_pass *s, struct failure *why)
{
	char **told = calloc(s->in->nnodes, sizeof *told);
	char key[KEY_SIZE];
	bool over;
	int rc;

	if (!told)
		return failure_oom(why);
	rc = measure_and_tell(s, why);
	if (rc == 0)
		rc = collect(s, told, why);
	over = rc == 0 && judge(s, told, s->in->nnodes);
	for (unsigned i = 0; i < s->in->nnodes; i++)
		free(told[i]);
	free(told);
	if (rc < 0)
		return rc;
	(void)snprintf(key, sizeof key, "%.64snext", s->keys);
	rc = visit_set(s->input.visit, key, over ? stop_here : go_on,
		over ? sizeof stop_here - 1 : sizeof go_on - 1, why);
	return rc < 0 ? rc : over;
}

/* The store closes with the check. */
static bool is_closed(int rc)
{
	return rc == -ECONNRESET || rc == -EPIPE;
}

static int follow(const struct check_pass *s, bool last, struct failure *why)
{
	int64_t until_ms = s->began_ms + (int64_t)s->limit_ms + s->grace_ms + JUDGE_MS;
	struct failure ignored = { 0 };
	struct text next = { 0 };
	char key[KEY_SIZE];
	int rc = measure_and_tell(s, why);

	if (rc < 0 || last)
		return rc;
	(void)snprintf(key, sizeof key, "%.64snext", s->keys);
	rc = visit_get(s->input.visit, key, monotonic_left_ms(until_ms), &next, &ignored);
	if (rc == 0)
		rc = strcmp(text_string(&next), stop_here) == 0;
	else if (is_closed(rc))
		rc = 1;
	else
		(void)failure_set(why, rc, "node rank 0 has not judged what the nodes measured%s%s",
			*ignored.text ? ": " : "", ignored.text);
	text_done(&next);
	return rc;
}

static int be_alone(const struct check_pass *s)
{
	char *told = calloc(1, TOLD_MAX + 1);
	bool over;

	let_measure(s, s->notes);
	if (told)
		memcpy(told, s->notes->text, s->notes->len);
	over = judge(s, (char *const[]){ told }, 1);
	free(told);
	return over;
}

static int pass(const struct checkup_input *in, unsigned id, struct visit *v,
	struct notes_left *notes, struct checkup_answer *ret, struct failure *why)
{
	struct check_pass s = {
		.in = in,
		.ret = ret,
		.phase = in->phases[id],
		.notes = notes,
		.began_ms = monotonic_ms(),
		.limit_ms = limit_of(in->phases[id], in->settings),
		.grace_ms = ret->helper.step == 0 ? ARRIVAL_MS + REST_MS : REST_MS,
	};

	(void)snprintf(s.keys, sizeof s.keys, "check/%u/%.32s/", in->attempt, s.phase->name);
	s.input = (struct phase_input){
		.settings = in->settings,
		.env = in->env,
		.attempt = in->attempt,
		.node = in->node,
		.nnodes = in->nnodes,
		.visit = in->port ? v : NULL,
		.keys = s.keys,
		.store_host = in->host,
		.store_port = in->port,
		.until_ms = s.began_ms + (int64_t)s.limit_ms,
		.hosts = in->hosts,
		.clocks = in->clocks,
		.xids = in->xids,
		.spaces = in->spaces,
		.left = in->left,
		.left_count = in->left_count,
		.ret_gpus = &ret->gpus,
	};
	ret->helper.step = id + 1;
	if (!in->port)
		return be_alone(&s);
	return in->node == 0 ? lead(&s, why) : follow(&s, in->wanted >> id == 1, why);
}

static int block_child_signals(struct failure *why)
{
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL) < 0)
		return failure_set(why, -errno, "sigprocmask: %s", strerror(errno));
	return 0;
}

int checkup_run(const struct checkup_input *in, struct checkup_answer *ret, struct failure *why)
{
	struct visit v = { .fd = -1 };
	struct notes_left *notes = mmap(
		NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc = notes == MAP_FAILED ? failure_oom(why) : block_child_signals(why);

	if (rc == 0 && in->port)
		rc = visit_open(&v, in->host, in->port, ANSWER_MS, why);
	for (unsigned id = 0; in->wanted >> id && rc == 0; id++)
		if (in->wanted & 1U << id)
			rc = pass(in, id, &v, notes, ret, why);
	visit_close(&v);
	if (notes != MAP_FAILED)
		(void)munmap(notes, sizeof *notes);
	return rc < 0 ? rc : 0;
}

/* --- what the launcher reads --- */

static void trust_finding(struct finding *f)
{
	f->check[sizeof f->check - 1] = '\0';
	f->subject[sizeof f->subject - 1] = '\0';
	f->text[sizeof f->text - 1] = '\0';
}

void checkup_trust(struct checkup_answer *a, unsigned nnodes)
{
	if (a->doubts > DOUBTS_MAX)
		a->doubts = DOUBTS_MAX;
	for (unsigned i = 0; i < a->doubts; i++) {
		struct checkup_doubt *d = &a->doubt[i];

		if (d->first >= nnodes)
			d->first = 0;
		trust_finding(&d->finding);
	}
	for (unsigned i = 0; i < nnodes; i++) {
		struct checkup_node *n = &a->node[i];

		if (n->health != HEALTH_UNKNOWN && n->health != HEALTH_BAD)
			n->health = HEALTH_GOOD;
		trust_finding(&n->reason);
	}
}
