/* self_check.c - see self_check.h */
#include "daemon/launchers/launchers.h"
#include "daemon/self_check.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/text.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/devices.h"
#include "daemon/facts/gpu.h"
#include "daemon/facts/machine_read.h"
#include "daemon/join.h"
#include "daemon/meet/pmix.h"
#include "daemon/net/sodium.h"
#include "daemon/os/cjson.h"
#include "daemon/os/dlib.h"
#include "daemon/os/kernel.h"
#include "daemon/plan/topology.h"
#include "daemon/report/explain.h"
#include "daemon/os/cgroup_paths.h"
#include "daemon/workers/divide.h"

enum { COLUMN = 12, WIDTH = 80 };

struct check {
	const struct settings *s;
	const char *const *env;
	struct text *out;
};

static void add_row(struct check *c, const char *label, const char *value)
{
	text_printf(c->out, "%-*s", COLUMN, label);
	text_add_wrapped(c->out, value, COLUMN, COLUMN, WIDTH);
	text_add(c->out, "\n");
}

/* Takes the value. */
static void add_text(struct check *c, const char *label, struct text *value)
{
	if (value->len)
		add_row(c, label, text_string(value));
	c->out->failed |= value->failed;
	text_done(value);
}

/* Adds a word to a list. */
static void add_item(struct text *list, const char *item)
{
	text_printf(list, "%s%s", list->len ? ", " : "", item);
}

/* What an old kernel lacks goes without saying why; what a sandbox forbids does not. */
static void check_kernel(struct check *c)
{
	struct text uses = { 0 }, replaces = { 0 }, kernel = { 0 };
	struct utsname u = { 0 };
	char libc[64] = "unknown";

	(void)uname(&u); /* can't fail */
	text_printf(&kernel, "Linux %s, %s", u.release, u.machine);
	for (unsigned i = 0; i < KERNEL_FEATURES; i++) {
		const struct kernel_row *row = kernel_row((enum kernel_feature)i);
		int error = kernel_ask((enum kernel_feature)i);
		bool old = error == ENOSYS || error == EINVAL || error == ENOENT;

		if (error == 0)
			add_item(&uses, row->name);
		else
			text_printf(&replaces, "%s%s (%s%s%s) by %s", replaces.len ? "; " : "",
				row->name, row->since, old ? "" : "; ", old ? "" : strerror(error),
				row->instead);
	}
	add_text(c, "kernel", &kernel);
	add_text(c, "  used", &uses);
	add_text(c, "  replaced", &replaces);
	(void)confstr(_CS_GNU_LIBC_VERSION, libc, sizeof libc);
	add_row(c, "C library", libc);
}

/* And not another one that it needs, nor a file of that name that is no library. */
static bool is_absent(const struct dlib *d, const struct failure *why)
{
	static const char absent[] = ": cannot open shared object file: No such file";
	const char *file = strstr(why->text, d->file);

	return file && strncmp(file + strlen(d->file), absent, sizeof absent - 1) == 0;
}

static void check_libraries(struct check *c)
{
	const struct dlib *const libraries[] = { &pmix_library, &sodium_library, &cjson_library,
		&hwloc_library, &nvml_library };
	struct text uv = { 0 };

	text_printf(
		&uv, "%s, %s", uv_version_string(), dlib_place((void (*)(void))uv_version_string));
	add_text(c, "libuv", &uv);
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
		struct failure why = { 0 };
		struct text found = { 0 };
		int rc = dlib_describe(libraries[i], &found, &why);

		if (rc == -ELIBACC && is_absent(libraries[i], &why))
			text_printf(&found, "%s is not installed; it would add: %s",
				libraries[i]->file, libraries[i]->adds);
		else if (rc < 0)
			text_add(&found, why.text);
		add_text(c, libraries[i]->name, &found);
	}
}

