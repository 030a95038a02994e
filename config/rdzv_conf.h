/* rdzv_conf.h - what torchrun's --rdzv-conf means here. Pure. */
#ifndef LAUNCHD_CONFIG_RDZV_CONF_H
#define LAUNCHD_CONFIG_RDZV_CONF_H

#include <stdbool.h>
#include <stddef.h>

struct failure;
struct notes;
struct settings;

/* Sets --join-timeout by join_timeout, and by timeout with the static backend, unless it is given
 * at the same or a higher level; a warning for every other key says why it has no effect.
 * -EINVAL: a malformed timeout. */
int rdzv_conf_apply(struct settings *s, struct notes *notes, struct failure *why);

#endif
