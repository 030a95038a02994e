/* test_ini.c - INI files, and each trap of the library that reads them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/sources.h"

#define V(id, text, where) \
	{ \
		SET_##id, text, where \
	}

static const struct taken_row {
	const char *says, *text;
	struct expected expected[3];
	const char *env[3]; /* NAME=VALUE that must be among the changes */
} taken[] = {
	{ "an empty file", "", { { 0 } }, { NULL } },
	{ "a key, with file and line", "[launchd]\nnnodes = 2\n", { V(NNODES, "2", "f.ini:2") },
		{ NULL } },
	{ "no newline at the end", "[launchd]\nnnodes=2", { V(NNODES, "2", "f.ini:2") }, { NULL } },
	{ "both spellings of a key", "[launchd]\nnproc-per-node = 2\nrdzv_id = a\n",
		{ V(NPROC_PER_NODE, "2", "f.ini:2"), V(RDZV_ID, "a", "f.ini:3") }, { NULL } },
	{ "lines that end as on Windows", "[launchd]\r\nnnodes = 2\r\nrole = r\r\n",
		{ V(NNODES, "2", "f.ini:2"), V(ROLE, "r", "f.ini:3") }, { NULL } },
	{ "a byte order mark", "\xef\xbb\xbf[launchd]\nnnodes = 2\n", { V(NNODES, "2", "f.ini:2") },
		{ NULL } },
	{ "comments and empty lines count as lines", "# a\n; b\n\n[launchd]\n\n  # c\nnnodes = 2\n",
		{ V(NNODES, "2", "f.ini:7") }, { NULL } },
	{ "an indented key is a key, no continuation",
		"[launchd]\nrole = a\n    nnodes = 2\n\tnode_rank = 1\n",
		{ V(ROLE, "a", "f.ini:2"), V(NNODES, "2", "f.ini:3"),
			V(NODE_RANK, "1", "f.ini:4") },
		{ NULL } },
	{ "an indented section", "  [launchd]\nnnodes = 2\n", { V(NNODES, "2", "f.ini:2") },
		{ NULL } },
	{ "a comment behind a section", "[launchd] # all\nnnodes = 2\n",
		{ V(NNODES, "2", "f.ini:2") }, { NULL } },
	{ "a comment behind a value begins with a blank and a semicolon",
		"[launchd]\nrole = a ; b\nrdzv-id = a;b\n",
		{ V(ROLE, "a", NULL), V(RDZV_ID, "a;b", NULL) }, { NULL } },
	{ "a hash belongs to a value", "[launchd]\nrole = a#b\n[env]\nA = a # b\n",
		{ V(ROLE, "a#b", NULL) }, { "A=a # b" } },
	{ "a value may hold '=' and ':'",
		"[launchd]\nrdzv-conf = timeout=5\nmaster_addr = fe80::1\n",
		{ V(RDZV_CONF, "timeout=5", NULL), V(MASTER_ADDR, "fe80::1", NULL) }, { NULL } },
	{ "quotes are part of a variable's value", "[env]\nA = \"a\"\nB = it's\n", { { 0 } },
		{ "A=\"a\"", "B=it's" } },
	{ "a semicolon behind the quotes is a comment", "[env]\nA = \"a\" ; b\n", { { 0 } },
		{ "A=\"a\"" } },
	{ "a semicolon without a blank stays inside quotes", "[env]\nA = \"a;b\"\n", { { 0 } },
		{ "A=\"a;b\"" } },
	{ "blanks inside a value stay", "[launchd]\nrole =  a  b  \n", { V(ROLE, "a  b", NULL) },
		{ NULL } },
	{ "an empty value where the setting allows it", "[launchd]\nrdzv-endpoint =\n",
		{ V(RDZV_ENDPOINT, "", NULL) }, { NULL } },
	{ "words of true", "[launchd]\nuse_env = yes\nmodule = on\nstandalone = true\n",
		{ V(USE_ENV, "yes", NULL), V(MODULE, "on", NULL) }, { NULL } },
	{ "a section may come again", "[launchd]\nnnodes=2\n[env]\nA=1\n[launchd]\nrole=r\n",
		{ V(NNODES, "2", NULL), V(ROLE, "r", "f.ini:6") }, { "A=1" } },
	{ "variables", "[env]\nA = 1\nNCCL_DEBUG=INFO\nEMPTY=\n", { { 0 } },
		{ "A=1", "NCCL_DEBUG=INFO", "EMPTY=" } },
	{ "variables are told apart by case", "[env]\na=1\nA=2\n", { { 0 } }, { "a=1", "A=2" } },
	{ "names of variables to remove", "[launchd]\nunset-env = A, B\n", { { 0 } }, { NULL } },
	{ "a list goes on in indented lines",
		"[cluster]\nnodes = n0, \n\tn1 n2\n\n ; not n3\n  n4 ; last\n",
		{ V(CLUSTER_NODES, "n0,n1 n2 n4", "f.ini:2") }, { NULL } },
	{ "... from its second line on", "[cluster]\nnodes =\n n0\n n1\n[launchd]\nrole=r\n",
		{ V(CLUSTER_NODES, "n0 n1", NULL), V(ROLE, "r", "f.ini:6") }, { NULL } },
	{ "... with an address in brackets",
		"[cluster]\nnodes = n0\n [fd00::1]\n [launchd]\nrole=r\n",
		{ V(CLUSTER_NODES, "n0 [fd00::1]", NULL), V(ROLE, "r", NULL) }, { NULL } },
	{ "an indented setting behind args", "[launchd]\nscript = a\nargs = b\n  role = r\n",
		{ V(ROLE, "r", "f.ini:4") }, { NULL } },
	{ "a list of numbers", "[launchd]\nwrap-ranks = 0-3,\n  5,\n  7\nrole = r\n",
		{ V(WRAP_RANKS, "0-3,5,7", NULL), V(ROLE, "r", NULL) }, { NULL } },
	{ "letters beyond ASCII",
		"[launchd]\nrole = gr\xc3\xb6\xc3\x9f"
		"e\n",
		{ V(ROLE,
			"gr\xc3\xb6\xc3\x9f"
			"e",
			NULL) },
		{ NULL } },
};

