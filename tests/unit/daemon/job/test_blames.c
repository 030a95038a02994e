/* test_blames.c - whether a worker's own words tell of itself or of a lost peer. The words are
 * those of real jobs: see blames.c for where they were seen. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "daemon/job/evidence.h"
#include "daemon/job/verdict.h"

static const char in_torch[] =
	"Traceback (most recent call last):\n"
	"  File \"train.py\", line 9, in main\n"
	"    dist.barrier()\n"
	"  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 2\n"
	"    work.wait()\n";

/* As @record writes it: it wraps the whole program. */
#define IN_RECORD \
	"Traceback (most recent call last):\n" \
	"  File \"/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/errors/" \
	"__init__.py\", line 346, in wrapper\n    return f(*args, **kwargs)\n" \
	"  File \"train.py\", line 9, in main\n    download()\n"

static const struct row {
	const char *says, *message, *traceback;
	enum blames blames;
} rows[] = {
	{ "no words", NULL, NULL, BLAMES_NOBODY },
	{ "empty words", "", "", BLAMES_NOBODY },
	{ "an exception of its own", "ValueError: the teapot is empty", NULL, BLAMES_ITSELF },
	{ "CUDA is out of memory", "torch.cuda.OutOfMemoryError: CUDA out of memory.", NULL,
		BLAMES_ITSELF },
	{ "its own exception, raised in a collective", "TypeError: expected Tensor", in_torch,
		BLAMES_ITSELF },

	{ "gloo: closed",
		"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection "
		"closed by peer [18.25.6.30]:28048",
		NULL, BLAMES_A_PEER },
	{ "gloo: reset",
		"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] Read error "
		"[192.168.70.92]:25266: Connection reset by peer",
		NULL, BLAMES_A_PEER },
	{ "gloo: refused",
		"RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:799] connect "
		"[10.0.0.1]:4711: Connection refused",
		NULL, BLAMES_A_PEER },
	{ "gloo: the time-out",
		"RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
		"1800000ms for recv operation to complete",
		NULL, BLAMES_A_WAIT },
	{ "gloo: after another failure", "RuntimeError: Application timeout caused pair closure",
		NULL, BLAMES_A_WAIT },
	{ "gloo: monitored_barrier",
		"RuntimeError: Rank 0: Rank 2 failed to pass monitoredBarrier in 30000 ms", NULL,
		BLAMES_A_WAIT },

	{ "NCCL: the remote error",
		"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
		"ProcessGroupNCCL.cpp:1691, remote process exited or there was a network error, NCCL "
		"version 2.19.3\nncclRemoteError: A call failed possibly due to a network error or a "
		"remote process exiting prematurely.\nLast error:\nsocketProgressOpt: Call to recv "
		"from 172.16.0.1<33759> failed : Connection reset by peer",
		NULL, BLAMES_A_PEER },
	{ "NCCL: a closed connection as an internal error",
		"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
		"ProcessGroupNCCL.cpp:1275, internal error, NCCL version 2.14.3\nncclInternalError: "
		"Internal check failed.\nLast error:\nNet : Connection closed by remote peer "
		"user<50260>",
		NULL, BLAMES_A_PEER },
	{ "NCCL: the peer does not answer over IB",
		"RuntimeError: NCCL error\nLast error:\nNET/IB : Got completion from peer "
		"11.214.147.122<39138> with error 12, opcode 0, len 0, vendor err 129",
		NULL, BLAMES_A_PEER },
	{ "NCCL: a failed socket",
		"torch.distributed.DistBackendError: unhandled system error\nncclSystemError: System "
		"call (e.g. socket, malloc) or external library call failed or device error.\nLast "
		"error:\nsocketStartConnect: Connect to 10.0.0.2<45763> failed : Software caused "
		"connection abort",
		NULL, BLAMES_A_PEER },
	{ "NCCL: another system call, though socket is its example",
		"torch.distributed.DistBackendError: unhandled system error\nncclSystemError: System "
		"call (e.g. socket, malloc) or external library call failed or device error.\nLast "
		"error:\nError while creating shared memory segment /dev/shm/nccl-GrxPRv (size "
		"9637888)",
		NULL, BLAMES_ITSELF },
	{ "NCCL: an error of CUDA",
		"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
		"ProcessGroupNCCL.cpp:1331, unhandled cuda error",
		NULL, BLAMES_ITSELF },
	{ "the watchdog's time-out",
		"RuntimeError: [Rank 2] Watchdog caught collective operation timeout: "
		"WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=120000) ran "
		"for 120822 milliseconds before timing out.",
		NULL, BLAMES_A_WAIT },
	{ "the watchdog's exception",
		"[Rank 7] NCCL watchdog thread terminated with exception: [Rank 7] NCCL error",
		NULL, BLAMES_A_PEER },

	{ "the store: its server has gone",
		"torch.distributed.DistNetworkError: failed to recv, got 0 bytes", NULL,
		BLAMES_A_PEER },
	{ "the store: the same, in later words",
		"torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was "
		"likely closed. Did the remote server shutdown or crash?",
		NULL, BLAMES_A_PEER },
	{ "the store: torch 1.13", "RuntimeError: Connection reset by peer", NULL, BLAMES_A_PEER },
	{ "the store: a broken pipe", "RuntimeError: Broken pipe", NULL, BLAMES_A_PEER },
	{ "the store: a time-out", "RuntimeError: Socket Timeout", NULL, BLAMES_A_WAIT },
	{ "the store: a key that nobody wrote",
		"torch.distributed.DistBackendError: [4] is setting up NCCL communicator and "
		"retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
		"store->get('0') got error: Socket Timeout",
		NULL, BLAMES_A_WAIT },
	{ "the store: workers that did not come",
		"torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. "
		"1/3 clients joined.",
		NULL, BLAMES_A_WAIT },
	{ "the store: the barrier on it",
		"RuntimeError: Timed out initializing process group in store based barrier on rank: "
		"2, for key: store_based_barrier_key:1",
		NULL, BLAMES_A_WAIT },

	{ "a data loader's socket is no peer's",
		"ConnectionResetError: [Errno 104] Connection reset by peer",
		"Traceback (most recent call last):\n  File \"multiprocessing/connection.py\", line "
		"388\n",
		BLAMES_ITSELF },
	{ "nor is a server's with data",
		"requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', "
		"port=443): Max retries exceeded (Caused by NewConnectionError('[Errno 111] Connection "
		"refused'))",
		NULL, BLAMES_ITSELF },
	{ "Python's socket in torch's code is",
		"ConnectionResetError: [Errno 104] Connection reset by peer", in_torch,
		BLAMES_A_PEER },

	{ "a download's time-out is its own", "RuntimeError: Socket Timeout",
		"Traceback (most recent call last):\n  File \"train.py\", line 9\n    download()\n",
		BLAMES_ITSELF },
	{ "also where @record wraps it", "RuntimeError: Socket Timeout", IN_RECORD, BLAMES_ITSELF },
	{ "as a data loader's socket is no peer's there",
		"ConnectionResetError: [Errno 104] Connection reset by peer", IN_RECORD,
		BLAMES_ITSELF },
	{ "a time-out that the program wraps", "ValueError: no step",
		"Traceback (most recent call last):\n  File \"train.py\", line 9\n    f()\n"
		"RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms\n\n"
		"The above exception was the direct cause of the following exception:\n\n"
		"Traceback (most recent call last):\n  File \"train.py\", line 11\n    raise\n"
		"ValueError: no step\n",
		BLAMES_A_WAIT },

	{ "Ctrl-C", "KeyboardInterrupt: ", NULL, BLAMES_NOBODY },
	{ "Ctrl-C without words", "KeyboardInterrupt", NULL, BLAMES_NOBODY },
	{ "a signal that torch's handler made an exception of",
		"torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got "
		"signal: 15",
		NULL, BLAMES_NOBODY },
	{ "SystemExit", "SystemExit: 3", NULL, BLAMES_NOBODY },
	{ "an exception that only ends like one", "MySystemExit: 3", NULL, BLAMES_ITSELF },
	{ "an exception that quotes one", "ValueError: no SystemExit: here", NULL, BLAMES_ITSELF },

	{ "a traceback alone", NULL,
		"Traceback (most recent call last):\n  File \"train.py\", line 3\n    raise "
		"ValueError('Broken pipe')\nValueError: bad\n",
		BLAMES_ITSELF },
	{ "a traceback alone, of a peer", NULL,
		"Traceback (most recent call last):\n  File \"train.py\", line 3\n    f()\n"
		"RuntimeError: NCCL error\nncclRemoteError: A call failed\n",
		BLAMES_A_PEER },
	{ "a traceback alone, of Ctrl-C", NULL,
		"Traceback (most recent call last):\n  File \"t.py\"\nKeyboardInterrupt\n",
		BLAMES_NOBODY },
	{ "a traceback that is cut", NULL, "Traceback (most recent call last):\n  File \"t.py\"\n",
		BLAMES_ITSELF },
};

