/* test_explain.c - the plan in print. Whole texts are compared by the golden files; here are the
 * properties that hold for any plan. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "config/sources.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"
#include "daemon/report/explain.h"
#include "tests/unit/json.h"

#define PMIX "PMIX_NAMESPACE=1", "PMIX_RANK=0", "PMIX_SERVER_URI41=x"

static const struct explain_row {
	const char *says;
	const char *argv[6]; /* behind the program's name */
	const char *env[6];
	const char *json[3]; /* parts of the JSON; behind a '!': what it has not */
	const char *text[3]; /* the same of the text */
} rows[] = {
	{ "one worker", { "t.py" }, { NULL },
		{ "\"nnodes\":{\"value\":\"1\",\"source\":\"one node\"}",
			"\"command\":[\"/py\",\"-u\",\"t.py\",\"--local_rank=0\"]",
			"\"master_port\":{\"value\":\"<a free port>\"" },
		{ "/py -u t.py --local_rank=0", "Dry run: nothing is started." } },
	{ "sources are told", { "--nproc-per-node=2", "t.py" }, { "PET_ROLE=r" },
		{ "\"nproc_per_node\":{\"value\":\"2\",\"source\":\"--nproc-per-node\"}",
			"\"role\":{\"value\":\"r\",\"source\":\"PET_ROLE\"}",
			"\"name\":\"RANK\",\"change\":\"set\",\"value\":\"1\"" },
		{ "(PET_ROLE)", "Worker rank 1, local rank 1" } },
	{ "a setting with its default is left out, and a title without settings", { "t.py" },
		{ NULL }, { "\"settings\":{},", "!max-restarts" },
		{ "!\nSettings\n", "!max-restarts" } },
	{ "the same value is listed where it was given", { "t.py" }, { "LAUNCHD_MAX_RESTARTS=0" },
		{ "\"settings\":{\n  \"max-restarts\":{\"value\":\"0\","
		  "\"source\":\"LAUNCHD_MAX_RESTARTS\"}}" },
		{ "\nSettings\n  max-restarts             0                     "
		  "(LAUNCHD_MAX_RESTARTS)\n\n" } },
	{ "--verbose adds defaults", { "--verbose", "t.py" }, { NULL },
		{ "\"max-restarts\":{\"value\":\"0\",\"source\":\"default\"}",
			"\"verbose\":{\"value\":\"1\",\"source\":\"--verbose\"}" },
		{ "\n  max-restarts             0                     (default)\n" } },
	{ "LOGLEVEL=DEBUG does, too", { "t.py" }, { "LOGLEVEL=DEBUG" },
		{ "\"max-restarts\":{\"value\":\"0\",\"source\":\"default\"}" },
		{ "\n  max-restarts             0                     (default)\n" } },
	{ "unless --quiet overrides it", { "--quiet", "t.py" }, { "LOGLEVEL=DEBUG" },
		{ "!max-restarts" }, { "!max-restarts" } },
	{ "a default that launchd decided is listed", { "--rdzv-backend=c10d", "t.py" }, { NULL },
		{ "\"join-timeout\":{\"value\":\"600\",\"source\":\"torchrun's default for c10d\"}" },
		{ "\n  join-timeout             600                   (torchrun's default for c10d)\n" } },
	{ "what is removed is told", { "t.py" }, { "PMIX_RANK=1" },
		{ "\"name\":\"PMIX_RANK\",\"change\":\"removed\",\"value\":null" },
		{ "removed   PMIX_RANK" } },
	{ "notes are told", { "--start-method=fork", "t.py" }, { NULL },
		{ "\"level\":\"warning\",\"text\":\"--start-method has no effect" },
		{ "warning: --start-method" } },
	{ "arguments that need quotes", { "t.py", "a \"b\"", "\x01\xff", "" }, { "\xff=\xfe" },
		{ "\"a \\\"b\\\"\"", "\"\\u0001\\ufffd\"", "\"\"]" }, { "'a \"b\"'", " ''" } },
	{ "signals are told", { "--on-signal=TERM=stop:5,USR1=forward,HUP=ignore", "t.py" },
		{ "LAUNCHD_SIGNALS_TO_HANDLE=SIGUSR2" },
		{ "\"SIGTERM\":{\"value\":\"stop:5\",\"source\":\"--on-signal\"}",
			"\"SIGUSR2\":{\"value\":\"forward:30\",\"source\":\"LAUNCHD_SIGNALS_TO_HANDLE\"}",
			"\"others\":{\"value\":\"forward\",\"source\":\"default\"}" },
		{ "  SIGTERM          send SIGTERM, and end the job within 5 s     (--on-signal)",
			"  SIGHUP           ignore ", "  SIGUSR1          forward " } },
	{ "what mpirun leaves of a grace is told", { "t.py" },
		{ "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1",
			"OMPI_MCA_odls_base_sigkill_timeout=3" },
		{ "\"mpirun_grace\":{\"value\":\"3\",\"source\":\"OMPI_MCA_odls_base_sigkill_timeout\"}",
			"\"level\":\"verbose\",\"text\":\"mpirun sends SIGKILL 3 s after" },
		{ "  mpirun_grace     3 " } },
	{ "one rank of several", { "--nproc_per_node=3", "--only-rank=1", "t.py" }, { NULL },
		{ "\"started_ranks\":{\"value\":\"1\",\"source\":\"--only-rank\"}",
			"\"workers\":[\n  {\"rank\":1,\"local_rank\":1," },
		{ "Worker rank 1, local rank 1", "!rank 2, local" } },
	{ "no rank of this node", { "--nnodes=2", "--node_rank=1", "--only-rank=0", "t.py" },
		{ "MASTER_ADDR=h" },
		{ "\"started_ranks\":{\"value\":\"none\",\"source\":\"--only-rank\"}",
			"\"workers\":[]}" },
		{ "  started_ranks    none", "!Environment of every worker" } },
	{ "a report's name", { "--report=/r/%h-%n%%", "t.py" }, { NULL },
		{ "\"report\":{\"value\":\"/r/h-0%\",\"source\":\"--report\"}" },
		{ "  report           /r/h-0% " } },
	{ "without any flag output is shown by whole lines", { "t.py" }, { NULL },
		{ "\"stdout\":{\"way\":\"pipe\",\"file\":null,\"console\":true,\"journal\":false,"
		  "\"prefix\":null,\"filtered\":false},\n   \"stderr\":{\"way\":\"pipe\"," },
		{ "    stdout    the console, in whole lines\n    stderr    the console",
			"!  logs   " } },
	{ "a tree of logs", { "--log-dir=/l", "--rdzv-id=7", "t.py" }, { NULL },
		{ "\"logs\":{\"value\":\"/l/7_XXXXXXXX\",\"source\":\"--log-dir\"}",
			"\"stdout\":{\"way\":\"pipe\",\"file\":"
			"\"/l/7_XXXXXXXX/attempt_0/0/stdout.log\",\"console\":true",
			"\"/l/7_XXXXXXXX/attempt_0/0/error.json\"" },
		{ "  logs             /l/7_XXXXXXXX ",
			"    stderr    /l/7_XXXXXXXX/attempt_0/0/stderr.log and the console\n" } },
	{ "redirected streams", { "-r1", "--local-ranks-filter=7", "t.py" }, { "TMPDIR=/t m" },
		{ "\"logs\":{\"value\":\"/t m/launchd_logs_XXXXXX/none_XXXXXXXX\",\"source\":\"-r\"}",
			"\"stdout\":{\"way\":\"file\",", "\"console\":false" },
		{ "    stdout    '/t m/launchd_logs_XXXXXX/none_XXXXXXXX/attempt_0/0/stdout.log'\n",
			"    stderr    kept for the report only\n" } },
	{ "redirected streams that launchd writes", { "-r3", "--log-timestamps", "t.py" },
		{ "TMPDIR=" }, { "\"stdout\":{\"way\":\"pipe\",\"file\":\"/tmp/launchd_logs_" },
		{ "/attempt_0/0/stdout.log, written by launchd\n" } },
	{ "tee'd streams", { "-t2", "--duplicate-stderr-filters=E", "t.py" }, { NULL },
		{ "\"source\":\"-t\"}",
			"\"console\":true,\"journal\":false,\"prefix\":\"[${role_name}${local_rank}]:\","
			"\"filtered\":true}" },
		{ "0/stderr.log and the console, with the prefix '[${role_name}${local_rank}]:', and "
		  "some lines to filtered_stderr.log\n" } },
	{ "lines in the journal", { "--journal=all", "t.py" }, { NULL },
		{ "\"journal\":{\"value\":\"messages and workers' lines\",\"source\":\"--journal\"}",
			"\"console\":false,\"journal\":true,\"prefix\":null" },
		{ "  journal          messages and workers' lines ",
			"    stdout    the journal, in whole lines\n" } },
	{ "events in a file", { "--events=/e%n", "t.py" }, { NULL },
		{ "\"events\":{\"value\":\"/e0\",\"source\":\"--events\"}" },
		{ "  events           /e0 " } },
	{ "events to a descriptor", { "--events=fd:3", "--on-signal=USR1=reopen", "t.py" },
		{ NULL },
		{ "\"events\":{\"value\":\"fd:3\",\"source\":\"--events\"}",
			"\"SIGUSR1\":{\"value\":\"reopen\",\"source\":\"--on-signal\"}" },
		{ "  events           fd:3 ", "  SIGUSR1          reopen log files " } },
	{ "a terminal is inherited", { "t.py" }, { "HAVE_TERMINAL=1" },
		{ "\"stdout\":{\"way\":\"inherit\",\"file\":null,\"console\":true",
			"\"stderr\":{\"way\":\"pipe\"," },
		{ "    stdout    launchd's own, a terminal\n" } },
	{ "restarts and the store", { "--max-restarts=3", "--restart-delay=2.5", "t.py" }, { NULL },
		{ "\"restarts\":{\"value\":\"3, the first after 2.5 s\",\"source\":\"--max-restarts\"}",
			"\"store\":{\"value\":\"rank0\",\"source\":\"no torch was found\"}",
			"\"TORCHELASTIC_MAX_RESTARTS\",\"change\":\"set\",\"value\":\"3\"" },
		{ "  restarts         3, the first after 2.5 s " } },
	{ "the launcher's store", { "--store=agent", "t.py" }, { NULL },
		{ "\"store\":{\"value\":\"agent\",\"source\":\"--store\"}",
			"\"TORCHELASTIC_USE_AGENT_STORE\",\"change\":\"set\",\"value\":\"True\"" },
		{ "  store            agent " } },
	{ "the control endpoint", { "--nnodes=2", "--node_rank=1", "t.py" },
		{ "MASTER_ADDR=fe80::1" },
		{ "\"control\":{\"value\":\"[fe80::1]:29501\",\"source\":\"master port + 1\"}" },
		{ "  control          [fe80::1]:29501 " } },
	{ "whose key it is", { "--nnodes=2", "--node_rank=1", "--key-file=/k", "t.py" },
		{ "MASTER_ADDR=h" }, { "\"key\":{\"value\":\"/k\",\"source\":\"--key-file\"}" },
		{ "  key              /k " } },
	{ "no control", { "--nnodes=2", "--node_rank=1", "--control=off", "t.py" },
		{ "MASTER_ADDR=h" },
		{ "\"control\":{\"value\":\"none\",\"source\":\"--control\"}" }, { NULL } },
	{ "what nodes tell each other when they meet by PMIx", { "t.py" },
		{ "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", PMIX },
		{ "\"control\":{\"value\":\"by PMIx\",\"source\":\"PMIX_NAMESPACE\"}",
			"\"master_addr\":{\"value\":\"<decided when nodes meet>\",\"source\":\"rendezvous\"}",
			"\"MASTER_PORT\",\"change\":\"set\",\"value\":\"<decided when nodes meet>\"" },
		{ "  master_addr      <decided when nodes meet>" } },
	{ "a rank that nodes decide when they meet",
		{ "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h:7", "t.py" }, { NULL },
		{ "\"node_rank\":{\"value\":\"<decided when nodes meet>\",\"source\":\"rendezvous\"}",
			"\"control\":{\"value\":\"h:7\",\"source\":\"--rdzv-endpoint\"}",
			"\"workers\":[\n  {\"rank\":null,\"local_rank\":0," },
		{ "RANK='<decided when nodes meet>'", "MASTER_PORT='<decided when nodes meet>'",
			"Worker rank <decided when nodes meet>, local rank 0" } },
	{ "and nothing that would be false",
		{ "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h:7", "t.py" }, { NULL },
		{ "\"first_rank\":{\"value\":\"<decided when nodes meet>\"",
			"\"master_port\":{\"value\":\"<decided when nodes meet>\"",
			"the nodes will agree on ranks when they meet" },
		{ "! RANK=0", "!PORT=7", "  started_ranks    <decided when nodes meet>" } },
	{ "names that need quotes", { "--env=\xff\"\n=\x7f", "t.py" }, { NULL },
		{ "\"\\ufffd\\\"\\u000a\"", "\"\\u007f\"" }, { NULL } },
};

