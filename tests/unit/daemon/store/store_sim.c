/* store_sim.c - see store_sim.h */
#include "tests/unit/daemon/store/store_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_tell(struct guest *to, const void *bytes, size_t len)
{
	struct sim_client *c =
		(struct sim_client *)(void *)((char *)to - offsetof(struct sim_client, guest));

	if (c->why.code == 0)
		text_add_bytes(&c->out, bytes, len);
}

void sim_init(struct sim *sim, enum store_dialect old, uint64_t memory_max)
{
	static const uint8_t secret[SIPHASH_KEY_SIZE] = "sixteen letters";

	memset(sim, 0, sizeof *sim);
	sim->budget.max = memory_max;
	keys_init(&sim->space.keys, &sim->budget, secret);
	sim->space.budget = &sim->budget;
	sim->space.tell = on_tell;
	for (size_t i = 0; i < SIM_CLIENTS; i++)
		scan_init(&sim->at[i].scan, old);
}

static void leave(struct sim *sim, struct sim_client *c)
{
	guest_leave(&sim->space.keys, &c->guest);
	bytes_done(&c->in, &sim->budget);
}

void sim_feed(struct sim *sim, unsigned client, const void *bytes, size_t len)
{
	struct sim_client *c = &sim->at[client];
	struct bytes reply = { 0 };
	struct request r;
	size_t done = 0;
	int rc = 1;

	if (c->why.code != 0 || len == 0)
		return;
	if (bytes_add(&c->in, &sim->budget, bytes, len) < 0)
		rc = failure_set(&c->why, -1, "no memory for what comes in");
	while (rc > 0) {
		rc = scan_next(&c->scan, c->in.at + done, c->in.len - done, &r, &c->why);
		if (rc <= 0)
			break;
		rc = answer(&sim->space, &c->guest, &r, &reply, &c->why) < 0 ? -1 : 1;
		if (rc > 0 && reply.len > 0)
			text_add_bytes(&c->out, (const char *)reply.at, reply.len);
		bytes_done(&reply, &sim->budget);
		done += r.len;
		sim->answered++;
	}
	bytes_drop(&c->in, done);
	if (rc < 0)
		leave(sim, c);
}

void sim_replace(struct sim *sim, unsigned client)
{
	struct sim_client *c = &sim->at[client];
	enum store_dialect old = c->scan.old;

	leave(sim, c);
	text_done(&c->out);
	*c = (struct sim_client){ 0 };
	scan_init(&c->scan, old);
}

void sim_done(struct sim *sim)
{
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		sim_replace(sim, i);
	space_clear(&sim->space);
}

static const char *const names[][20] = {
	[STORE_DIALECT_A] = { "SET", "COMPARE_SET", "GET", "ADD", "CHECK", "WAIT", "GETNUMKEYS",
		"WATCH_KEY", "DELETE_KEY", "APPEND", "MULTI_GET", "MULTI_SET", "CANCEL_WAIT" },
	[STORE_DIALECT_C] = { "SET", "COMPARE_SET", "GET", "ADD", "CHECK", "WAIT", "GETNUMKEYS",
		"DELETE_KEY", "APPEND", "MULTI_GET", "MULTI_SET", "CANCEL_WAIT" },
	[STORE_DIALECT_D] = { "VALIDATE", "SET", "COMPARE_SET", "GET", "ADD", "CHECK", "WAIT",
		"GETNUMKEYS", "DELETE_KEY", "APPEND", "MULTI_GET", "MULTI_SET", "CANCEL_WAIT",
		"PING", "QUEUE_PUSH", "QUEUE_POP", "QUEUE_LEN", "LIST_KEYS", "BARRIER" },
};

static void add(struct text *to, const void *bytes, size_t len)
{
	text_add_bytes(to, bytes, len);
}

static void add_letters(struct text *to, uint64_t count)
{
	char letters[4096];

	memset(letters, 'x', sizeof letters);
	add(to, &count, sizeof count);
	for (size_t len; count > 0; count -= len) {
		len = count < sizeof letters ? count : sizeof letters;
		add(to, letters, len);
	}
}

static void add_word(struct text *to, const char *word, size_t len)
{
	const int64_t number = len > 1 ? strtoll(word + 1, NULL, 0) : 0;
	const uint32_t small = (uint32_t)number;
	const uint8_t byte = (uint8_t)number;
	const uint64_t none = 0, length = len;

	if (len == 2 && memcmp(word, "''", 2) == 0) {
		add(to, &none, sizeof none);
	} else if (*word == '#' || *word == '@') {
		add(to, &number, sizeof number);
	} else if (*word == '%') {
		add(to, &small, sizeof small);
	} else if (*word == '$') {
		add(to, &byte, sizeof byte);
	} else if (*word == '*') {
		add_letters(to, (uint64_t)number);
	} else {
		add(to, &length, sizeof length);
		add(to, word, len);
	}
}

void wire_words(struct text *to, const char *words)
{
	while (*words) {
		size_t len = strcspn(words, " ");

		if (len > 0)
			add_word(to, words, len);
		words += len + (words[len] == ' ');
	}
}

void wire_request(struct text *to, enum store_dialect dialect, const char *request)
{
	size_t len = strcspn(request, " ");

	for (uint8_t i = 0; i < 20 && names[dialect][i]; i++)
		if (strlen(names[dialect][i]) == len &&
			memcmp(names[dialect][i], request, len) == 0) {
			add(to, &i, 1);
			wire_words(to, request + len);
			return;
		}
	fprintf(stderr, "no query in dialect %d: %s\n", (int)dialect, request);
	abort();
}
