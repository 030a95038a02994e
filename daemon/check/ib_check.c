/* ib_check.c - see ib_check.h */
#include "daemon/check/ib_check.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/natural.h"
#include "config/settings.h"
#include "daemon/check/finding.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"

enum { PORTS_MAX = 64, NAME_MAX_BYTES = 32 };

/* Of enum ib_port_state, and of its physical states. */
enum { STATE_ACTIVE = 4, PHYSICAL_DISABLED = 3 };

struct port {
	long state, physical;
	long rate; /* Gb/s */
	unsigned number;
	bool is_infiniband; /* not Ethernet */
	char device[NAME_MAX_BYTES];
	char board[NAME_MAX_BYTES];       /* cards of one kind have the same; "": it isn't known */
	char state_words[NAME_MAX_BYTES]; /* "DOWN" */
};

static const char infiniband[] = "infiniband";

/* The n-th name in a directory that is no hidden one, in order; false: there are not so many. */
static bool nth_name(const char *path, unsigned n, char ret[NAME_MAX_BYTES])
{
	struct dirent **names;
	int count = scandir(path, &names, NULL, NULL);
	bool found = false;

	if (count < 0)
		return false;
	for (int i = 0; i < count; i++) { /* selection sort: there are few */
		int least = i;

		for (int other = i + 1; other < count; other++)
			if (natural_compare(names[other]->d_name, names[least]->d_name) < 0)
				least = other;
		struct dirent *swap = names[i];
		names[i] = names[least];
		names[least] = swap;
	}
	for (int i = 0; i < count; i++) {
		if (names[i]->d_name[0] != '.' && n-- == 0 && !found) {
			found = strlen(names[i]->d_name) < NAME_MAX_BYTES;
			if (found)
				(void)snprintf(ret, NAME_MAX_BYTES, "%.*s", NAME_MAX_BYTES - 1,
					names[i]->d_name);
		}
		free(names[i]);
	}
	free(names);
	return found;
}

/* The first line of a file; "": there is none. */
static void read_line_of(const char *dir, const char *name, char ret[NAME_MAX_BYTES])
{
	char path[PATH_MAX], contents[256];

	*ret = '\0';
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
		fd_read_file(path, contents, sizeof contents) < 0)
		return;
	contents[strcspn(contents, "\n")] = '\0';
	(void)snprintf(ret, NAME_MAX_BYTES, "%.*s", NAME_MAX_BYTES - 1, contents);
}

/* state "4: ACTIVE", phys_state "5: LinkUp", rate "400 Gb/sec (4X NDR)". */
static void read_port(const char *dir, struct port *p)
{
	char line[NAME_MAX_BYTES];
	const char *words;

	read_line_of(dir, "state", line);
	p->state = strtol(line, NULL, 10);
	words = strstr(line, ": ");
	(void)snprintf(p->state_words, sizeof p->state_words, "%s", words ? words + 2 : line);
	read_line_of(dir, "phys_state", line);
	p->physical = strtol(line, NULL, 10);
	read_line_of(dir, "rate", line);
	p->rate = strtol(line, NULL, 10);
	read_line_of(dir, "link_layer", line);
	p->is_infiniband = strcmp(line, "InfiniBand") == 0;
}

static void list_path(const struct quick_input *in, char ret[PATH_MAX])
{
	(void)snprintf(ret, PATH_MAX, "%s/sys/class/infiniband", in->sys_root);
}

/* Their number; those beyond PORTS_MAX are left. */
static unsigned read_ports(const struct quick_input *in, struct port *ret)
{
	char list[PATH_MAX], device[NAME_MAX_BYTES], number[NAME_MAX_BYTES];
	unsigned count = 0;

	list_path(in, list);
	for (unsigned d = 0; nth_name(list, d, device); d++) {
		char dir[PATH_MAX + 64], ports[PATH_MAX + 96], port[PATH_MAX + 160];

		(void)snprintf(dir, sizeof dir, "%s/%s", list, device);
		(void)snprintf(ports, sizeof ports, "%s/ports", dir);
		for (unsigned i = 0; count < PORTS_MAX && nth_name(ports, i, number); i++) {
			struct port *p = &ret[count++];

			(void)snprintf(port, sizeof port, "%s/%s", ports, number);
			memcpy(p->device, device, sizeof p->device);
			p->number = (unsigned)strtoul(number, NULL, 10);
			read_line_of(dir, "board_id", p->board);
			read_port(port, p);
		}
	}
	return count;
}

