/* replay.c - calls a fuzz target with every file of the folders and files that are named, so that
 * the committed corpus is a test under any compiler. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rbe");
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
	(void)LLVMFuzzerTestOneInput(bytes, (size_t)len);
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
	for (int i = 1; i < argc; i++)
		if (replay(argv[i]) <= 0) {
			fprintf(stderr, "%s: no input\n", argv[i]);
			return 1;
		}
	return argc > 1 ? 0 : 2;
}
