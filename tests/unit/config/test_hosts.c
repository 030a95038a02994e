/* test_hosts.c - lists of hosts, and host files. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "config/hosts.h"

/* "n0 gpu01/8" and what the slots are; an address is in "<>". */
static void show(const struct hosts *h, struct text *t)
{
	for (size_t i = 0; i < h->count; i++) {
		text_printf(
			t, h->at[i].is_address ? "%s<%s>" : "%s%s", i ? " " : "", h->at[i].name);
		if (h->at[i].slots || h->at[i].max_slots)
			text_printf(t, "/%u/%u", h->at[i].slots, h->at[i].max_slots);
	}
}

static const struct list_row {
	const char *says, *text;
	const char *hosts; /* NULL: refused */
	const char *part;  /* of the sentence */
} lists[] = {
	{ "one name", "n0", "n0", NULL },
	{ "commas and blanks", "n0, n1 n2\t,n3,", "n0 n1 n2 n3", NULL },
	{ "lines, as of a command's output", "n0\r\nn1\n\nn2\n", "n0 n1 n2", NULL },
	{ "a range keeps its zeros", "gpu[08-11]", "gpu08 gpu09 gpu10 gpu11", NULL },
	{ "a range without zeros", "gpu[8-11]", "gpu8 gpu9 gpu10 gpu11", NULL },
	{ "a range that outgrows its zeros", "n[098-101]", "n098 n099 n100 n101", NULL },
	{ "numbers and ranges", "gpu[1,3,5-7]", "gpu1 gpu3 gpu5 gpu6 gpu7", NULL },
	{ "what the issue shows", "n0, gpu[01-03]", "n0 gpu01 gpu02 gpu03", NULL },
	{ "two brackets, the first one slowest", "r[1-2]n[7,9].x", "r1n7.x r1n9.x r2n7.x r2n9.x",
		NULL },
	{ "a bracket at the begin", "[1-2]x", "1x 2x", NULL },
	{ "addresses", "10.0.0.1,fd00::2,[FD00::3]", "<10.0.0.1> <fd00::2> <fd00::3>", NULL },
	{ "addresses by ranges", "10.0.0.[9-10] fd00::[1-2]",
		"<10.0.0.9> <10.0.0.10> <fd00::1> <fd00::2>", NULL },
	{ "IPv4 in IPv6 is IPv4", "::ffff:10.0.0.1", "<10.0.0.1>", NULL },
	{ "a dot at the end", "n0.cluster.", "n0.cluster", NULL },
	{ "names with a dash, a digit and an underscore", "gpu-1 4x n_0", "gpu-1 4x n_0", NULL },

	{ "nothing", "", NULL, "here names no host" },
	{ "commas alone", " , ,", NULL, "here names no host" },
	{ "an open bracket", "n[1-2", NULL, "here: \"n[1-2\" has a bracket that isn't closed" },
	{ "a blank in a bracket", "n[1, 2]", NULL, "\"n[1,\" has a bracket that isn't closed" },
	{ "an empty bracket", "n[]", NULL, "a bracket that holds no numbers" },
	{ "letters in a bracket", "n[a-c]", NULL, "a bracket that holds no numbers" },
	{ "an empty entry in a bracket", "n[1,,2]", NULL, "a bracket that holds no numbers" },
	{ "a comma at a bracket's end", "n[1,]", NULL, "a bracket that holds no numbers" },
	{ "a range the wrong way round", "n[3-1]", NULL, "a bracket that holds no numbers" },
	{ "a bracket that is only closed", "n1]", NULL, "\"n1]\" is not the name" },
	{ "a port", "n0:29500", NULL, "without a port" },
	{ "a bad IPv6 address", "fd00:::1", NULL, "is not an IPv6 address" },
	{ "a user", "root@n0", NULL, "\"root@n0\" is not the name" },
	{ "a number of nodes", "3", NULL, "\"3\" is not the name" },
	{ "an address that is cut", "10.0.1", NULL, "\"10.0.1\" is not the name" },
	{ "an address beyond its bounds", "10.0.0.[254-256]", NULL, "is not the name" },
	{ "a dash in front", "-n0", NULL, "\"-n0\" is not the name" },
	{ "two dots", "n0..x", NULL, "is not the name" },
	{ "a dot alone", ".", NULL, "is not the name" },
	{ "no host's address", "0.0.0.0", NULL, "is the address of no host" },
	{ "more than there may be", "n[0-65536]", NULL, "here: there are more than 65536 hosts" },
	{ "many brackets", "n[0-999][0-999][0-999]", NULL, "more than 65536 hosts" },
	{ "one more in another word", "n[1-65536] x", NULL, "more than 65536 hosts" },
};

