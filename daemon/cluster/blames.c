/* blames.c - see verdict.h */
#include "daemon/cluster/verdict.h"

#include <stddef.h>
#include <string.h>

/* What torch, NCCL and gloo say where another process has gone, or does not answer any more. Each
 * was seen in the reports named beside it. */
static const char *const of_peers[] = {
	/* gloo's pair.cc (pytorch#75512, pytorch#61670) */
	"Connection closed by peer",
	/* gloo, after another pair of the process has failed (BCNet#53); its unbound_buffer.cc
	 * (gloo#511); its monitored_barrier (pytorch#83289) */
	"Application timeout caused pair closure",
	"for recv operation to complete",
	"for send operation to complete",
	"failed to pass monitoredBarrier",
	/* NCCL 2.13 and later (nccl#2076, nccl#1141), before (nccl#795, nccl#1514), and where the
	 * peer does not answer over IB (stanford_alpaca#207) */
	"remote process exited or there was a network error",
	"ncclRemoteError",
	"Connection closed by remote peer",
	"Got completion from peer",
	/* torch's watchdog (pytorch#118369, LlamaFactory#6269) */
	"Watchdog caught collective operation timeout",
	"NCCL watchdog thread terminated with exception",
	/* torch's store whose server has gone (pytorch#153586), or that a peer never wrote to
	 * (LlamaFactory#3698, pytorch#82091) or never came to (OpenRLHF#1040, pytorch-distributed
	 * of tczhangzhi#18) */
	"to recv, got 0 bytes",
	"Connection was likely closed",
	"recvValue failed",
	"sendBytes failed",
	"but store->get(",
	"Socket Timeout",
	"Timeout waiting for key",
	"wait timeout after",
	"clients joined",
	"in store based barrier",
};

/* errno's words, which every socket has: gloo's "Read error [192.168.70.92]:25266: Connection reset
 * by peer" (RVC-WebUI#1882), NCCL's "Call to recv from ... failed : Broken pipe" (nccl#795), torch
 * 1.13's store, whose whole message they are. */
static const char *const of_sockets[] = {
	"Connection reset by peer",
	"Broken pipe",
	"Connection refused",
};

/* Ends that somebody asked for, which torch's and Python's handlers turn into exceptions. */
static const char *const of_nobody[] = { "KeyboardInterrupt", "SignalException", "SystemExit" };

#define HAS(text, list) has_any((text), (list), sizeof(list) / sizeof *(list))

static bool has_any(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(text, list[i]))
			return true;
	return false;
}

/* NCCL calls every failing system call by one name: a socket's is a peer's, malloc's is not, and
 * "(e.g. socket, malloc)" is part of the name's own explanation. */
static bool is_failed_socket(const char *text)
{
	const char *last = strstr(text, "Last error:");

	return strstr(text, "ncclSystemError") && last &&
		(strstr(last, "socket") || strstr(last, "Socket"));
}

/* Python's sockets say "[Errno 104] Connection reset by peer": of a data loader, of a server that
 * the training reads from. Only with torch's in the traceback a peer of the job is meant. */
static bool tells_of_peer(const char *text, const char *traceback)
{
	if (HAS(text, of_peers) || is_failed_socket(text))
		return true;
	return HAS(text, of_sockets) &&
		(!strstr(text, "[Errno ") || (traceback && strstr(traceback, "torch/distributed")));
}

/* The name of the exception, which stands at the begin: "ValueError: ...", with the modules that it
 * is in, or without: "torch.distributed.elastic....SignalException: Process 12 got signal: 15". */
static bool is_named(const char *message, const char *name)
{
	size_t len = strcspn(message, ":( \n");
	size_t name_len = strlen(name);

	return len >= name_len && memcmp(message + len - name_len, name, name_len) == 0 &&
		(len == name_len || message[len - name_len - 1] == '.');
}

/* What follows the last line of source, each of which begins with blanks and may quote anything:
 * Python ends a traceback with the exception, whose message may have many lines. */
static const char *exception_of(const char *traceback)
{
	const char *ret = traceback;

	for (const char *line = traceback; *line; line += *line == '\n') {
		bool is_source = *line == ' ' || *line == '\t';

		line += strcspn(line, "\n");
		if (is_source && *line)
			ret = line + 1;
	}
	return ret;
}

enum blames blames_of(const char *message, const char *traceback)
{
	bool has_message = message && *message;
	const char *said;

	if (!has_message && !(traceback && *traceback))
		return BLAMES_NOBODY;
	said = has_message ? message : exception_of(traceback);
	for (size_t i = 0; i < sizeof of_nobody / sizeof *of_nobody; i++)
		if (is_named(said, of_nobody[i]))
			return BLAMES_NOBODY;
	return tells_of_peer(said, traceback) ? BLAMES_A_PEER : BLAMES_ITSELF;
}
