/* fake_pmix.c - a PMIx for one process that misbehaves as $FAKE_PMIX says: STEP:HOW[,STEP:HOW].
 * A step is the name of a function without PMIx_; it may hang, exit, die, end with an error, ... */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pmix.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static pmix_value_t kept;
static int initialised;

static int is(const char *step, const char *how)
{
	char wanted[64];
	const char *all = getenv("FAKE_PMIX");

	(void)snprintf(wanted, sizeof wanted, "%s:%s", step, how);
	return all && strstr(all, wanted);
}

static pmix_status_t step(const char *name)
{
	if (is(name, "chatter"))
		fputs("----------\n\n  \x1b[1mno server\nat all\n", stderr);
	for (int i = 0; i < 100000 && is(name, "flood"); i++)
		fputs("and again\n", stdout);
	(void)fflush(stdout);
	while (is(name, "hang"))
		(void)pause();
	if (is(name, "exit"))
		exit(7);
	if (is(name, "die"))
		(void)raise(SIGABRT);
	return is(name, "error") ? PMIX_ERR_UNREACH : PMIX_SUCCESS;
}

/* What is wrong with the process that PMIx finds itself in; NULL: nothing. */
static const char *inspect(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char name[16] = "";
	sigset_t blocked;

	while ((entry = readdir(dir)))
		if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(dir))
			return "it has files";
	(void)closedir(dir);
	if (read(0, name, 1) != 0)
		return "it has an input";
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (int s = 1; s < 32; s++) {
		struct sigaction sa;

		if (sigismember(&blocked, s))
			return "a signal is blocked";
		if (sigaction(s, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL && s != SIGPIPE)
			return "a signal is handled";
	}
	(void)prctl(PR_GET_NAME, name);
	return strcmp(name, "rank-pmix") == 0 ? NULL : "it has another's name";
}

/* Our end of the connection to a server of PMIx, and the server's, which plays in this process. */
static int client = -1, server = -1;

/* Our end is the only socket of the internet's where a launcher looks for one, among other files.
 */
static int connect_to_server(void)
{
	enum { SERVERS = 300 }; /* it looks at no descriptor from here on */
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0), listener = fcntl(fd, F_DUPFD, SERVERS);
	socklen_t len = sizeof at;

	(void)close(fd);
	(void)socket(AF_UNIX, SOCK_STREAM, 0);
	client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 1) < 0 ||
		getsockname(listener, (struct sockaddr *)&at, &len) < 0 ||
		connect(client, (struct sockaddr *)&at, len) < 0)
		return -1;
	fd = accept(listener, NULL, NULL);
	server = fcntl(fd, F_DUPFD, SERVERS);
	(void)close(fd);
	return server;
}

static int hears_the_answer(void)
{
	struct pollfd p = { .fd = client, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* The server answers PMIx_Finalize; the launcher lets us hear of it at its second tick after that,
 * a SIGALRM. What went wrong; NULL: nothing. */
static const char *leave_server(void)
{
	sigset_t alarms, others;
	char byte;

	(void)sigemptyset(&alarms);
	(void)sigaddset(&alarms, SIGALRM);
	(void)sigprocmask(SIG_BLOCK, &alarms, &others);
	if (send(server, "", 1, 0) != 1 || recv(client, &byte, 1, MSG_PEEK) != 1)
		return "there is no answer";
	if (hears_the_answer())
		return "the answer comes at once";
	(void)sigsuspend(&others);
	if (hears_the_answer())
		return "the answer comes at the first tick";
	(void)sigsuspend(&others);
	return hears_the_answer() ? NULL : "the answer does not come at the second tick";
}

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
	const char *wrong = is("Init", "inspect") ? inspect() : NULL;
	pmix_status_t status = step("Init");

	(void)info, (void)ninfo;
	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	if (wrong || status != PMIX_SUCCESS || (is("Init", "connect") && connect_to_server() < 0))
		return PMIX_ERR_UNREACH;
	initialised = 1;
	memset(proc, 0, sizeof *proc);
	(void)strcpy(proc->nspace, "fake");
	proc->rank = 3;
	return PMIX_SUCCESS;
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *val)
{
	(void)scope, (void)key;
	kept = *val;
	kept.data.bo.bytes = malloc(val->data.bo.size + 1);
	memcpy(kept.data.bo.bytes, val->data.bo.bytes, val->data.bo.size);
	return step("Put");
}

pmix_status_t PMIx_Commit(void)
{
	return step("Commit");
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
	size_t ninfo, pmix_op_cbfunc_t done, void *data)
{
	pmix_status_t status = step("Fence");

	(void)procs, (void)nprocs, (void)info, (void)ninfo;
	if (is("Fence", "now"))
		return PMIX_OPERATION_SUCCEEDED;
	if (is("Fence", "refused"))
		return PMIX_ERR_NOT_SUPPORTED;
	if (!is("Fence", "never"))
		done(status, data);
	return PMIX_SUCCESS;
}

pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
	size_t ninfo, pmix_value_t **val)
{
	(void)key, (void)info, (void)ninfo;
	if (is("Get", "string"))
		kept.type = PMIX_STRING;
	if (is("Get", "long"))
		kept.data.bo.size = 5000;
	*val = &kept;
	return proc->rank == 0 ? step("Get") : PMIX_ERR_NOT_FOUND;
}

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t ninfo)
{
	const char *wrong = server >= 0 ? leave_server() : NULL;

	(void)info, (void)ninfo;
	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	if (wrong || !initialised)
		abort(); /* the latter as the real one does */
	return step("Finalize");
}

const char *PMIx_Error_string(pmix_status_t status)
{
	return status == PMIX_ERR_UNREACH ? "UNREACHABLE" : "ANOTHER";
}
