/* test_python_stack.c - where a Python process is, by what py-spy prints. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "daemon/blackbox/python_stack.h"

#define HEAD  "Process 12: python train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
#define OTHER "Thread 14 (idle): \"Thread-1\"\n    wait (threading.py:327)\n"

static const struct dump_row {
	const char *says, *dump;
	bool found;
	const char *text;
} dumps[] = {
	{ "one thread", HEAD "Thread 12 (idle): \"MainThread\"\n    hangs (train.py:10)\n", true,
		"idle in hangs (train.py:10)" },
	{ "the main one of two",
		HEAD OTHER "Thread 12 (active): \"MainThread\"\n    a (x.py:1)\n    b (x.py:2)\n",
		true, "runs a (x.py:1), from b (x.py:2)" },
	{ "the first where none is called that", HEAD OTHER, true,
		"idle in wait (threading.py:327)" },
	{ "three frames are told",
		HEAD "Thread 12 (idle): \"MainThread\"\n    a (x.py:1)\n    b (x.py:2)\n"
		     "    c (x.py:3)\n    d (x.py:4)\n",
		true, "idle in a (x.py:1), from b (x.py:2), c (x.py:3)" },
	{ "local variables are not",
		HEAD "Thread 12 (idle): \"MainThread\"\n    a (x.py:1)\n        Arguments:\n"
		     "            n: 7\n    b (x.py:2)\n",
		true, "idle in a (x.py:1), from b (x.py:2)" },
	{ "of a long path the end",
		HEAD
		"Thread 12 (idle): \"MainThread\"\n"
		"    all_reduce (a/path/that/is/quite/long/and/longer/distributed_c10d.py:15)\n",
		true, "idle in all_reduce (distributed_c10d.py:15)" },
	{ "no frame, and it runs", HEAD "Thread 12 (active+gil): \"MainThread\"\n", true,
		"active, but in no frame of Python" },
	{ "no frame", HEAD "Thread 12 (idle): \"MainThread\"", true, "in no frame of Python" },
	{ "no thread", HEAD, false, "" },
	{ "an error", "Error: Permission Denied: Try running again with elevated permissions\n",
		false, "" },
	{ "nothing", "", false, "" },
	{ "what a terminal would obey", "Thread 1 (idle): \"MainThread\"\n    \x1b[2Ja (x.py:1)\n",
		true, "idle in \\x1b[2Ja (x.py:1)" },
};

static void test_dump(void **state)
{
	const struct dump_row *row = *state;
	struct text t = { 0 };

	assert_int_equal(python_stack_read(row->dump, strlen(row->dump), &t), row->found);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

TESTS(python_stack)
{
	static struct suite s;

	SUITE_ROWS(&s, test_dump, dumps);
	return suite_run(&s);
}