static void test_blames(void **state)
{
	const struct row *row = *state;

	assert_int_equal(blames_of(row->message, row->traceback, NULL, NULL), row->blames);
}

/* What Python writes behind the last line of source, in a collective and elsewhere. */
#define AT_WORK \
	"  File \"train.py\", line 12, in <module>\n    dist.all_reduce(t)\n" \
	"  File \"/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line 4181, " \
	"in all_reduce\n    work.wait()\n"
#define AT_HOME "  File \"train.py\", line 10, in <module>\n    pour()\n    ^^^^^^\n"
#define BEGIN   "Traceback (most recent call last):\n"
#define GLOO \
	"RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection " \
	"closed by peer [127.0.0.1]:11164. This is typically caused by a remote worker crashing.\n"
#define NCCL \
	"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/" \
	"ProcessGroupNCCL.cpp:1275, internal error, NCCL version 2.14.3\nncclInternalError: " \
	"Internal check failed.\nLast error:\nNet : Connection closed by remote peer host<50260>\n"
#define ABORT_BY \
	"terminate called after throwing an instance of 'c10::DistBackendError'\n" \
	"  what():  [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread " \
	"terminated with exception: "
#define TIMED_OUT \
	"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, " \
	"OpType=ALLREDUCE) ran for 600012 milliseconds before timing out.\n"