static void test_list(void **state)
{
	const struct list_row *row = *state;
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };
	struct text t = { 0 };
	int rc = hosts_add_list(&a, row->text, "here", &h, &why);

	assert_outcome(rc, row->hosts ? 0 : -EINVAL, &why, row->part);
	show(&h, &t);
	assert_string_equal(text_string(&t), row->hosts ? row->hosts : "");
	if (rc == 0)
		assert_string_equal(h.at[0].where, "here");
	text_done(&t);
	arena_done(&a);
}

/* Lists as horovodrun has them. */
static const struct list_row colons[] = {
	{ "a number of workers", "n0:8,n1:4", "n0/8/0 n1/4/0", NULL },
	{ "of some: the others have 1, as by mpirun --host", "n0,n1:4", "n0/1/0 n1/4/0", NULL },
	{ "of a range", "gpu[1-2]:8", "gpu1/8/0 gpu2/8/0", NULL },
	{ "of addresses", "10.0.0.1:2 [fd00::2]:3", "<10.0.0.1>/2/0 <fd00::2>/3/0", NULL },
	{ "an IPv6 address without one", "fd00::2 [fd00::3]", "<fd00::2> <fd00::3>", NULL },

	{ "of none", "n0:0", NULL, "here: \"n0:0\" is not followed by a number of workers, 1 to" },
	{ "too many", "n0:65537", NULL, "is not followed by a number of workers" },
	{ "a number and letters", "n0:8x", NULL, "is not followed by a number of workers" },
	{ "a word", "n0:x", NULL, "\"n0:x\" has a ':'" },
	{ "nothing", "n0:", NULL, "\"n0:\" has a ':'" },
	{ "a number of nobody", ":8", NULL, "\":8\" has a ':'" },
	{ "two", "n0:8:8", NULL, "\"n0:8:8\" has a ':'" },
};

static void test_colon(void **state)
{
	const struct list_row *row = *state;
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { .colon = true };
	struct text t = { 0 };
	int rc = hosts_add_list(&a, row->text, "here", &h, &why);

	assert_outcome(rc, row->hosts ? 0 : -EINVAL, &why, row->part);
	show(&h, &t);
	assert_string_equal(text_string(&t), row->hosts ? row->hosts : "");
	text_done(&t);
	arena_done(&a);
}

static void test_most(void **state)
{
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };
	const struct host *first;
	char name[300];

	(void)state;
	assert_int_equal(hosts_add_list(&a, "n[00001-65536]", "here", &h, &why), 0);
	assert_int_equal(h.count, HOSTS_MAX);
	assert_string_equal(h.at[65535].name, "n65536");
	assert_null(hosts_twice(&a, &h, &first));
	memset(name, 'x', sizeof name - 1);
	name[253] = '\0';
	h.count = 0;
	assert_int_equal(hosts_add_list(&a, name, "here", &h, &why), 0);
	name[253] = 'x';
	name[254] = '\0';
	assert_int_equal(hosts_add_list(&a, name, "here", &h, &why), -EINVAL);
	assert_contains(why.text, "too long for the name of a host");
	arena_done(&a);
}

