/* test_thread_list.c - the threads of a process, as /proc shows them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/os/thread_list.h"

static _Noreturn void *wait_for_ever(void *told)
{
	(void)prctl(PR_SET_NAME, "a\nname");
	(void)!write(*(const int *)told, "", 1);
	for (;;)
		(void)pause();
}

/* A process of two threads; one says when it has its name. */
static pid_t start_child(void)
{
	int told[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		pthread_t other;

		if (pthread_create(&other, NULL, wait_for_ever, &told[1]) == 0)
			(void)pthread_join(other, NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	(void)close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	(void)close(told[0]);
	return pid;
}

static void test_two(void **state)
{
	pid_t pid = start_child();
	struct thread_waits waits = { 0 };
	struct text out = { 0 };

	(void)state;
	assert_int_equal(thread_list_add(pid, &out, &waits), 0);
	assert_int_equal(waits.threads, 2);
	assert_int_equal(waits.stuck, 0);
	assert_true(strncmp(text_string(&out), "thread ", 7) == 0);
	assert_non_null(strstr(text_string(&out), "a\\x0aname: "));
	text_done(&out);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(thread_list_add(pid, &out, NULL), -ENOENT);
	assert_string_equal(text_string(&out), "");
}

TESTS(thread_list)
{
	static struct suite s;

	suite_add(&s, "one of two threads, until it has gone", test_two, NULL, NULL);
	return suite_run(&s);
}
