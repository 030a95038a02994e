/* nvidia.c - see nvidia.h */
#include "daemon/os/nvidia.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"

enum { VENDOR_NVIDIA = 0x10de, CLASS_DISPLAY = 0x03 };

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

static bool is_idle_gpu(int bus_fd, const char *name)
{
	autoclose fd = openat(bus_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && pci_number(fd, "vendor") == VENDOR_NVIDIA &&
		pci_number(fd, "class") >> 16 == CLASS_DISPLAY &&
		faccessat(fd, "driver", F_OK, 0) < 0;
}

/* "nvidia0", but neither "nvidiactl" nor "nvidia-uvm". */
static bool is_gpu_node(int unused, const char *name)
{
	static const char stem[] = "nvidia";
	size_t len = sizeof stem - 1;

	(void)unused;
	return strncmp(name, stem, len) == 0 && name[len] &&
		strspn(name + len, "0123456789") == strlen(name + len);
}

static bool nvidia_has_entry(
	const char *root, const char *path, bool (*is_one)(int dir_fd, const char *name))
{
	char at[PATH_MAX];
	struct dirent *e;
	bool found = false;
	DIR *dir;

	(void)snprintf(at, sizeof at, "%s%s", root, path);
	dir = opendir(at);
	while (dir && !found && (e = readdir(dir)))
		found = e->d_name[0] != '.' && is_one(dirfd(dir), e->d_name);
	if (dir)
		(void)closedir(dir);
	return found;
}

/* WSL has one device file for all GPUs. A kernel without /proc/driver is not Linux's own (gVisor):
 * there the device files tell. */
void nvidia_look(const char *root, struct nvidia_seen *ret)
{
	bool wsl = nvidia_is_there(root, "/dev/dxg");
	bool nodes = nvidia_has_entry(root, "/dev", is_gpu_node);

	*ret = (struct nvidia_seen){
		.driver = wsl || nvidia_is_there(root, "/proc/driver/nvidia") ||
			(nodes && !nvidia_is_there(root, "/proc/driver")),
		.nodes = wsl || nodes,
		.idle = nvidia_has_entry(root, "/sys/bus/pci/devices", is_idle_gpu),
	};
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
	if (seen.driver || seen.idle || syscall(SYS_capget, &who, rights) < 0)
		return;
	rights[CAP_TO_INDEX(CAP_MKNOD)].effective &= ~CAP_TO_MASK(CAP_MKNOD);
	(void)syscall(SYS_capset, &who, rights);
}
