/* help.c - see help.h */
#include "config/help.h"

#include <string.h>

#include "common/text.h"
#include "config/settings.h"

enum { HELP_COLUMN = 30, HELP_WIDTH = 96 };

/* "-m, --module", "--nnodes N" */
static void add_option(const struct setting_row *row, struct text *out)
{
	if (row->letter)
		text_printf(out, "-%c, ", row->letter);
	text_printf(out, "--%s", row->flag);
	if (row->optional)
		text_printf(out, row->in_next ? " [%s]" : "[=%s]", row->metavar);
	else if (row->metavar)
		text_printf(out, " %s", row->metavar);
}

static void help_row(const struct setting_row *row, struct text *out)
{
	size_t start = out->len;

	text_add(out, "  ");
	add_option(row, out);
	if (out->len - start >= HELP_COLUMN - 1)
		text_printf(out, "\n%*s", HELP_COLUMN, "");
	else
		text_printf(out, "%*s", (int)(HELP_COLUMN - (out->len - start)), "");
	text_add_wrapped(out, row->help, HELP_COLUMN, HELP_COLUMN, HELP_WIDTH);
	if (row->by_default && *row->by_default && row->kind != KIND_FLAG)
		text_printf(out, " [%s]", row->by_default);
	text_add(out, "\n");
}

void help_text(struct text *out)
{
	text_add(out,
		"Usage: launchd [options] script [script's arguments]\n\n"
		"Starts the workers of a distributed training job on this node and supervises them. "
		"One launchd\nruns on each node; they find one another, and when a worker fails on "
		"any node, the whole job ends:\n\n"
		"  mpirun -n 4 --map-by ppr:1:node launchd --nproc_per_node 8 --use_env train.py "
		"--lr 1e-4\n\n"
		"Options may be written with '-' or '_' and as --opt=value, and abbreviated as with "
		"torchrun.\nDefaults are in brackets. Most values can also come from a file "
		"(--config) or from\nLAUNCHD_<NAME>, and torchrun's own from PET_<NAME>.\n");
	for (int group = 0; group < GROUP_COUNT; group++) {
		text_printf(out, "\n%s:\n", setting_group_titles[group]);
		for (int id = 0; id < SETTING_COUNT; id++)
			if ((int)setting_rows[id].group == group && !setting_rows[id].only_key)
				help_row(&setting_rows[id], out);
	}
	text_add(out,
		"\nExit codes: 0 all workers exited with 0; the code of the worker that failed "
		"first, on any node,\nor 128 + signal; 122 nodes are bad (--preflight); 124 --max-runtime expired; 125 a node was\nlost; "
		"129 mpirun had ended; 2 usage;\n126, 127 the script can't be executed, wasn't found; "
		"1 the launcher itself failed, or the nodes did\nnot find one another (--control "
		"required).\n");
}

/* mdoc(7) reads '-' as a hyphen, '\\' as an escape, and '.' or '\'' at the start of a line as a
 * call. */
static void add_roff(const char *s, struct text *out)
{
	if (*s == '.' || *s == '\'')
		text_add(out, "\\&");
	for (; *s; s++) {
		if (*s == '-')
			text_add(out, "\\-");
		else if (*s == '\\')
			text_add(out, "\\e");
		else if (s[0] == '.' && s[1] == ' ')
			text_add(out, ".\n"), s++; /* a new sentence, a new line */
		else
			text_add_bytes(out, s, 1);
	}
}

static void man_row(const struct setting_row *row, struct text *out)
{
	text_add(out, ".It ");
	if (row->letter)
		text_printf(out, "Fl %c , ", row->letter);
	text_add(out, "Fl \\-");
	add_roff(row->flag, out);
	if (row->metavar) {
		text_add(out,
			row->in_next          ? " Op Ar " :
				row->optional ? " Ns Op = Ns Ar " :
						" Ar ");
		add_roff(row->metavar, out);
	}
	text_add(out, "\n");
	add_roff(row->help, out);
	if (row->by_default && *row->by_default && row->kind != KIND_FLAG) {
		text_add(out, row->support == SUPPORTED ? "\nDefault: " : ".\nDefault: ");
		add_roff(row->by_default, out);
		text_add(out, ".");
	}
	if (row->variable)
		text_printf(out, "\nAlso set by\n.Ev %s .", row->variable);
	text_add(out, "\n");
}

void help_man(struct text *out)
{
	for (int group = 0; group < GROUP_COUNT; group++) {
		text_printf(out, ".Ss %s\n.Bl -tag -width Ds\n", setting_group_titles[group]);
		for (int id = 0; id < SETTING_COUNT; id++)
			if ((int)setting_rows[id].group == group && !setting_rows[id].only_key)
				man_row(&setting_rows[id], out);
		text_add(out, ".El\n");
	}
}

/* Whether a row is a key of that section which is worth showing. */
static bool is_key(const struct setting_row *row, int section)
{
	return (int)row->section == section && !row->only_flag && row->support == SUPPORTED;
}

static void man_key(const struct setting_row *row, struct text *out)
{
	bool flag = row->kind == KIND_FLAG;
	const char *given = !flag ? row->by_default : row->by_default[0] == '1' ? "yes" : "no";

	text_add(out, ".It Cm ");
	add_roff(settings_key(row), out);
	text_add(out, "\n.Ar ");
	add_roff(flag ? "yes|no" : row->metavar, out);
	if (given && *given) {
		text_add(out, "\n.Pq ");
		add_roff(given, out);
	}
	text_add(out, "\n");
}

void help_man_keys(struct text *out)
{
	for (int section = 0; section < SECTION_COUNT; section++) {
		enum setting_group group = GROUP_COUNT;

		if (section == SECTION_ENV || !settings_has_section((enum setting_section)section))
			continue;
		text_printf(out, ".Ss [%s]\n", setting_section_names[section]);
		for (int id = 0; id < SETTING_COUNT; id++) {
			const struct setting_row *row = &setting_rows[id];

			if (!is_key(row, section))
				continue;
			if (row->group != group)
				text_printf(out, "%s%s:\n.Bl -tag -width %s -compact -offset Ds\n",
					group == GROUP_COUNT ? "" : ".El\n.Pp\n",
					setting_group_titles[row->group],
					"log\\-line\\-prefix\\-template");
			group = row->group;
			man_key(row, out);
		}
		text_add(out, ".El\n");
	}
}

static void ini_row(const struct setting_row *row, struct text *out)
{
	text_add(out, "\n; ");
	for (const char *p = row->help; *p;) {
		size_t len = strlen(p);

		if (len > 90)
			for (len = 90; p[len] != ' '; len--)
				;
		text_printf(out, "%s%.*s\n", p == row->help ? "" : "; ", (int)len, p);
		p += len;
		p += *p == ' ';
	}
	text_printf(out, ";%s = %s\n", settings_key(row), row->by_default ? row->by_default : "");
}

void help_ini(struct text *out)
{
	text_add(out,
		"; Settings of launchd(1), in a file as launchd.conf(5) describes it. Every key is an "
		"option's name,\n; in sections of their own without the section's; all are shown with "
		"their defaults.\n");
	for (int section = 0; section < SECTION_COUNT; section++) {
		if (section == SECTION_ENV || !settings_has_section((enum setting_section)section))
			continue;
		text_printf(out, "\n[%s]\n", setting_section_names[section]);
		for (int id = 0; id < SETTING_COUNT; id++) {
			const struct setting_row *row = &setting_rows[id];

			if (is_key(row, section))
				ini_row(row, out);
		}
	}
	text_add(out, "\n; Variables of the workers, one per line.\n[env]\n;NAME = value\n");
}
