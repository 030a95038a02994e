/* scrub.c - see scrub.h */
#include "daemon/plan/scrub.h"

#include <stdbool.h>

#include "common/name.h"
#include "config/settings.h"
#include "daemon/launchers/launchers.h"

/* clang-format off */
/* What systemd says to the process that it has started, and to nobody below it. A login shell may have
 * those of the second half, too, of its own unit; they are removed where launchd is the unit. */
static const struct {
	const char *pattern;
	const char *why;
	bool only_service;
} service_rows[] = {
	{ "NOTIFY_SOCKET", "launchd's own: a worker would tell systemd that the service is ready", false },
	{ "WATCHDOG_*", "launchd's own: systemd awaits its signs of life", false },
	{ "LISTEN_*", "descriptors that systemd has handed to launchd", false },
	{ "FDSTORE", "launchd's own: descriptors that systemd keeps", true },
	{ "MAINPID", "of launchd's unit", true },
	{ "MANAGERPID*", "of launchd's unit", true },
	{ "SYSTEMD_EXEC_PID", "of launchd's unit: the pid is launchd's", true },
	{ "INVOCATION_ID", "of launchd's unit", true },
	{ "RUNTIME_DIRECTORY", "launchd's own: its control socket lies there", true },
	{ "STATE_DIRECTORY", "of launchd's unit", true },
	{ "CACHE_DIRECTORY", "of launchd's unit", true },
	{ "LOGS_DIRECTORY", "of launchd's unit", true },
	{ "CONFIGURATION_DIRECTORY", "of launchd's unit", true },
	{ "CREDENTIALS_DIRECTORY", "of launchd's unit: secrets that are launchd's alone", true },
	{ "MEMORY_PRESSURE_*", "of launchd's unit", true },
	{ "TRIGGER_*", "of launchd's unit", true },
};
/* clang-format on */

enum scrub scrub_of_service(const char *name, size_t len, bool service, const char **ret_why)
{
	for (size_t i = 0; i < sizeof service_rows / sizeof *service_rows; i++) {
		if (service_rows[i].only_service && !service)
			continue;
		if (!name_matches(service_rows[i].pattern, name, len))
			continue;
		*ret_why = service_rows[i].why;
		return SCRUB_REMOVE;
	}
	return SCRUB_PASS;
}

enum scrub scrub_of(const char *name, size_t len, enum mpi_env policy, const char **ret_why)
{
	const struct launcher_leak *leak;

	if (name_matches(SETTING_KEY_VARIABLE, name, len)) {
		*ret_why = "key of the job's launchers";
		return SCRUB_REMOVE;
	}
	if (policy == MPI_ENV_KEEP)
		return SCRUB_PASS;
	leak = launcher_leak_of(name, len);
	if (!leak)
		return SCRUB_PASS;
	*ret_why = leak->why;
	return leak->rewritten && policy != MPI_ENV_SCRUB ? SCRUB_REWRITE : SCRUB_REMOVE;
}

unsigned scrub_value(const char *name, size_t len, const struct worker_rank *r)
{
	const struct {
		const char *name;
		unsigned value;
	} own[] = {
		{ "OMPI_COMM_WORLD_RANK", r->rank },
		{ "OMPI_COMM_WORLD_SIZE", r->world_size },
		{ "OMPI_COMM_WORLD_LOCAL_RANK", r->local_rank },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE", r->local_world_size },
		{ "OMPI_COMM_WORLD_NODE_RANK", r->local_rank },
	};

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (name_matches(own[i].name, name, len))
			return own[i].value;
	return 0;
}
