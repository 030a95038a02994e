/* ini.c - INI files, by inih, with a reader of ours under it.
 *
 * inih 55 as distributions build it cuts a line after 199 bytes and parses the rest as another
 * line, cuts sections after 49, takes an indented line for a continuation (the handler sees the
 * last key again), accepts ':' for '=', ends a value at " ;" even inside quotes, and tells the
 * handler no line number. So every line passes line_check() first, loses its leading blanks, and
 * is counted; what can't be carried whole is refused with its line. inih never sees a line that
 * goes on with a list: an entry waits until the next one shows that it is whole. */
#include "config/sources.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/name.h"

enum {
	LINE_MAX_BYTES = 190,   /* below INI_MAX_LINE with its line end and NUL */
	SECTION_MAX_BYTES = 48, /* below inih's MAX_SECTION with its NUL */
	FILE_MAX_BYTES = 1 << 20,
};

struct file {
	struct settings *s;
	const char *name;
	enum level level;
	const char *at, *end; /* what is still to be read */
	unsigned line;
	unsigned seen[SETTING_COUNT]; /* the line where a key stood; 0: not yet */
	bool lost; /* since the last line of a section that is none: keys mean nothing there */
	struct {
		const char *section, *key; /* key NULL: empty */
		char *value;
		size_t len, room; /* of the value */
		unsigned line;
	} entry;
	struct failure *why;
};

static bool ini_finish_entry(struct file *f);

static const char *place(const struct file *f)
{
	return arena_printf(f->s->arena, "%s:%u", f->name, f->line);
}

/* Where a comment begins, as one does with a ';' after a blank; NULL: nowhere. */
static const char *comment_find(const char *at, const char *end)
{
	for (at++; at < end; at++)
		if (*at == ';' && (at[-1] == ' ' || at[-1] == '\t'))
			return at;
	return NULL;
}

/* One inside a value that starts with a quote and is closed later. */
static bool comment_in_quotes(const char *line, size_t len)
{
	const char *equals = memchr(line, '=', len);
	const char *end = line + len;
	const char *p = equals ? equals + 1 : end, *close;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if (p == end || (*p != '"' && *p != '\''))
		return false;
	close = memchr(p + 1, *p, (size_t)(end - p - 1));
	return close && comment_find(p, close);
}

/* The same anywhere in a line that goes on with a list. */
static bool comment_in_later_quotes(const char *line, size_t len)
{
	char quote = '\0';

	for (size_t i = 0; i < len; i++) {
		if (quote && line[i] == ';' && (line[i - 1] == ' ' || line[i - 1] == '\t'))
			return true;
		if (line[i] == quote)
			quote = '\0';
		else if (!quote && (line[i] == '"' || line[i] == '\''))
			quote = line[i];
	}
	return false;
}

static int refuse_comment_in_quotes(const struct file *f)
{
	return failure_usage(f->why,
		"%s: a ';' after a blank starts a comment, even inside quotes: give this value on the command line",
		place(f));
}

/* What no line may have. */
static int bytes_check(const struct file *f, const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++) /* inih takes some of them for blanks */
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
			return failure_usage(f->why, "%s: a control character", place(f));
	if (len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) /* inih drops one, too */
		return failure_usage(f->why, "%s: a second byte order mark", place(f));
	return 0;
}

/* What is no INI file at all. */
static int kind_check(struct file *f, const char *line, size_t len)
{
	bool nul = memchr(line, '\0', len);

	if ((nul || (len > 0 && *line == '{')) && !ini_finish_entry(f))
		return f->why->code;
	if (nul)
		return failure_usage(f->why,
			"%s: a NUL byte; if the file is UTF-16, save it as UTF-8", place(f));
	if (len > 0 && *line == '{')
		return failure_usage(f->why,
			"%s: this looks like JSON; settings are lines \"key = value\" below a "
			"[launchd] line",
			place(f));
	return 0;
}

/* The row of what waits, if further lines may go on with it; otherwise NULL. */
static const struct setting_row *ini_list(const struct file *f)
{
	static const enum setting_kind lists[] = { KIND_ARGS, KIND_HOSTS, KIND_RANKS, KIND_STREAMS,
		KIND_UNSET, KIND_RLIMITS, KIND_DEVICES, KIND_ENDS, KIND_ENDS_OR_REPEAT };

	for (int section = 0; f->entry.key && section < SECTION_COUNT; section++) {
		enum setting_id id = settings_find_key(
			(enum setting_section)section, f->entry.key, strlen(f->entry.key));

		if (strcmp(setting_section_names[section], f->entry.section) != 0 ||
			id == SETTING_COUNT)
			continue;
		for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
			if (setting_rows[id].kind == lists[i])
				return &setting_rows[id];
	}
	return NULL;
}

