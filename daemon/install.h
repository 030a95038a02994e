/* install.h - launchd under the name torchrun, where the user asks for that. */
#ifndef LAUNCHD_DAEMON_INSTALL_H
#define LAUNCHD_DAEMON_INSTALL_H

struct arena;
struct failure;
struct text;

/* Makes dir/torchrun a link to this program, and adds what was done to `out`: that it is there, and
 * whether PATH in env finds another one before. One that is there already is left alone. where is
 * the setting that asks for it. -EINVAL: something else has that name; other negative errno: it
 * can't be made. */
int install_torchrun(const char *dir, const char *where, const char *const *env,
	struct arena *arena, struct text *out, struct failure *why);

#endif
