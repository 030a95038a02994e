/* torch.h - which PyTorch a Python would import, read from its files: to start that Python would
 * run what users have put into its start, and to import torch takes seconds. */
#ifndef LAUNCHD_DAEMON_FACTS_TORCH_H
#define LAUNCHD_DAEMON_FACTS_TORCH_H

struct arena;

/* The version ("2.15.0+cu132", the arena's) of the first torch in the places where the program
 * python looks: PYTHONPATH, its virtual environment, the user's and the system's packages. NULL:
 * there is none, or the interpreter's places can't be told from its files (a script in its place,
 * as pyenv's; a torch that a .pth file names). */
const char *torch_version_read(const char *const *env, const char *python, struct arena *arena);

/* The directory that this torch is in, beside the packages that came with it: ".../site-packages".
 * NULL as above. */
const char *torch_place_read(const char *const *env, const char *python, struct arena *arena);

#endif