static int line_check(const struct file *f, const char *line, size_t len, bool after_list)
{
	const char *equals = memchr(line, '=', len), *colon = memchr(line, ':', len);

	if (len > LINE_MAX_BYTES)
		return failure_usage(f->why,
			"%s: the line has %zu bytes, but at most %d are read: put long values on the command line",
			place(f), len, LINE_MAX_BYTES);
	if (*line == '[') {
		const char *close = memchr(line, ']', len);

		if (!close || memchr(line, ';', (size_t)(close - line)) ||
			close - line > SECTION_MAX_BYTES)
			return failure_usage(f->why, "%s: not a [section]", place(f));
		for (close++; close < line + len; close++)
			if (*close == ';' || *close == '#')
				break;
			else if (*close != ' ' && *close != '\t')
				return failure_usage(f->why,
					"%s: only a comment may follow a [section]", place(f));
		return 0;
	}
	if (!equals || (colon && colon < equals) || comment_find(line, equals))
		return failure_usage(f->why, "%s: \"%.*s\" is not key = value%s", place(f),
			(int)len, line,
			after_list ? "; indent a line that goes on with a list" : "");
	return comment_in_quotes(line, len) ? refuse_comment_in_quotes(f) : 0;
}

/* Appends to the value that waits; its room doubles, so that many lines cost no more than their
 * bytes.
 */
static int ini_append(struct file *f, const char *text, size_t len)
{
	size_t room = 2 * (f->entry.len + len + 1);
	char *now = f->entry.value;

	if (f->entry.len + len + 1 > f->entry.room) {
		now = arena_alloc(f->s->arena, room);
		if (!now)
			return failure_oom(f->why);
		memcpy(now, f->entry.value, f->entry.len);
		f->entry.value = now;
		f->entry.room = room;
	}
	memcpy(now + f->entry.len, text, len);
	f->entry.len += len;
	now[f->entry.len] = '\0';
	return 0;
}

/* Whether an indented line goes on with the list before it: "[fd00::1]" is no section there, and
 * "--lr=1" no key. 1: it does, and the list has it; 0: it doesn't; negative errno: it can't. */
static int ini_continue(struct file *f, const char *line, size_t len)
{
	const struct setting_row *row = ini_list(f);
	const char *equals = *line != '-' ? memchr(line, '=', len) : NULL;
	const char *comment;
	size_t had = f->entry.len;

	if (!row || (*line == '[' && !memchr(line, ':', len)))
		return 0;
	if (equals && row->kind == KIND_ARGS && line + strcspn(line, " \t=") == equals)
		return failure_usage(f->why,
			"%s: \"%.*s\" may be one more of the %s above, or a setting: an argument that has a '=' "
			"goes behind %s =, and a setting is not indented",
			place(f), (int)len, line, f->entry.key, f->entry.key);
	if (equals)
		return 0;
	if (comment_in_later_quotes(line, len))
		return refuse_comment_in_quotes(f);
	comment = comment_find(line, line + len);
	if (comment)
		len = (size_t)(comment - line) - 1;
	if (had > 0 && (f->entry.value[had - 1] != ',' || row->kind == KIND_ARGS) &&
		ini_append(f, " ", 1) < 0)
		return f->why->code;
	return ini_append(f, line, len) < 0 ? f->why->code : 1;
}

/* inih's fgets: one whole line without its leading blanks; comments as empty lines, as are lines
 * that were refused where reading goes on. NULL: it doesn't. */