static void assert_env(const struct settings *s, const char *entry)
{
	size_t len = strcspn(entry, "=");

	for (const struct env_change *c = s->env; c; c = c->next)
		if (strlen(c->name) == len && strncmp(c->name, entry, len) == 0) {
			assert_string_equal(c->value, entry + len + 1);
			return;
		}
	fail_msg("%s is not among the changes", entry);
}

/* The text without a NUL behind it, so that reading too far shows under ASan and valgrind. */
static int read_ini(struct settings_fixture *b, const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);
	int rc;

	assert_non_null(copy);
	memcpy(copy, text, len);
	rc = settings_read_ini(&b->s, copy, len, "f.ini", LEVEL_FILE, &b->why);
	memset(copy, '?', len); /* nothing may be borrowed from it */
	free(copy);
	return rc;
}

static void test_taken(void **state)
{
	const struct taken_row *row = *state;
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	assert_outcome(read_ini(&b, row->text, strlen(row->text)), 0, &b.why, NULL);
	assert_settings(&b.s, row->expected, 3);
	for (size_t i = 0; i < 3 && row->env[i]; i++)
		assert_env(&b.s, row->env[i]);
	settings_fixture_done(&b);
}

static const struct refused_row {
	const char *says, *text;
	const char *part[3];
} refused[] = {
	{ "an unknown key, with the nearest", "[launchd]\n\nnproc_per_mode = 2\n",
		{ "f.ini:3", "\"nproc_per_mode\"", "did you mean nproc_per_node?" } },
	{ "an unknown key near nothing", "[launchd]\nxyzzy = 2\n", { "f.ini:2: \"xyzzy\"" } },
	{ "a section of a model without one", "[check ]\nnvlinks = 2\n",
		{ "f.ini:2: [check ] is not a section" } },
	{ "a section of a model that is none of the check", "[cgroup H100]\npids = 2\n",
		{ "f.ini:2: [cgroup H100] is not a section" } },
	{ "what is the same for all models", "[check H100]\ngpus = 8\n",
		{ "f.ini:2: gpus is the same for all GPUs: it goes into [check]" } },
	{ "a key that is none of a model's", "[check H100]\nnvlink = 8\n",
		{ "f.ini:2: \"nvlink\"", "did you mean nvlinks?" } },
	{ "a wrong value of a model's", "[check H100]\nnvlinks = many\n",
		{ "f.ini:2: nvlinks: \"many\"", "a whole number from 0 to 64" } },
	{ "a model's key twice, however it is written",
		"[check H100]\nnvlinks = 1\n[check h100]\nnvlinks = 2\n",
		{ "f.ini:4: nvlinks is set twice for \"h100\", first at f.ini:2" } },
	{ "an unknown section", "[lunchd]\nnnodes = 2\n",
		{ "f.ini:2: [lunchd] is not", "there are [launchd]", " and [" } },
	{ "a key before any section", "nnodes = 2\n[launchd]\n",
		{ "f.ini:1", "nnodes", "[launchd]" } },
	{ "an act is no key", "[launchd]\ndry-run = json\n",
		{ "f.ini:2: --dry-run", "command line" } },
	{ "the file of another file is no key", "[launchd]\nconfig = x\n", { "f.ini:2" } },
	{ "env is a section, no key", "[launchd]\nenv = A=1\n", { "f.ini:2", "[env]" } },
	{ "a key in a wrong section", "[cgroup]\nnnodes = 2\n",
		{ "f.ini:2: nnodes goes into [launchd]" } },
	{ "a key near one of another section", "[cgroup]\nnnodse = 2\n",
		{ "f.ini:2: \"nnodse\"", "did you mean nnodes of [launchd]?" } },
	{ "an open quote in args", "[launchd]\nscript = a\nargs = b \"c\n",
		{ "f.ini:3: args: unmatched \"" } },
	{ "an argument or a setting", "[launchd]\nscript = a\nargs = b\n  lr=1\n",
		{ "f.ini:4: \"lr=1\" may be one more of the args above, or a setting" } },
	{ "a control character in a line that goes on", "[launchd]\nargs = b\n  c\x01\n",
		{ "f.ini:3: a control character" } },
	{ "a semicolon in quotes of a line that goes on", "[launchd]\nargs = b\n  \"c ; d\"\n",
		{ "f.ini:3: a ';' after a blank starts a comment, even inside quotes" } },
	{ "a list that goes on without a blank", "[cluster]\nnodes = n0,\nn1\n",
		{ "f.ini:3: \"n1\" is not key = value; indent a line that goes on with a list" } },
	{ "what is no list", "[launchd]\nnnodes =\n  2\n", { "f.ini:2: nnodes is empty" } },
	{ "a variable", "[env]\nA = 1,\n  2\n", { "f.ini:3: \"2\" is not key = value" } },
	{ "a list before a wrong line", "[cluster]\nnodes = n!\n  n0\nx\n",
		{ "f.ini:2: nodes: \"n!\" is not the name" } },
	{ "a comment in args", "[launchd]\nargs = b # c\n", { "f.ini:2: args: '#'", "';'" } },
	{ "a semicolon in quotes in args, after which nothing would be read",
		"[launchd]\nargs = a \"b ;c\"\n", { "f.ini:2: args: unmatched" } },
	{ "script twice", "[launchd]\nscript = a\nscript = b\n", { "f.ini:3", "f.ini:2" } },
	{ "a bad value", "[launchd]\nrole = a\nnnodes = two\n",
		{ "f.ini:3: nnodes: \"two\" is not a whole number" } },
	{ "an empty value where one is needed", "[launchd]\nnnodes =\n", { "f.ini:2" } },
	{ "a key twice", "[launchd]\nnnodes = 2\nrole = r\nnnodes = 2\n",
		{ "f.ini:4", "nnodes is set twice", "f.ini:2" } },
	{ "a key twice in two spellings", "[launchd]\nrdzv-id = 2\nrdzv_id = 2\n",
		{ "f.ini:3", "f.ini:2" } },
	{ "a key twice over two sections of a name",
		"[launchd]\nrole=a\n[env]\n[launchd]\nrole=b\n", { "f.ini:5", "f.ini:2" } },
	{ "a variable twice", "[env]\nA = 1\nA = 2\n",
		{ "f.ini:3: A is set twice, first at f.ini:2" } },
	{ "the first error counts, later lines don't", "[launchd]\nnnodes = x\nbogus = 1\n",
		{ "f.ini:2" } },
	{ "a colon instead of '='", "[launchd]\nnnodes: 2\n", { "f.ini:2", "not key = value" } },
	{ "a colon before '='", "[launchd]\nrole: a=b\n", { "f.ini:2", "not key = value" } },
	{ "a line without '='", "[launchd]\nnnodes 2\n", { "f.ini:2", "not key = value" } },
	{ "no key", "[launchd]\n = 2\n", { "f.ini:2" } },
	{ "no name of a variable", "[env]\n = 2\n", { "f.ini:2" } },
	{ "an open section", "[launchd\nnnodes = 2\n", { "f.ini:1: not a [section]" } },
	{ "something behind a section", "[launchd] nnodes = 2\n",
		{ "f.ini:1: only a comment may follow a [section]" } },
	{ "a comment inside a section's name", "[launchd ;x]\nnnodes = 2\n", { "f.ini:1" } },
	{ "a comment inside a key", "[launchd]\nnnodes ;x = 2\n",
		{ "f.ini:2: \"nnodes ;x = 2\" is not key = value" } },
	{ "a semicolon behind a blank inside quotes", "[launchd]\nrole = \"a ;b\"\n",
		{ "f.ini:2", "quotes", "command line" } },
	{ "the same inside single quotes", "[env]\nA = 'a ;b'\n", { "f.ini:2", "quotes" } },
	{ "quotes around a setting, which would be a part of it", "[launchd]\nrole = \"a\"\n",
		{ "f.ini:2: role", "quotes" } },
	{ "a hash behind a blank, which would be a part of the setting",
		"[launchd]\nnccl_socket_ifname = eth0 # fast\n", { "f.ini:2", "'#'", "';'" } },
	{ "a byte order mark in the middle", "[launchd]\n\xef\xbb\xbfnnodes = 2\n", { "f.ini:2" } },
	{ "two byte order marks hide no line", "\xef\xbb\xbf\xef\xbb\xbf# a = b\n", { "f.ini:1" } },
	{ "a byte order mark behind a blank hides no line", " \xef\xbb\xbf# a = b\n",
		{ "f.ini:1" } },
	{ "a variable that launchd sets itself", "[env]\nWORLD_SIZE = 2\n",
		{ "f.ini:2: launchd sets WORLD_SIZE", "--nnodes" } },
	{ "a form feed makes no continuation of the line before",
		"[launchd]\nrole = a\n\fnnodes = 2\n", { "f.ini:3" } },
	{ "a vertical tab hides no line", "[launchd]\n\v;nnodes = 2\n", { "f.ini:2" } },
	{ "a vertical tab begins no comment inside quotes", "[env]\nA = \"a\v;b\"\n",
		{ "f.ini:2" } },
};

