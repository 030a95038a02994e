/* controllers.c - see controllers.h */
#include "daemon/workers/controllers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/plan/plan.h"

static const char *const names[CONTROLLERS] = {
	[CONTROLLER_MEMORY] = "memory",
	[CONTROLLER_CPU] = "cpu",
	[CONTROLLER_PIDS] = "pids",
};

unsigned controllers_parse(const char *list)
{
	unsigned set = 0;

	while (*list) {
		size_t len = strcspn(list, " \n");

		for (unsigned c = 0; c < CONTROLLERS; c++)
			if (strlen(names[c]) == len && strncmp(list, names[c], len) == 0)
				set |= CONTROLLER_BIT(c);
		list += len;
		list += strspn(list, " \n");
	}
	return set;
}

void controllers_add(struct text *out, unsigned set, char sign)
{
	const char *between = "";

	for (unsigned c = 0; c < CONTROLLERS; c++) {
		if (!(set & CONTROLLER_BIT(c)))
			continue;
		if (sign)
			text_printf(out, "%s%c%s", between, sign, names[c]);
		else
			text_printf(out, "%s%s", between, names[c]);
		between = sign ? " " : ", ";
	}
}

unsigned limits_need(const struct worker_limits *l)
{
	return (l->memory_bytes ? CONTROLLER_BIT(CONTROLLER_MEMORY) : 0) |
		(l->cpus ? CONTROLLER_BIT(CONTROLLER_CPU) : 0) |
		(l->pids ? CONTROLLER_BIT(CONTROLLER_PIDS) : 0);
}

const char *limits_from(const struct worker_limits *l, unsigned set)
{
	unsigned both = set & limits_need(l);

	if (both & CONTROLLER_BIT(CONTROLLER_MEMORY))
		return l->memory_from;
	if (both & CONTROLLER_BIT(CONTROLLER_CPU))
		return l->cpus_from;
	return both ? l->pids_from : NULL;
}

__attribute__((format(printf, 4, 5))) static void add_file(
	struct limit_file *files, size_t *count, const char *name, const char *fmt, ...)
{
	struct limit_file *f = &files[(*count)++];
	va_list ap;

	f->name = name;
	va_start(ap, fmt);
	(void)vsnprintf(f->text, sizeof f->text, fmt, ap);
	va_end(ap);
}

size_t limits_files(const struct worker_limits *l, struct limit_file ret[LIMIT_FILES_MAX])
{
	enum { PERIOD_US = 100000 }; /* the kernel's own default */
	size_t count = 0;

	if (l->memory_bytes) {
		add_file(ret, &count, "memory.max", "%llu", (unsigned long long)l->memory_bytes);
		add_file(ret, &count, "memory.oom.group", "1");
		add_file(ret, &count, "memory.swap.max", "0");
	}
	if (l->cpus)
		add_file(ret, &count, "cpu.max", "%llu %u",
			(unsigned long long)l->cpus * (PERIOD_US / 1000), (unsigned)PERIOD_US);
	if (l->pids)
		add_file(ret, &count, "pids.max", "%llu", (unsigned long long)l->pids);
	return count;
}
