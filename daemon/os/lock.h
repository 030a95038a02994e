/* lock.h - a mutex that is held until the end of a scope:
 *
 *	autolock held = lock_take(&p->lock);
 */
#ifndef LAUNCHD_DAEMON_OS_LOCK_H
#define LAUNCHD_DAEMON_OS_LOCK_H

#include <uv.h>

static inline uv_mutex_t *lock_take(uv_mutex_t *m)
{
	uv_mutex_lock(m);
	return m;
}

static inline void lock_releasep(uv_mutex_t **m)
{
	uv_mutex_unlock(*m);
}

#define autolock __attribute__((cleanup(lock_releasep), unused)) uv_mutex_t *

#endif