static char *next_line(char *ret, int size, void *stream)
{
	struct file *f = stream;
	const char *line = f->at, *newline;
	bool indented;
	size_t len;
	int rc;

	if (f->at == f->end || f->why->code != 0)
		return NULL;
	newline = memchr(f->at, '\n', (size_t)(f->end - f->at));
	f->at = newline ? newline + 1 : f->end;
	len = (size_t)((newline ? newline : f->end) - line);
	f->line++;
	if (f->line == 1 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3; /* byte order mark */
		len -= 3;
	}
	while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	indented = len > 0 && (*line == ' ' || *line == '\t');
	while (len > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	if (kind_check(f, line, len) < 0)
		return NULL;
	if (len > 0 && (*line == ';' || *line == '#'))
		len = 0; /* a comment may be of any length */
	if (len > 0 && indented) {
		struct failure own = { 0 }, *all = f->why;

		f->why = &own;
		rc = bytes_check(f, line, len);
		rc = rc < 0 ? rc : ini_continue(f, line, len);
		f->why = all;
		/* the list is of an earlier line, and its failure comes first */
		if (rc < 0 &&
			(!ini_finish_entry(f) || !failure_go_on(failure_copy(all, &own), all)))
			return NULL;
		if (rc != 0)
			len = 0;
	}
	if (len > 0) {
		bool list = ini_list(f);

		if (!ini_finish_entry(f))
			return NULL;
		rc = bytes_check(f, line, len);
		rc = rc < 0 ? rc : line_check(f, line, len, list);
		if (*line == '[')
			f->lost = rc < 0;
		if (!failure_go_on(rc, f->why))
			return NULL;
		if (rc < 0)
			len = 0;
	}
	if (len + 2 > (size_t)size) {
		(void)failure_usage(f->why, "%s: the line is too long", place(f));
		return NULL;
	}
	memcpy(ret, line, len);
	ret[len] = '\n';
	ret[len + 1] = '\0';
	return ret;
}

static int put_variable(struct file *f, const char *name, const char *value)
{
	const struct env_change *before = env_change_of(f->s->env, name);
	const char *where = place(f);

	if (before && before->from.level == f->level && before->value)
		return failure_usage(f->why, "%s: %s is set twice, first at %s", where, name,
			before->from.where);
	return settings_put_env(f->s, name, value, (struct origin){ f->level, where }, f->why);
}

/* Why a key is none of the section's, and what was probably meant. */
static int refuse_key(const struct file *f, enum setting_section section, const char *name)
{
	size_t len = strlen(name);
	enum setting_id id = settings_find(name, len);
	const char *nearest = settings_nearest_key(section, name, len), *there = "";

	for (int other = 0; id == SETTING_COUNT && other < SECTION_COUNT; other++)
		id = settings_find_key((enum setting_section)other, name, len);
	if (id != SETTING_COUNT && setting_rows[id].only_flag)
		return failure_usage(f->why, "%s: --%s is for the command line only", place(f),
			setting_rows[id].flag);
	if (id != SETTING_COUNT && setting_rows[id].kind == KIND_ENV)
		return failure_usage(f->why,
			"%s: the workers' variables go into a section [env], one per line",
			place(f));
	if (id != SETTING_COUNT) {
		const char *key = settings_key(&setting_rows[id]);
		bool same = name_equal(key, name, len);

		return failure_usage(f->why, "%s: %s goes into [%s]%s%s", place(f), name,
			setting_section_names[setting_rows[id].section], same ? "" : ", as ",
			same ? "" : key);
	}
	for (int other = 0; !nearest && other < SECTION_COUNT; other++) {
		nearest = settings_nearest_key((enum setting_section)other, name, len);
		if (nearest)
			there = arena_printf(f->s->arena, " of [%s]", setting_section_names[other]);
	}
	return failure_usage(f->why, "%s: \"%s\" is not a setting of %s%s%s%s%s", place(f), name,
		section == SECTION_LAUNCHD ?
			"launchd" :
			arena_printf(f->s->arena, "[%s]", setting_section_names[section]),
		nearest ? ", did you mean " : "", nearest ? nearest : "", there,
		nearest ? "?" : "");
}

static int put_setting(
	struct file *f, enum setting_section section, const char *name, const char *value)
{
	enum setting_id id = settings_find_key(section, name, strlen(name));
	const struct setting_row *row = &setting_rows[id];

	if (id == SETTING_COUNT || row->only_flag)
		return refuse_key(f, section, name);
	if (row->kind == KIND_ARGS) /* may come again, and quotes mean something in it */
		return settings_put(f->s, id, value, (struct origin){ f->level, place(f) }, f->why);
	if (f->seen[id])
		return failure_usage(f->why, "%s: %s is set twice, first at %s:%u", place(f),
			settings_key(row), f->name, f->seen[id]);
	f->seen[id] = f->line;
	if (*value == '"' || *value == '\'' || strstr(value, " #"))
		return failure_usage(f->why, "%s: %s: %s would be part of the value%s", place(f),
			settings_key(row),
			strstr(value, " #") ? "'#' and what follows it" : "quotes",
			strstr(value, " #") ? "; a comment begins with ';'" : ": leave them out");
	return settings_put(f->s, id, value, (struct origin){ f->level, place(f) }, f->why);
}

/* The model of "check H100"; NULL: it is no section of one. */
static const char *model_of(const char *section)
{
	const char *name = setting_section_names[SECTION_CHECK];
	size_t len = strlen(name);
	const char *model = section + len;

	if (strncmp(section, name, len) != 0 || (*model != ' ' && *model != '\t'))
		return NULL;
	model += strspn(model, " \t");
	return *model ? model : NULL;
}

/* A key of [check MODEL]. */
static int put_of_model(struct file *f, const char *model, const char *name, const char *value)
{
	enum setting_id id = settings_find_key(SECTION_CHECK, name, strlen(name));

	if (id == SETTING_COUNT)
		return refuse_key(f, SECTION_CHECK, name);
	return settings_put_model(
		f->s, id, model, value, (struct origin){ f->level, place(f) }, f->why);
}

/* "[launchd], [env] and [cluster]" */
static const char *all_sections(struct arena *a)
{
	const char *all = "", *last = NULL;

	for (int i = 0; i < SECTION_COUNT; i++) {
		if (!settings_has_section((enum setting_section)i))
			continue;
		if (last)
			all = arena_printf(a, "%s%s[%s]", all, *all ? ", " : "", last);
		last = setting_section_names[i];
	}
	return arena_printf(a, "%s and [%s]", all, last);
}

static int ini_put_entry(struct file *f, const char *section, const char *name, const char *value)
{
	const char *model = model_of(section);
	int known = 0;

	if (f->lost)
		return 0;
	while (known < SECTION_COUNT && strcmp(setting_section_names[known], section) != 0)
		known++;
	f->lost = known == SECTION_COUNT && !model;
	if (model)
		return put_of_model(f, model, name, value);
	if (known == SECTION_ENV)
		return put_variable(f, name, value);
	if (known < SECTION_COUNT)
		return put_setting(f, (enum setting_section)known, name, value);
	if (!*section)
		return failure_usage(f->why,
			"%s: %s comes before any section; settings go into [launchd]", place(f),
			name);
	return failure_usage(f->why, "%s: [%s] is not a section; there are %s", place(f), section,
		all_sections(f->s->arena));
}

/* Puts the entry that waits, if one does. False: an error, after which reading stops. */
static bool ini_finish_entry(struct file *f)
{
	unsigned line = f->line;
	int rc = 0;

	if (f->entry.key && f->entry.value) {
		f->line = f->entry.line;
		rc = ini_put_entry(f, f->entry.section, f->entry.key, f->entry.value);
		f->line = line;
		f->entry.key = NULL;
	}
	return failure_go_on(rc, f->why);
}

/* inih's handler. */
static int on_entry(void *user, const char *section, const char *name, const char *value)
{
	struct file *f = user;
	struct arena *a = f->s->arena;

	f->entry.section = arena_strdup(a, section);
	f->entry.value = arena_strdup(a, value);
	f->entry.len = strlen(value);
	f->entry.room = f->entry.len + 1;
	f->entry.line = f->line;
	f->entry.key = f->entry.section && f->entry.value ? arena_strdup(a, name) : NULL;
	return 1;
}

/* By its byte order mark, which Windows' editors write. */
static bool is_utf16(const char *bytes, size_t len)
{
	return len >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0);
}

