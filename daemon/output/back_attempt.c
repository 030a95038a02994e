/* back_attempt.c - an attempt's files and streams, in the output thread; see post.h */
#include "daemon/output/post.h"

#include <stdlib.h>

#include "daemon/output/log_tree.h"

enum { DRAIN_MS = 1000 /* for pipes that somebody keeps open */ };

static void on_drained(struct logs *l);

static bool is_draining(const struct logs *l)
{
	return l->on_ended == on_drained;
}

/* Until the last of them has its words: see on_drain_over(); in a hurry the timer is for that. */
static void stop_draining(struct output *o)
{
	for (const struct logs *l = o->logs; l; l = l->next)
		if (is_draining(l))
			return;
	if (!o->hurrying)
		(void)uv_timer_stop(&o->drain);
}

/* The words are there. Another attempt's are waited for no longer. */
static void on_drained(struct logs *l)
{
	struct output *o = l->owner;

	l->on_ended = NULL;
	stop_draining(o);
	logs_collect(l);
	uv_mutex_lock(&o->lock);
	if (l->attempt == o->next_attempt) {
		o->told_drained = true;
		if (o->attached)
			(void)uv_async_send(&o->to_main);
	}
	uv_mutex_unlock(&o->lock);
}

/* Nothing but pipes is to be looked at: the words are complete before anybody asks. */
static void on_all_ended(struct logs *l)
{
	struct output *o = l->owner;

	l->on_ended = NULL;
	logs_collect(l);
	uv_mutex_lock(&o->lock);
	o->collected = l;
	uv_mutex_unlock(&o->lock);
}

void writer_start(struct output *o)
{
	struct logs *l = o->logs;

	if (!l->dir)
		l->on_ended = on_all_ended;
	logs_start(l);
}

static void on_drain_over(uv_timer_t *t)
{
	const struct output *o = t->data;

	for (struct logs *l = o->logs; l; l = l->next)
		if (is_draining(l))
			logs_end(l);
}

void writer_drain(struct output *o)
{
	struct logs *l = o->logs;

	if (l->going == 0) {
		on_drained(l);
		return;
	}
	l->on_ended = on_drained;
	logs_drain(l);
	(void)uv_timer_start(&o->drain, on_drain_over, DRAIN_MS, 0);
}

static int make_run_dir(struct output *o, const struct plan *plan, struct failure *why)
{
	int rc = tree_make_run(
		plan->output.log_dir, plan->run_id, plan->env, &o->memory, &o->run_dir, why);
	struct text note = { 0 };

	if (rc < 0 || plan->output.log_dir)
		return rc;
	text_printf(&note, "log files of the workers: %s", o->run_dir); /* nobody could guess it */
	writer_say(o, false, text_string(&note));
	text_done(&note);
	return 0;
}

static void drop_logs(struct logs *l)
{
	if (l)
		logs_done(l);
	free(l);
}

static int make_logs(struct output *o, const struct plan *plan, unsigned attempt, struct logs **ret,
	struct failure *why)
{
	struct logs *l = calloc(1, sizeof *l);
	int rc = 0;

	if (!l)
		return failure_oom(why);
	if (plan->output.tree && !o->run_dir)
		rc = make_run_dir(o, plan, why);
	if (rc == 0)
		rc = logs_init(l, plan, attempt, o->run_dir, o->host.hostname, &o->shared,
			merge_consoles(o), why);
	if (rc < 0) {
		drop_logs(l);
		return rc;
	}
	l->owner = o;
	*ret = l;
	return 0;
}

/* No logs but the current ones are in the main thread's hands. */
void writer_let_go(struct output *o)
{
	for (struct logs *l = o->logs; l; l = l->next)
		l->done = true;
}

/* Meanwhile the job may have gone on to another attempt, which comes next. */
static void tell_prepared(
	struct output *o, unsigned attempt, struct logs *l, int rc, const struct failure *why)
{
	uv_mutex_lock(&o->lock);
	if (attempt == o->next_attempt) {
		o->prepared = l;
		o->prepared_rc = rc;
		o->prepared_why = *why;
		o->told_prepared = true;
		if (o->attached)
			(void)uv_async_send(&o->to_main);
	}
	uv_mutex_unlock(&o->lock);
}

static void adopt(struct output *o, struct logs *l)
{
	writer_let_go(o);
	if (!l)
		return;
	l->next = o->logs;
	o->logs = l;
}

void writer_prepare(struct output *o, const struct plan *plan, unsigned attempt)
{
	struct failure why = { 0 };
	struct logs *l = NULL;
	int rc = make_logs(o, plan, attempt, &l, &why);

	adopt(o, l);
	tell_prepared(o, attempt, l, rc, &why);
}

bool writer_prepare_at_once(struct output *o, const struct plan *plan, unsigned attempt)
{
	struct failure why = { 0 };
	struct logs *l = NULL, *unseen;
	int rc;

	if (plan->output.tree || plan->output.merge)
		return false;
	rc = make_logs(o, plan, attempt, &l, &why);
	uv_mutex_lock(&o->lock);
	unseen = o->fresh; /* of an attempt that was not started */
	o->fresh = l;
	o->orders |= ORDER_ADOPT; /* with the next order */
	uv_mutex_unlock(&o->lock);
	drop_logs(unseen);
	tell_prepared(o, attempt, l, rc, &why);
	return true;
}

void writer_adopt(struct output *o)
{
	struct logs *l;

	uv_mutex_lock(&o->lock);
	l = o->fresh;
	o->fresh = NULL;
	uv_mutex_unlock(&o->lock);
	adopt(o, l);
}