static const struct file_row {
	const char *says, *text;
	const char *hosts, *where; /* where the last one is from; hosts NULL: refused */
	const char *part;
} files[] = {
	{ "a host a line", "n0\nn1\n", "n0 n1", "f:2", NULL },
	{ "no line end at the end", "n0\nn1", "n0 n1", "f:2", NULL },
	{ "comments and empty lines", "# all\n\n n0 # first\n\t\n#n1\nn2\n", "n0 n2", "f:6", NULL },
	{ "slots", "n0 slots=8\nn1\tslots=4 max_slots=16\n", "n0/8/0 n1/4/16", "f:2", NULL },
	{ "a dash for Open MPI's lines", "n0 max-slots=2 slots=2\n", "n0/2/2", "f:1", NULL },
	{ "its other words", "a cpu=1\nb count=2\nc cpu-max=3\nd max_count=4\n",
		"a/1/0 b/2/0 c/3/3 d/4/4", "f:4", NULL },
	{ "blanks of all kinds", " n0\fslots\t=\v2 max_slots= 3\n", "n0/2/3", "f:1", NULL },
	{ "a comment right behind", "n0 slots=4#x\nn1#y\n", "n0/4/0 n1/1/0", "f:2", NULL },
	{ "C's comments", "n0// x\n/* n1\n n2 */ n3\n/*/ n4 */n5\nn6/**/\n", "n0 n3 n5 n6", "f:5",
		NULL },
	{ "users, ports, bindings",
		"a@n0\nn1 user_name=b port = 22\nn2 user-name=c\nn3 user=d binding=map=0,1\n",
		"n0 n1 n2 n3", "f:4", NULL },
	{ "Hydra's number", "n0:8\n[fd00::1]:2\nn2:0\n", "n0/8/0 <fd00::1>/2/0", "f:2", NULL },
	{ "a number goes below slots=N", "n0:1 slots=2\n", "n0/2/0", "f:1", NULL },
	{ "a host without slots beside one that has them", "n0 slots=8\nn1\n", "n0/8/0 n1/1/0",
		"f:2", NULL },
	{ "most slots alone are slots", "n0 max_slots=2\n", "n0/2/2", "f:1", NULL },
	{ "most slots before more", "n0 max_slots=2 slots=4\n", "n0/4/4", "f:1", NULL },
	{ "slots of none", "n0\nn1 slots=0\nn2 slots=2\n", "n0/1/0 n2/2/0", "f:3", NULL },
	{ "a host again", "n0\nN0\nn1\nn0\n", "n0/3/0 n1/1/0", "f:3", NULL },
	{ "... behind slots", "n0 slots=2\nn0\nn1:1\nn1:2\n", "n0/3/0 n1/3/0", "f:3", NULL },
	{ "... with most slots", "n0\nn0 max_slots=4\n", "n0/2/4", "f:1", NULL },
	{ "a rank file", "rank 0=n0 slot=0\nrank 1 = n1\nrank 2=n0 slot=p1:0-1\n", "n0/2/0 n1/1/0",
		"f:2", NULL },
	{ "PRRTE's exclusion", "n0\n^n1\nn1\nn2\n^a@n3\n", "n0 n2", "f:4", NULL },
	{ "DeepSpeed's comma", "n0 slots=8, \nn1 slots=4,,\n", "n0/8/0 n1/4/0", "f:2", NULL },
	{ "what Open MPI ignores", "n0 n1 slots=2 8 a,b*d@e\n", "n0/2/0", "f:1", NULL },
	{ "Windows' line ends", "n0 slots=2\r\nn1 slots=2\r\n", "n0/2/0 n1/2/0", "f:2", NULL },
	{ "a byte order mark", "\xef\xbb\xbfn0\n", "n0", "f:1", NULL },
	{ "a range with slots for each", "gpu[1-2] slots=8\n", "gpu1/8/0 gpu2/8/0", "f:1", NULL },
	{ "IPv6", "fd00::1 slots=2\n[fd00::2] slots=2", "<fd00::1>/2/0 <fd00::2>/2/0", "f:2",
		NULL },
	{ "a line of any length",
		"n0 #"
		"                                                        "
		"                                                                                "
		"                                                                                \n",
		"n0", "f:1", NULL },

	{ "an empty file", "", NULL, NULL, "f names no host" },
	{ "comments alone", "# n0\n", NULL, NULL, "f names no host" },
	{ "what can't be a host", "n0\nn1!\n", NULL, NULL, "f:2: \"n1!\" is not the name" },
	{ "a port and a number", "n0:22:8\n", NULL, NULL, "HOST:N in a host file" },
	{ "too many", "n0:65537\n", NULL, NULL, "\"n0:65537\" is not followed by a number" },
	{ "a comma", "n0,n1\n", NULL, NULL, "f:1: \"n0\" is followed by a comma" },
	{ "an option alone", "slots=8\n", NULL, NULL, "f:1: \"slots=8\" is not the name" },
	{ "an unknown option", "n0 gpus = 8\n", NULL, NULL,
		"f:1: \"gpus = 8\" is not known: behind a host may stand slots=N" },
	{ "a value of nothing", "n0 = 8\n", NULL, NULL, "\"= 8\" is not known" },
	{ "an unknown word", "n0 n1.x\n", NULL, NULL, "\"n1.x\" is not known" },
	{ "the begin of one", "n0 slot=2\n", NULL, NULL, "\"slot=2\" is not known" },
	{ "an end of one", "n0 slots_=2\n", NULL, NULL, "\"slots_=2\" is not known" },
	{ "slots without a number", "n0 slots=\n", NULL, NULL, "\"slots=\" has no value" },
	{ "slots without a value", "n0 slots 8\n", NULL, NULL, "\"slots\" has no value" },
	{ "two signs", "n0 slots==2\n", NULL, NULL, "\"slots==2\" is not a number of workers" },
	{ "more slots than may be", "n0 slots=65537\n", NULL, NULL, "0 to 65536" },
	{ "more of many lines", "n0 slots=65536\nn0\n", NULL, NULL,
		"f:2: n0 has more than 65536 slots" },
	{ "slots above their most", "n0 slots=4 max_slots=2\n", NULL, NULL,
		"f:1: n0 has slots=4, above its max_slots=2" },
	{ "slots twice", "n0 slots=4 cpu=4\n", NULL, NULL,
		"\"cpu=4\" gives the host's slots once" },
	{ "slots at a host again", "n0\nn1\nn0 slots=2\n", NULL, NULL,
		"f:3: n0 is listed twice, first at f:1: slots=N" },
	{ "no slots anywhere", "n0 slots=0\n", NULL, NULL, "f names no host that has a slot" },
	{ "a comment without an end", "n0\n/* n1\nn2\n", NULL, NULL,
		"f:2: a comment begins with /*, but doesn't end" },
	{ "two of Hydra's in a line", "n0:2 n1:2\n", NULL, NULL, "f:1: \"n1:2\" is not known" },
	{ "all excluded", "n0\n^n0\n", NULL, NULL, "f names no host that has a slot" },
	{ "a node by its number", "+n0\n", NULL, NULL, "\"+n0\" counts nodes of a batch system's" },
	{ "no user", "@n0\n", NULL, NULL, "\"@n0\" has no user" },
	{ "a rank of no host", "rank 0\n", NULL, NULL, "\"rank\" is not followed by N=HOST" },
	{ "a rank of nothing", "rank 0=\n", NULL, NULL, "names no host" },
};

