/* test_report_path.c - the names of --report's, --events' and --metrics-file's files. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "common/address.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

static const struct path_row {
	const char *says, *text; /* NULL: not given */
	unsigned nnodes, node;
	int rc;
	const char *path; /* or part of the sentence */
	bool noted;
} rows[] = {
	{ "no report", NULL, 4, 2, 0, NULL, false },
	{ "a plain name", "r.json", 1, 2, 0, "r.json", false },
	{ "the node rank", "r%n.json", 4, 2, 0, "r2.json", false },
	{ "the host's name", "/x/%h.json", 4, 2, 0, "/x/gpu07.json", false },
	{ "both", "%h/%n", 4, 2, 0, "gpu07/2", false },
	{ "a percent sign", "100%%.json", 1, 2, 0, "100%.json", false },
	{ "a percent sign before a letter", "%%n", 1, 2, 0, "%n", false },
	{ "several in a row", "%n%n%%%h", 4, 2, 0, "22%gpu07", false },
	{ "one name for several nodes is node rank 0's", "r.json", 4, 0, 0, "r.json", true },
	{ "one name for several nodes: the others write nothing", "r.json", 4, 2, 0, NULL, true },
	{ "a percent sign tells nodes not apart", "r%%.json", 4, 3, 0, NULL, true },
	{ "a percent sign on node rank 0", "r%%.json", 4, 0, 0, "r%.json", true },
	{ "an unknown letter", "r%r.json", 1, 2, -EINVAL,
		"--report: \"r%r.json\" contains \"%r\", which is unknown: %n is the node rank",
		false },
	{ "nothing behind it", "r%", 1, 2, -EINVAL, "contains \"%\", which", false },
	{ "a capital", "%N", 1, 2, -EINVAL, "contains \"%N\", which", false },
};

static void test_path(void **state)
{
	const struct path_row *row = *state;
	const struct facts facts = { .hostname = "gpu07" };
	struct plan p = { .nnodes = row->nnodes, .node_rank = row->node };
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_REPORT, row->text, "--report");
	rc = decide_report(&d, &p);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->path : NULL);
	assert_true((p.report_path != NULL) == (rc == 0 && row->path));
	if (p.report_path)
		assert_string_equal(p.report_path, row->path);
	assert_note(
		&b.notes, NOTE_VERBOSE, row->noted ? "--report: only node rank 0 writes r" : NULL);
	settings_fixture_done(&b);
}

static const struct events_row {
	const char *says, *text; /* NULL: not given */
	unsigned nnodes, node;
	int rc, fd;
	const char *path; /* or part of the sentence */
	const char *note; /* NULL: none */
} events[] = {
	{ "no events", NULL, 4, 2, 0, -1, NULL, NULL },
	{ "a file", "e.jsonl", 1, 0, 0, -1, "e.jsonl", NULL },
	{ "a file of this node", "%h-%n%%", 4, 2, 0, -1, "gpu07-2%", NULL },
	{ "a file of node rank 0", "e", 4, 0, 0, -1, "e",
		"--events: only node rank 0 writes e, with what it sees itself; with %n" },
	{ "a file of another node", "e", 4, 2, 0, -1, NULL, "--events: only node rank 0" },
	{ "an unknown letter", "e%x", 1, 0, -EINVAL, -1, "--events: \"e%x\" contains \"%x\"",
		NULL },
	{ "a descriptor", "fd:3", 1, 0, 0, 3, NULL, NULL },
	{ "a descriptor, on every node", "fd:12", 4, 2, 0, 12, NULL, NULL },
	{ "no descriptor", "fd:", 1, 0, -EINVAL, -1,
		"--events: \"fd:\" has no descriptor number after \"fd:\"", NULL },
	{ "a word for a descriptor", "fd:x", 1, 0, -EINVAL, -1,
		"for a file of that name write ./fd:x", NULL },
	{ "a descriptor below 0", "fd:-1", 1, 0, -EINVAL, -1, "no descriptor number", NULL },
	{ "a descriptor too high", "fd:2147483648", 1, 0, -EINVAL, -1, "no descriptor number",
		NULL },
	{ "a file that looks like one", "./fd:3", 1, 0, 0, -1, "./fd:3", NULL },
};

