/* xid_log.h - the Xids that the kernel's log has, each with the GPU's place on the PCI bus, and
 * whether the GPU was initialised or recovered since. Flat memory, for a child to fill. */
#ifndef LAUNCHD_DAEMON_CHECK_XID_LOG_H
#define LAUNCHD_DAEMON_CHECK_XID_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct pci_place {
	uint32_t domain;
	uint8_t bus, device;
};

bool pci_place_same(const struct pci_place *a, const struct pci_place *b);

/* What happened to the GPU after its Xid, by the log. */
enum xid_since { XID_STANDS, XID_STARTED_SINCE, XID_RECOVERED_SINCE };

struct xid_logged {
	struct pci_place place;
	uint16_t xid;
	uint16_t since; /* of enum xid_since */
	char where[40]; /* in the log's words: "PCI:0000:cb:00" */
};

enum { XID_LOG_MAX = 48 };

struct xid_log {
	int rc;         /* negative errno: the log can't be read */
	unsigned count; /* of those that are fatal, each once */
	unsigned others, applications;
	struct xid_logged at[XID_LOG_MAX];
};

/* Reads the log at path, which may be a file, from its beginning. *ret begins as { 0 }. */
void xid_log_read(const char *path, struct xid_log *ret);

#endif
