/* blames.c - see verdict.h */
#include "daemon/job/verdict.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/job/evidence.h"
#include "daemon/job/waits.h"

/* What torch, NCCL and gloo say where another process has gone, or does not answer any more. Each
 * was seen in the reports named beside it. */
static const char *const of_peers[] = {
	/* gloo's pair.cc (pytorch#75512, pytorch#61670) */
	"Connection closed by peer",
	/* NCCL 2.13 and later (nccl#2076, nccl#1141), before (nccl#795, nccl#1514), and where the
	 * peer does not answer over IB (stanford_alpaca#207) */
	"remote process exited or there was a network error",
	"ncclRemoteError",
	"Connection closed by remote peer",
	"Got completion from peer",
	/* torch's watchdog (LlamaFactory#6269) */
	"NCCL watchdog thread terminated with exception",
	/* torch's store whose server has gone (pytorch#153586) */
	"to recv, got 0 bytes",
	"Connection was likely closed",
	"recvValue failed",
	"sendBytes failed",
	"but store->get(",
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

static bool begins(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

/* NCCL calls every failing system call by one name: a socket's is a peer's, malloc's is not, and
 * "(e.g. socket, malloc)" is part of the name's own explanation. */
static bool is_failed_socket(const char *text)
{
	const char *last = strstr(text, "Last error:");

	return strstr(text, "ncclSystemError") && last &&
		(strstr(last, "socket") || strstr(last, "Socket"));
}

/* Beside a sentence in a worker's words: it is one of torch's, NCCL's or gloo's, and not of another
 * library that the training talks through. */
static const char *const of_torch[] = { "torch/distributed", "torch.distributed", "c10d", "NCCL",
	"nccl", "gloo" };

/* Whether the text has this name, but not as a part of torch.distributed.elastic's: @record wraps
 * the whole program, and is in all of its tracebacks. */
static bool has_name_of(const char *text, const char *name)
{
	for (const char *at = text; (at = strstr(at, name));) {
		at += strlen(name);
		if ((*at != '.' && *at != '/') || !begins(at + 1, "elastic"))
			return true;
	}
	return false;
}

static bool is_of_torch(const char *text)
{
	for (size_t i = 0; i < sizeof of_torch / sizeof *of_torch; i++)
		if (has_name_of(text, of_torch[i]))
			return true;
	return false;
}

/* Python's sockets say "[Errno 104] Connection reset by peer": of a data loader, of a server that
 * the training reads from. Only with torch's in the traceback a peer of the job is meant. */
static bool tells_of_peer(const char *text, const char *traceback)
{
	if (HAS(text, of_peers) || is_failed_socket(text))
		return true;
	return HAS(text, of_sockets) &&
		(!strstr(text, "[Errno ") || (traceback && has_name_of(traceback, of_torch[0])));
}

/* A download times out in the same words, which count only where nothing shows that it was one. */
static bool tells_of_wait(const char *text, const char *traceback)
{
	return waits_says_clearly(text) ||
		(waits_says(text) && (!traceback || is_of_torch(text) || is_of_torch(traceback)));
}

static enum blames blames_told(const char *text, const char *traceback)
{
	if (tells_of_wait(text, traceback))
		return BLAMES_A_WAIT;
	return tells_of_peer(text, traceback) ? BLAMES_A_PEER : BLAMES_ITSELF;
}

/* The name of the exception, which comes first: "ValueError: ...", with the modules that it
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

/* Returns b, and reads the ranks that the worker waited for. */
static enum blames blames_with_names(enum blames b, const char *message, const char *lines,
	const struct speaker *by, struct waited *ret)
{
	if (b == BLAMES_A_WAIT && by)
		waits_read(message, lines ? lines : "", by->rank, by->master_port, ret);
	return b;
}

/* What a watchdog may say, too, of a failure of this worker's own GPU; and what is a consequence of
 * a signal to a data loader. */
static const char *const of_gpus[] = { "CUDA error", "unhandled cuda error", "Cuda failure" };
static const char killed_loader[] = "is killed by signal: Terminated";

enum { FINAL_LINES = 16, MESSAGE_LINES = 8, MUTE_LINES = 3 };

/* Stack frames of C++ are long, and say nothing to us. */
static bool is_frame(const char *line)
{
	return begins(line, "frame #") || begins(line, "Exception raised from ") ||
		begins(line, "<omitting python frames>");
}

/* "[rank3]: " is what torch puts before each line of an exception. */
static const char *behind_rank(const char *line)
{
	const char *at = line + strlen("[rank");

	if (!begins(line, "[rank"))
		return line;
	at += strspn(at, "0123456789");
	if (!begins(at, "]:"))
		return line;
	return at + (at[2] == ' ' ? 3 : 2);
}

/* The lines that may tell, each with its '\n'; of more than there is room for the last ones. */
static void copy_telling(const char *lines, char ret[LAST_LINES_BYTES + 2])
{
	size_t len = strlen(lines), used = 0;
	const char *at = lines + (len > LAST_LINES_BYTES ? len - LAST_LINES_BYTES : 0);

	for (size_t n; *at; at += n + (at[n] == '\n')) {
		const char *line = behind_rank(at);

		n = strcspn(at, "\n");
		len = n - (size_t)(line - at);
		if (len == 0 || *line == '\r' || is_frame(line))
			continue;
		memcpy(ret + used, line, len);
		used += len;
		ret[used++] = '\n';
	}
	ret[used] = '\0';
}

static char *next_line(char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

static size_t count_lines(char *text)
{
	size_t count = 0;

	for (; *text; text = next_line(text))
		count++;
	return count;
}

/* "ValueError: ...", "KeyboardInterrupt", "torch.distributed.DistNetworkError: ..." */
static bool is_exception(const char *line)
{
	size_t len = strcspn(line, ":\n");
	size_t name =
		strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");

	return len > 0 && name == len && !(*line >= '0' && *line <= '9');
}

/* Python's sentence between an exception and the one that was raised from it, or while it was
 * handled. */
static bool is_chain(const char *line)
{
	return begins(line, "The above exception was the direct cause") ||
		begins(line, "During handling of the above exception");
}

/* The last exceptions that a worker wrote. */
struct finals {
	char *python, *traceback; /* NULL: none */
	char *native;             /* of C++, which ends in SIGABRT */
};

/* Python writes one after lines of source; what a thread or a destructor raises ends no process. */
static void find_finals(char *text, struct finals *ret)
{
	bool in_source = false, aside = false, was_aside = false;
	char *block = text;

	for (char *line = text; *line; line = next_line(line)) {
		if (*line == ' ' || *line == '\t') {
			in_source = in_source || begins(line, "  File \"");
			continue;
		}
		if (begins(line, "Traceback (")) {
			block = line;
		} else if (begins(line, "Exception in thread ") ||
			begins(line, "Exception ignored in")) {
			aside = true;
		} else if (is_chain(line)) {
			aside = was_aside;
		} else if (in_source && is_exception(line)) {
			if (!aside)
				*ret = (struct finals){ line, block, NULL };
			was_aside = aside;
			aside = false;
		} else if (begins(line, "terminate called after throwing")) {
			ret->native = line;
		}
		in_source = false;
	}
}

/* Finds the exception that the last one is chained to, and ends the text behind it. */
static bool find_chained(char *text, struct finals *f)
{
	char *link = f->traceback;

	if (!link || link == text)
		return false;
	for (link--; link > text && link[-1] != '\n';)
		link--;
	if (!is_chain(link))
		return false;
	*link = '\0';
	*f = (struct finals){ 0 };
	find_finals(text, f);
	return f->python != NULL;
}

/* Ends an exception's message, which may have several lines, before what others write after it. */
static void cut_message(char *message)
{
	char *line = next_line(message);

	for (int i = 1; i < MESSAGE_LINES && *line; i++, line = next_line(line))
		if (*line == '[' || begins(line, "Traceback (") || begins(line, "Exception ") ||
			begins(line, "terminate called") || is_chain(line))
			break;
	*line = '\0';
}

static bool is_end_asked_for(const char *message)
{
	for (size_t i = 0; i < sizeof of_nobody / sizeof *of_nobody; i++)
		if (is_named(message, of_nobody[i]))
			return true;
	return false;
}

static bool is_of_nobody(const char *message)
{
	return is_end_asked_for(message) || strstr(message, killed_loader);
}

static enum blames blames_of_message(char *message, const char *context)
{
	enum blames told;

	cut_message(message);
	if (is_of_nobody(message))
		return BLAMES_NOBODY;
	told = HAS(message, of_gpus) ? BLAMES_ITSELF : blames_told(message, context);
	if (told == BLAMES_ITSELF || waits_says_clearly(message))
		return told;
	return is_of_torch(message) || is_of_torch(context) ? told : BLAMES_NOBODY;
}

/* What a program raises where it has caught a victim's exception is the victim's, too: f becomes
 * that one. */
static enum blames blames_of_chain(char *text, enum blames last, struct finals *f)
{
	struct finals link = *f;
	enum blames told = last;

	while (told == BLAMES_ITSELF && find_chained(text, &link))
		told = blames_of_message(link.python, link.traceback);
	if (told < BLAMES_A_PEER || told == last)
		return last;
	*f = (struct finals){ link.python, link.traceback, f->native };
	return told;
}

enum blames blames_of(
	const char *message, const char *traceback, const struct speaker *by, struct waited *ret)
{
	bool has_message = message && *message;
	char text[LAST_LINES_BYTES + 2];
	struct finals f = { 0 };
	enum blames told;
	const char *said;

	if (!has_message && !(traceback && *traceback))
		return BLAMES_NOBODY;
	said = has_message ? message : exception_of(traceback);
	if (is_end_asked_for(said))
		return BLAMES_NOBODY;
	told = blames_told(said, traceback);
	if (told == BLAMES_ITSELF && traceback) {
		copy_telling(traceback, text);
		find_finals(text, &f);
		told = blames_of_chain(text, told, &f);
		if (told != BLAMES_ITSELF)
			return blames_with_names(told, f.python, f.traceback, by, ret);
	}
	return blames_with_names(told, said, traceback, by, ret);
}

/* Without an exception only what the very last lines say of a peer counts; a warning is none, as
 * healthy jobs have them when they end. */
static enum blames blames_of_end(char *text, const struct speaker *by, struct waited *ret)
{
	for (size_t skipped = count_lines(text); skipped > MUTE_LINES; skipped--)
		text = next_line(text);
	for (char *next; *text; text = next) {
		next = next_line(text);
		next[-1] = '\0';
		if (begins(text, "[W") || begins(text, "[I") || HAS(text, of_gpus))
			continue;
		if (waits_says(text) && (waits_says_clearly(text) || is_of_torch(text)))
			return blames_with_names(BLAMES_A_WAIT, text, NULL, by, ret);
		if (HAS(text, of_peers) && is_of_torch(text))
			return BLAMES_A_PEER;
	}
	return BLAMES_NOBODY;
}

/* Where Python's exception and the one that aborted it say different things, nobody can tell: one's
 * own may have been caught and shown, and the other may come of how long its end took. */
static enum blames blames_of_finals(
	char *text, struct finals *f, const struct speaker *by, struct waited *ret)
{
	enum blames native = f->native ? blames_of_message(f->native, f->native) : BLAMES_NOBODY;
	enum blames python = f->python ? blames_of_message(f->python, f->traceback) : BLAMES_NOBODY;

	python = blames_of_chain(text, python, f);
	if (f->python && python == BLAMES_A_WAIT && (!f->native || native >= BLAMES_A_PEER))
		return blames_with_names(python, f->python, f->traceback, by, ret);
	if (f->native && native == BLAMES_A_WAIT && (!f->python || python >= BLAMES_A_PEER))
		return blames_with_names(native, f->native, f->native, by, ret);
	if (!f->python)
		return native;
	return f->native && native != python ? BLAMES_NOBODY : python;
}

enum blames blames_of_lines(
	const struct ending *end, const char *lines, const struct speaker *by, struct waited *ret)
{
	enum { SIGNAL_CODES = 128, ABORTED = SIGNAL_CODES + SIGABRT };
	char text[LAST_LINES_BYTES + 2];
	int code = ending_exit_code(end);
	struct finals f = { 0 };
	char *first;

	/* a signal has an author that does not write into a worker's output; abort(3) has not */
	if (!lines || ending_is_unstarted(end) || code == 0 ||
		(code > SIGNAL_CODES && code != ABORTED))
		return BLAMES_NOBODY;
	copy_telling(lines, text);
	find_finals(text, &f);
	first = f.python ? f.python : f.native;
	if (!first)
		return blames_of_end(text, by, ret);
	return count_lines(first) <= FINAL_LINES ? blames_of_finals(text, &f, by, ret) :
						   BLAMES_NOBODY;
}

/* --- of several ranks in one output --- */

enum { RAISED_MAX = 64 };

/* An exception that ended a process, or was the cause of one that did. */
struct raised {
	char *block, *message; /* its traceback, and behind that */
	char *rest;            /* what follows its first line */
};

static size_t find_raised(char *text, struct raised ret[RAISED_MAX])
{
	struct finals f = { 0 };
	size_t count = 0;

	for (char *rest = text; *rest && count < RAISED_MAX;) {
		char *end = next_line(rest), kept = *end;

		*end = '\0';
		f = (struct finals){ 0 };
		find_finals(text, &f);
		*end = kept;
		if (f.python && (count == 0 || f.python != ret[count - 1].message))
			ret[count++] =
				(struct raised){ f.traceback, f.python, next_line(f.python) };
		rest = end;
	}
	return count;
}

static size_t lines_between(char *from, const char *to)
{
	size_t count = 0;

	for (; from < to; from = next_line(from))
		count++;
	return count;
}

/* Another exception of the same process was raised from it, or while it was handled. */
static bool is_chained(const struct raised *r, const char *next)
{
	for (char *line = r->rest; *line && line < next; line = next_line(line))
		if (is_chain(line))
			return true;
	return false;
}

/* Cuts the message, which does not come back. */
static bool is_of_itself(const struct raised *r)
{
	char *end = r->rest, kept;
	enum blames told;

	for (int i = 1; i < MESSAGE_LINES && *end && *end != '[' && !begins(end, "Traceback (");
		i++)
		end = next_line(end);
	kept = *end;
	*end = '\0';
	told = is_of_nobody(r->message) ? BLAMES_NOBODY : blames_told(r->message, r->block);
	*end = kept;
	return told == BLAMES_ITSELF;
}

/* The exception that it was raised from may be a victim's. */
static bool is_own(const struct raised *all, size_t i)
{
	bool own = is_of_itself(&all[i]);

	for (; own && i > 0 && is_chained(&all[i - 1], all[i].block); i--)
		own = is_of_itself(&all[i - 1]);
	return own;
}

bool blames_find_own(const char *lines, struct arena *arena, struct error_record *ret)
{
	char text[LAST_LINES_BYTES + 2];
	struct raised all[RAISED_MAX];
	const struct raised *own = NULL;
	size_t count;
	char *end;

	copy_telling(lines, text);
	count = find_raised(text, all);
	end = text + strlen(text);
	for (size_t i = count; i > 0 && lines_between(all[i - 1].rest, end) <= FINAL_LINES; i--) {
		const struct raised *r = &all[i - 1];
		const char *next = i < count ? all[i].block : end;

		if (!is_chained(r, next) && is_own(all, i - 1))
			own = r;
		end = r->block;
	}
	if (!own)
		return false;
	end = own->rest;
	*ret = (struct error_record){
		.message = arena_strndup(arena, own->message, strcspn(own->message, "\n")),
		.traceback = arena_strndup(arena, own->block, (size_t)(end - own->block)),
	};
	return ret->message && ret->traceback;
}
