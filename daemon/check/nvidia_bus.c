/* nvidia_bus.c - see nvidia_bus.h */
#include "daemon/check/nvidia_bus.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/num.h"

enum { NVIDIA_VENDOR = 0x10de, DISPLAY_CLASS = 0x03, NODES_MAX = 64 };

/* "0x10de" */
static unsigned long bus_number(int device, const char *name)
{
	autoclose fd = openat(device, name, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	return fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? strtoul(text, NULL, 16) : 0;
}

static void look_at_device(int bus, const char *name, struct nvidia_bus *ret)
{
	autoclose fd = openat(bus, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char driver[PATH_MAX];
	ssize_t len;

	if (fd < 0 || bus_number(fd, "vendor") != NVIDIA_VENDOR ||
		bus_number(fd, "class") >> 16 != DISPLAY_CLASS)
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
static void look_at_node(int dev, const char *name, struct nvidia_bus *ret)
{
	static const char stem[] = "nvidia";
	uint64_t number;

	(void)dev;
	if (strncmp(name, stem, strlen(stem)) == 0 &&
		num_parse(name + strlen(stem), 0, NODES_MAX - 1, &number) == 0)
		ret->nodes |= 1ULL << number;
}

static void look_into(const char *root, const char *path, struct nvidia_bus *ret,
	void (*look)(int dir, const char *name, struct nvidia_bus *ret))
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

void nvidia_bus_look(const char *root, struct nvidia_bus *ret)
{
	*ret = (struct nvidia_bus){ .present = 0 };
	look_into(root, "/sys/bus/pci/devices", ret, look_at_device);
	look_into(root, "/dev", ret, look_at_node);
}

unsigned nvidia_bus_usable(const char *root, const struct nvidia_bus *bus)
{
	unsigned count = 0;

	for (unsigned i = 0; i < NODES_MAX && count < bus->bound; i++) {
		char path[PATH_MAX];
		int fd;

		if (!(bus->nodes & 1ULL << i))
			continue;
		(void)snprintf(path, sizeof path, "%s/dev/nvidia%u", root, i);
		fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		count += fd >= 0 || (errno != EPERM && errno != EACCES && errno != ENOENT);
		if (fd >= 0)
			(void)close(fd);
	}
	return count;
}
