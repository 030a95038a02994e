/* docgen.c - prints documentation from the table of settings, at build time:
 *
 *   docgen man TEMPLATE    the template with its line "@OPTIONS@" replaced by the options
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
	static const char marker[] = "@OPTIONS@\n";
	static char page[256 * 1024];
	long len = fd_read_file(path, page, sizeof page);
	const char *at = len < 0 ? NULL : strstr(page, marker);

	if (!at) {
		fprintf(stderr, "docgen: %s: %s\n", path,
			len < 0 ? strerror((int)-len) : "no line @OPTIONS@");
		return 1;
	}
	text_add_bytes(out, page, (size_t)(at - page));
	help_man(out);
	text_add(out, at + strlen(marker));
	return 0;
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
