/* journal_socket.c - see journal_socket.h */
#include "daemon/os/journal_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd.h"

int journal_socket_open(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	autoclose fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	size_t len = strlen(path);

	if (fd < 0)
		return -errno;
	if (len >= sizeof to.sun_path)
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, len);
	if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
		return -errno;
	return fd_take(&fd);
}

/* The kernel's limit for a datagram is net.core.wmem_max or less. */
static int send_file(int fd, const char *at, size_t len)
{
	enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct msghdr m = { .msg_control = &control, .msg_controllen = sizeof control.room };
	/* glibc has a function for it from 2.27 on */
	autoclose file =
		(int)syscall(SYS_memfd_create, "journal-entry", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (file < 0)
		return -errno;
	rc = fd_write_all(file, at, len);
	if (rc < 0)
		return rc;
	if (fcntl(file, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &file, sizeof(int));
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int journal_socket_send(int fd, const char *at, size_t len)
{
	ssize_t n;

	do
		n = send(fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return errno == EMSGSIZE || errno == ENOBUFS ? send_file(fd, at, len) : -errno;
}

int journal_socket_send_within(int fd, const char *at, size_t len, int within_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int rc = journal_socket_send(fd, at, len);

	if (rc != -EAGAIN || poll(&p, 1, within_ms) <= 0)
		return rc;
	return journal_socket_send(fd, at, len);
}
