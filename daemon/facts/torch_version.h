/* torch_version.h - versions of PyTorch, as its file torch/version.py has them. Pure. */
#ifndef LAUNCHD_DAEMON_FACTS_TORCH_VERSION_H
#define LAUNCHD_DAEMON_FACTS_TORCH_VERSION_H

enum { TORCH_VERSION_SIZE = 64 };

/* The version that a version.py states: the text behind its line "__version__ = ". -EINVAL: it
 * states none, or one with letters that no version has. */
int torch_version_find(const char *file, char ret[TORCH_VERSION_SIZE]);

/* The first two numbers of "2.15.0+cu132", "1.13.0a0". -EINVAL: it has none. */
int torch_version_parse(const char *version, unsigned *ret_major, unsigned *ret_minor);

#endif
