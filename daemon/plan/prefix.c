/* prefix.c - see prefix.h */
#include "daemon/plan/prefix.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/template.h"
#include "common/utc.h"

int prefix_render(const char *template, const struct prefix_values *v, struct text *out)
{
	char local_rank[16], rank[16], node_rank[16], time[PREFIX_TIME_SIZE];
	const struct template_value values[] = {
		{ "role_name", v->role_name },
		{ "local_rank", local_rank },
		{ "rank", rank },
		{ "hostname", v->hostname },
		{ "node_rank", node_rank },
		{ "stream", v->fd == 1 ? "stdout" : "stderr" },
		{ "time", time },
	};

	(void)snprintf(local_rank, sizeof local_rank, "%u", v->local_rank);
	(void)snprintf(rank, sizeof rank, "%u", v->rank);
	(void)snprintf(node_rank, sizeof node_rank, "%u", v->node_rank);
	prefix_time(v->wall_ns, time);
	out->len = 0;
	text_add(out, ""); /* that there is a text, of an empty template too */
	template_expand(template, values, sizeof values / sizeof *values, out);
	if (out->failed) {
		text_done(out);
		return -ENOMEM;
	}
	if (out->len > PREFIX_MAX) {
		out->len = PREFIX_MAX;
		for (int i = 0; i < 3 && ((unsigned char)out->at[out->len] & 0xc0) == 0x80; i++)
			out->len--;
		out->at[out->len] = '\0';
	}
	return 0;
}

bool prefix_has_time(const char *template)
{
	/* a value that nothing else in a template can become */
	static const struct template_value probe = { "time", "\n" };
	struct text out = { 0 };
	bool found;

	template_expand(template, &probe, 1, &out);
	found = out.failed || strchr(text_string(&out), '\n');
	text_done(&out);
	return found;
}

void prefix_time(int64_t wall_ns, char ret[PREFIX_TIME_SIZE])
{
	char moment[UTC_SIZE];

	utc_write(moment, wall_ns, 3);
	memcpy(ret, moment, PREFIX_TIME_SIZE);
}