static void test_refused(void **state)
{
	const struct refused_row *row = *state;
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	assert_outcome(read_ini(&b, row->text, strlen(row->text)), -EINVAL, &b.why, row->part[0]);
	for (size_t i = 1; i < 3 && row->part[i]; i++)
		assert_contains(b.why.text, row->part[i]);
	settings_fixture_done(&b);
}

/* Of each refused text, the first failure of all is the one that ends a reading that wants one. */
static void test_first_of_all(void **state)
{
	const struct refused_row *row = *state;
	struct settings_fixture one, other;
	struct failures all;

	settings_fixture_make(&one, false);
	settings_fixture_make(&other, false);
	settings_fixture_want_all(&other, &all);
	(void)read_ini(&one, row->text, strlen(row->text));
	(void)failure_go_on(read_ini(&other, row->text, strlen(row->text)), &other.why);
	assert_int_equal(other.why.code, 0);
	assert_true(all.texts.count > 0);
	assert_string_equal(all.texts.at[0], one.why.text);
	settings_fixture_done(&one);
	settings_fixture_done(&other);
}

static const struct all_row {
	const char *says, *text;
	const char *begins[5];
} alls[] = {
	{ "all is well", "[launchd]\nnnodes = 2\n", { NULL } },
	{ "a failure a line, in their order",
		"[launchd]\nnnodes = x\nrole = a\nbogus = 1\nrole = b\nstdin\n",
		{ "f.ini:2: nnodes: \"x\"", "f.ini:4: \"bogus\"",
			"f.ini:5: role is set twice, first at f.ini:3", "f.ini:6: \"stdin\"" } },
	{ "a section that is none is told once", "[a]\nb = 1\nc = 2\n[launchd]\nnnodes = x\n",
		{ "f.ini:2: [a] is not a section", "f.ini:5: nnodes" } },
	{ "... once wherever it begins", "[a]\nb = 1\n[env]\nC = 1\n[a]\nb = 1\n",
		{ "f.ini:2: [a]", "f.ini:6: [a]" } },
	{ "keys before any section are told once", "a = 1\nb = 2\n[launchd]\nc = 3\n",
		{ "f.ini:1: a comes before any section", "f.ini:4: \"c\"" } },
	{ "keys below a broken section are not taken for another one's",
		"[env]\nA = 1\n[launchd\nnnodes = x\nA = 1\n[cluster]\nnodes = [\n",
		{ "f.ini:3: not a [section]", "f.ini:7: nodes" } },
	{ "a line that is no key says nothing of the next one", "[launchd]\nrole: a\nnnodes = 2\n",
		{ "f.ini:2: \"role: a\"" } },
	{ "what is JSON is told once", "{\n\"nnodes\": 2,\n\"role\": 1\n}\n",
		{ "f.ini:1: this looks like JSON" } },
	{ "variables", "[env]\nA = 1\nA = 2\nRANK = 1\nLAUNCHD_KEY = secret\n",
		{ "f.ini:3: A is set twice", "f.ini:4: launchd sets RANK",
			"f.ini:5: LAUNCHD_KEY" } },
};

