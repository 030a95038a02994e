/* test_shed.c - what is given back is gone from this process, and there when it is needed. */
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "daemon/os/shed.h"

/* KB of the mapping with this address that are in memory; -1: it is not mapped. */
static long resident_kb(uintptr_t address)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long begin, end;
	bool here = false;
	char line[512];
	long kb = -1;

	assert_non_null(f);
	while (kb < 0 && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			here = begin <= address && address < end;
		else if (here)
			(void)sscanf(line, "Rss: %ld", &kb);
	}
	(void)fclose(f);
	return kb;
}

/* Where the loader's code begins. */
static uintptr_t loader_code(void)
{
	uintptr_t at = getauxval(AT_BASE);
	const ElfW(Ehdr) *header = (const void *)at;

	assert_true(at != 0);
	for (int i = 0; i < header->e_phnum; i++) {
		const ElfW(Phdr) *p = (const ElfW(Phdr) *)(at + header->e_phoff) + i;

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X))
			return at + p->p_vaddr;
	}
	fail();
	return 0;
}

static void test_given_back(void **state)
{
	uintptr_t code = loader_code();
	long before;

	(void)state;
	(void)dlsym(RTLD_DEFAULT, "no such name"); /* the loader runs, lazy bindings are made */
	(void)resident_kb(code);
	before = resident_kb(code);
	shed_loader();
	assert_true(before > 0);
	assert_true(resident_kb(code) < before);
}

/* To look at a page once more is to map the 15 around it, too. */
static void test_headers(void **state)
{
	uintptr_t headers;
	Dl_info libc;

	(void)state;
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "snprintf"), &libc) != 0);
	headers = (uintptr_t)libc.dli_fbase;
	assert_true(resident_kb(headers) > 0); /* names were looked up there */
	shed_loader();
	assert_int_equal(resident_kb(headers), 0);
}

static void test_there_again(void **state)
{
	char text[64];

	(void)state;
	shed_loader();
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "no such name"), NULL);
	assert_non_null(dlsym(RTLD_DEFAULT, "snprintf"));
	(void)snprintf(text, sizeof text, "%d", 42);
	assert_string_equal(text, "42");
	shed_loader();
}

TESTS(shed)
{
	static struct suite s;

	suite_add(&s, "the loader's pages are given back", test_given_back, NULL, NULL);
	suite_add(&s, "so are those with an object's headers", test_headers, NULL, NULL);
	suite_add(&s, "names are looked up as before", test_there_again, NULL, NULL);
	return suite_run(&s);
}
