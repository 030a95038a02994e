/* program.c - see program.h */
#include "daemon/facts/program.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/vec.h"
#include "common/words.h"
#include "config/settings.h"
#include "daemon/facts/misnamed.h"
#include "daemon/facts/torch.h"
#include "daemon/os/rehearsal.h"

/* 0 if path is a file that can be executed, else negative errno. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) < 0 ? -errno : 0;
}

static const char *path_of(const char *const *env)
{
	const char *path = env_get(env, "PATH");

	return path ? path : "/bin:/usr/bin";
}

/* The file of that name in PATH's next entry; NULL: there is no more. */
static const char *next_on_path(struct arena *a, const char **path, const char *name)
{
	const char *entry = *path;
	size_t len = entry ? strcspn(entry, ":") : 0;

	if (!entry || !*name)
		return NULL;
	*path = entry[len] ? entry + len + 1 : NULL;
	return len ? arena_printf(a, "%.*s/%s", (int)len, entry, name) :
		     arena_printf(a, "./%s", name); /* an empty entry is this directory */
}

int program_search(struct arena *a, const char *const *env, const char *name, const char **ret)
{
	const char *path = path_of(env), *file;
	int rc = -ENOENT;

	if (strchr(name, '/')) {
		rc = executable(name);
		if (rc == 0)
			*ret = name;
		return rc;
	}
	while ((file = next_on_path(a, &path, name))) {
		int now;

		rehearsal_path("PATH", file);
		now = executable(file);
		if (now == 0) {
			*ret = file;
			return 0;
		}
		if (now == -EACCES)
			rc = now;
	}
	return rc;
}

/* Whether the search for it leads there. */
static bool search_is_far(struct arena *a, const char *const *env, const char *name)
{
	const char *path = path_of(env), *file;

	if (strchr(name, '/'))
		return path_is_far(name);
	while ((file = next_on_path(a, &path, name)))
		if (path_is_far(file))
			return true;
		else if (executable(file) == 0)
			return false;
	return false;
}

bool program_is_far(const struct settings *s, const char *const *env, struct arena *a)
{
	static const char *const places[] = { "HOME", "PYTHONHOME", "PYTHONUSERBASE",
		"PYTHONPATH" };
	const char *python = settings_text(s, SET_PYTHON);

	if (settings_given(s, SET_WRAP) || settings_given(s, SET_PREEMPT_WATCH) ||
		settings_given(s, SET_POST_ATTEMPT))
		return true; /* their words aren't split yet */
	if (settings_flag(s, SET_NO_PYTHON))
		return search_is_far(a, env, s->script);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const char *value = env_get(env, places[i]);

		if (value && (path_is_far(value) || strchr(value, ':')))
			return true;
	}
	return path_is_far(s->script) || search_is_far(a, env, python ? python : "python3") ||
		(!python && search_is_far(a, env, "python"));
}

/* The same with a sentence, which begins with where; the kernel must be able to run the file, too.
 */
static int find_program(struct arena *a, const char *const *env, const char *where,
	const char *name, const char **ret, struct failure *why)
{
	enum run_by by = strchr(name, '/') ? RUN_BY_EXEC : RUN_BY_EXEC_PATH;
	const char *what = *where ? arena_printf(a, "%s: ", where) : "";
	int rc;

	rehearsal_path(where, name);
	rc = program_search(a, env, name, ret);
	return rc == 0 ? first_line_check(what, *ret, a, why) :
			 misnamed(why, what, name, by, rc, a);
}

int program_self(struct arena *a, const char **ret)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

	if (len < 0)
		return -errno;
	self[len] = '\0';
	*ret = arena_strdup(a, self);
	return *ret ? 0 : -ENOMEM;
}

/* The Python of the virtual environment that this program is installed in, where none is active:
 * ssh, mpirun and cron start it by its path. One without PyTorch is a tool's own, as pipx and uv
 * make it, and not the workers'. NULL: there is none. */
static const char *own_python(const char *const *env, struct arena *a)
{
	const char *active = env_get(env, "VIRTUAL_ENV"), *self = "", *name, *bin, *python;

	if ((active && *active) || program_self(a, &self) < 0)
		return NULL;
	name = strrchr(self, '/');
	if (!name)
		return NULL;
	bin = arena_printf(a, "%.*s", (int)(name - self), self);
	python = arena_printf(a, "%s/python3", bin);
	if (access(arena_printf(a, "%s/../pyvenv.cfg", bin), F_OK) < 0 || executable(python) < 0)
		return NULL;
	return torch_version_read(NULL, python, a) ? python : NULL;
}

