/* nvidia.c - see nvidia.h */
#include "daemon/os/nvidia.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/num.h"

enum { VENDOR_NVIDIA = 0x10de, CLASS_DISPLAY = 0x03, NUMBERS_MAX = 64 };

static bool nvidia_is_there(const char *root, const char *path)
{
	char at[PATH_MAX];

	(void)snprintf(at, sizeof at, "%s%s", root, path);
	return access(at, F_OK) == 0;
}

/* "0x10de" */
static unsigned long pci_number(int device_fd, const char *name)
{
	autoclose fd = openat(device_fd, name, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	return fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? strtoul(text, NULL, 16) : 0;
}

/* A virtual function is a part of its GPU, for a virtual machine. */
static void look_at_device(int bus_fd, const char *name, struct nvidia_seen *ret)
{
	autoclose fd = openat(bus_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char driver[PATH_MAX];
	ssize_t len;

	if (fd < 0 || pci_number(fd, "vendor") != VENDOR_NVIDIA ||
		pci_number(fd, "class") >> 16 != CLASS_DISPLAY ||
		faccessat(fd, "physfn", F_OK, 0) == 0)
		return;
	ret->present++;
	len = readlinkat(fd, "driver", driver, sizeof driver - 1);
	driver[len < 0 ? 0 : len] = '\0';
	if (len < 0)
		ret->idle++;
	else if (strcmp(strrchr(driver, '/') ? strrchr(driver, '/') + 1 : driver, "nvidia") == 0)
		ret->bound++;
}

/* "nvidia0", but neither "nvidiactl" nor "nvidia-uvm". */
static void look_at_node(int unused, const char *name, struct nvidia_seen *ret)
{
	static const char stem[] = "nvidia";
	uint64_t number;

	(void)unused;
	if (strncmp(name, stem, strlen(stem)) != 0 ||
		num_parse(name + strlen(stem), 0, UINT32_MAX, &number) < 0)
		return;
	ret->nodes = true;
	if (number < NUMBERS_MAX)
		ret->numbers |= 1ULL << number;
}

static void nvidia_look_into(const char *root, const char *path, struct nvidia_seen *ret,
	void (*look)(int dir_fd, const char *name, struct nvidia_seen *ret))
{
	char at[PATH_MAX];
	struct dirent *e;
	DIR *dir;

	(void)snprintf(at, sizeof at, "%s%s", root, path);
	dir = opendir(at);
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			look(dirfd(dir), e->d_name, ret);
	if (dir)
		(void)closedir(dir);
}

/* WSL has one device file for all GPUs. A kernel without /proc/driver is not Linux's own (gVisor):
 * there the device files tell. */
void nvidia_look(const char *root, struct nvidia_seen *ret)
{
	bool wsl = nvidia_is_there(root, "/dev/dxg");

	*ret = (struct nvidia_seen){ .driver = false };
	nvidia_look_into(root, "/dev", ret, look_at_node);
	nvidia_look_into(root, "/sys/bus/pci/devices", ret, look_at_device);
	ret->driver = wsl || nvidia_is_there(root, "/proc/driver/nvidia") ||
		(ret->nodes && !nvidia_is_there(root, "/proc/driver"));
	ret->nodes = ret->nodes || wsl;
}

unsigned nvidia_usable(const char *root, const struct nvidia_seen *seen)
{
	unsigned count = 0;

	for (unsigned i = 0; i < NUMBERS_MAX && count < seen->bound; i++) {
		char path[PATH_MAX];
		int fd;

		if (!(seen->numbers & 1ULL << i))
			continue;
		(void)snprintf(path, sizeof path, "%s/dev/nvidia%u", root, i);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		count += fd >= 0 || (errno != EPERM && errno != EACCES && errno != ENOENT);
		if (fd >= 0)
			(void)close(fd);
	}
	return count;
}

bool nvidia_gpus_here(void)
{
	struct nvidia_seen seen;

	nvidia_look("", &seen);
	return seen.driver && seen.nodes;
}

/* An ordinary user has no such right. A module that NVML has loaded after all makes its files by
 * nvidia-modprobe, which is a program of its own. */
void nvidia_make_no_nodes(void)
{
	struct __user_cap_header_struct who = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3];
	struct nvidia_seen seen;

	nvidia_look("", &seen);
	if (seen.driver || seen.idle > 0 || syscall(SYS_capget, &who, rights) < 0)
		return;
	rights[CAP_TO_INDEX(CAP_MKNOD)].effective &= ~CAP_TO_MASK(CAP_MKNOD);
	(void)syscall(SYS_capset, &who, rights);
}
