/* test_ib_check.c - InfiniBand and RoCE ports, in a sysfs of the test's own. */
#include "tests/unit/daemon/output/scratch_dir.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/check/finding.h"
#include "daemon/check/ib_check.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"

static char root[32];
static struct findings found;
static struct settings_fixture b;

static void make_dirs(const char *path)
{
	char at[512];

	for (const char *slash = path; (slash = strchr(slash + 1, '/')) != NULL;) {
		(void)snprintf(at, sizeof at, "%s/%.*s", root, (int)(slash - path), path);
		(void)mkdir(at, 0700);
	}
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[512], full[600];
	FILE *file;

	(void)snprintf(path, sizeof path, "sys/class/infiniband/%s/%s", dir, name);
	make_dirs(path);
	(void)snprintf(full, sizeof full, "%s/%s", root, path);
	file = fopen(full, "w");
	assert_non_null(file);
	(void)fprintf(file, "%s\n", text);
	(void)fclose(file);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/launchd-ib-XXXXXX");
	memset(&found, 0, sizeof found);
	settings_fixture_make(&b, false);
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	settings_fixture_done(&b);
	return scratch_remove(root);
}

static void add_port(const char *device, const char *board, const char *state, const char *physical,
	const char *rate, const char *layer)
{
	char port[64];

	write_file(device, "board_id", board);
	(void)snprintf(port, sizeof port, "%s/ports/1", device);
	write_file(port, "state", state);
	write_file(port, "phys_state", physical);
	write_file(port, "rate", rate);
	write_file(port, "link_layer", layer);
}

static void add_active(const char *device, const char *board, const char *rate)
{
	add_port(device, board, "4: ACTIVE", "5: LinkUp", rate, "InfiniBand");
}

static void put(enum setting_id id, const char *text)
{
	settings_fixture_put_at(&b, id, text, LEVEL_FILE, "job.ini:1");
}

static void look(void)
{
	const struct quick_input in = { .settings = &b.s, .sys_root = root };
	struct tasks *all = calloc(1, sizeof *all);

	assert_non_null(all);
	assert_int_equal(tasks_init(all), 0);
	ib_check_add(&in, all);
	tasks_run(all, &found);
	tasks_done(all);
	free(all);
}

static void assert_found(unsigned at, enum health health, const char *subject, const char *text)
{
	assert_true(at < found.count);
	assert_string_equal(found.at[at].subject, subject);
	assert_string_equal(found.at[at].text, text);
	assert_int_equal(found.at[at].health, health);
}

static void test_none(void **state)
{
	(void)state;
	look();
	assert_int_equal(found.count, 1);
	assert_found(0, HEALTH_GOOD, "", "none here");
}

static void test_all_well(void **state)
{
	(void)state;
	add_active("mlx5_10", "MT_1", "400 Gb/sec (4X NDR)");
	add_active("mlx5_2", "MT_1", "400 Gb/sec (4X NDR)");
	look();
	assert_int_equal(found.count, 2);
	assert_found(0, HEALTH_GOOD, "mlx5_2 port 1", "up, 400 Gb/s");
	assert_found(1, HEALTH_GOOD, "mlx5_10 port 1", "up, 400 Gb/s");
}

static void test_down(void **state)
{
	(void)state;
	add_port("mlx5_0", "MT_1", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)", "InfiniBand");
	add_port("mlx5_1", "MT_1", "1: DOWN", "3: Disabled", "10 Gb/sec (4X SDR)", "InfiniBand");
	add_port("mlx5_2", "MT_2", "1: DOWN", "2: Polling", "40 Gb/sec (4X QDR)", "Ethernet");
	add_port("mlx5_3", "MT_2", "2: INIT", "5: LinkUp", "400 Gb/sec (4X NDR)", "InfiniBand");
	look();
	assert_int_equal(found.count, 4);
	assert_found(0, HEALTH_BAD, "mlx5_0 port 1", "it is not up but DOWN");
	assert_found(1, HEALTH_GOOD, "mlx5_1 port 1", "not in use (DOWN)");
	assert_found(2, HEALTH_GOOD, "mlx5_2 port 1", "not in use (DOWN)");
	assert_found(3, HEALTH_BAD, "mlx5_3 port 1", "it is not up but INIT");
}

/* A storage network's slower cards are other ones. */
static void test_slower(void **state)
{
	(void)state;
	add_active("mlx5_0", "MT_1", "400 Gb/sec (4X NDR)");
	add_active("mlx5_1", "MT_1", "200 Gb/sec (4X HDR)");
	add_active("mlx5_2", "MT_2", "100 Gb/sec (4X EDR)");
	look();
	assert_int_equal(found.count, 3);
	assert_found(0, HEALTH_GOOD, "mlx5_0 port 1", "up, 400 Gb/s");
	assert_found(
		1, HEALTH_BAD, "mlx5_1 port 1", "200 Gb/s: another port of such a card has 400");
	assert_found(2, HEALTH_GOOD, "mlx5_2 port 1", "up, 100 Gb/s");
}

static void test_as_asked(void **state)
{
	(void)state;
	put(SET_CHECK_IB_PORTS, "3");
	put(SET_CHECK_IB_RATE, "200");
	add_active("mlx5_0", "MT_1", "400 Gb/sec (4X NDR)");
	add_active("mlx5_1", "MT_1", "200 Gb/sec (4X HDR)");
	add_port("mlx5_2", "MT_1", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)", "InfiniBand");
	look();
	assert_int_equal(found.count, 4);
	assert_found(1, HEALTH_GOOD, "mlx5_1 port 1", "up, 200 Gb/s");
	assert_found(2, HEALTH_GOOD, "mlx5_2 port 1", "not in use (DOWN)");
	assert_found(3, HEALTH_BAD, "", "2 ports are up: there have to be 3");
}

static void test_too_slow_for_what_is_asked(void **state)
{
	(void)state;
	put(SET_CHECK_IB_RATE, "400");
	add_active("mlx5_0", "MT_1", "200 Gb/sec (4X HDR)");
	look();
	assert_int_equal(found.count, 1);
	assert_found(0, HEALTH_BAD, "mlx5_0 port 1", "200 Gb/s: there have to be 400");
}

static void test_without_a_state(void **state)
{
	(void)state;
	write_file("mlx5_0/ports/1", "rate", "nonsense");
	look();
	assert_int_equal(found.count, 1);
	assert_found(0, HEALTH_UNKNOWN, "mlx5_0 port 1", "it has no state");
}

TESTS(ib_check)
{
	static struct suite s;

	suite_add(&s, "a node without any", test_none, set_up, tear_down);
	suite_add(&s, "all are up", test_all_well, set_up, tear_down);
	suite_add(&s, "one that is down is bad, one that isn't used is not", test_down, set_up,
		tear_down);
	suite_add(&s, "one slower than its like is bad", test_slower, set_up, tear_down);
	suite_add(&s, "as many and as fast as is asked for", test_as_asked, set_up, tear_down);
	suite_add(
		&s, "slower than is asked for", test_too_slow_for_what_is_asked, set_up, tear_down);
	suite_add(
		&s, "what sysfs does not tell is unknown", test_without_a_state, set_up, tear_down);
	return suite_run(&s);
}
