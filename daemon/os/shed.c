/* shed.c - see shed.h */
#include "daemon/os/shed.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* What can be written to (PF_W) also holds what was: relocated addresses. */
static void shed_segment(uintptr_t object, const ElfW(Phdr) * p)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = object + p->p_vaddr;
	uintptr_t from = begin & ~(page - 1);

	if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
		(void)madvise((void *)from, begin + p->p_memsz - from, MADV_DONTNEED);
}

/* Linkers put symbols, their names and hashes into an object's first segment. */
static int shed_names(struct dl_phdr_info *object, size_t size, void *data)
{
	(void)size, (void)data;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD) {
			shed_segment(object->dlpi_addr, &object->dlpi_phdr[i]);
			break;
		}
	return 0;
}

void shed_loader(void)
{
	uintptr_t loader = getauxval(AT_BASE); /* 0: this program has none */
	const ElfW(Ehdr) *header = (const void *)loader;

	(void)dl_iterate_phdr(shed_names, NULL);
	for (int i = 0; header && i < header->e_phnum; i++)
		shed_segment(loader, (const ElfW(Phdr) *)(loader + header->e_phoff) + i);
}