bool ib_is_there(const struct quick_input *in)
{
	char list[PATH_MAX], device[NAME_MAX_BYTES];

	list_path(in, list);
	return nth_name(list, 0, device);
}

/* The rate that a port has to have: the one that is asked for, else that of the fastest port of a
 * card of its kind, which is the same card. 0: any. */
static long rate_wanted(
	const struct quick_input *in, const struct port *p, const struct port *all, unsigned count)
{
	long most = 0;

	if (!p->is_infiniband)
		return 0;
	if (settings_given(in->settings, SET_CHECK_IB_RATE))
		return (long)settings_number(in->settings, SET_CHECK_IB_RATE);
	for (unsigned i = 0; i < count && *p->board; i++)
		if (all[i].is_infiniband && all[i].state == STATE_ACTIVE &&
			strcmp(all[i].board, p->board) == 0 && all[i].rate > most)
			most = all[i].rate;
	return most;
}

/* A port without a cable is one that a node need not have: where nobody says how many there have to
 * be, that counts for InfiniBand alone, whose unused ports are switched off. */
static void judge(const struct quick_input *in, const struct port *p, const struct port *all,
	unsigned count, struct findings *f)
{
	bool counted = settings_given(in->settings, SET_CHECK_IB_PORTS);
	bool unused = counted || !p->is_infiniband || p->physical == PHYSICAL_DISABLED;
	long want = rate_wanted(in, p, all, count);
	char subject[64];

	(void)snprintf(
		subject, sizeof subject, "%.*s port %u", NAME_MAX_BYTES - 1, p->device, p->number);
	if (p->state == 0)
		findings_add(f, HEALTH_UNKNOWN, infiniband, subject, "it has no state");
	else if (p->state != STATE_ACTIVE && unused)
		findings_add(
			f, HEALTH_GOOD, infiniband, subject, "not in use (%s)", p->state_words);
	else if (p->state != STATE_ACTIVE)
		findings_add(
			f, HEALTH_BAD, infiniband, subject, "it is not up but %s", p->state_words);
	else if (p->rate < want)
		findings_add(f, HEALTH_BAD, infiniband, subject, "%ld Gb/s: %s %ld", p->rate,
			settings_given(in->settings, SET_CHECK_IB_RATE) ?
				"there have to be" :
				"another port of such a card has",
			want);
	else
		findings_add(f, HEALTH_GOOD, infiniband, subject, "up, %ld Gb/s", p->rate);
}

static void look_ib(const struct task *t, struct task_answer *a)
{
	const struct quick_input *in = t->owner;
	uint64_t want = settings_number(in->settings, SET_CHECK_IB_PORTS);
	struct port ports[PORTS_MAX] = { 0 };
	unsigned count = read_ports(in, ports), up = 0;

	for (unsigned i = 0; i < count; i++) {
		judge(in, &ports[i], ports, count, &a->findings);
		up += ports[i].state == STATE_ACTIVE;
	}
	if (settings_given(in->settings, SET_CHECK_IB_PORTS) && up < want)
		findings_add(&a->findings, HEALTH_BAD, infiniband, "",
			"%u port%s up: there have to be %u", up, up == 1 ? " is" : "s are",
			(unsigned)want);
	else if (count == 0)
		findings_add(&a->findings, HEALTH_GOOD, infiniband, "", "none here");
}

void ib_check_add(const struct quick_input *in, struct tasks *all)
{
	const struct task t = {
		.work = look_ib, .owner = in, .check = infiniband, .limit_ms = NODE_LIMIT_MS
	};

	tasks_add(all, &t);
}