static void assert_part(struct text *printed, const char *part)
{
	if (*part == '!')
		assert_null(strstr(text_string(printed), part + 1));
	else
		assert_contains(text_string(printed), part);
}

static void test_explain(void **state)
{
	const struct explain_row *row = *state;
	const char *argv[8] = { "launchd" };
	struct facts facts = { .env = row->env,
		.hostname = "h",
		.cpus = 4,
		.random_id = "",
		.terminal = { false, env_get(row->env, "HAVE_TERMINAL") != NULL, false },
		.program = { .path = "/py", .from = "PATH" } };
	struct topology t;
	struct plan p;
	struct text json = { 0 }, text = { 0 };
	struct settings_fixture b;
	struct explained e;
	unsigned nproc[2];
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	memcpy(argv + 1, row->argv, sizeof row->argv);
	assert_int_equal(settings_read_argv(&b.s, argv, &b.why), 0);
	assert_int_equal(settings_read_environment(&b.s, row->env, &b.notes, &b.why), 0);
	assert_int_equal(settings_check(&b.s, &b.notes, &b.why), 0);
	assert_int_equal(topology_begin(&d, &t), 0);
	assert_int_equal(topology_finish(&d, exchange_of(d.s, &facts, &t) != EXCHANGE_NONE, &t), 0);
	nproc[0] = nproc[1] = t.nproc;
	assert_int_equal(plan_make(&d, &t, nproc, &p), 0);
	e = (struct explained){ &b.s, &facts, &t, &p, &b.notes, settings_text(&b.s, SET_KEY_FILE) };
	explain_json(&e, &b.arena, &json);
	explain_text(&e, &b.arena, &text);
	assert_false(json.failed || text.failed);
	if (!json_is_valid(text_string(&json), json.len))
		fail_msg("not JSON: %s", text_string(&json));
	for (size_t i = 0; i < 3 && row->json[i]; i++)
		assert_part(&json, row->json[i]);
	for (size_t i = 0; i < 3 && row->text[i]; i++)
		assert_part(&text, row->text[i]);
	text_done(&json);
	text_done(&text);
	settings_fixture_done(&b);
}

TESTS(explain)
{
	static struct suite s;

	SUITE_ROWS(&s, test_explain, rows);
	return suite_run(&s);
}