static int find_python(const struct settings *s, const char *const *env, struct arena *a,
	struct program *ret, struct failure *why)
{
	const char *given = settings_text(s, SET_PYTHON);

	if (given) {
		ret->from = settings_where(s, SET_PYTHON);
		return find_program(a, env, ret->from, given, &ret->path, why);
	}
	ret->from = "launchd's virtual environment";
	ret->path = own_python(env, a);
	if (ret->path)
		return 0;
	ret->from = "PATH";
	if (program_search(a, env, "python3", &ret->path) == 0 ||
		program_search(a, env, "python", &ret->path) == 0)
		return 0;
	return failure_program(
		why, -ENOENT, "neither python3 nor python is on PATH; give --python PATH");
}

/* Python runs a file, and a directory or archive that has a __main__.py. */
static int check_script(struct arena *a, const char *script, struct failure *why)
{
	struct stat st;

	if (strcmp(script, "-") == 0)
		return 0;
	rehearsal_path("", script);
	if (stat(script, &st) < 0)
		return misnamed(why, "", script, RUN_BY_PYTHON, -errno, a);
	if (S_ISDIR(st.st_mode) && access(arena_printf(a, "%s/__main__.py", script), R_OK) < 0)
		return failure_program(why, -EACCES, "%s: a directory without __main__.py", script);
	return access(script, R_OK) < 0 ? misnamed(why, "", script, RUN_BY_PYTHON, -errno, a) : 0;
}

/* "-m src/train.py": Python would run the file once, to look for a module py in it. */
static int check_module(const struct settings *s, struct arena *a, struct failure *why)
{
	static const char suffix[] = ".py";
	size_t len = strlen(s->script), stem = len - (sizeof suffix - 1);
	struct stat st;
	char *name;

	if (len < sizeof suffix || strcmp(s->script + stem, suffix) != 0 ||
		stat(s->script, &st) < 0 || !S_ISREG(st.st_mode) ||
		access(arena_strndup(a, s->script, stem), F_OK) == 0)
		return 0;
	name = arena_strndup(a, s->script, stem);
	name += strncmp(name, "./", 2) == 0 ? 2 : 0;
	for (char *p = name; *p; p++)
		*p = *p == '/' ? '.' : *p;
	return failure_usage(why,
		"%s takes the name of a module, but %s is a file: %s%s%sleave out %s",
		settings_where(s, SET_MODULE), s->script, *name != '.' ? "give " : "",
		*name != '.' ? name : "", *name != '.' ? ", or " : "",
		settings_where(s, SET_MODULE));
}

/* What is no Python script by its own first line, as "#!/bin/sh". Some are all the same: pip's,
 * where the path of the Python is too long for a first line. */
static const char *foreign_line(const char *text, struct arena *a)
{
	const char *line = first_line(text, a);

	return line && !strstr(line, "python") && !strstr(line, "pypy") ?
		arena_strndup(a, line, strcspn(line, "\r")) :
		NULL;
}

/* Whether a line of a script, outside of any block, imports a package or from it. */
static bool line_imports(const char *line, const char *package)
{
	size_t word = strncmp(line, "import ", 7) == 0 ? 7 : strncmp(line, "from ", 5) == 0 ? 5 : 0;
	size_t len = strlen(package);

	return word > 0 && strncmp(line + word, package, len) == 0 &&
		strchr(" .,\t\r\n", line[word + len]); /* or the end */
}

static bool text_imports(const char *text, const char *package)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (line_imports(line, package))
			return true;
	}
	return false;
}

/* Whether the text has name, up to two of the characters "'", '"' and ']', and an assignment to it
 * of something that isn't False: "os.environ['MASTER_PORT'] = '12355'", "is_master=(rank == 0)". */
static bool assigns(const char *text, const char *name)
{
	while ((text = strstr(text, name))) {
		text += strlen(name);
		text += strspn(text, "'\"]");
		text += strspn(text, " \t");
		if (text[0] == '=' && text[1] != '=') {
			text += 1 + strspn(text + 1, " \t");
			if (strncmp(text, "False", 5) != 0)
				return true;
		}
	}
	return false;
}

/* JAX's coordinator, a TCPStore of the script's own, and torch's where the script chooses the port.
 */
