/* spaces.c - see spaces.h */
#include "daemon/check/spaces.h"

#include <stddef.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/num.h"
#include "common/text.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/check/node_check.h"

/* Less is as good as nothing, where more was free before. */
enum { LEAST_FREE = 16 << 20 };

void spaces_list(const struct settings *s, const char *const *env, const char *ret[SPACES])
{
	const char *log_dir = settings_text(s, SET_LOG_DIR), *tmp = env_get(env, "TMPDIR");

	ret[0] = "/dev/shm";
	ret[1] = log_dir && strcmp(log_dir, "/dev/null") == 0 ? NULL : log_dir;
	ret[2] = tmp && *tmp ? tmp : "/tmp";
	ret[3] = ".";
}

void spaces_read(const char *const dirs[SPACES], struct disk_space ret[SPACES])
{
	struct statvfs fs;

	for (size_t i = 0; i < SPACES; i++) {
		if (!dirs[i] || statvfs_above(dirs[i], &fs) < 0)
			continue;
		ret[i].file_system = fs.f_fsid;
		ret[i].bytes = bytes_free(&fs);
		ret[i].inodes = fs.f_favail;
		ret[i].known = true;
	}
}

/* Half of what was free, so that a small file system isn't full as long as it is as it was. */
static bool is_less(uint64_t now, uint64_t before)
{
	return now < before / 2 || (now == 0 && before > 0);
}

enum health space_judge(
	const struct statvfs *now, const struct disk_space *before, struct text *why)
{
	uint64_t bytes = bytes_free(now);
	bool no_inode = now->f_files > 0 && now->f_favail == 0;
	bool known = before && before->known && before->file_system == now->f_fsid;

	if (now->f_flag & ST_RDONLY || now->f_blocks == 0 || (bytes >= LEAST_FREE && !no_inode))
		return HEALTH_GOOD; /* also read-only ones, and those that count no blocks */
	if (known && !(bytes < LEAST_FREE && is_less(bytes, before->bytes)) &&
		!(no_inode && before->inodes > 0))
		return HEALTH_GOOD;
	if (bytes < LEAST_FREE)
		text_printf(why, "it is full: %s of %s are free", num_size(bytes).text,
			num_size((uint64_t)now->f_blocks * now->f_frsize).text);
	else
		text_add(why, "no inode is free");
	if (!known) {
		text_add(why, "; how it was before the job's first attempt is unknown");
		return HEALTH_UNKNOWN;
	}
	if (bytes < LEAST_FREE)
		text_printf(why, ", and %s were before the job's first attempt",
			num_size(before->bytes).text);
	return HEALTH_BAD;
}
