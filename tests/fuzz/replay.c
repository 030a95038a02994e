/* replay.c - calls a fuzz target with every file of the folders and files that are named, so that
 * the committed corpus is a test under any compiler. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static bool all_taken; /* --taken */

/* What a target that counts them refuses must be meant so, by its name: bytes of an older protocol
 * would test nothing. */
static void look_at_taken(const char *path, unsigned before)
{
	const char *dot = strrchr(path, '.');
	bool refused = dot && strcmp(dot, ".refused") == 0;

	if ((fuzz_taken > before) != refused)
		return;
	fprintf(stderr, "%s: %s\n", path,
		refused ? "it is read" : "it is refused, and its name doesn't end in .refused");
	exit(1);
}

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rbe");
	unsigned before;
	long len;
	uint8_t *bytes;

	if (!f || fseek(f, 0, SEEK_END) < 0 || (len = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) < 0) {
		perror(path);
		return -1;
	}
	bytes = malloc((size_t)len + (len == 0));
	if (!bytes || fread(bytes, 1, (size_t)len, f) != (size_t)len) {
		fprintf(stderr, "%s: can't be read\n", path);
		exit(2);
	}
	(void)fclose(f);
	fprintf(stderr, "%s\n", path); /* the last line names the one that aborts */
	before = fuzz_taken;
	(void)LLVMFuzzerTestOneInput(bytes, (size_t)len);
	if (all_taken)
		look_at_taken(path, before);
	free(bytes);
	return 1;
}

/* The number of files, or -1. */
static int replay(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return replay_file(path);
	while ((entry = readdir(dir))) {
		char file[4096];
		struct stat st;

		(void)snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
		if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
			count += replay_file(file) > 0;
	}
	(void)closedir(dir);
	return count;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--taken") == 0) {
		all_taken = true;
		argv++;
		argc--;
	}
	for (int i = 1; i < argc; i++)
		if (replay(argv[i]) <= 0) {
			fprintf(stderr, "%s: no input\n", argv[i]);
			return 1;
		}
	return argc > 1 ? 0 : 2;
}
