/* test_sockets.c - the kernel's list of sockets, and who has a port. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/os/procfs.h"
#include "daemon/os/sockets.h"

static const struct line_row {
	const char *says, *line;
	int rc;
	const char *remote;
	unsigned remote_port, state;
	uint64_t inode;
} lines[] = {
	{ "IPv4, established",
		"   2: 0100007F:A410 0700000A:733C 01 00000000:00000000 02:000000AF 00000000  1000"
		"        0 4242424242 2 ffff8881 20 4 30 10 -1\n",
		0, "10.0.0.7", 29500, SOCKET_ESTABLISHED, 4242424242 },
	{ "IPv6, listening",
		"   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A"
		" 00000000:00000000 00:00000000 00000000     0        0 5158 1 0000 100 0 0 10 0\n",
		0, "::", 0, SOCKET_LISTEN, 5158 },
	{ "IPv6, an address",
		"  11: 000000FD000000000000000001000000:0016 000000FD000000000000000007000000:733C 01"
		" 00000000:00000000 00:00000000 00000000     0        0 9 1 0000 100 0 0 10 0\n",
		0, "fd00::7", 29500, SOCKET_ESTABLISHED, 9 },
	{ "the heading",
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n",
		-EINVAL, "", 0, 0, 0 },
	{ "a line that ends early", "   2: 0100007F:A410 0700000A:733C 01 00000000:0000\n", -EINVAL,
		"", 0, 0, 0 },
	{ "an address of another length",
		"   2: 010000:A410 0700000A:733C 01 00000000:00000000 02:000000AF 00000000  1000"
		"        0 42 2\n",
		-EINVAL, "", 0, 0, 0 },
};

static void test_line(void **state)
{
	const struct line_row *row = *state;
	struct tcp_socket s = { 0 };
	char remote[ADDRESS_TEXT];

	assert_int_equal(socket_parse(row->line, &s), row->rc);
	address_host_text(&s.remote, remote);
	assert_string_equal(remote, row->remote);
	assert_int_equal(address_port(&s.remote), row->remote_port);
	assert_int_equal(s.state, row->state);
	assert_int_equal(s.inode, row->inode);
}

struct server {
	int fd;
	unsigned port;
};

static struct server listen_here(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof in;
	struct server s = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };

	assert_int_equal(bind(s.fd, (struct sockaddr *)&in, sizeof in), 0);
	assert_int_equal(listen(s.fd, 64), 0);
	assert_int_equal(getsockname(s.fd, (struct sockaddr *)&in, &len), 0);
	s.port = ntohs(in.sin_port);
	return s;
}

static void ignore_socket(const struct tcp_socket *s, void *to)
{
	(void)s, (void)to;
}

static bool ignore_inode(uint64_t inode, void *to)
{
	(void)inode, (void)to;
	return true;
}

/* In a pid namespace whose /proc is another one's: whether strangers who have the same numbers are
 * left alone. */
static int play_foreign(const struct server *s)
{
	const struct address here = { .v4 = { .sin_family = AF_INET,
					      .sin_addr = { htonl(INADDR_LOOPBACK) } } };
	struct port_holder holder;
	pid_t pid = getpid();

	return sockets_each(pid, ignore_socket, NULL) == -ENOENT &&
			sockets_of(pid, ignore_inode, NULL) == -ENOENT &&
			sockets_find_holder(&here, s->port, &holder) == -ENOENT ?
		0 :
		2;
}

static int enter(const struct server *s)
{
	int status = 0;
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0)
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(play_foreign(s));
	return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 2;
}

static void test_foreign(void **state)
{
	struct server s = listen_here();
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(enter(&s));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(s.fd);
	needs(status != W_EXITCODE(1, 0), "the right to make pid namespaces");
	assert_int_equal(status, 0);
}

static void assert_holder(const struct address *at, unsigned port, bool listens)
{
	struct port_holder holder = { 0 };
	char own[16];

	process_command(getpid(), own);
	assert_int_equal(sockets_find_holder(at, port, &holder), 0);
	assert_int_equal(holder.pid, getpid());
	assert_string_equal(holder.command, own);
	assert_int_equal(holder.listens, listens);
}

static void test_holder(void **state)
{
	const struct address here = { .v4 = { .sin_family = AF_INET,
					      .sin_addr = { htonl(INADDR_LOOPBACK) } } };
	const struct address any = { 0 };
	const struct address there = { .v4 = { .sin_family = AF_INET,
					       .sin_addr = { htonl(INADDR_LOOPBACK + 1) } } };
	struct server s = listen_here();
	struct address to = here, from;
	socklen_t len = sizeof from;
	struct port_holder holder;
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), served;

	(void)state;
	assert_holder(&here, s.port, true);
	assert_holder(&any, s.port, true);
	assert_int_equal(sockets_find_holder(&there, s.port, &holder), -ENOENT);

	/* a connection has its port, too; where there are both, the one that listens is named */
	address_set_port(&to, (uint16_t)s.port);
	assert_int_equal(connect(client, &to.any, address_size(&to)), 0);
	assert_int_equal(getsockname(client, &from.any, &len), 0);
	assert_holder(&here, address_port(&from), false);
	served = accept(s.fd, NULL, NULL);
	assert_true(served >= 0);
	assert_holder(&here, s.port, true);
	(void)close(served);
	(void)close(client);
	(void)close(s.fd);
	assert_int_equal(sockets_find_holder(&here, s.port, &holder), -ENOENT);
}

TESTS(sockets)
{
	static struct suite s;

	/* before proc_look() remembers its answer for our number, which may be 1 there as well */
	suite_add(&s, "/proc of another pid namespace tells nothing", test_foreign, NULL, NULL);
	SUITE_ROWS(&s, test_line, lines);
	suite_add(&s, "who listens", test_holder, NULL, NULL);
	return suite_run(&s);
}