#define FRAMES \
	"Exception raised from checkTimeout at ProcessGroupNCCL.cpp:632 (most recent call first):\n" \
	"frame #0: c10::Error::Error(std::string) + 0x57 (0x7f in /lib/libc10.so)\n" \
	"frame #1: <unknown function> + 0xd3e95 (0x7f in /lib/libstdc++.so.6)\n"
#define STEPS "step 1\nstep 2\nstep 3\nstep 4\nstep 5\nstep 6\nstep 7\nstep 8\nstep 9\n"
#define STORE_WARNING \
	"[rank1]:[W1121 22:36:22.797168579 TCPStore.cpp:138] [c10d] recvValueWithTimeout failed on " \
	"SocketImpl(fd=4, remote=[::ffff:127.0.0.1]:29872): Failed to recv, got 0 bytes. Connection " \
	"was likely closed. Did the remote server shutdown or crash?\n"
#define MONITORED "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms\n"
#define CHAINED   "The above exception was the direct cause of the following exception:\n\n"
#define HANDLING  "During handling of the above exception, another exception occurred:\n\n"
#define EXIT(code) \
	{ \
		ENDED_EXIT, (code), false \
	}
#define SIGNAL(signal) \
	{ \
		ENDED_SIGNAL, (signal), false \
	}