static void test_file(void **state)
{
	const struct file_row *row = *state;
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };
	struct text t = { 0 };
	int rc = hosts_read_file(&a, row->text, strlen(row->text), "f", &h, &why);

	assert_outcome(rc, row->hosts ? 0 : -EINVAL, &why, row->part);
	show(&h, &t);
	assert_string_equal(text_string(&t), row->hosts ? row->hosts : "");
	if (rc == 0)
		assert_string_equal(h.at[h.count - 1].where, row->where);
	text_done(&t);
	arena_done(&a);
}

/* What the head node asks: whether mpirun is to read the file, and whether it can. */
static void test_logins(void **state)
{
	static const struct {
		const char *text;
		bool login, is_wider;
	} kinds[] = {
		{ "n0 slots=2\n", false, false },
		{ "n0:2\n", false, true },
		{ "a@n0\n", true, false },
		{ "n0\na@n0\n", true, false },
		{ "n0 port=22\n", true, false },
		{ "n0 user=a\n", true, true },
		{ "n0 binding=core\n", false, true },
		{ "n0 slots=2,\n", false, true },
		{ "a@n[0-1] slots=2\n", true, true },
		{ "a@n0\r\n", true, true },
		{ "\xef\xbb\xbf"
		  "a@n0\n",
			true, true },
		{ "a@n0\n^n1\n", true, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct arena a = { 0 };
		struct failure why = { 0 };
		struct hosts h = { 0 };

		assert_int_equal(
			hosts_read_file(&a, kinds[i].text, strlen(kinds[i].text), "f", &h, &why),
			0);
		assert_int_equal(h.at[0].login, kinds[i].login);
		assert_int_equal(h.is_wider, kinds[i].is_wider);
		arena_done(&a);
	}
}

/* Each word once, with its place. */
static void test_ignored(void **state)
{
	static const char text[] = "n0 n1 slots=2\n\nn2 8\n";
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };

	(void)state;
	assert_int_equal(hosts_read_file(&a, text, strlen(text), "f", &h, &why), 0);
	assert_contains(h.notes.first->text, "f:1: \"n1\" is ignored, as Open MPI does");
	assert_contains(h.notes.first->next->text, "f:3: \"8\" is ignored");
	assert_null(h.notes.first->next->next);
	assert_int_equal(h.notes.first->level, NOTE_WARNING);
	arena_done(&a);
}