static void test_all(void **state)
{
	const struct all_row *row = *state;
	struct settings_fixture b;
	struct failures all;

	settings_fixture_make(&b, false);
	settings_fixture_want_all(&b, &all);
	(void)failure_go_on(read_ini(&b, row->text, strlen(row->text)), &b.why);
	assert_int_equal(b.why.code, 0);
	assert_failures(&all, row->begins, 5);
	settings_fixture_done(&b);
}

/* Nothing that is right is lost because of what is wrong around it. */
static void test_right_between_wrong(void **state)
{
	static const char text[] = "[launchd]\nnnodes = x\nrole = r\nbogus\n[env]\nA = 1\n";
	struct settings_fixture b;
	struct failures all;

	(void)state;
	settings_fixture_make(&b, false);
	settings_fixture_want_all(&b, &all);
	assert_outcome(read_ini(&b, text, sizeof text - 1), 0, &b.why, NULL);
	assert_int_equal(all.texts.count, 2);
	assert_string_equal(settings_where(&b.s, SET_ROLE), "f.ini:3");
	assert_env(&b.s, "A=1");
	settings_fixture_done(&b);
}

/* One more than is kept ends the reading, as it does where only the first is wanted. */
static void test_too_many(void **state)
{
	char text[FAILURES_MAX * 8];
	struct settings_fixture b;
	struct failures all;
	size_t len = 0;

	(void)state;
	for (int i = 0; i < FAILURES_MAX + 5; i++)
		len += (size_t)sprintf(text + len, "x%d\n", i);
	settings_fixture_make(&b, false);
	settings_fixture_want_all(&b, &all);
	assert_outcome(read_ini(&b, text, len), -EINVAL, &b.why, "f.ini:100: \"x99\"");
	assert_int_equal(all.texts.count, FAILURES_MAX);
	settings_fixture_done(&b);
}