int settings_read_ini(struct settings *s, const char *bytes, size_t len, const char *name,
	enum level level, struct failure *why)
{
	struct file f = {
		.s = s, .name = name, .level = level, .at = bytes, .end = bytes + len, .why = why
	};
	int rc;

	if (is_utf16(bytes, len))
		return failure_usage(why, "%s: the file is UTF-16: save it as UTF-8", name);
	rc = ini_parse_stream(next_line, &f, on_entry, &f);
	if (why->code != 0 || !ini_finish_entry(&f))
		return why->code;
	if (arena_failed(s->arena) || rc == -2)
		return failure_oom(why);
	if (rc != 0) /* line_check() lets nothing through that inih would refuse */
		return failure_usage(why, "%s:%d: not understood", name, rc);
	return 0;
}

int settings_load_file(struct settings *s, const char *path, enum level level, bool may_be_absent,
	struct failure *why)
{
	char *bytes;
	long len;

	/* EACCES: in a directory that is closed to this user, as packages make /etc/launchd */
	if (may_be_absent && access(path, F_OK) < 0 &&
		(errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	bytes = malloc(FILE_MAX_BYTES);
	if (!bytes)
		return failure_oom(why);
	len = fd_read_file(path, bytes, FILE_MAX_BYTES);
	if (len < 0)
		(void)failure_usage(why, "%s%s%s: can't be read: %s",
			level == LEVEL_FILE ? settings_where(s, SET_CONFIG) : "",
			level == LEVEL_FILE ? ": " : "", path, strerror((int)-len));
	else
		(void)settings_read_ini(s, bytes, (size_t)len, path, level, why);
	free(bytes);
	return why->code;
}
