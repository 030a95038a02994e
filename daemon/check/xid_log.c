/* xid_log.c - see xid_log.h
 *
 * The lines are those of NVIDIA's driver (open-gpu-kernel-modules: kernel_rc.c, gpu.c, nv.c):
 *   NVRM: Xid (PCI:0000:cb:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
 *   NVRM: GPU at PCI:0000:cb:00: GPU-8f3a...    before the first Xid since it was initialised
 *   NVRM: GPU at 0000:cb:00.0 has fallen off the bus.    older drivers, after the Xid
 *   NVRM: loading NVIDIA UNIX ...               the driver is loaded, for all GPUs
 *   NVRM: GPU 0000:cb:00.0: RmInitAdapter failed! (...)
 * and one that NVIDIA's NVSentinel writes after nvidia-smi --gpu-reset:
 *   GPU reset executed: GPU-8f3a..., success: true */
#include "daemon/check/xid_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/check/xid.h"

enum {
	RECORD_MAX = 16384,
	NAMES_MAX = 64,
	XID_RECOVERY_CHANGED = 154,
	XID_NVLINK5_FIRST = 144, /* of Blackwell's links: each says itself whether it is fatal */
	XID_NVLINK5_LAST = 150,
};

/* What the log calls the GPUs. */
struct logged_name {
	struct pci_place place;
	char uuid[48];
};

struct log_reading {
	struct xid_log *log;
	struct logged_name names[NAMES_MAX];
	unsigned named;
};

