/* test_value.c - every kind of value: its spellings and its bounds. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "config/value.h"

static const struct value_row {
	const char *says;
	enum setting_id id;
	const char *text;
	int rc;
	uint64_t number;
} values[] = {
	{ "a flag: 1", SET_USE_ENV, "1", 0, 1 },
	{ "a flag: 0", SET_USE_ENV, "0", 0, 0 },
	{ "a flag: true", SET_USE_ENV, "true", 0, 1 },
	{ "a flag: false", SET_USE_ENV, "false", 0, 0 },
	{ "a flag: on", SET_USE_ENV, "on", 0, 1 },
	{ "a flag: yes", SET_USE_ENV, "yes", 0, 1 },
	{ "a flag: off", SET_USE_ENV, "off", 0, 0 },
	{ "a flag: no", SET_USE_ENV, "no", 0, 0 },
	{ "a flag: nothing", SET_USE_ENV, "", -EINVAL, 0 },
	{ "a flag: 2", SET_USE_ENV, "2", -EINVAL, 0 },
	{ "a flag: True as Python writes it", SET_USE_ENV, "True", 0, 1 },
	{ "a flag: False as Python writes it", SET_USE_ENV, "False", 0, 0 },
	{ "a flag: TRUE", SET_USE_ENV, "TRUE", -EINVAL, 0 },
	{ "a count: the least", SET_NODE_RANK, "0", 0, 0 },
	{ "a count: the most", SET_NODE_RANK, "65535", 0, 65535 },
	{ "a count: one too many", SET_NODE_RANK, "65536", -EINVAL, 0 },
	{ "a count: negative", SET_NODE_RANK, "-1", -EINVAL, 0 },
	{ "a port: 0 is a free one", SET_MASTER_PORT, "0", 0, 0 },
	{ "a port: the most", SET_MASTER_PORT, "65535", 0, 65535 },
	{ "a port: too large", SET_MASTER_PORT, "65536", -EINVAL, 0 },
	{ "a port that is told: 0 is none", SET_CONTROL_PORT, "0", -EINVAL, 0 },
	{ "a port that is told: the least", SET_CONTROL_PORT, "1", 0, 1 },
	{ "nproc: a number", SET_NPROC_PER_NODE, "8", 0, 8 },
	{ "nproc: the most", SET_NPROC_PER_NODE, "65536", 0, 65536 },
	{ "nproc: too many", SET_NPROC_PER_NODE, "65537", -EINVAL, 0 },
	{ "nproc: none", SET_NPROC_PER_NODE, "0", -EINVAL, 0 },
	{ "nproc: auto", SET_NPROC_PER_NODE, "auto", 0, 0 },
	{ "nproc: cpu", SET_NPROC_PER_NODE, "cpu", 0, 0 },
	{ "nproc: gpu", SET_NPROC_PER_NODE, "gpu", 0, 0 },
	{ "nproc: a word it does not know", SET_NPROC_PER_NODE, "tpu", -EINVAL, 0 },
	{ "nproc: a choice's beginning", SET_NPROC_PER_NODE, "aut", -EINVAL, 0 },
	{ "lists: the first choice", SET_BIND, "none", 0, 0 },
	{ "lists: the last choice", SET_BIND, "auto", 0, 6 },
	{ "lists: a list", SET_BIND, "0-3,8", 0, 7 },
	{ "lists: two lists", SET_MEMBIND, "0:1", 0, 5 },
	{ "lists: one of them empty", SET_MEMBIND, "0:", -EINVAL, 0 },
	{ "lists: neither", SET_BIND, "cores", -EINVAL, 0 },
	{ "lists: nothing", SET_BIND, "", -EINVAL, 0 },
	{ "a number or auto: auto", SET_OMP_THREADS, "auto", 0, 0 },
	{ "a number or auto: a number", SET_OMP_THREADS, "4", 0, 4 },
	{ "a number or auto: another word", SET_OMP_THREADS, "cpu", -EINVAL, 0 },
	{ "nnodes: a number", SET_NNODES, "4", 0, 4 },
	{ "nnodes: none", SET_NNODES, "0", -EINVAL, 0 },
	{ "nnodes: the same number twice", SET_NNODES, "4:4", 0, 4 },
	{ "nnodes: elastic", SET_NNODES, "1:4", -EINVAL, 0 },
	{ "nnodes: the wrong way round", SET_NNODES, "4:1", -EINVAL, 0 },
	{ "nnodes: half of a range", SET_NNODES, "4:", -EINVAL, 0 },
	{ "nnodes: the other half", SET_NNODES, ":4", -EINVAL, 0 },
	{ "nnodes: three numbers", SET_NNODES, "4:4:4", -EINVAL, 0 },
	{ "nnodes: too many", SET_NNODES, "65537:65537", -EINVAL, 0 },
	{ "seconds: whole", SET_SHUTDOWN_TIMEOUT, "30", 0, 30000 },
	{ "seconds: a fraction", SET_SHUTDOWN_TIMEOUT, "0.25", 0, 250 },
	{ "seconds: none", SET_SHUTDOWN_TIMEOUT, "0", 0, 0 },
	{ "seconds: a year", SET_SHUTDOWN_TIMEOUT, "31536000", 0, 31536000000 },
	{ "seconds: more than a year", SET_SHUTDOWN_TIMEOUT, "31536001", -EINVAL, 0 },
	{ "seconds: negative", SET_SHUTDOWN_TIMEOUT, "-1", -EINVAL, 0 },
	{ "seconds: a unit", SET_SHUTDOWN_TIMEOUT, "1h", 0, 3600000 },
	{ "seconds: a unit that is none", SET_SHUTDOWN_TIMEOUT, "30x", -EINVAL, 0 },
	{ "seconds: the least", SET_NODE_TIMEOUT, "1", 0, 1000 },
	{ "seconds: too few", SET_NODE_TIMEOUT, "0.999", -EINVAL, 0 },
	{ "ends: codes and signals", SET_RESTART_ON, "1,64-77,SIGSEGV", 0, 0 },
	{ "ends: success", SET_RESTART_ON, "0", -EINVAL, 0 },
	{ "a signed number: the least", SET_NICE, "-20", 0, (uint64_t)-20 },
	{ "a signed number: the most", SET_NICE, "19", 0, 19 },
	{ "a signed number: none", SET_NICE, "-0", 0, 0 },
	{ "a signed number: too low", SET_NICE, "-21", -EINVAL, 0 },
	{ "a signed number: too high", SET_NICE, "20", -EINVAL, 0 },
	{ "a signed number: two signs", SET_NICE, "--1", -EINVAL, 0 },
	{ "a signed number: a plus", SET_NICE, "+1", -EINVAL, 0 },
	{ "a signed number: far too high", SET_NICE, "99999999999999999999", -EINVAL, 0 },
	{ "limits", SET_RLIMIT, "core=0", 0, 0 },
	{ "limits: none", SET_RLIMIT, "", -EINVAL, 0 },
	{ "GPUs: all", SET_GPUS, "all", 0, 0 },
	{ "GPUs: none", SET_GPUS, "", -EINVAL, 0 },
	{ "a text", SET_ROLE, "trainer", 0, 0 },
	{ "a text: nothing", SET_ROLE, "", -EINVAL, 0 },
	{ "a text that may be empty", SET_RDZV_ENDPOINT, "", 0, 0 },
	{ "a choice: the first", SET_RDZV_BACKEND, "static", 0, 0 },
	{ "a choice: the second", SET_RDZV_BACKEND, "c10d", 0, 1 },
	{ "a choice: the third", SET_MPI_ENV, "keep", 0, 2 },
	{ "a choice: another", SET_RDZV_BACKEND, "etcd", -EINVAL, 0 },
	{ "a choice: two at once", SET_MPI_ENV, "scrub|keep", -EINVAL, 0 },
	{ "a choice: nothing", SET_MPI_ENV, "", -EINVAL, 0 },
	{ "a flag with another word", SET_EXPAND_ARGS, "all", 0, 2 },
	{ "... that is on", SET_EXPAND_ARGS, "yes", 0, 1 },
	{ "... no word of it", SET_EXPAND_ARGS, "al", -EINVAL, 0 },
	{ "a flag without other words", SET_USE_ENV, "all", -EINVAL, 0 },
	{ "conf: nothing", SET_RDZV_CONF, "", 0, 0 },
	{ "conf: one", SET_RDZV_CONF, "timeout=5", 0, 0 },
	{ "conf: several", SET_RDZV_CONF, "timeout=5,store_type=tcp", 0, 0 },
	{ "conf: a value with '='", SET_RDZV_CONF, "a=b=c", 0, 0 },
	{ "conf: in quotes", SET_RDZV_CONF, "'a=1, b = 2'", 0, 0 },
	{ "conf: in quotes, no value", SET_RDZV_CONF, "'timeout='", -EINVAL, 0 },
	{ "conf: blanks are no value", SET_RDZV_CONF, "timeout= ,a=1", -EINVAL, 0 },
	{ "conf: blanks are no key", SET_RDZV_CONF, " =1", -EINVAL, 0 },
	{ "conf: one quote", SET_RDZV_CONF, "\"", -EINVAL, 0 },
	{ "conf: a comma at the end", SET_RDZV_CONF, "\"a=1,\"", 0, 0 },
	{ "conf: no value", SET_RDZV_CONF, "timeout=", -EINVAL, 0 },
	{ "seconds: no limit", SET_MAX_RUNTIME, "0", 0, 0 },
	{ "seconds: no note", SET_UNFINISHED_NOTE, "0", 0, 0 },
	{ "a rank: the first", SET_ONLY_RANK, "0", 0, 0 },
	{ "a rank: the last there can be", SET_ONLY_RANK, "2147483647", 0, 2147483647 },
	{ "a rank: one more", SET_ONLY_RANK, "2147483648", -EINVAL, 0 },
	{ "ranks: one", SET_WRAP_RANKS, "3", 0, 0 },
	{ "ranks: backwards", SET_WRAP_RANKS, "7-4", -EINVAL, 0 },
	{ "ranks: nothing", SET_WRAP_RANKS, "", -EINVAL, 0 },
	{ "ranks: none, where that means all", SET_LOCAL_RANKS_FILTER, "", 0, 0 },
	{ "ranks: some of all", SET_LOCAL_RANKS_FILTER, "0,4-7", 0, 0 },
	{ "ranks: a comma alone", SET_LOCAL_RANKS_FILTER, ",", -EINVAL, 0 },
	{ "streams: of all", SET_TEE, "3", 0, 0 },
	{ "streams: by rank", SET_TEE, "0:1,4-7:3", 0, 0 },
	{ "streams: another number", SET_TEE, "4", -EINVAL, 0 },
	{ "streams: nothing", SET_TEE, "", -EINVAL, 0 },
	{ "CPUs: decimals", SET_CGROUP_CPUS, "1.5", 0, 1500 },
	{ "CPUs: no limit", SET_CGROUP_CPUS, "0", 0, 0 },
	{ "CPUs: the least that the kernel gives", SET_CGROUP_CPUS, "0.01", 0, 10 },
	{ "CPUs: less", SET_CGROUP_CPUS, "0.009", -EINVAL, 0 },
	{ "CPUs: the most", SET_CGROUP_CPUS, "65536", 0, 65536000 },
	{ "CPUs: more", SET_CGROUP_CPUS, "65536.001", -EINVAL, 0 },
	{ "CPUs: a unit", SET_CGROUP_CPUS, "2s", -EINVAL, 0 },
	{ "CPUs: a percentage", SET_CGROUP_CPUS, "50%", -EINVAL, 0 },
	{ "a rate: none", SET_CHECK_LEAST_NODE, "0", 0, 0 },
	{ "a rate: decimals", SET_CHECK_LEAST_NODE, "18.5", 0, 18500 },
	{ "a rate: the most", SET_CHECK_LEAST_NODE, "1000000", 0, 1000000000 },
	{ "a rate: more", SET_CHECK_LEAST_NODE, "1000001", -EINVAL, 0 },
	{ "a rate: a unit", SET_CHECK_LEAST_NODE, "18G", -EINVAL, 0 },
	{ "CPUs: no digit before the point", SET_CGROUP_CPUS, ".5", -EINVAL, 0 },
	{ "size: bytes", SET_LOG_MAX_SIZE, "1000", 0, 1000 },
	{ "size: no limit", SET_LOG_MAX_SIZE, "0", 0, 0 },
	{ "size: K", SET_LOG_MAX_SIZE, "3K", 0, 3072 },
	{ "size: M", SET_LOG_MAX_SIZE, "64M", 0, 67108864 },
	{ "size: G", SET_LOG_MAX_SIZE, "2G", 0, 2147483648 },
	{ "size: none of a unit", SET_LOG_MAX_SIZE, "0G", 0, 0 },
	{ "size: the most", SET_LOG_MAX_SIZE, "1125899906842624", 0, 1125899906842624 },
	{ "size: one too many", SET_LOG_MAX_SIZE, "1125899906842625", -EINVAL, 0 },
	{ "size: the most of a unit", SET_LOG_MAX_SIZE, "1048576G", 0, 1125899906842624 },
	{ "size: one too many of a unit", SET_LOG_MAX_SIZE, "1048577G", -EINVAL, 0 },
	{ "size: what would not fit", SET_LOG_MAX_SIZE, "18446744073709551615G", -EINVAL, 0 },
	{ "size: another unit", SET_LOG_MAX_SIZE, "1T", -EINVAL, 0 },
	{ "size: a small letter", SET_LOG_MAX_SIZE, "1k", -EINVAL, 0 },
	{ "size: two letters", SET_LOG_MAX_SIZE, "1KB", -EINVAL, 0 },
	{ "size: no number", SET_LOG_MAX_SIZE, "M", -EINVAL, 0 },
	{ "size: nothing", SET_LOG_MAX_SIZE, "", -EINVAL, 0 },
	{ "size: negative", SET_LOG_MAX_SIZE, "-1", -EINVAL, 0 },
	{ "conf: no key", SET_RDZV_CONF, "=5", -EINVAL, 0 },
	{ "conf: no '='", SET_RDZV_CONF, "timeout", -EINVAL, 0 },
	{ "conf: an empty entry", SET_RDZV_CONF, "a=1,,b=2", -EINVAL, 0 },
};

static void test_value(void **state)
{
	const struct value_row *row = *state;
	const struct origin from = { LEVEL_COMMAND_LINE, "--here" };
	struct settings_fixture b;
	int rc;

	settings_fixture_make(&b, false);
	rc = settings_put(&b.s, row->id, row->text, from, &b.why);
	assert_outcome(rc, row->rc, &b.why, row->rc ? "--here" : NULL);
	if (rc == 0) {
		assert_true(settings_number(&b.s, row->id) == row->number);
		assert_string_equal(settings_text(&b.s, row->id), row->text);
		assert_string_equal(settings_where(&b.s, row->id), "--here");
		assert_true(settings_given(&b.s, row->id));
	} else {
		assert_false(settings_given(&b.s, row->id));
		assert_contains(b.why.text, row->text);
	}
	settings_fixture_done(&b);
}

static void test_choice(void **state)
{
	(void)state;
	assert_int_equal(choice_index("a|bb|c", "a"), 0);
	assert_int_equal(choice_index("a|bb|c", "bb"), 1);
	assert_int_equal(choice_index("a|bb|c", "c"), 2);
	assert_int_equal(choice_index("a|bb|c", "b"), -1);
	assert_int_equal(choice_index("a|bb|c", ""), -1);
	assert_int_equal(choice_index("a|bb|c", "a|bb"), -1);
}

TESTS(value)
{
	static struct suite s;

	SUITE_ROWS(&s, test_value, values);
	suite_add(&s, "a choice is one of a list", test_choice, NULL, NULL);
	return suite_run(&s);
}