static const struct lines_row {
	const char *says;
	struct ending end;
	const char *lines;
	enum blames blames;
} lines_rows[] = {
	{ "not known", EXIT(1), NULL, BLAMES_NOBODY },
	{ "nothing written", EXIT(1), "", BLAMES_NOBODY },
	{ "a job's usual lines", EXIT(1), STEPS, BLAMES_NOBODY },
	{ "a worker that ended with 0", EXIT(0), BEGIN AT_WORK GLOO, BLAMES_NOBODY },
	{ "a worker that did not start", { ENDED_UNSTARTED, ENOENT, false }, BEGIN AT_WORK GLOO,
		BLAMES_NOBODY },

	{ "an exception of its own", EXIT(1), STEPS BEGIN AT_HOME "ValueError: empty\n",
		BLAMES_ITSELF },
	{ "with torch's marks", EXIT(1),
		"[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t.py\", line 3\n"
		"[rank1]:     pour()\n[rank1]: ValueError: the teapot is empty\n",
		BLAMES_ITSELF },
	{ "without a message", EXIT(1), BEGIN AT_HOME "AssertionError\n", BLAMES_ITSELF },
	{ "its begin is cut off", EXIT(1), "n main\n" AT_HOME "ValueError: empty\n",
		BLAMES_ITSELF },
	{ "a syntax error has no traceback", EXIT(1),
		"  File \"t.py\", line 3\n    pour(\n        ^\nSyntaxError: '(' was never closed\n",
		BLAMES_ITSELF },
	{ "whose end the store's warning follows", EXIT(1),
		BEGIN AT_HOME "ValueError: empty\n" STORE_WARNING, BLAMES_ITSELF },
	{ "and that of a thread", EXIT(1),
		BEGIN AT_HOME
		"ValueError: empty\nException in thread Thread-3 (pump):\n" BEGIN AT_WORK GLOO,
		BLAMES_ITSELF },
	{ "and one that a destructor ignores", EXIT(1),
		BEGIN AT_HOME
		"ValueError: empty\nException ignored in: <function X.__del__>\n" BEGIN AT_WORK
			GLOO,
		BLAMES_ITSELF },
	{ "after a peer's that it survived", EXIT(1),
		BEGIN AT_WORK GLOO STEPS BEGIN AT_HOME "ValueError: empty\n", BLAMES_ITSELF },
	{ "while it handled a lost peer's", EXIT(1),
		BEGIN AT_WORK GLOO "\n" HANDLING BEGIN AT_HOME "KeyError: 'x'\n", BLAMES_A_PEER },
	{ "raised from a time-out", EXIT(1),
		BEGIN AT_WORK MONITORED "\n" CHAINED BEGIN AT_HOME "ValueError: no step\n",
		BLAMES_A_WAIT },
	{ "over another one, with torch's marks", EXIT(1),
		"[rank0]: " BEGIN AT_WORK "[rank0]: " MONITORED "\n[rank0]: " CHAINED
		"[rank0]: " BEGIN AT_HOME "[rank0]: KeyError: 'x'\n\n[rank0]: " HANDLING
		"[rank0]: " BEGIN AT_HOME "[rank0]: ValueError: no step\n",
		BLAMES_A_WAIT },
	{ "raised from one of its own", EXIT(1),
		BEGIN AT_HOME "KeyError: 'x'\n\n" CHAINED BEGIN AT_HOME "ValueError: no step\n",
		BLAMES_ITSELF },
	{ "Ctrl-C while it handled a time-out", EXIT(1),
		BEGIN AT_WORK MONITORED "\n" HANDLING BEGIN AT_HOME "KeyboardInterrupt\n",
		BLAMES_NOBODY },
	{ "after a time-out that it survived", EXIT(1),
		BEGIN AT_WORK MONITORED STEPS BEGIN AT_HOME "ValueError: no step\n",
		BLAMES_ITSELF },
	{ "a thread's, chained to another one of it", EXIT(1),
		BEGIN AT_HOME
		"ValueError: empty\nException in thread Thread-3 (pump):\n" BEGIN AT_WORK GLOO
		"\n" HANDLING BEGIN AT_WORK GLOO,
		BLAMES_ITSELF },
	{ "clients of another kind", EXIT(1), BEGIN AT_HOME "ValueError: only 3 clients joined\n",
		BLAMES_ITSELF },
	{ "another library's barrier", EXIT(1), BEGIN AT_HOME "zk.LockTimeout: Barrier timed out\n",
		BLAMES_ITSELF },
	{ "of another process of it, which it tells", EXIT(1),
		BEGIN AT_HOME "torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
			      "-- Process 1 terminated with the following error:\n" BEGIN AT_HOME
			      "ValueError: empty\n",
		BLAMES_ITSELF },
	{ "CUDA out of memory", EXIT(1),
		BEGIN AT_WORK
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
		BLAMES_ITSELF },
	{ "an exception after which it went on for long", EXIT(1),
		BEGIN AT_HOME "ValueError: empty\n" STEPS STEPS, BLAMES_NOBODY },
	{ "lines that only look like one", EXIT(1), "  indented\nstep: 3\n", BLAMES_NOBODY },
	{ "a name with a blank is none", EXIT(1), "  File \"x\"\nnot an exception: 3\n",
		BLAMES_NOBODY },

	{ "gloo: the peer has gone", EXIT(1), STEPS BEGIN AT_WORK GLOO, BLAMES_A_PEER },
	{ "with torch's marks", EXIT(1),
		"[rank0]: Traceback (most recent call last):\n[rank0]:   File \"t.py\", line 12\n"
		"[rank0]:     dist.all_reduce(t)\n[rank0]: " GLOO,
		BLAMES_A_PEER },
	{ "NCCL: in the fourth line of its message", EXIT(1), BEGIN AT_WORK NCCL, BLAMES_A_PEER },
	{ "the store: behind C++'s frames", EXIT(1),
		STORE_WARNING FRAMES BEGIN AT_HOME
		"torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was "
		"likely closed. Did the remote server shutdown or crash?\n",
		BLAMES_A_PEER },
	{ "gloo: reset", EXIT(1),
		BEGIN AT_HOME "RuntimeError: [gloo/transport/tcp/pair.cc:589] Read error "
			      "[192.168.70.92]:25266: Connection reset by peer\n",
		BLAMES_A_PEER },
	{ "torch 1.13's store", EXIT(1), BEGIN AT_WORK "RuntimeError: Broken pipe\n",
		BLAMES_A_PEER },
	{ "the same words in a program's own code", EXIT(1),
		BEGIN AT_HOME "RuntimeError: Broken pipe\n", BLAMES_NOBODY },
	{ "a data loader's socket", EXIT(1),
		BEGIN AT_HOME "ConnectionResetError: [Errno 104] Connection reset by peer\n",
		BLAMES_ITSELF },
	{ "the other exit code of an abort", EXIT(134), BEGIN AT_WORK GLOO, BLAMES_A_PEER },

	{ "a log's line about a peer, long before", EXIT(1),
		"WARNING gloo: Connection closed by peer\n" STEPS, BLAMES_NOBODY },
	{ "a log's line about some peer, at last", EXIT(1),
		STEPS "WARNING retrying: Connection reset by peer\n", BLAMES_NOBODY },
	{ "torch's warning at last", EXIT(1), STEPS STORE_WARNING, BLAMES_NOBODY },
	{ "NCCL's words at last, of a program without Python", EXIT(1),
		STEPS "Test NCCL failure common.cu:1005 'remote process exited or there was a "
		      "network error'\n .. pid 7: Test failure all_reduce.cu:99\n",
		BLAMES_A_PEER },
	{ "the same, before others", EXIT(1),
		"Test NCCL failure common.cu:1005 'remote process exited or there was a network "
		"error'\n" STEPS,
		BLAMES_NOBODY },
	{ "torch's error at last", SIGNAL(SIGABRT),
		"[rank1]:[E1121 22:36:22.7 ProcessGroupNCCL.cpp:629] " TIMED_OUT, BLAMES_A_WAIT },

	{ "torch's error at last, of its own GPU", SIGNAL(SIGABRT),
		"[rank1]:[E1121 22:36:22.7 ProcessGroupNCCL.cpp:629] NCCL watchdog thread "
		"terminated with exception: CUDA error: unspecified launch failure\n",
		BLAMES_NOBODY },

	{ "the watchdog's abort", SIGNAL(SIGABRT), STEPS ABORT_BY TIMED_OUT FRAMES, BLAMES_A_WAIT },
	{ "an abort by its own GPU's error", SIGNAL(SIGABRT),
		ABORT_BY "CUDA error: an illegal memory access was encountered\n" FRAMES,
		BLAMES_ITSELF },
	{ "an abort of another library", SIGNAL(SIGABRT),
		"terminate called after throwing an instance of 'std::bad_alloc'\n"
		"  what():  std::bad_alloc\n",
		BLAMES_ITSELF },
	{ "an abort without an exception", SIGNAL(SIGABRT),
		"terminate called without an active exception\n", BLAMES_NOBODY },
	{ "both of a peer", SIGNAL(SIGABRT), BEGIN AT_WORK NCCL ABORT_BY TIMED_OUT, BLAMES_A_WAIT },
	{ "its own exception, and the watchdog's abort when its end took long", SIGNAL(SIGABRT),
		BEGIN AT_HOME "ValueError: empty\n" ABORT_BY TIMED_OUT, BLAMES_NOBODY },

	{ "a signal is nobody's word", SIGNAL(SIGSEGV), BEGIN AT_WORK GLOO, BLAMES_NOBODY },
	{ "nor is the kernel's", SIGNAL(SIGKILL), BEGIN AT_WORK GLOO, BLAMES_NOBODY },
	{ "nor as a shell tells it", EXIT(139), BEGIN AT_WORK GLOO, BLAMES_NOBODY },
	{ "Ctrl-C", EXIT(1), BEGIN AT_WORK "KeyboardInterrupt\n", BLAMES_NOBODY },
	{ "a signal as torch tells it", EXIT(1),
		BEGIN AT_HOME "torch.distributed.elastic.multiprocessing.api.SignalException: "
			      "Process 12 got signal: 15\n",
		BLAMES_NOBODY },
	{ "a data loader that was ended", EXIT(1),
		BEGIN AT_HOME "RuntimeError: DataLoader worker (pid 3) is killed by signal: "
			      "Terminated. \n",
		BLAMES_NOBODY },
	{ "bytes of any kind", EXIT(1), "\xff\x1b[rank\n[rank1\n[rank1]:\n\r\n\n  File \"\n\x80:\n",
		BLAMES_NOBODY },
};

