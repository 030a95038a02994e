/* sockets.c - see sockets.h */
#include "daemon/os/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/os/procfs.h"

enum { HEX_4 = 8, HEX_6 = 32, PATH_SIZE = 64 };

/* Words of 32 bits in the byte order of the host, each of four bytes of the address. */
static int read_address(const char *hex, unsigned port, struct address *ret)
{
	const size_t len = strlen(hex);
	struct address a = { .v6.sin6_family = len == HEX_4 ? AF_INET : AF_INET6 };
	uint8_t *at = len == HEX_4 ? (uint8_t *)&a.v4.sin_addr : a.v6.sin6_addr.s6_addr;

	if (len != HEX_4 && len != HEX_6)
		return -EINVAL;
	for (size_t i = 0; i < len; i += HEX_4, at += 4) {
		char word[HEX_4 + 1] = "";
		uint32_t bits;

		memcpy(word, hex + i, HEX_4);
		bits = (uint32_t)strtoul(word, NULL, 16);
		memcpy(at, &bits, sizeof bits);
	}
	address_set_port(&a, (uint16_t)port);
	*ret = a;
	return 0;
}

int socket_parse(const char *line, struct tcp_socket *ret)
{
	char local[HEX_6 + 1], remote[HEX_6 + 1];
	unsigned local_port, remote_port;
	struct tcp_socket s;

	if (sscanf(line,
		    " %*u: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*x:%*x %*x:%*x %*x %*u %*u"
		    " %" SCNu64,
		    local, &local_port, remote, &remote_port, &s.state, &s.inode) != 6 ||
		read_address(local, local_port, &s.local) < 0 ||
		read_address(remote, remote_port, &s.remote) < 0)
		return -EINVAL;
	*ret = s;
	return 0;
}

static int each_of_file(
	const char *path, void (*see)(const struct tcp_socket *s, void *to), void *to)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	struct tcp_socket s;

	if (!f)
		return -errno;
	while (getline(&line, &size, f) >= 0)
		if (socket_parse(line, &s) == 0)
			see(&s, to);
	free(line);
	(void)fclose(f);
	return 0;
}

int sockets_each(pid_t of, void (*see)(const struct tcp_socket *s, void *to), void *to)
{
	char path[PATH_SIZE];
	int rc;

	if (proc_look() != PROC_OURS)
		return -ENOENT;
	(void)snprintf(path, sizeof path, "/proc/%d/net/tcp", (int)of);
	rc = each_of_file(path, see, to);
	(void)snprintf(path, sizeof path, "/proc/%d/net/tcp6", (int)of);
	(void)each_of_file(path, see, to); /* not there where IPv6 is off */
	return rc;
}

int sockets_of(pid_t pid, bool (*see)(uint64_t inode, void *to), void *to)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	bool more = true;
	DIR *dir;

	if (proc_look() != PROC_OURS)
		return -ENOENT;
	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (more && (entry = readdir(dir))) {
		char link[PATH_SIZE] = "";
		uint64_t inode;

		if (readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1) < 0)
			continue; /* "." and "..", and what was closed meanwhile */
		if (sscanf(link, "socket:[%" SCNu64 "]", &inode) == 1)
			more = see(inode, to);
	}
	(void)closedir(dir);
	return 0;
}

struct holder_search {
	const struct address *at;
	unsigned port;
	uint64_t inode; /* of the holder's socket; 0: none */
	bool listens, found;
};

static void see_holder(const struct tcp_socket *s, void *to)
{
	struct holder_search *h = to;
	bool listens = s->state == SOCKET_LISTEN;

	if (address_port(&s->local) != h->port || s->inode == 0 ||
		(h->inode != 0 && (h->listens || !listens)) ||
		!(address_is_any(&s->local) || address_is_any(h->at) ||
			address_same_host(&s->local, h->at)))
		return;
	h->inode = s->inode;
	h->listens = listens;
}

static bool see_inode(uint64_t inode, void *to)
{
	struct holder_search *h = to;

	h->found = inode == h->inode;
	return !h->found;
}

int sockets_find_holder(const struct address *at, unsigned port, struct port_holder *ret)
{
	struct holder_search h = { .at = at, .port = port };
	struct dirent *entry;
	DIR *dir;

	(void)sockets_each(getpid(), see_holder, &h);
	dir = h.inode ? opendir("/proc") : NULL;
	while (dir && !h.found && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || sockets_of(pid, see_inode, &h) < 0 || !h.found)
			continue;
		process_command(pid, ret->command);
		ret->pid = pid;
		ret->listens = h.listens;
	}
	if (dir)
		(void)closedir(dir);
	return h.found ? 0 : -ENOENT;
}
