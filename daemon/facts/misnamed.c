/* misnamed.c - see misnamed.h */
#include "daemon/facts/misnamed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/name.h"
#include "common/natural.h"

enum {
	ENTRIES_MAX = 10000,  /* of a directory on a slow disk, for a hint */
	FIRST_LINE_MAX = 256, /* the kernel reads no more (BINPRM_BUF_SIZE) */
};

static bool is_file(const char *path, mode_t *ret_mode)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	*ret_mode = st.st_mode;
	return true;
}

/* The entry of a directory that is nearest to a name, within two letters and less than half of
 * them; NULL: there is none. */
static const char *nearest_entry(const char *directory, const char *name, struct arena *arena)
{
	enum { LETTERS = 2 };
	size_t len = strlen(name), best = LETTERS + 1;
	const char *nearest = NULL;
	const struct dirent *entry;
	DIR *d = opendir(directory);

	for (int i = 0; d && i < ENTRIES_MAX && (entry = readdir(d)); i++) {
		size_t distance = name_distance(entry->d_name, name, len, LETTERS);
		bool nearer = distance < best ||
			(distance == best && nearest &&
				natural_compare(entry->d_name, nearest) < 0);

		if (nearer && distance * 2 < len && entry->d_name[0] != '.') {
			best = distance;
			nearest = arena_strdup(arena, entry->d_name);
		}
	}
	if (d)
		(void)closedir(d); /* was only read */
	return nearest;
}

/* "src/train.py" for "src/trian.py"; NULL: nothing is near. */
static const char *nearest_file(const char *name, struct arena *arena)
{
	const char *base = basename(name);
	const char *directory = arena_strndup(arena, name, (size_t)(base - name));
	const char *entry = nearest_entry(*directory ? directory : ".", base, arena);

	return entry ? arena_printf(arena, "%s%s", directory, entry) : NULL;
}

static int absent(struct failure *why, const char *what, const char *name, enum run_by by,
	struct arena *arena)
{
	const char *nearest;
	mode_t ignored;

	if (by == RUN_BY_EXEC_PATH && is_file(name, &ignored))
		return failure_program(why, -ENOENT,
			"%s%s is not on PATH; for the one in this directory write ./%s", what, name,
			name);
	if (by == RUN_BY_EXEC_PATH)
		return failure_program(why, -ENOENT, "%s%s: no such file on PATH", what, name);
	if (name[0] == '-')
		return failure_program(why, -ENOENT,
			"%s%s: no such file; \"--\" ends the options, so what follows it is the "
			"script",
			what, name);
	nearest = nearest_file(name, arena);
	return failure_program(why, -ENOENT, "%s%s: no such file%s%s%s", what, name,
		nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

int misnamed(struct failure *why, const char *what, const char *name, enum run_by by, int rc,
	struct arena *arena)
{
	mode_t mode;

	if (rc == -ENOENT || rc == -ENOTDIR)
		return absent(why, what, name, by, arena);
	if (rc == -EACCES && by == RUN_BY_EXEC && is_file(name, &mode) && (mode & 0111) == 0)
		return failure_program(why, -EACCES,
			"%s%s: Permission denied: it is not executable (chmod +x %s)", what, name,
			name);
	return failure_program(why, -EACCES, "%s%s: %s", what, name, strerror(-rc));
}

void file_begin(const char *path, char *ret, size_t size)
{
	mode_t ignored;
	autoclose fd = is_file(path, &ignored) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	long n = fd < 0 ? 0 : fd_read_up_to(fd, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
}

const char *first_line(const char *text, struct arena *arena)
{
	size_t len = strcspn(text, "\n");

	if (strncmp(text, "#!", 2) != 0)
		return NULL;
	return arena_strndup(arena, text, len < FIRST_LINE_MAX ? len : FIRST_LINE_MAX - 1);
}

/* "/bin/sh" of "#! /bin/sh -e"; NULL: the line names none, or the kernel would not read its end. */
static const char *interpreter_of(const char *line, struct arena *arena)
{
	const char *name = line + 2 + strspn(line + 2, " \t");
	size_t len = strcspn(name, " \t");

	if (len == 0 || (name[len] == '\0' && strlen(line) == FIRST_LINE_MAX - 1))
		return NULL;
	return arena_strndup(arena, name, len);
}

int first_line_check(const char *what, const char *path, struct arena *arena, struct failure *why)
{
	char text[FIRST_LINE_MAX];
	const char *line, *interpreter;
	size_t len;

	file_begin(path, text, sizeof text);
	line = first_line(text, arena);
	if (!line)
		return 0;
	len = strlen(line);
	if (line[len - 1] == '\r')
		return failure_program(why, -ENOENT,
			"%s%s: its first line, %.*s, ends with a carriage return (Windows line endings): run dos2unix %s",
			what, path, (int)(len - 1), line, path);
	interpreter = interpreter_of(line, arena);
	if (!interpreter || access(interpreter, X_OK) == 0)
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return failure_program(why, -ENOENT,
			"%s%s: its first line, %s, names an interpreter that doesn't exist: fix that line, or install %s",
			what, path, line, interpreter);
	return failure_program(why, -EACCES,
		"%s%s: its first line, %s, names an interpreter that can't be executed: %s", what,
		path, line, strerror(errno));
}
