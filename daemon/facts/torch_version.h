/* torch_version.h - versions of PyTorch, as its file torch/version.py has them. Pure. */
#ifndef LAUNCHD_DAEMON_FACTS_TORCH_VERSION_H
#define LAUNCHD_DAEMON_FACTS_TORCH_VERSION_H

enum { TORCH_VERSION_SIZE = 64 };

/* The version that a version.py states: the string in its line "__version__ = ". -EINVAL: it
 * states none, or one with letters that no version has. */
int torch_version_find(const char *file, char ret[TORCH_VERSION_SIZE]);

#endif
