/* test_blames.c - whether a worker's own words tell of itself or of a lost peer. The words are
 * those of real jobs: see blames.c for where they were seen. */
#include "tests/unit/unit.h"

#include "daemon/cluster/verdict.h"

static const char in_torch[] =
	"Traceback (most recent call last):\n"
	"  File \"train.py\", line 9, in main\n"
	"    dist.barrier()\n"
	"  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 2\n"
	"    work.wait()\n";

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
		NULL, BLAMES_A_PEER },
	{ "gloo: after another failure", "RuntimeError: Application timeout caused pair closure",
		NULL, BLAMES_A_PEER },
	{ "gloo: monitored_barrier",
		"RuntimeError: Rank 0: Rank 2 failed to pass monitoredBarrier in 30000 ms", NULL,
		BLAMES_A_PEER },

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
		NULL, BLAMES_A_PEER },
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
	{ "the store: a time-out", "RuntimeError: Socket Timeout", NULL, BLAMES_A_PEER },
	{ "the store: a key that nobody wrote",
		"torch.distributed.DistBackendError: [4] is setting up NCCL communicator and "
		"retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
		"store->get('0') got error: Socket Timeout",
		NULL, BLAMES_A_PEER },
	{ "the store: workers that did not come",
		"torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. "
		"1/3 clients joined.",
		NULL, BLAMES_A_PEER },
	{ "the store: the barrier on it",
		"RuntimeError: Timed out initializing process group in store based barrier on rank: "
		"2, for key: store_based_barrier_key:1",
		NULL, BLAMES_A_PEER },

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

	assert_int_equal(blames_of(row->message, row->traceback), row->blames);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_blames, rows);
	return suite_run(&s);
}
