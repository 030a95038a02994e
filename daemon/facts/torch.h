/* torch.h - which PyTorch a Python would import, read from its files: to start that Python would
 * run what users have put into its start, and to import torch takes seconds. Only a script that
 * stands in the interpreter's place is run. */
#ifndef LAUNCHD_DAEMON_FACTS_TORCH_H
#define LAUNCHD_DAEMON_FACTS_TORCH_H

struct arena;

/* The version ("2.15.0+cu132", the arena's) of the first torch in the places where the program
 * python looks: PYTHONPATH, its virtual environment, the user's and the system's packages. NULL:
 * there is none, or the interpreter's places can't be told from its files (a script in its place,
 * as pyenv's; a torch that a .pth file names). */
const char *torch_version_read(const char *const *env, const char *python, struct arena *arena);

/* The same where python is a script (a shim of pyenv, asdf or mise; a wrapper that enters a
 * container or an environment): runs it once, and lets the Python that it starts look, which
 * doesn't import torch. Blocks for 5 s at the most. NULL: there is none, or python is no script; or
 * it didn't say, and *ret_why is a sentence about that (the arena's). */
const char *torch_version_ask(
	const char *const *env, const char *python, struct arena *arena, const char **ret_why);

/* The directory that this torch is in, beside the packages that came with it: ".../site-packages".
 * NULL as above. */
const char *torch_place_read(const char *const *env, const char *python, struct arena *arena);

#endif
