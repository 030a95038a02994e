/* job_status.c - see job_status.h */
#include "daemon/control/job_status.h"

#include "common/json.h"
#include "common/signame.h"
#include "common/text.h"

enum { NS_PER_MS = 1000000 };

static void add_moment(struct json *j, const char *key, int64_t ns)
{
	if (ns > 0)
		json_decimal(j, key, (uint64_t)ns / NS_PER_MS, 3);
	else
		json_string(j, key, NULL);
}

static void add_usage(struct json *j, const struct worker_status *w)
{
	if (w->has_usage)
		json_decimal(j, "cpu_seconds", w->cpu_ms / 10, 2);
	else
		json_string(j, "cpu_seconds", NULL);
	json_number_if(j, "memory_bytes", w->has_usage, (long long)w->memory_bytes);
}

static void add_worker(struct json *j, const struct worker_status *w)
{
	json_object_begin(j, NULL);
	json_number(j, "rank", w->rank);
	json_number(j, "local_rank", w->local_rank);
	json_number_if(j, "pid", w->pid > 0, w->pid);
	json_string(j, "state", w->state);
	add_moment(j, "started_at", w->started_ns);
	add_moment(j, "ended_at", w->ended_ns);
	json_number_if(j, "exit_code", w->exit_code >= 0, w->exit_code);
	json_string(j, "signal", w->signal > 0 ? signal_name(w->signal) : NULL);
	add_usage(j, w);
	if (w->is_seen)
		json_bool(j, "joined", w->joined);
	else
		json_string(j, "joined", NULL);
	json_string(j, "last_line", w->last_line);
	json_string(j, "stdout", w->files[0]);
	json_string(j, "stderr", w->files[1]);
	json_object_end(j);
}

static void add_job(struct json *j, const struct job_status *s)
{
	json_string(j, "launchd", LAUNCHD_VERSION);
	json_string(j, "name", s->name);
	json_string(j, "run_id", s->run_id);
	json_string(j, "state", s->state);
	json_number(j, "attempt", s->attempt);
	json_number(j, "max_restarts", s->max_restarts);
	json_number(j, "nnodes", s->nnodes);
	json_number(j, "nproc_per_node", s->nproc_per_node);
	json_number(j, "world_size", s->world_size);
	json_number_if(j, "node_rank", s->node_known, s->node_rank);
	json_string(j, "host", s->host);
	json_number(j, "guard_pid", s->guard);
	json_number(j, "supervisor_pid", s->supervisor);
	add_moment(j, "at", s->at_ns);
	add_moment(j, "started_at", s->started_ns);
	add_moment(j, "attempt_started_at", s->attempt_started_ns);
	json_string(j, "stopping", s->stopping);
	json_string(j, "hang", s->hang);
	json_number_if(j, "step", s->step_known, (long long)s->step);
	add_moment(j, "step_at", s->step_at_ns);
	json_string(j, "log_dir", s->log_dir);
}

/* Of the same length as "awaited", which has their numbers. */
static void add_awaited_hosts(struct json *j, const struct job_status *s)
{
	if (!s->node_names) {
		json_string(j, "awaited_hosts", NULL);
		return;
	}
	json_array_begin(j, "awaited_hosts");
	for (size_t i = 0; i < s->awaited_count; i++)
		json_string(j, NULL, s->node_names[s->awaited[i]]);
	json_array_end(j);
}

void job_status_json(const struct job_status *s, struct text *out)
{
	struct json j = { .out = out };

	json_object_begin(&j, NULL);
	add_job(&j, s);
	json_array_begin(&j, "awaited");
	for (size_t i = 0; i < s->awaited_count; i++)
		json_number(&j, NULL, s->awaited[i]);
	json_array_end(&j);
	add_awaited_hosts(&j, s);
	json_array_begin(&j, "workers");
	for (size_t i = 0; i < s->worker_count; i++)
		add_worker(&j, &s->workers[i]);
	json_array_end(&j);
	json_raw(&j, "placement", s->placement ? s->placement : "null");
	json_object_end(&j);
}
