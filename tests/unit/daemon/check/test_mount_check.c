/* test_mount_check.c - which mounts may hang, by /proc/self/mountinfo. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/check/mount_check.h"

static const struct mount_row {
	const char *says, *line, *path; /* NULL: not looked at */
} rows[] = {
	{ "a disk", "36 35 98:0 / / rw,noatime shared:1 - ext4 /dev/sda1 rw\n", NULL },
	{ "NFS", "36 35 0:50 /data /mnt/data rw,noatime shared:1 - nfs4 s:/x rw,vers=4.2\n",
		"/mnt/data" },
	{ "without optional fields", "36 35 0:50 / /a rw - lustre 10.0.0.1@tcp:/fs rw\n", "/a" },
	{ "a blank and a backslash in its name",
		"36 35 0:50 / /my\\040data\\134x rw - cifs //s/x rw\n", "/my data\\x" },
	{ "FUSE", "36 35 0:50 / /s3 rw - fuse.s3fs s3fs rw\n", "/s3" },
	{ "FUSE without a name", "36 35 0:50 / /s3 rw - fuse x rw\n", "/s3" },
	{ "a desktop's", "36 35 0:50 / /run/user/1/gvfs rw - fuse.gvfsd-fuse x rw\n", NULL },
	{ "a type that begins like one", "36 35 0:50 / /a rw - nfsd nfsd rw\n", NULL },
	{ "a type in the place of a source", "36 35 0:50 / /a rw - tmpfs nfs rw\n", NULL },
	{ "autofs, which is not to be woken", "36 35 0:50 / /net rw - autofs /etc/auto rw\n",
		NULL },
	{ "cut short", "36 35 0:50 / /a rw", NULL },
	{ "too few fields", "36 35 - nfs x rw", NULL },
	{ "nothing", "", NULL },
};

static void test_line(void **state)
{
	const struct mount_row *row = *state;
	char path[MOUNT_PATH_MAX] = "";

	assert_int_equal(mount_of_line(row->line, path), row->path != NULL);
	if (row->path)
		assert_string_equal(path, row->path);
}

static void test_long_path(void **state)
{
	char line[2 * MOUNT_PATH_MAX] = "36 35 0:50 / /", path[MOUNT_PATH_MAX];
	size_t len = strlen(line);

	(void)state;
	memset(line + len, 'x', MOUNT_PATH_MAX);
	strcpy(line + len + MOUNT_PATH_MAX, " rw - nfs s:/ rw\n");
	assert_false(mount_of_line(line, path));
	strcpy(line + len + MOUNT_PATH_MAX - 2, " rw - nfs s:/ rw\n");
	assert_true(mount_of_line(line, path));
}

TESTS(mount_check)
{
	static struct suite s;

	SUITE_ROWS(&s, test_line, rows);
	suite_add(&s, "a path that is too long is none", test_long_path, NULL, NULL);
	return suite_run(&s);
}
