/* mpirun.c - see mpirun.h */
#include "daemon/mpirun.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "config/settings.h"
#include "config/sources.h"
#include "daemon/facts/listed_nodes.h"
#include "daemon/facts/program.h"
#include "daemon/os/process.h"

#define AZUREML_HOSTFILE "AZUREML_MPI_HOSTFILE"

static int read_hosts(const struct settings *s, const char *const *env, struct arena *arena,
	struct mpirun *m, struct failure *why)
{
	const char *where = settings_where(s, SET_MPIRUN_HOSTFILE);
	const char *path = settings_text(s, SET_MPIRUN_HOSTFILE);

	m->hosts.colon = true;
	if (settings_given(
		    s, SET_MPIRUN_HOSTS)) { /* settings_put() has looked for one named twice */
		m->hosts_from = settings_where(s, SET_MPIRUN_HOSTS);
		return hosts_add_list(
			arena, settings_text(s, SET_MPIRUN_HOSTS), m->hosts_from, &m->hosts, why);
	}
	if (strcmp(path, "azureml") == 0) {
		path = env_get(env, AZUREML_HOSTFILE);
		if (!path || !*path)
			return failure_usage(why,
				"%s: azureml means the file that " AZUREML_HOSTFILE
				" names, but that is not set: this is not the head node of an "
				"Azure ML job with MPI (a file of that name is ./azureml)",
				where);
		where = AZUREML_HOSTFILE;
	}
	m->hosts_from = path;
	return host_file_read(where, path, arena, &m->hosts, why);
}

/* Whether it is Hydra's, as Debian's MPICH has it. */
static bool is_hydra(const char *path)
{
	char real[PATH_MAX];

	return realpath(path, real) && strstr(basename(real), "hydra");
}

/* What stands outside of the system's directories is named by its path: Open MPI then finds its own
 * daemons and libraries on the other nodes, too. */
static int find_mpirun(const struct settings *s, const char *const *env, struct arena *arena,
	struct mpirun *m, const char **ret_word, struct failure *why)
{
	const char *asked = settings_where(
		s, settings_given(s, SET_MPIRUN_HOSTS) ? SET_MPIRUN_HOSTS : SET_MPIRUN_HOSTFILE);
	int rc = program_search(arena, env, "mpirun", &m->path);

	if (rc == -ENOENT)
		return failure_program(why, rc,
			"%s: there is no mpirun on PATH: install Open MPI (package openmpi-bin, or "
			"openmpi)",
			asked);
	if (rc < 0)
		return failure_program(why, rc, "%s: mpirun: %s", asked, strerror(-rc));
	if (is_hydra(m->path))
		return failure_program(why, -EACCES,
			"%s needs Open MPI's mpirun, but %s, the first on PATH, is MPICH's", asked,
			m->path);
	*ret_word = strcmp(m->path, "/usr/bin/mpirun") == 0 || strcmp(m->path, "/bin/mpirun") == 0 ?
		"mpirun" :
		m->path;
	return 0;
}

static bool is_this_program(const char *path)
{
	struct stat own, other;

	return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 &&
		own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* This program by the path that it was called by, which may be a link, as torchrun is; else that of
 * its file. The other nodes need one from '/'. */
static int find_self(const char *name, const char *const *env, struct arena *arena,
	const char **ret, struct failure *why)
{
	char cwd[PATH_MAX];
	int rc = name ? program_search(arena, env, name, ret) : -ENOENT;

	if (rc == 0 && **ret != '/') {
		const char *here = strncmp(*ret, "./", 2) == 0 ? *ret + 2 : *ret;

		rc = getcwd(cwd, sizeof cwd) ? 0 : -errno;
		if (rc == 0)
			*ret = arena_printf(arena, "%s/%s", cwd, here);
	}
	if (rc < 0 || !is_this_program(*ret)) {
		rc = program_self(arena, ret);
		if (rc < 0)
			return failure_set(why, rc, "/proc/self/exe: %s", strerror(-rc));
	}
	return is_this_program(*ret) ?
		0 :
		failure_set(why, -ENOENT,
			"there is no file of this launchd that other nodes could have: %s", *ret);
}

int mpirun_prepare(const struct settings *s, const char *const *argv, const char *const *env,
	struct arena *arena, struct mpirun *ret, struct failure *why)
{
	struct mpirun m = { 0 };
	struct vec words = { 0 };
	struct head_facts f = { .s = s, .env = env, .words = &words, .root = geteuid() == 0 };

	if (head_node_check(&f, why) < 0 || read_hosts(s, env, arena, &m, why) < 0 ||
		settings_words_for_nodes(s, argv, &words, why) < 0 ||
		find_mpirun(s, env, arena, &m, &f.mpirun, why) < 0 ||
		find_self(argv[0], env, arena, &f.self, why) < 0)
		return why->code;
	f.hosts = &m.hosts;
	f.hosts_from = m.hosts_from;
	if (head_node_make(&f, arena, &m.plan, why) < 0)
		return why->code;
	*ret = m;
	return arena_failed(arena) ? failure_oom(why) : 0;
}

int mpirun_become(const struct mpirun *m, const struct inherited *inherited, struct failure *why)
{
	process_restore(inherited);
	(void)execv(m->path, vec_argv(&m->plan.argv));
	return failure_program(why, -errno, "%s can't be executed: %s", m->path, strerror(errno));
}