bool pci_place_same(const struct pci_place *a, const struct pci_place *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

/* "PCI:0000:cb:00", or without "PCI:" as older drivers write it. */
static bool parse_place(const char *text, struct pci_place *ret)
{
	unsigned domain, bus, device;

	if (strncmp(text, "PCI:", 4) == 0)
		text += 4;
	if (sscanf(text, "%8x:%2x:%2x", &domain, &bus, &device) != 3)
		return false;
	*ret = (struct pci_place){ domain, (uint8_t)bus, (uint8_t)device };
	return true;
}

/* place NULL: of all GPUs. */
static void mark_since(struct xid_log *log, const struct pci_place *place, enum xid_since since)
{
	for (unsigned i = 0; i < log->count; i++)
		if (!place || pci_place_same(&log->at[i].place, place))
			log->at[i].since = (uint16_t)since;
}

/* Whether one more of its GPU's counts. */
static bool is_one_of_several(const struct xid_log *log, unsigned at)
{
	for (unsigned i = 0; i < log->count; i++)
		if (i != at && log->at[i].since == XID_STANDS &&
			pci_place_same(&log->at[i].place, &log->at[at].place))
			return true;
	return false;
}

/* The newest one counts. Where there is no room, one that no longer counts makes it, or of a GPU
 * that has several. */
static void add_logged(struct xid_log *log, const struct xid_logged *x)
{
	unsigned at = log->count;

	for (unsigned i = log->count; i-- > 0;)
		if (log->at[i].xid == x->xid && strcmp(log->at[i].where, x->where) == 0)
			at = i;
	for (unsigned i = 0; at == XID_LOG_MAX && i < XID_LOG_MAX; i++)
		if (log->at[i].since != XID_STANDS || is_one_of_several(log, i))
			at = i;
	if (at == XID_LOG_MAX)
		return;
	log->at[at] = *x;
	log->count += at == log->count;
}

/* "..., GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)": what the driver
 * asks for now. */
static bool asks_for_recovery(const char *rest)
{
	const char *to = strstr(rest, " to 0x");

	return to && strtoul(to + strlen(" to "), NULL, 16) != 0;
}

/* rest: what follows the number. */
static enum xid_kind kind_of_line(uint64_t xid, const char *rest)
{
	if (xid == XID_RECOVERY_CHANGED)
		return asks_for_recovery(rest) ? XID_FATAL : XID_OTHER;
	if (xid >= XID_NVLINK5_FIRST && xid <= XID_NVLINK5_LAST && strstr(rest, " Nonfatal "))
		return XID_OTHER;
	return xid_kind(xid);
}

/* at: "PCI:0000:cb:00): 79, pid=1234, ..." */
static void read_xid(struct xid_log *log, const char *at)
{
	struct xid_logged x = { .since = XID_STANDS };
	const char *close = strchr(at, ')');
	unsigned long long xid;
	enum xid_kind kind;
	char *end;

	if (!close || close[1] != ':')
		return;
	errno = 0;
	xid = strtoull(close + 2, &end, 10);
	if (end == close + 2 || errno != 0 || xid > UINT16_MAX)
		return;
	kind = kind_of_line(xid, end);
	log->others += kind == XID_OTHER;
	log->applications += kind == XID_APPLICATION;
	(void)parse_place(at, &x.place);
	if (xid == XID_RECOVERY_CHANGED && kind == XID_OTHER)
		mark_since(log, &x.place, XID_RECOVERED_SINCE);
	if (kind != XID_FATAL)
		return;
	x.xid = (uint16_t)xid;
	(void)snprintf(x.where, sizeof x.where, "%.*s", (int)(close - at), at);
	add_logged(log, &x);
}

/* at: "PCI:0000:cb:00: GPU-8f3a..." */
static void read_start(struct log_reading *r, const char *at)
{
	const char *uuid = strstr(at, ": GPU-");
	struct logged_name n = { .uuid = "" };
	unsigned i = 0;

	if (!uuid || !parse_place(at, &n.place))
		return;
	mark_since(r->log, &n.place, XID_STARTED_SINCE);
	while (i < r->named && !pci_place_same(&r->names[i].place, &n.place))
		i++;
	if (i == NAMES_MAX)
		return;
	uuid += strlen(": ");
	(void)snprintf(n.uuid, sizeof n.uuid, "%.*s", (int)strcspn(uuid, " ,\n"), uuid);
	r->names[i] = n;
	r->named += i == r->named;
}

/* at: "GPU-8f3a..., success: true" */
static void read_reset(struct log_reading *r, const char *at)
{
	size_t len = strcspn(at, " ,\n");

	for (unsigned i = 0; i < r->named && !strstr(at, "success: false"); i++)
		if (strlen(r->names[i].uuid) == len && strncmp(r->names[i].uuid, at, len) == 0)
			mark_since(r->log, &r->names[i].place, XID_STARTED_SINCE);
}

/* What follows `mark` in the line; NULL: it isn't there. */
static const char *xid_line_behind_mark(const char *line, const char *mark)
{
	const char *at = strstr(line, mark);

	return at ? at + strlen(mark) : NULL;
}

static void read_log_line(struct log_reading *r, const char *line)
{
	struct pci_place place;
	const char *at;

	if ((at = xid_line_behind_mark(line, "NVRM: Xid (")) != NULL)
		read_xid(r->log, at);
	else if ((at = xid_line_behind_mark(line, "NVRM: GPU at ")) != NULL)
		read_start(r, at);
	else if (strstr(line, "NVRM: loading NVIDIA "))
		mark_since(r->log, NULL, XID_STARTED_SINCE);
	else if ((at = xid_line_behind_mark(line, "NVRM: GPU ")) != NULL &&
		strstr(at, "RmInitAdapter failed") && parse_place(at, &place))
		mark_since(r->log, &place, XID_STANDS);
	else if ((at = xid_line_behind_mark(line, "GPU reset executed: ")) != NULL)
		read_reset(r, at);
}

/* The kernel's log gives a record with each read; a file, several lines. */
static int read_log(int fd, struct log_reading *r)
{
	static char record[RECORD_MAX];
	size_t kept = 0;

	for (;;) {
		ssize_t n = read(fd, record + kept, sizeof record - 1 - kept);
		char *line = record, *next;

		if (n < 0 && (errno == EINTR || errno == EPIPE)) /* overwritten meanwhile: go on */
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n <= 0)
			return 0;
		record[kept + (size_t)n] = '\0';
		for (; (next = strchr(line, '\n')) != NULL; line = next + 1) {
			*next = '\0';
			read_log_line(r, line);
		}
		kept = strlen(line) < sizeof record / 2 ? strlen(line) : 0;
		memmove(record, line, kept + 1);
	}
}

void xid_log_read(const char *path, struct xid_log *ret)
{
	autoclose fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	static struct log_reading r;

	r = (struct log_reading){ .log = ret };
	ret->rc = fd < 0 ? -errno : read_log(fd, &r);
}
