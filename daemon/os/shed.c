/* shed.c - see shed.h */
#include "daemon/os/shed.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What can be written to (PF_W) also holds what was: relocated addresses. */
static void shed_segment(uintptr_t object, const ElfW(Phdr) * p)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = object + p->p_vaddr;
	uintptr_t from = begin & ~(page - 1);

	if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
		(void)syscall(SYS_madvise, from, begin + p->p_memsz - from, MADV_DONTNEED);
}

/* Linkers put symbols, their names and hashes into an object's first segment; of the loader itself
 * nothing is needed. */
static int shed_object(struct dl_phdr_info *object, size_t size, void *loader)
{
	bool is_loader = object->dlpi_addr == *(const unsigned long *)loader;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		shed_segment(object->dlpi_addr, &object->dlpi_phdr[i]);
		if (object->dlpi_phdr[i].p_type == PT_LOAD && !is_loader)
			break;
	}
	return 0;
}

void shed_loader(void)
{
	unsigned long loader = getauxval(AT_BASE);

	(void)dl_iterate_phdr(shed_object, &loader);
}
