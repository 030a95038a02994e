/* bare.c - the floor under every launcher: bare COUNT PROGRAM starts COUNT processes by
 * posix_spawn(3), which is vfork inside, and waits for all. Exit code 1 if one fails. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
	long count = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
	int failed = 0;

	if (count < 1) {
		(void)fputs("usage: bare COUNT PROGRAM\n", stderr);
		return 2;
	}
	for (long i = 0; i < count; i++) {
		pid_t pid;
		int error = posix_spawn(&pid, argv[2], NULL, NULL, &argv[2], environ);

		if (error) {
			(void)fprintf(stderr, "bare: %s: %s\n", argv[2], strerror(error));
			failed = 1;
			break;
		}
	}
	for (int status; wait(&status) > 0;)
		failed |= status != 0;
	return failed;
}
