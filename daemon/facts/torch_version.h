/* torch_version.h - versions of PyTorch, as its file torch/version.py has them. Pure. */
#ifndef LAUNCHD_DAEMON_FACTS_TORCH_VERSION_H
#define LAUNCHD_DAEMON_FACTS_TORCH_VERSION_H

#include <stdbool.h>

enum { TORCH_VERSION_SIZE = 64 };

/* The version that a version.py states: the string in its line "__version__ = ". -EINVAL: it
 * states none, or one with letters that no version has. */
int torch_version_find(const char *file, char ret[TORCH_VERSION_SIZE]);

/* Whether a version is of this release or of a later one; false for NULL, a version that is not
 * known. */
bool torch_version_since(const char *version, unsigned major, unsigned minor);

#endif
