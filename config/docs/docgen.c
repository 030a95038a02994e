/* docgen.c - prints documentation from the table of settings, at build time:
 *
 *   docgen man TEMPLATE    the template with its line "@OPTIONS@" replaced by the options, or
 *                          "@KEYS@" by the keys of files
 *   docgen ini|bash|zsh    the example file, the completion scripts
 *   docgen ctl-bash|ctl-zsh    those of launchctl
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "config/help.h"
#include "daemon/ctl/ctl_command.h"

static int man(const char *path, struct text *out)
{
	static const struct {
		const char *marker;
		void (*print)(struct text *out);
	} parts[] = { { "@OPTIONS@\n", help_man }, { "@KEYS@\n", help_man_keys } };
	static char page[256 * 1024];
	long len = fd_read_file(path, page, sizeof page);

	for (size_t i = 0; len >= 0 && i < sizeof parts / sizeof *parts; i++) {
		const char *at = strstr(page, parts[i].marker);

		if (!at)
			continue;
		text_add_bytes(out, page, (size_t)(at - page));
		parts[i].print(out);
		text_add(out, at + strlen(parts[i].marker));
		return 0;
	}
	fprintf(stderr, "docgen: %s: %s\n", path,
		len < 0 ? strerror((int)-len) : "no line @OPTIONS@ or @KEYS@");
	return 1;
}

int main(int argc, char **argv)
{
	struct text out = { 0 };
	int rc = 0;

	if (argc == 3 && strcmp(argv[1], "man") == 0)
		rc = man(argv[2], &out);
	else if (argc == 2 && strcmp(argv[1], "ini") == 0)
		help_ini(&out);
	else if (argc == 2 && strcmp(argv[1], "bash") == 0)
		help_bash(&out);
	else if (argc == 2 && strcmp(argv[1], "zsh") == 0)
		help_zsh(&out);
	else if (argc == 2 && strcmp(argv[1], "ctl-bash") == 0)
		ctl_command_bash(&out);
	else if (argc == 2 && strcmp(argv[1], "ctl-zsh") == 0)
		ctl_command_zsh(&out);
	else
		rc = 2;
	if (rc == 0)
		rc = fd_write_all(STDOUT_FILENO, text_string(&out), out.len) < 0;
	text_done(&out);
	return rc;
}
