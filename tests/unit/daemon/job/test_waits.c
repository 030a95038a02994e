/* test_waits.c - for which ranks a worker that timed out says it waited. The words are torch's,
 * from 1.13 to 2.15, gloo's and JAX's. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "daemon/job/ending.h"
#include "daemon/job/waits.h"

#define BARRIER(call) \
	"Traceback (most recent call last):\n  File \"t.py\", line 7, in <module>\n    " call \
	"\n  File \"torch/distributed/distributed_c10d.py\", line 3218, in monitored_barrier\n" \
	"    return group_to_use.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)\n"
#define OF_ALL     BARRIER("dist.monitored_barrier(timeout=timedelta(seconds=4))")
#define KEYS(keys) "torch.distributed.DistStoreError: wait timeout after 5000ms, keys: " keys "\n"
#define WATCHDOG(who) \
	who "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE) ran " \
	    "for 600012 milliseconds before timing out."
#define LAGGING(ranks) \
	"\n\t - To our best knowledge, ranks [" ranks \
	"] are the lagging ranks that caused this timeout. They never joined any collectives"

static const struct row {
	const char *says, *message, *lines;
	unsigned own_rank;
	const char *ranks; /* "1 2"; "": it names none */
	bool in_store, dials;
} rows[] = {
	{ "monitored_barrier names one",
		"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms", OF_ALL,
		0, .ranks = "1" },
	{ "or several",
		"RuntimeError: [Rank 0]: Ranks 1, 2, 13 failed to pass monitoredBarrier in 4000 ms",
		OF_ALL, 0, .ranks = "1 2 13" },
	{ "or a range",
		"RuntimeError: [Rank 0]: Ranks 1-3, 6 failed to pass monitoredBarrier in 4000 ms",
		OF_ALL, 0, .ranks = "1 2 3 6" },
	{ "more than there is room for",
		"RuntimeError: [Rank 0]: Ranks 1-8, 9 failed to pass monitoredBarrier in 4000 ms",
		OF_ALL, 0, .ranks = "1 2 3 4 5 6 7 8 and more" },
	{ "also in one range",
		"RuntimeError: [Rank 0]: Ranks 1-999999 failed to pass monitoredBarrier in 4000 ms",
		OF_ALL, 0, .ranks = "1 2 3 4 5 6 7 8 and more" },
	{ "called without arguments",
		"RuntimeError: Rank 0: Rank 2 failed to pass monitoredBarrier in 30000 ms",
		BARRIER("sync = dist.monitored_barrier()"), 0, .ranks = "2" },
	{ "of a group its numbers are others",
		"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms",
		BARRIER("dist.monitored_barrier(group=g)"), 0, .ranks = "" },
	{ "also where the group is its first argument",
		"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms",
		BARRIER("dist.monitored_barrier(half)"), 0, .ranks = "" },
	{ "with others behind it",
		"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms",
		BARRIER("dist.monitored_barrier(half, timeout=t)"), 0, .ranks = "" },
	{ "or where the worker isn't the job's rank 0",
		"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms", OF_ALL,
		2, .ranks = "" },
	{ "or where nobody sees its call",
		"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms", "", 0,
		.ranks = "" },
	{ "who came to the barrier names nobody",
		"RuntimeError: Rank 3 successfully reached monitoredBarrier, but received errors "
		"while waiting for send/recv from rank 0.",
		OF_ALL, 3, .ranks = "" },

	{ "gloo: the key of a rank", KEYS("/default_pg/0//cpu//0/1"), "", 0, .ranks = "1",
		.in_store = true },
	{ "of several", KEYS("/default_pg/0//cpu//0/1, /default_pg/0//cpu//0/2"), "", 0,
		.ranks = "1 2", .in_store = true },
	{ "before torch 2.0",
		"RuntimeError: Timeout waiting for key: default_pg/0//0/3 after 30000 ms", "", 0,
		.ranks = "3", .in_store = true },
	{ "of a group", KEYS("/default_pg/0//2//cpu//0/1"), "", 0, .ranks = "", .in_store = true },
	{ "with another number of parts", KEYS("/default_pg/0//cpu//0/1/2/3/4/5/6/7"), "", 0,
		.ranks = "", .in_store = true },
	{ "a key of the script's", KEYS("/my_default_pg/1"), "", 0, .ranks = "", .in_store = true },
	{ "NCCL: its id, which rank 0 writes", KEYS("/default_pg/0//cuda//0"), "", 4, .ranks = "0",
		.in_store = true },
	{ "the same in older words",
		"RuntimeError: [4] is setting up NCCL communicator and retrieving ncclUniqueId from "
		"[0] via c10d key-value store by key '0', but store->get('0') got error: Socket "
		"Timeout",
		"", 4, .ranks = "0", .in_store = true },
	{ "of a group, in which it has another number",
		"RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from "
		"[0] via c10d key-value store by key '0', but store->get('0') got error: Socket "
		"Timeout",
		"", 4, .ranks = "", .in_store = true },
	{ "the store: a time-out", "RuntimeError: Socket Timeout", "", 0, .ranks = "",
		.in_store = true },
	{ "the store: its barrier",
		"RuntimeError: Timed out initializing process group in store based barrier on rank: "
		"0, for key: store_based_barrier_key:1 (world_size=2, worker_count=1, "
		"timeout=0:00:05)",
		"", 0, .ranks = "", .in_store = true },
	{ "the store: rank 0 doesn't answer",
		"TimeoutError: The client socket has timed out after 5s while trying to connect to "
		"(127.0.0.1, 29500).",
		"", 2, .ranks = "0", .in_store = true, .dials = true },
	{ "a store at another port is not the job's",
		"TimeoutError: The client socket has timed out after 5s while trying to connect to "
		"(127.0.0.1, 4711).",
		"", 2, .ranks = "", .in_store = true },

	{ "NCCL's watchdog names nobody", WATCHDOG("[Rank 2] "), "", 2, .ranks = "" },
	{ "but where it looks for the desync, below its own number",
		WATCHDOG("[Rank 2] ") LAGGING("0, 1"), "", 2, .ranks = "0 1" },
	{ "above that, only of the group of all",
		WATCHDOG("[PG ID 0 PG GUID 0(default_pg) Rank 1] ") LAGGING("3"), "", 1,
		.ranks = "3" },
	{ "and else not", WATCHDOG("[Rank 1] ") LAGGING("3"), "", 1, .ranks = "" },
	{ "who finished the one before",
		WATCHDOG("[Rank 3] ") "\n\t     [1, 2] finished collective #3, but didn't join "
				      "collective #4 (count from 1)",
		"", 3, .ranks = "1 2" },
	{ "JAX's tasks",
		"DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0. # of tasks that "
		"reached the barrier: 1/2. The first task at the barrier: "
		"/job:jax_worker/replica:0/task:0. Some timed out task names:\n"
		"/job:jax_worker/replica:0/task:1\n",
		"", 0, .ranks = "1" },

	{ "gloo's names nobody",
		"RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 5000ms "
		"for recv operation to complete",
		"", 0, .ranks = "" },
	{ "numbers of any size", "Ranks 99999999999, 1 failed to pass monitoredBarrier", OF_ALL, 0,
		.ranks = "" },
	{ "not the words at once", " failed to pass monitoredBarrier", OF_ALL, 0, .ranks = "" },
};

static void test_waits(void **state)
{
	const struct row *row = *state;
	char ranks[64] = "";
	struct waited w;

	assert_true(waits_says(row->message));
	waits_read(row->message, row->lines, row->own_rank, "29500", &w);
	for (unsigned i = 0; i < w.count; i++) {
		size_t len = strlen(ranks);

		(void)snprintf(ranks + len, sizeof ranks - len, "%s%u", len ? " " : "", w.ranks[i]);
	}
	(void)strcat(ranks, w.more ? " and more" : "");
	assert_string_equal(ranks, row->ranks);
	assert_int_equal(w.in_store, row->in_store);
	assert_int_equal(w.dials, row->dials);
}

TESTS(waits)
{
	static struct suite s;

	SUITE_ROWS(&s, test_waits, rows);
	return suite_run(&s);
}
