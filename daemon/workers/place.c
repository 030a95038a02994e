/* place.c - see place.h */
#include "daemon/workers/place.h"

#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/vec.h"

/* A bound socket of the family, or negative errno. */
static int bind_any(int family)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const struct sockaddr *addr = (const struct sockaddr *)(const void *)&v4;
	socklen_t len = sizeof v4;
	autoclose fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1, off = 0;

	if (fd < 0)
		return -errno;
	if (family == AF_INET6) {
		addr = (const struct sockaddr *)(const void *)&v6;
		len = sizeof v6;
		if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
			return -errno;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || bind(fd, addr, len) < 0)
		return -errno;
	return fd_take(&fd);
}

int port_reserve(int *ret_fd, unsigned *ret_port, struct failure *why)
{
	struct sockaddr_storage got;
	socklen_t len = sizeof got;
	autoclose fd = bind_any(AF_INET6);
	in_port_t port;

	if (fd < 0)
		fd = bind_any(AF_INET); /* IPv6 is off */
	if (fd < 0)
		return failure_set(why, fd, "can't get a free port: %s", strerror(-fd));
	if (getsockname(fd, (struct sockaddr *)(void *)&got, &len) < 0)
		return failure_set(why, -errno, "getsockname: %s", strerror(errno));
	/* the port stands at the same place in both */
	memcpy(&port, &((struct sockaddr_in *)(void *)&got)->sin_port, sizeof port);
	*ret_port = ntohs(port);
	*ret_fd = fd_take(&fd);
	return 0;
}

/* mkdtemp(3) below a directory, by its absolute path: workers may change theirs. */
static int make_below(const char *dir, struct arena *arena, const char **ret)
{
	char *here = *dir == '/' ? NULL : get_current_dir_name();
	char *path;

	if (*dir != '/' && !here)
		return -errno;
	path = here ? arena_printf(arena, "%s/%s/launchd_XXXXXX", here, dir) :
		      arena_printf(arena, "%s/launchd_XXXXXX", dir);
	free(here);
	if (arena_failed(arena))
		return -ENOMEM;
	if (!mkdtemp(path)) /* mode 700 */
		return -errno;
	*ret = path;
	return 0;
}

int run_dir_make(const char *const *env, struct arena *arena, const char **ret, struct failure *why)
{
	const char *tmp = env_get(env, "TMPDIR");
	const char *dirs[] = { tmp && *tmp ? tmp : "/tmp", "/tmp", "/var/tmp" };
	int first = 0;

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		int rc = make_below(dirs[i], arena, ret);

		if (rc == 0)
			return 0;
		first = first ? first : rc;
	}
	return failure_set(why, -EIO, "can't make a directory for error files in %s: %s", dirs[0],
		strerror(-first));
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path) < 0 && errno != ENOENT ? -errno : 0;
}

int run_dir_remove(const char *path)
{
	int rc = nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

	return rc == -1 ? -errno : rc;
}
