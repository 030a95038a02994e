/* test_store_host.c - who hosts the store in which workers meet. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

enum { RANK0 = STORE_RANK0, AGENT = STORE_AGENT };

static const struct store_row {
	const char *says;
	const char *torch;    /* NULL: not known */
	const char *store;    /* NULL: not given */
	enum setting_id also; /* 0: nothing else is given */
	const char *value;    /* of that */
	const char *env;      /* NULL: nothing */
	const char *own_port; /* of the script */
	const char *unknown;  /* why a shim doesn't tell its torch */
	int host, rc;
	const char *from; /* where that comes from; NULL: not looked at */
	const char *part; /* of the sentence, or of the note; NULL: no note */
} rows[] = {
	{ .says = "torch of today",
		.torch = "2.15.0+cu132",
		.host = AGENT,
		.from = "a torch that launchd supports" },
	{ .says = "torch 2.2", .torch = "2.2.0", .host = AGENT },
	{ .says = "torch 2.1", .torch = "2.1.2", .host = AGENT },
	{ .says = "torch 2.0", .torch = "2.0.1", .host = AGENT },
	{ .says = "Debian's torch", .torch = "1.13.0a0", .host = AGENT },
	{ .says = "torch 1.12", .torch = "1.12.1", .from = "a torch that launchd doesn't support" },
	{ .says = "torch 3", .torch = "3.0", .host = AGENT },
	{ .says = "no version of torch", .torch = "main" },
	{ .says = "torch is not known", .from = "no torch was found" },
	{ .says = "restarts",
		.torch = "2.15.0",
		.also = SET_MAX_RESTARTS,
		.value = "3",
		.host = AGENT },
	{ .says = "a program",
		.torch = "2.15.0",
		.also = SET_NO_PYTHON,
		.value = "1",
		.from = "given" },
	{ .says = "an only rank",
		.torch = "2.15.0",
		.also = SET_ONLY_RANK,
		.value = "0",
		.from = "given" },
	{ .says = "a script that starts its own ranks",
		.torch = "2.15.0",
		.also = SET_NODE_ENV,
		.value = "1",
		.from = "given" },
	{ .says = "JAX", .torch = "2.15.0", .also = SET_JAX_ENV, .value = "1", .from = "given" },
	{ .says = "TensorFlow",
		.torch = "2.15.0",
		.also = SET_TF_CONFIG,
		.value = "1",
		.from = "given" },
	{ .says = "no control channel",
		.torch = "2.15.0",
		.also = SET_CONTROL,
		.value = "off",
		.from = "given" },
	{ .says = "a control channel",
		.torch = "2.15.0",
		.also = SET_CONTROL,
		.value = "auto",
		.host = AGENT },
	{ .says = "torchrun's variable against it",
		.torch = "2.15.0",
		.env = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1",
		.from = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" },
	{ .says = "torchrun's variable for it",
		.torch = "2.15.0",
		.env = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=0",
		.host = AGENT },
	{ .says = "a script that has the port itself",
		.torch = "2.15.0",
		.own_port = "the script's JAX",
		.from = "the script's JAX" },
	{ .says = "a shim that does not answer",
		.unknown = "/shims/python3 has not ended",
		.part = "worker 0 hosts the store: /shims/python3 has not ended" },
	{ .says = "a shim, where it doesn't matter",
		.unknown = "/shims/python3 has not ended",
		.also = SET_JAX_ENV,
		.value = "1" },
	{ .says = "given: worker 0", .torch = "2.15.0", .store = "rank0", .from = "given" },
	{ .says = "given: the launcher", .torch = "2.15.0", .store = "agent", .host = AGENT },
	{ .says = "given: the launcher, for JAX",
		.torch = "2.15.0",
		.store = "agent",
		.also = SET_JAX_ENV,
		.value = "1",
		.host = AGENT },
	{ .says = "given: the launcher, and torch is not known",
		.store = "agent",
		.host = AGENT,
		.part = "no torch was found for /py: launchd's store serves 2.2 and later" },
	{ .says = "given: the launcher, and torch 2.1",
		.torch = "2.1.0",
		.store = "agent",
		.host = AGENT },
	{ .says = "given: the launcher, and torch 1.12",
		.torch = "1.12.1",
		.store = "agent",
		.rc = -EINVAL,
		.part = "given: launchd's store serves torch 1.13 and later, but /py has" },
	{ .says = "given: the launcher of a program",
		.store = "agent",
		.also = SET_NO_PYTHON,
		.value = "1",
		.host = AGENT,
		.part = "launchd can't tell" },
	{ .says = "given: the launcher, and a shim does not answer",
		.store = "agent",
		.unknown = "/shims/python3 has not ended",
		.host = AGENT,
		.part = "no torch was found for /py: /shims/python3 has not ended" },
};

static void test_store(void **state)
{
	const struct store_row *row = *state;
	const char *const env[] = { row->env, NULL };
	const struct facts facts = { .env = env,
		.torch_version = row->torch,
		.torch_unknown = row->unknown,
		.program = { .path = "/py", .from = "PATH", .own_port = row->own_port } };
	struct plan p = { .python = row->also != SET_NO_PYTHON, .env = env };
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	p.user_env = b.s.env;
	settings_fixture_put(&b, SET_STORE, row->store, "given");
	if (row->value)
		settings_fixture_put(&b, row->also, row->value, "given");
	rc = decide_store(&d, &p);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->part : NULL);
	if (rc == 0) {
		assert_int_equal(p.store, row->host);
		assert_true(p.store_from && *p.store_from);
		if (row->from)
			assert_string_equal(p.store_from, row->from);
		assert_note(&b.notes, NOTE_INFO, row->part);
	}
	settings_fixture_done(&b);
}

TESTS(store_host)
{
	static struct suite s;

	SUITE_ROWS(&s, test_store, rows);
	return suite_run(&s);
}