static void test_events(void **state)
{
	const struct events_row *row = *state;
	const struct facts facts = { .hostname = "gpu07" };
	struct plan p = {
		.nnodes = row->nnodes, .node_rank = row->node, .output = { .events_fd = -1 }
	};
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_EVENTS, row->text, "--events");
	rc = decide_events(&d, &p);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->path : NULL);
	assert_int_equal(p.output.events_fd, row->fd);
	assert_true((p.output.events_path != NULL) == (rc == 0 && row->path));
	if (p.output.events_path)
		assert_string_equal(p.output.events_path, row->path);
	assert_note(&b.notes, NOTE_VERBOSE, row->note);
	settings_fixture_done(&b);
}

static const struct metrics_row {
	const char *says, *text; /* NULL: not given */
	unsigned nnodes, node;
	int rc;
	const char *path; /* or part of the sentence */
	const char *note; /* NULL: none */
} metrics[] = {
	{ "no metrics", NULL, 4, 2, 0, NULL, NULL },
	{ "metrics of this node", "/x/%h-%n.prom", 4, 2, 0, "/x/gpu07-2.prom", NULL },
	{ "metrics of node rank 0", "a.prom", 4, 0, 0, "a.prom",
		"--metrics-file: only node rank 0 writes a.prom, with what this node sees" },
	{ "metrics of another node", "a.prom", 4, 2, 0, NULL, "only node rank 0" },
	{ "a name that node_exporter does not read", "a.txt", 1, 0, 0, "a.txt",
		"--metrics-file: node_exporter would not read a.txt" },
	{ "a name that is shorter than its end", "prom", 1, 0, 0, "prom", "not read prom" },
	{ "an unknown letter for metrics", "%x.prom", 1, 0, -EINVAL,
		"--metrics-file: \"%x.prom\" contains \"%x\"", NULL },
};

static void test_metrics(void **state)
{
	const struct metrics_row *row = *state;
	const struct facts facts = { .hostname = "gpu07" };
	struct plan p = { .nnodes = row->nnodes, .node_rank = row->node };
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_METRICS_FILE, row->text, "--metrics-file");
	rc = decide_metrics(&d, &p);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->path : NULL);
	assert_true((p.metrics_path != NULL) == (rc == 0 && row->path));
	if (p.metrics_path)
		assert_string_equal(p.metrics_path, row->path);
	assert_note(&b.notes, NOTE_VERBOSE, row->note);
	settings_fixture_done(&b);
}

static const struct listen_row {
	const char *says, *text, *shown; /* shown NULL: refused */
} listens[] = {
	{ "IPv4 to listen at", "127.0.0.1:9400", "127.0.0.1:9400" },
	{ "IPv6 to listen at", "[::1]:1", "[::1]:1" },
	{ "all addresses to listen at", "[::]:65535", "[::]:65535" },
	{ "all of IPv4 to listen at", "0.0.0.0:9400", "0.0.0.0:9400" },
	{ "port 0 to listen at", "127.0.0.1:0", NULL },
	{ "a port that is too high", "127.0.0.1:65536", NULL },
	{ "no port", "127.0.0.1", NULL },
	{ "an empty port", "127.0.0.1:", NULL },
	{ "no address", ":9400", NULL },
	{ "a port alone", "9400", NULL },
	{ "a name", "localhost:9400", NULL },
	{ "IPv6 without brackets", "::1:9400", NULL },
	{ "IPv4 in brackets", "[127.0.0.1]:9400", NULL },
	{ "nothing in brackets", "[]:9400", NULL },
	{ "a bracket alone", "[:9400", NULL },
};

static void test_listen(void **state)
{
	const struct listen_row *row = *state;
	const struct facts facts = { .hostname = "gpu07" };
	struct plan p = { .nnodes = 1 };
	char shown[ADDRESS_TEXT];
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_METRICS_LISTEN, row->text, "--metrics-listen");
	rc = decide_metrics(&d, &p);
	assert_outcome(rc, row->shown ? 0 : -EINVAL, &b.why,
		row->shown ? NULL : "is not an IP address and a port from 1 to 65535");
	if (row->shown) {
		address_text(&p.metrics_address, shown);
		assert_string_equal(shown, row->shown);
	}
	settings_fixture_done(&b);
}

TESTS(report_path)
{
	static struct suite s;

	SUITE_ROWS(&s, test_events, events);
	SUITE_ROWS(&s, test_metrics, metrics);
	SUITE_ROWS(&s, test_listen, listens);
	SUITE_ROWS(&s, test_path, rows);
	return suite_run(&s);
}