static const char *own_port_of(const char *text)
{
	static const struct {
		const char *words, *says;
	} rows[] = {
		{ "jax.distributed", "jax.distributed in the script" },
		{ "tcp://", "tcp:// in the script" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strstr(text, rows[i].words))
			return rows[i].says;
	if (assigns(text, "is_master"))
		return "is_master in the script";
	if (assigns(text, "MASTER_PORT"))
		return "the script's own MASTER_PORT";
	return text_imports(text, "jax") && !text_imports(text, "torch") ? "the script's JAX" :
									   NULL;
}

/* Who trains by another library, or says the cluster in the script, needs no TF_CONFIG. */
static bool needs_tf_config(const char *text)
{
	static const char *const others[] = { "torch", "jax", "horovod", "lightning" };
	static const char *const own[] = { "TF_CONFIG", "cluster_resolver", "ClusterResolver" };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strstr(text, own[i]))
			return false;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (text_imports(text, others[i]))
			return false;
	return text_imports(text, "tensorflow");
}

/* What the script's beginning says, where imports stand, too. */
static void read_script(const struct settings *s, struct arena *a, struct program *ret)
{
	char text[8192];

	file_begin(s->script, text, sizeof text);
	ret->foreign_line = foreign_line(text, a);
	ret->own_port = own_port_of(text);
	ret->tensorflow = !settings_flag(s, SET_TF_CONFIG) && needs_tf_config(text);
}

/* "launchd python -u train.py", "launchd python -m train" would run the program python by Python.
 */
static bool is_python_before_script(const struct settings *s)
{
	const char *name = basename(s->script);

	if (strncmp(name, "python", 6) != 0 || name[6 + strspn(name + 6, "0123456789.")])
		return false;
	if (s->args.count > 0 && strcmp(s->args.at[0], "-m") == 0)
		return true;
	for (size_t i = 0; i < s->args.count; i++) {
		size_t len = strlen(s->args.at[i]);

		if (len > 3 && strcmp(s->args.at[i] + len - 3, ".py") == 0)
			return true;
	}
	return false;
}

int program_find(const struct settings *s, const char *const *env, struct arena *arena,
	struct program *ret, struct failure *why)
{
	int rc;

	*ret = (struct program){ 0 };
	if (settings_flag(s, SET_NO_PYTHON)) {
		ret->from = "script";
		return find_program(arena, env, "", s->script, &ret->path, why);
	}
	if (!settings_flag(s, SET_MODULE) && is_python_before_script(s))
		return failure_usage(why,
			"the script is \"%s\": launchd starts Python itself, so drop that word (or "
			"keep it and add --no_python --use_env)",
			s->script);
	rc = settings_flag(s, SET_MODULE) ? check_module(s, arena, why) :
					    check_script(arena, s->script, why);
	if (rc < 0)
		return rc;
	if (!settings_flag(s, SET_MODULE))
		read_script(s, arena, ret);
	return find_python(s, env, arena, ret, why);
}

int wrapper_find(const struct settings *s, enum setting_id id, const char *const *env,
	struct arena *arena, struct wrapper *ret, struct failure *why)
{
	const char *text = settings_text(s, id);
	const char *where = settings_where(s, id);
	struct wrapper w = { 0 };
	const char *fault;

	*ret = w;
	if (!text)
		return 0;
	if (words_split(text, arena, &w.words, &fault) < 0)
		return failure_usage(why, "%s: \"%s\" is not a command: %s", where, text, fault);
	if (w.words.count == 0)
		return arena_failed(arena) ?
			failure_oom(why) :
			failure_usage(why, "%s: it contains no command", where);
	(void)find_program(arena, env, where, w.words.at[0], &w.path, &w.why);
	*ret = w;
	return 0;
}

const char *program_needs_port(
	const struct settings *s, const char *const *env, const struct program *p)
{
	static const char sharing[] = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE";
	const char *disabled = env_given(s->env, env, sharing);
	/* JAX and TensorFlow take the port */
	static const enum setting_id flags[] = { SET_NODE_ENV, SET_JAX_ENV, SET_TF_CONFIG,
		SET_NO_PYTHON };

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (settings_flag(s, flags[i]))
			return settings_where(s, flags[i]);
	/* the others of an only rank are not this launcher's, and bring a store of their own */
	if (settings_given(s, SET_ONLY_RANK))
		return settings_where(s, SET_ONLY_RANK);
	if (settings_is(s, SET_CONTROL, "off")) /* the nodes can't agree */
		return settings_where(s, SET_CONTROL);
	if (p->own_port)
		return p->own_port;
	return disabled && strcmp(disabled, "1") == 0 ? sharing : NULL;
}