static void test_lines(void **state)
{
	const struct lines_row *row = *state;

	assert_int_equal(blames_of_lines(&row->end, row->lines, NULL, NULL), row->blames);
}

/* Of more than 8 KiB the end counts, also where it is one line. */
static void test_long_lines(void **state)
{
	static char lines[3 * LAST_LINES_BYTES];
	static const char end[] = "\n" BEGIN AT_WORK GLOO;
	const struct ending failed = EXIT(1);

	(void)state;
	memset(lines, 'x', sizeof lines - 1);
	assert_int_equal(blames_of_lines(&failed, lines, NULL, NULL), BLAMES_NOBODY);
	memcpy(lines, end, sizeof end - 1);
	assert_int_equal(blames_of_lines(&failed, lines, NULL, NULL), BLAMES_NOBODY);
	memcpy(lines + sizeof lines - sizeof end, end, sizeof end);
	assert_int_equal(blames_of_lines(&failed, lines, NULL, NULL), BLAMES_A_PEER);
	memset(lines, '\n', sizeof lines - 1);
	assert_int_equal(blames_of_lines(&failed, lines, NULL, NULL), BLAMES_NOBODY);
}

/* The output of a script that starts ranks of its own: what one of them died of first. */
static const struct own_row {
	const char *says, *lines, *message; /* NULL: none */
} own_rows[] = {
	{ "another rank's lost peer behind it",
		STEPS BEGIN AT_HOME "ValueError: empty\n" BEGIN AT_WORK GLOO, "ValueError: empty" },
	{ "with torch's marks",
		"[rank1]: " BEGIN "[rank1]:   File \"t.py\", line 3\n[rank1]:     pour()\n"
		"[rank1]: ValueError: empty\n[rank0]: " BEGIN
		"[rank0]:   File \"t.py\", line 12\n[rank0]:     dist.all_reduce(t)\n[rank0]: " GLOO,
		"ValueError: empty" },
	{ "of several", BEGIN AT_HOME "ValueError: empty\n" BEGIN AT_WORK GLOO BEGIN AT_WORK GLOO,
		"ValueError: empty" },
	{ "the first of two",
		BEGIN AT_HOME "ValueError: empty\n" BEGIN AT_HOME
			      "KeyError: 'x'\n" BEGIN AT_WORK GLOO,
		"ValueError: empty" },
	{ "raised from another",
		BEGIN AT_HOME "OSError: no tea\n\nThe above exception was the direct cause of the "
			      "following exception:\n\n" BEGIN AT_HOME
			      "ValueError: empty\n" BEGIN AT_WORK GLOO,
		"ValueError: empty" },
	{ "but not from a lost peer",
		BEGIN AT_WORK GLOO "\n" CHAINED BEGIN AT_HOME
				   "ValueError: empty\n" BEGIN AT_WORK GLOO,
		NULL },
	{ "another's first, then it", BEGIN AT_WORK GLOO BEGIN AT_HOME "ValueError: empty\n",
		"ValueError: empty" },
	{ "none but lost peers", BEGIN AT_WORK GLOO BEGIN AT_WORK GLOO, NULL },
	{ "one that was caught, long before",
		BEGIN AT_HOME "ValueError: empty\n" STEPS STEPS BEGIN AT_WORK GLOO, NULL },
	{ "one that was caught, long before the end",
		BEGIN AT_HOME "ValueError: empty\n" STEPS STEPS, NULL },
	{ "Ctrl-C", BEGIN AT_HOME "KeyboardInterrupt\n" BEGIN AT_WORK GLOO, NULL },
	{ "no words", "", NULL },
};

static void test_own(void **state)
{
	const struct own_row *row = *state;
	struct error_record record;
	struct arena arena = { 0 };

	assert_int_equal(blames_find_own(row->lines, &arena, &record), row->message != NULL);
	if (row->message) {
		assert_string_equal(record.message, row->message);
		assert_non_null(strstr(record.traceback, row->message));
		assert_int_equal(strncmp(record.traceback, BEGIN, strlen(BEGIN)), 0);
	}
	arena_done(&arena);
}

TESTS(blames)
{
	static struct suite s;

	SUITE_ROWS(&s, test_blames, rows);
	SUITE_ROWS(&s, test_lines, lines_rows);
	SUITE_ROWS(&s, test_own, own_rows);
	suite_add(&s, "more than 8 KiB", test_long_lines, NULL, NULL);
	return suite_run(&s);
}
