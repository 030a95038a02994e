/* goodput_json.c - see goodput_json.h */
#include "daemon/report/goodput_json.h"

#include "common/json.h"
#include "daemon/job/goodput.h"
#include "daemon/report/outcome_json.h"

enum { NS_PER_MS = 1000000, MS_DIGITS = 3 };

static void add_time(struct json *j, const char *key, uint64_t ns)
{
	json_decimal(j, key, ns / NS_PER_MS, MS_DIGITS);
}

static void add_loss(struct json *j, enum cause_kind kind, const struct goodput_loss *l)
{
	json_object_begin(j, NULL);
	json_string(j, "cause", json_cause_word(kind));
	json_number(j, "attempts", l->attempts);
	add_time(j, "seconds", l->ns);
	add_time(j, "work_seconds", l->work_ns);
	json_object_end(j);
}

void json_goodput(struct json *j, const struct goodput *g)
{
	if (!g || g->attempts == 0) {
		json_string(j, "goodput", NULL);
		return;
	}
	json_object_begin(j, "goodput");
	json_decimal(j, "percent", goodput_per_mille(g), 1);
	add_time(j, "seconds", g->total_ns);
	json_number(j, "attempts", g->attempts);
	add_time(j, "running_seconds", g->running_ns);
	add_time(j, "startup_seconds", g->startup_ns);
	add_time(j, "ending_seconds", g->ending_ns);
	json_array_begin(j, "lost");
	for (int i = CAUSE_NONE + 1; i < CAUSE_KINDS; i++)
		if (g->lost[i].attempts > 0)
			add_loss(j, (enum cause_kind)i, &g->lost[i]);
	json_array_end(j);
	json_bool(j, "steps_known", g->knows_steps);
	json_object_end(j);
}