static void test_nul(void **state)
{
	static const char text[] = "[launchd]\nrole = a\0b\n";
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_outcome(read_ini(&b, text, sizeof text - 1), -EINVAL, &b.why, "f.ini:2");
	settings_fixture_done(&b);
}

/* A key line of `len` bytes: "role = xxx". */
static size_t long_line(char *ret, const char *tail, size_t len)
{
	size_t head = (size_t)sprintf(ret, "[launchd]\nrole = ");

	memset(ret + head, 'x', 10 + len - head - strlen(tail));
	memcpy(ret + 10 + len - strlen(tail), tail, strlen(tail) + 1);
	return 10 + len;
}

/* inih cuts after 199 bytes and reads the rest as another line. */
static void test_long(void **state)
{
	char text[2000];

	(void)state;
	for (size_t len = 20; len < 1000; len++) {
		struct settings_fixture b;
		const char *role;
		int rc;

		settings_fixture_make(&b, false);
		rc = read_ini(&b, text, long_line(text, "", len));
		role = settings_text(&b.s, SET_ROLE);
		if (rc == 0)
			assert_int_equal(strlen(role), len - 7); /* whole, or not at all */
		else
			assert_outcome(rc, -EINVAL, &b.why, "f.ini:2");
		assert_true(rc == 0 || len > 150);
		assert_true(rc < 0 || len < 200);
		settings_fixture_done(&b);
	}
}

