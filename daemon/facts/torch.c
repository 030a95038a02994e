/* torch.c - see torch.h. The order of places is that of sys.path: PYTHONPATH, then, by Python's
 * module site, the user's packages and those of the prefix; in a virtual environment its own, and
 * the others only where its pyvenv.cfg says so. */
#include "daemon/facts/torch.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/vec.h"
#include "daemon/facts/misnamed.h"
#include "daemon/facts/torch_version.h"
#include "daemon/os/question.h"
#include "daemon/os/rehearsal.h"

enum { FILE_MAX = 16384, ASK_MS = 5000 };

struct torch_search {
	const char *const *env;
	struct arena *arena;
	const char *lib;           /* "python3.11", the name of its directories; NULL: not known */
	const char *variable;      /* that the places which are looked into now come from, or "" */
	const char *found, *place; /* its version, and the entry of sys.path */
};

/* NULL: it is not there, or can't be a file of ours. */
static const char *read_text(struct arena *arena, const char *path)
{
	char text[FILE_MAX + 1];
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || fd_read_file(path, text, FILE_MAX) < 0)
		return NULL;
	return arena_strdup(arena, text);
}

/* Looks into one entry of sys.path, unless one before it had a torch. */
static void look(struct torch_search *f, const char *dir)
{
	char version[TORCH_VERSION_SIZE];
	const char *text;

	if (f->found)
		return;
	rehearsal_path(f->variable, dir);
	text = read_text(f->arena, arena_printf(f->arena, "%s/torch/version.py", dir));
	if (text && torch_version_find(text, version) == 0) {
		f->found = arena_strdup(f->arena, version);
		f->place = arena_strdup(f->arena, dir);
	}
}

static void look_in_pythonpath(struct torch_search *f)
{
	const char *path = env_get(f->env, "PYTHONPATH");

	f->variable = "PYTHONPATH";
	while (path && *path) {
		size_t len = strcspn(path, ":");

		if (len > 0)
			look(f, arena_strndup(f->arena, path, len));
		path += len;
		path += *path == ':';
	}
	f->variable = "";
}

