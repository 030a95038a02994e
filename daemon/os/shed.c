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

/* What can be written to (PF_W) also holds what was: relocated addresses. A page or two, like those
 * of the vdso, aren't worth a call. */
static void shed_segment(uintptr_t object, const ElfW(Phdr) * p)
{
	enum { LEAST_BYTES = 16384 };
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = object + p->p_vaddr;
	uintptr_t from = begin & ~(page - 1);

	if (p->p_memsz >= LEAST_BYTES && !(p->p_flags & PF_W))
		/* by number: madvise() would want a pointer made of one */
		(void)syscall(SYS_madvise, from, begin + p->p_memsz - from, MADV_DONTNEED);
}

/* Linkers put symbols, their names and hashes into an object's first segment; of the loader itself
 * nothing is needed. */
static int shed_object(struct dl_phdr_info *object, size_t size, void *loader)
{
	bool all = object->dlpi_addr == *(const unsigned long *)loader, done = false;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum && !done; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		done = !all; /* before these headers go, too: to look at them again maps 64 KB */
		shed_segment(object->dlpi_addr, p);
	}
	return 0;
}

void shed_loader(void)
{
	unsigned long loader = getauxval(AT_BASE);

	(void)dl_iterate_phdr(shed_object, &loader);
}