static void test_long_tail(void **state)
{
	char text[2000];

	(void)state;
	for (size_t len = 150; len < 260; len++) {
		struct settings_fixture b;

		settings_fixture_make(&b, false);
		(void)read_ini(&b, text, long_line(text, "nnodes=2", len));
		assert_null(settings_text(&b.s, SET_NNODES));
		settings_fixture_done(&b);
	}
}

static void test_long_comment(void **state)
{
	char text[5000];
	size_t n = (size_t)sprintf(text, "[launchd]\n# ");
	struct settings_fixture b;

	(void)state;
	memset(text + n, 'x', 4000);
	n += 4000;
	n += (size_t)sprintf(text + n, "\nnnodes = 2\n");
	settings_fixture_make(&b, false);
	assert_outcome(read_ini(&b, text, n), 0, &b.why, NULL);
	assert_string_equal(settings_where(&b.s, SET_NNODES), "f.ini:3");
	settings_fixture_done(&b);
}

/* Which of them counts for which GPU: the highest level, then the longest model. */
static void test_models(void **state)
{
	static const char of_system[] = "[check]\nnvlinks = 1\n[check H100]\nnvlinks = 2\n"
					"[check\tH100 NVL]\nnvlinks = 3\ngpu-memory = 2G\n";
	static const char of_job[] = "[check A100]\nnvlinks = 4\n";
	static const char of_all[] = "[check]\nnvlinks = 5\n";
	static const struct {
		const char *gpu;
		uint64_t before, after;
	} rows[] = {
		{ "Tesla V100", 1, 5 },
		{ "NVIDIA H100 80GB HBM3", 2, 5 },
		{ "nvidia h100 nvl", 3, 5 },
		{ "NVIDIA A100-SXM4-80GB", 4, 4 },
		{ "NVIDIA GH100", 1, 5 },
		{ "", 1, 5 },
	};
	struct settings_fixture b;
	size_t i;

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(settings_read_ini(&b.s, of_system, sizeof of_system - 1, "s.ini",
				 LEVEL_SYSTEM_FILE, &b.why),
		0);
	assert_int_equal(
		settings_read_ini(&b.s, of_job, sizeof of_job - 1, "f.ini", LEVEL_FILE, &b.why), 0);
	for (i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(settings_of_model(&b.s, SET_CHECK_NVLINKS, rows[i].gpu)->number,
			rows[i].before);
	assert_int_equal(
		settings_of_model(&b.s, SET_CHECK_GPU_MEMORY, "H100 NVL")->number, 2ull << 30);
	assert_int_equal(settings_of_model(&b.s, SET_CHECK_GPU_MEMORY, "H100")->number, 1 << 30);
	assert_string_equal(
		settings_of_model(&b.s, SET_CHECK_NVLINKS, "A100")->from.where, "f.ini:2");
	assert_int_equal(
		settings_read_ini(&b.s, of_all, sizeof of_all - 1, "g.ini", LEVEL_FILE, &b.why), 0);
	for (i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(settings_of_model(&b.s, SET_CHECK_NVLINKS, rows[i].gpu)->number,
			rows[i].after);
	settings_fixture_done(&b);
}

static void test_long_section(void **state)
{
	(void)state;
	for (size_t len = 40; len < 60; len++) {
		struct settings_fixture b;
		char text[200];
		size_t n = (size_t)sprintf(text, "[launchd%*s]\nnnodes = 2\n", (int)len, "");

		settings_fixture_make(&b, false);
		assert_outcome(read_ini(&b, text, n), -EINVAL, &b.why, "f.ini:");
		assert_null(settings_text(&b.s, SET_NNODES));
		settings_fixture_done(&b);
	}
}

static void test_file(void **state)
{
	char path[] = "/tmp/launchd_test_ini_XXXXXX";
	static const char text[] = "[launchd]\nnnodes = 2\n";
	const struct origin from = { LEVEL_LAUNCHD, "LAUNCHD_CONFIG" };
	int fd = mkstemp(path);
	struct settings_fixture b;
	int rc, absent, directory, needed;

	(void)state;
	assert_true(fd >= 0);
	settings_fixture_make(&b, false);
	assert_int_equal(settings_put(&b.s, SET_CONFIG, path, from, &b.why), 0);
	rc = write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1 ?
		settings_load_file(&b.s, path, LEVEL_FILE, false, &b.why) :
		-EIO;
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(rc, 0);
	assert_string_equal(settings_where(&b.s, SET_NNODES), arena_printf(&b.arena, "%s:2", path));
	absent = settings_load_file(&b.s, path, LEVEL_FILE, true, &b.why);
	assert_outcome(absent, 0, &b.why, NULL);
	needed = settings_load_file(&b.s, path, LEVEL_FILE, false, &b.why);
	assert_outcome(needed, -EINVAL, &b.why, path);
	b.why = (struct failure){ 0 };
	directory = settings_load_file(&b.s, "/tmp", LEVEL_FILE, true, &b.why);
	assert_outcome(directory, -EINVAL, &b.why, "LAUNCHD_CONFIG: /tmp: can't be read: ");
	b.why = (struct failure){ 0 };
	directory = settings_load_file(&b.s, "/tmp", LEVEL_SYSTEM_FILE, true, &b.why);
	assert_int_equal(directory, -EINVAL);
	assert_int_equal(strncmp(b.why.text, "/tmp: can't be read: ", 21), 0); /* nobody named it */
	settings_fixture_done(&b);
}

static void test_unset(void **state)
{
	static const char text[] = "[launchd]\nunset-env = A, B\n";
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_outcome(read_ini(&b, text, strlen(text)), 0, &b.why, NULL);
	assert_string_equal(b.s.env->name, "A");
	assert_null(b.s.env->value);
	assert_string_equal(b.s.env->next->name, "B");
	assert_null(b.s.env->next->next);
	settings_fixture_done(&b);
}

TESTS(ini)
{
	static struct suite s;

	SUITE_ROWS(&s, test_taken, taken);
	SUITE_ROWS(&s, test_refused, refused);
	SUITE_ROWS(&s, test_first_of_all, refused);
	SUITE_ROWS(&s, test_all, alls);
	suite_add(&s, "the limits of a GPU by its model", test_models, NULL, NULL);
	suite_add(&s, "what is right is read between what is wrong", test_right_between_wrong, NULL,
		NULL);
	suite_add(&s, "a file of nothing but mistakes", test_too_many, NULL, NULL);
	suite_add(&s, "a NUL byte is refused with its line", test_nul, NULL, NULL);
	suite_add(&s, "a line is read whole or refused, at every length", test_long, NULL, NULL);
	suite_add(&s, "a long line's tail is never another line", test_long_tail, NULL, NULL);
	suite_add(&s, "a comment may be of any length", test_long_comment, NULL, NULL);
	suite_add(&s, "a long section's name is never cut", test_long_section, NULL, NULL);
	suite_add(&s, "a file, one that is absent, one that is none", test_file, NULL, NULL);
	suite_add(&s, "unset-env takes a list", test_unset, NULL, NULL);
	return suite_run(&s);
}
