/* mount_check.c - see mount_check.h */
#include "daemon/check/mount_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/text.h"
#include "daemon/check/finding.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"

enum { MOUNTS_MAX = 64, LINE_SIZE = 4 * MOUNT_PATH_MAX };

static const char mountinfo[] = "/proc/self/mountinfo";

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* A desktop's own are nobody's training data. */
static bool may_hang(const char *type)
{
	static const char *const types[] = { "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre",
		"ceph", "beegfs", "gpfs", "wekafs", "9p", "virtiofs", "glusterfs", "afs", "pvfs2",
		"orangefs", "panfs", "fuse", "fuseblk" };

	if (starts(type, "fuse."))
		return strcmp(type, "fuse.gvfsd-fuse") != 0 && strcmp(type, "fuse.portal") != 0;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

/* The kernel writes a blank as \040; see proc(5). False: it is too long. */
static bool unescape(const char *from, size_t len, char ret[MOUNT_PATH_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned byte = (unsigned char)from[i];

		if (byte == '\\' && i + 3 < len && sscanf(from + i + 1, "%3o", &byte) == 1)
			i += 3;
		if (n + 1 == MOUNT_PATH_MAX)
			return false;
		ret[n++] = (char)byte;
	}
	ret[n] = '\0';
	return n > 0;
}

/* "36 35 98:0 /root /mnt rw,noatime master:1 - nfs4 server:/x rw" */
bool mount_of_line(const char *line, char ret_path[MOUNT_PATH_MAX])
{
	const char *type = strstr(line, " - "), *path = line;
	char name[32];
	size_t len;

	if (!type)
		return false;
	type += strlen(" - ");
	len = strcspn(type, " \n");
	if (len >= sizeof name)
		return false;
	memcpy(name, type, len);
	name[len] = '\0';
	for (int field = 0; field < 4; field++) {
		path = strchr(path, ' ');
		if (!path || path > type)
			return false;
		path++;
	}
	return may_hang(name) && unescape(path, strcspn(path, " "), ret_path);
}

/* The n-th that is such a mount. */
static bool nth_mount(unsigned n, char ret_path[MOUNT_PATH_MAX])
{
	FILE *file = fopen(mountinfo, "re");
	char line[LINE_SIZE];
	bool found = false;

	while (file && !found && fgets(line, sizeof line, file))
		found = mount_of_line(line, ret_path) && n-- == 0;
	if (file)
		(void)fclose(file);
	return found;
}

static void look_mount(const struct task *t, struct task_answer *a)
{
	char path[MOUNT_PATH_MAX];
	struct statvfs fs;

	if (!nth_mount(t->number, path))
		return; /* unmounted since */
	task_step(a, "statvfs");
	if (statvfs(path, &fs) == 0)
		findings_add(&a->findings, HEALTH_GOOD, t->check, t->subject, "it answers");
	else
		findings_add(&a->findings, errno == EACCES ? HEALTH_UNKNOWN : HEALTH_BAD, t->check,
			t->subject, "%s", strerror(errno));
}

/* Which mounts there are can't be told, as without /proc. */
static void say_unlisted(const struct task *t, struct task_answer *a)
{
	findings_add(&a->findings, HEALTH_UNKNOWN, t->check, t->subject, "%s: %s", mountinfo,
		strerror((int)t->number));
}

void mount_check_add(struct tasks *all)
{
	struct task t = {
		.work = look_mount, .check = "mount", .limit_ms = NODE_LIMIT_MS, .asks = true
	};
	FILE *file = fopen(mountinfo, "re");
	char line[LINE_SIZE], path[MOUNT_PATH_MAX];

	if (!file) {
		t.work = say_unlisted;
		t.number = (unsigned)errno;
		t.asks = false;
		tasks_add(all, &t);
	}
	while (file && fgets(line, sizeof line, file)) {
		if (!mount_of_line(line, path))
			continue;
		if (t.number == MOUNTS_MAX) {
			all->left_out++;
			continue;
		}
		text_fit(t.subject, sizeof t.subject, path);
		tasks_add(all, &t);
		t.number++;
	}
	if (file)
		(void)fclose(file);
}