static void look_for_user(struct torch_search *f)
{
	const char *base = env_get(f->env, "PYTHONUSERBASE"), *home = env_get(f->env, "HOME");
	const char *without = env_get(f->env, "PYTHONNOUSERSITE");

	if (!f->lib || (without && *without))
		return;
	f->variable = base && *base ? "PYTHONUSERBASE" : "HOME";
	if (base && *base)
		look(f, arena_printf(f->arena, "%s/lib/%s/site-packages", base, f->lib));
	else if (home && *home)
		look(f, arena_printf(f->arena, "%s/.local/lib/%s/site-packages", home, f->lib));
	f->variable = "";
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The packages of an installation. Debian has its own name for them, and one directory for all
 * minor versions; its Python doesn't look where one that is built below /usr/local does. */
static void look_in_prefix(struct torch_search *f, const char *prefix)
{
	const char *debian = arena_printf(f->arena, "%s/lib/python3/dist-packages", prefix);

	if (!f->lib)
		return;
	if (is_directory(debian)) {
		look(f, arena_printf(f->arena, "%s/local/lib/%s/dist-packages", prefix, f->lib));
		look(f, debian);
		look(f, arena_printf(f->arena, "%s/lib/%s/dist-packages", prefix, f->lib));
		return;
	}
	look(f, arena_printf(f->arena, "%s/lib64/%s/site-packages", prefix, f->lib));
	look(f, arena_printf(f->arena, "%s/lib/%s/site-packages", prefix, f->lib));
	look(f, arena_printf(f->arena, "%s/local/lib64/%s/site-packages", prefix, f->lib));
	look(f, arena_printf(f->arena, "%s/local/lib/%s/site-packages", prefix, f->lib));
}

/* The directory that a path is in, its last `levels` parts taken off. */
static const char *up(struct arena *arena, const char *path, int levels)
{
	char *copy = arena_strdup(arena, path);

	for (; levels > 0; levels--) {
		char *slash = strrchr(copy, '/');

		if (!slash)
			return "..";
		*slash = '\0';
	}
	return *copy ? copy : "/";
}

/* "python3.11" */
static bool is_lib(const char *name)
{
	return strncmp(name, "python3.", 8) == 0 && name[8] &&
		!name[8 + strspn(name + 8, "0123456789")];
}

/* The one such directory below a prefix; several would be the choice of the interpreter. */
static const char *only_lib(struct arena *arena, const char *prefix)
{
	DIR *dir = opendir(arena_printf(arena, "%s/lib", prefix));
	const struct dirent *entry;
	const char *lib = NULL;
	int count = 0;

	while (dir && (entry = readdir(dir))) {
		if (!is_lib(entry->d_name))
			continue;
		lib = arena_strdup(arena, entry->d_name);
		count++;
	}
	if (dir)
		(void)closedir(dir);
	return count == 1 ? lib : NULL;
}

/* The value of a key of pyvenv.cfg, the arena's; "": it has none. */
static const char *venv_value(struct arena *arena, const char *cfg, const char *key)
{
	size_t key_len = strlen(key);

	for (; *cfg; cfg += *cfg == '\n') {
		size_t len = strcspn(cfg, "\r\n");
		const char *equals = memchr(cfg, '=', len);

		if (equals && len > key_len && strncmp(cfg, key, key_len) == 0 &&
			cfg + key_len + strspn(cfg + key_len, " \t") == equals) {
			const char *value = equals + 1 + strspn(equals + 1, " \t");
			size_t n = value < cfg + len ? (size_t)(cfg + len - value) : 0;

			while (n > 0 && strchr(" \t", value[n - 1]))
				n--;
			return arena_strndup(arena, value, n);
		}
		cfg += strcspn(cfg, "\n");
	}
	return "";
}

/* The interpreter's own installation. python need not be a program: its directory counts. */
static void look_in_installation(struct torch_search *f, const char *python)
{
	const char *home = env_get(f->env, "PYTHONHOME");
	const char *prefix = home && *home ? home : up(f->arena, python, 2);
	const char *name = strrchr(python, '/');

	if (name && is_lib(name + 1))
		f->lib = name + 1;
	else
		f->lib = only_lib(f->arena, prefix);
	look_for_user(f);
	look_in_prefix(f, prefix);
}

static void find_torch(struct torch_search *f, const char *python)
{
	struct arena *arena = f->arena;
	char real[PATH_MAX];
	const char *venv = NULL, *cfg = NULL;

	look_in_pythonpath(f);
	rehearsal_path("", python);
	if (f->found || !realpath(python, real))
		return;
	/* beside the interpreter or one above, before links are followed, as Python does */
	for (int levels = 1; levels <= 2 && !cfg; levels++) {
		venv = up(arena, python, levels);
		cfg = read_text(arena, arena_printf(arena, "%s/pyvenv.cfg", venv));
	}
	if (!cfg) {
		look_in_installation(f, arena_strdup(arena, real));
		return;
	}
	f->lib = only_lib(arena, venv);
	if (f->lib) {
		look(f, arena_printf(arena, "%s/lib/%s/site-packages", venv, f->lib));
		look(f, arena_printf(arena, "%s/lib64/%s/site-packages", venv, f->lib));
	}
	if (strcasecmp(venv_value(arena, cfg, "include-system-site-packages"), "true") == 0)
		look_in_installation(f, arena_strdup(arena, real));
}

const char *torch_version_read(const char *const *env, const char *python, struct arena *arena)
{
	struct torch_search f = { .env = env, .arena = arena };

	find_torch(&f, python);
	return f.found;
}

const char *torch_place_read(const char *const *env, const char *python, struct arena *arena)
{
	struct torch_search f = { .env = env, .arena = arena };

	find_torch(&f, python);
	return f.place;
}

static bool is_script(const char *path)
{
	char start[3];

	file_begin(path, start, sizeof start);
	return strcmp(start, "#!") == 0;
}

const char *torch_version_ask(
	const char *const *env, const char *python, struct arena *arena, const char **ret_why)
{
	/* finds torch as an import does, and prints its version.py */
	static const char look[] =
		"import importlib.util as u, os\n"
		"s = u.find_spec('torch')\n"
		"if s and s.origin:\n"
		"    print(open(os.path.join(os.path.dirname(s.origin), 'version.py')).read())\n";
	const char *const argv[] = { python, "-c", look, NULL };
	char said[FILE_MAX + 1], version[TORCH_VERSION_SIZE];
	struct failure why = { 0 };

	if (!is_script(python))
		return NULL;
	if (question_run(argv, env, ASK_MS, said, sizeof said, &why) < 0) {
		*ret_why = arena_strdup(arena, why.text);
		return NULL;
	}
	return torch_version_find(said, version) == 0 ? arena_strdup(arena, version) : NULL;
}