/* PBS has a line for each slot; the hosts are few. */
static void test_many_lines(void **state)
{
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };
	struct text t = { 0 };

	(void)state;
	for (int i = 0; i < 70000; i++)
		text_printf(&t, "n%d\n", i % 700);
	assert_int_equal(hosts_read_file(&a, text_string(&t), t.len, "f", &h, &why), 0);
	assert_int_equal(h.count, 700);
	assert_int_equal(h.at[699].slots, 100);
	text_done(&t);
	for (int i = 0; i < HOSTS_MAX + 1; i++)
		text_printf(&t, "n%d\n", i);
	assert_int_equal(hosts_read_file(&a, text_string(&t), t.len, "f", &h, &why), -EINVAL);
	assert_contains(why.text, "f: there are more than 65536 hosts");
	text_done(&t);
	arena_done(&a);
}

static void test_nul(void **state)
{
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };

	(void)state;
	assert_int_equal(hosts_read_file(&a, "n\0000\n", 5, "f", &h, &why), -EINVAL);
	assert_contains(why.text, "f has a NUL byte");
	arena_done(&a);
}

static const struct twice_row {
	const char *says, *text;
	const char *second; /* NULL: none is there twice */
	size_t first;
} twice[] = {
	{ "each once", "n1 n0 n2 10.0.0.1 n10", NULL, 0 },
	{ "a name", "n1 n0 n2 n0", "n0", 1 },
	{ "in another case", "n1 GPU0 gpu0", "gpu0", 1 },
	{ "an address in another form", "fd00::1 x [fd00:0::1]", "fd00::1", 0 },
	{ "by a range", "gpu2 gpu[1-3]", "gpu2", 0 },
	{ "the first of several", "b a b a", "b", 0 },
	{ "thrice", "x a a a", "a", 1 },
	{ "another domain is another name", "n0 n0.a n0.b", NULL, 0 },
};

static void test_twice(void **state)
{
	const struct twice_row *row = *state;
	const struct host *first = NULL, *second;
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };

	assert_int_equal(hosts_add_list(&a, row->text, "here", &h, &why), 0);
	second = hosts_twice(&a, &h, &first);
	assert_true(!second == !row->second);
	if (second) {
		assert_string_equal(second->name, row->second);
		assert_ptr_equal(first, &h.at[row->first]);
		assert_true(second > first);
	}
	arena_done(&a);
}

TESTS(hosts)
{
	static struct suite s;

	SUITE_ROWS(&s, test_list, lists);
	SUITE_ROWS(&s, test_colon, colons);
	SUITE_ROWS(&s, test_file, files);
	SUITE_ROWS(&s, test_twice, twice);
	suite_add(&s, "as many and as long as may be", test_most, NULL, NULL);
	suite_add(&s, "a NUL byte in a file", test_nul, NULL, NULL);
	suite_add(&s, "users in a file", test_logins, NULL, NULL);
	suite_add(&s, "what is ignored in a file", test_ignored, NULL, NULL);
	suite_add(&s, "a line for each slot", test_many_lines, NULL, NULL);
	return suite_run(&s);
}
