/* test_bus.c - who is told of what, and in which order. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/observe/bus.h"

/* What two observers have been told, in order: "a" and "b" with the kind. */
struct told {
	char by[8];
	enum event_kind kind[8];
	uint64_t at_ns;
	size_t count;
};

static void hear(struct told *t, char who, const struct event *e)
{
	t->by[t->count] = who;
	t->kind[t->count++] = e->kind;
	t->at_ns = e->at_ns;
}

static void on_a(void *owner, const struct event *e)
{
	hear(owner, 'a', e);
}

static void on_b(void *owner, const struct event *e)
{
	hear(owner, 'b', e);
}

static const struct observer a = { .on = { [EVENT_NOTE] = on_a, [EVENT_STOP] = on_a } };
static const struct observer b = { .on = { [EVENT_NOTE] = on_b } };

static void test_who_wants(void **state)
{
	struct told t = { .count = 0 };
	struct bus bus = { .count = 0 };

	(void)state;
	bus_note(&bus, NOTE_INFO, "nobody hears this");
	bus_add(&bus, &a, &t);
	bus_add(&bus, &b, &t);
	assert_true(bus_wants(&bus, EVENT_NOTE) && bus_wants(&bus, EVENT_STOP));
	assert_false(bus_wants(&bus, EVENT_RESTART));
	bus_note(&bus, NOTE_INFO, "both hear this");
	bus_emit(&bus, &(struct event){ .kind = EVENT_STOP });
	bus_emit(&bus, &(struct event){ .kind = EVENT_RESTART });
	assert_string_equal(t.by, "aba");
	assert_int_equal(t.kind[2], EVENT_STOP);
}

static void test_removed(void **state)
{
	struct told t = { .count = 0 };
	struct bus bus = { .count = 0 };

	(void)state;
	bus_add(&bus, &b, &t);
	bus_add(&bus, &a, &t);
	bus_remove(&bus);
	bus_note(&bus, NOTE_INFO, "b hears this");
	assert_string_equal(t.by, "b");
	assert_false(bus_wants(&bus, EVENT_STOP));
}

static void test_time(void **state)
{
	struct told t = { .count = 0 };
	struct bus bus = { .count = 0 };
	uint64_t first;

	(void)state;
	bus_add(&bus, &b, &t);
	bus_emit(&bus, &(struct event){ .kind = EVENT_NOTE, .at_ns = 7 });
	assert_int_equal(t.at_ns, 7);
	bus_note(&bus, NOTE_INFO, "");
	first = t.at_ns;
	assert_true(first > 7);
	bus_note(&bus, NOTE_INFO, "");
	assert_true(t.at_ns >= first);
}

TESTS(bus)
{
	static struct suite s;

	suite_add(&s, "an observer hears of the kinds that it wants, in the order of being added",
		test_who_wants, NULL, NULL);
	suite_add(&s, "one that was taken away hears nothing", test_removed, NULL, NULL);
	suite_add(&s, "an event without a time happens now", test_time, NULL, NULL);
	return suite_run(&s);
}