static void check_gpus(struct check *c)
{
	struct failure why = { 0 };
	struct text found = { 0 };
	struct gpus gpus;

	if (gpus_read(false, GPUS_LIMIT_MS, c->s->arena, &gpus, &why) < 0)
		text_add(&found, why.text);
	else if (gpus.here)
		text_printf(&found, "not known: %s", gpus.said);
	else
		text_printf(&found, "%u that workers would see%s%s",
			devices_visible(env_get(c->env, CUDA_DEVICES), gpus.known ? gpus.count : 0),
			gpus.loaded && *gpus.said ? "; " : "", gpus.loaded ? gpus.said : "");
	add_text(c, "GPUs", &found);
}

static void check_cgroup(struct check *c)
{
	struct cgroup_paths paths = { 0 };
	struct text found = { 0 };

	if (cgroup_paths_read("", c->s->arena, &paths) == 0)
		divide_describe(&paths, &found);
	add_text(c, "cgroup", &found);
}

static void check_sandbox(struct check *c, enum proc proc)
{
	static const struct {
		const char *file, *variable, *name;
	} marks[] = {
		{ "/.dockerenv", NULL, "Docker" },
		{ "/run/.containerenv", NULL, "Podman" },
		{ NULL, "KUBERNETES_SERVICE_HOST", "Kubernetes" },
		{ NULL, "APPTAINER_CONTAINER", "Apptainer" },
		{ NULL, "SINGULARITY_CONTAINER", "Singularity" },
	};
	struct text found = { 0 };

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if ((marks[i].file && access(marks[i].file, F_OK) == 0) ||
			(marks[i].variable && env_get(c->env, marks[i].variable)))
			add_item(&found, marks[i].name);
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0)
		add_item(&found, "a seccomp filter");
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) > 0)
		add_item(&found, "no new privileges");
	if (proc != PROC_OURS)
		add_item(&found, proc == PROC_NONE ? "no /proc" : "/proc of another PID namespace");
	add_row(c, "sandbox", found.len ? text_string(&found) : "none is seen");
	text_done(&found);
}

/* Who started us, and how this node would find the others with these settings. */
static void check_nodes(struct check *c)
{
	struct notes notes = { .arena = c->s->arena };
	struct failure why = { 0 };
	struct facts facts = { 0 };
	const struct deciding d = { c->s, &facts, &notes, &why };
	const char *version = env_get(c->env, "PMIX_VERSION");
	struct topology t = { 0 };
	struct text by = { 0 }, nodes = { 0 };
	bool good = facts_read_machine(c->s, c->env, c->s->arena, &facts, &why) == 0 &&
		topology_begin(&d, &t) == 0 &&
		topology_finish(&d, join_tells_master(c->s, &facts, &t), &t) == 0;

	check_sandbox(c, facts.proc);
	t.launcher = launcher_of(c->env);
	text_printf(&by, "%s, %s PMIx%s%s server",
		t.launcher->kind != LAUNCHER_TASK ? "neither mpirun nor srun" : t.launcher->name,
		pmix_is_offered(c->env) ? "with a" : "without a", version ? " " : "",
		version ? version : "");
	add_text(c, "started by", &by);
	if (!good)
		text_add(&nodes, why.text);
	else
		text_printf(&nodes, "%u (%s)", t.identity.nnodes, t.identity.nnodes_from);
	if (good && t.identity.nnodes > 1)
		text_printf(&nodes, "; their launchers would %s%s",
			t.control.how == CONTROL_NONE ? "not meet" : "meet: ",
			t.control.how == CONTROL_NONE ? "" :
							explain_control(&t.control, c->s->arena));
	add_text(c, "nodes", &nodes);
}

void self_check(
	const struct settings *s, const char *const *env, const char *wrong, struct text *out)
{
	struct check c = { s, env, out };

	add_row(&c, "launchd", LAUNCHD_VERSION);
	check_kernel(&c);
	check_libraries(&c);
	check_gpus(&c);
	check_cgroup(&c);
	if (*wrong)
		add_row(&c, "settings", wrong);
	check_nodes(&c);
	out->failed |= arena_failed(s->arena);
}
