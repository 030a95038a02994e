/* completion.c - shells' completion scripts from the table; see help.h */
#include "config/help.h"

#include <string.h>

#include "common/text.h"
#include "config/settings.h"

static bool is_file(int id)
{
	return id == SET_CONFIG || id == SET_CHECK || id == SET_PYTHON || id == SET_REPORT ||
		id == SET_HANG_TRACE || id == SET_KEY_FILE || id == SET_EXPLAIN ||
		id == SET_MPIRUN_HOSTFILE;
}

/* Its value may be left out, and is never the next word. */
static bool only_equals(const struct setting_row *row)
{
	return row->optional && !row->in_next;
}

static bool takes_value(int id)
{
	return setting_rows[id].kind != KIND_FLAG && !only_equals(&setting_rows[id]);
}

/* "--a_b|--a-b" */
static void add_spellings(struct text *out, const char *flag)
{
	for (int dash = 0; dash < 2 && (!dash || strpbrk(flag, "-_")); dash++) {
		text_add(out, dash ? "|--" : "--");
		for (const char *p = flag; *p; p++) {
			char c = strchr("-_", *p) ? "_-"[dash] : *p;

			text_add_bytes(out, &c, 1);
		}
	}
}

/* "--a|--b": every spelling of the flags that `wanted` says yes to, with '-' and with '_'. */
static void add_pattern(struct text *out, bool (*wanted)(int))
{
	bool first = true;

	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *flag = setting_rows[id].flag;

		if (!wanted(id) || setting_rows[id].only_key)
			continue;
		text_add(out, first ? "" : "|");
		first = false;
		add_spellings(out, flag);
		if (setting_rows[id].letter)
			text_printf(out, "|-%c", setting_rows[id].letter);
	}
}

/* The words of "a|b|c", separated by blanks. */
static void add_words(struct text *out, const char *choices)
{
	for (const char *p = choices; *p; p++)
		text_add_bytes(out, *p == '|' ? " " : p, 1);
}

static void bash_choices(struct text *out)
{
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];

		if (!row->choices || row->optional || row->only_key)
			continue;
		text_add(out, "\t\t");
		add_spellings(out, row->flag);
		text_add(out, ")\n\t\t\tCOMPREPLY=($(compgen -W \"");
		add_words(out, row->choices);
		text_add(out, "\" -- \"$cur\"))\n\t\treturn ;;\n");
	}
}

void help_bash(struct text *out)
{
	text_add(out,
		"# bash completion for launchd\n"
		"_launchd()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} word prev i\n"
		"\tlocal script=0 skip=0\n"
		"\tCOMPREPLY=()\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\tword=${COMP_WORDS[i]}\n"
		"\t\tif ((skip)); then skip=0; [[ $word == = ]] && skip=1; continue; fi\n"
		"\t\tcase $word in\n\t\t");
	add_pattern(out, takes_value);
	text_add(out,
		") skip=1 ;;\n"
		"\t\t-*|=) ;;\n"
		"\t\t*) script=1; break ;;\n"
		"\t\tesac\n"
		"\tdone\n"
		"\tif ((script)); then compopt -o default 2>/dev/null; return; fi\n"
		"\tprev=${COMP_WORDS[COMP_CWORD-1]}\n"
		"\tif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
		"\tif [[ $cur == = ]]; then prev=${COMP_WORDS[COMP_CWORD-1]}; cur=; fi\n"
		"\tif [[ $prev == -* ]]; then\n"
		"\t\tcase $prev in\n");
	bash_choices(out);
	text_add(out, "\t\t");
	add_pattern(out, is_file);
	text_add(out, ")\n\t\t\tcompopt -o default 2>/dev/null\n\t\t\treturn ;;\n\t\t");
	add_pattern(out, takes_value);
	text_add(out,
		") return ;;\n"
		"\t\tesac\n"
		"\tfi\n"
		"\tif [[ $cur == -* ]]; then\n"
		"\t\tCOMPREPLY=($(compgen -W \"");
	for (int id = 0; id < SETTING_COUNT; id++)
		if (!setting_rows[id].only_key)
			text_printf(out, "%s--%s", id ? " " : "", setting_rows[id].flag);
	text_add(out,
		"\" -- \"$cur\"))\n"
		"\telse\n"
		"\t\tcompopt -o default 2>/dev/null\n"
		"\tfi\n"
		"}\n"
		"complete -F _launchd launchd\n");
}

/* zsh reads [...] as the description and ':' as a divider. */
static void add_zsh_text(struct text *out, const char *s, size_t len)
{
	for (; len > 0; s++, len--) {
		if (*s == '\'')
			text_add(out, "'\\''");
		else if (strchr("[]:\\", *s))
			text_printf(out, "\\%c", *s);
		else
			text_add_bytes(out, s, 1);
	}
}

void help_zsh(struct text *out)
{
	text_add(out, "#compdef launchd\n_launchd()\n{\n_arguments -S -s \\\n");
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = &setting_rows[id];
		size_t len = strcspn(row->help, ".;:"); /* the first part says what it is */

		if (row->only_key)
			continue;
		text_add(out, "\t'");
		if (row->kind == KIND_ENV || row->kind == KIND_UNSET)
			text_add(out, "*");
		text_printf(out, "--%s%s[", row->flag,
			only_equals(row)               ? "=-" :
				row->kind == KIND_FLAG ? "" :
							 "=");
		add_zsh_text(out, row->help, len);
		text_add(out, "]");
		if (row->kind != KIND_FLAG) {
			text_add(out, row->optional ? "::" : ":");
			add_zsh_text(out, row->flag, strlen(row->flag));
			text_add(out, ":");
			if (is_file(id)) {
				text_add(out, "_files");
			} else if (row->choices) {
				text_add(out, "(");
				add_words(out, row->choices);
				text_add(out, ")");
			}
		}
		text_add(out, "' \\\n");
	}
	text_add(out,
		"\t'1:script:_files' \\\n\t'*::arguments:_files'\n}\n"
		"if [[ $funcstack[1] == _launchd ]]; then _launchd \"$@\"; "
		"else compdef _launchd launchd; fi\n");
}
