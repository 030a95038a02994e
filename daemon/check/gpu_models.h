/* gpu_models.h - what is known of models of GPUs by their names. Pure. */
#ifndef LAUNCHD_DAEMON_CHECK_GPU_MODELS_H
#define LAUNCHD_DAEMON_CHECK_GPU_MODELS_H

#include <stdbool.h>

/* How many NVLinks a model has on the board that it is sold on; 0: not known, or none. */
unsigned gpu_model_nvlinks(const char *name);

/* Whether its memory is the operating system's: a NUMA node of its own. */
bool gpu_model_is_numa(const char *name);

#endif
