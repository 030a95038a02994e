/* test_post.c - what the event loop and the output thread hand one another. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/os/lock.h"
#include "daemon/output/followed.h"
#include "daemon/output/post.h"

/* Both ends lie in loops that nobody runs: what was sent there does not matter. */
struct ends {
	struct post post;
	uv_loop_t loop;
};

static void on_sent(uv_async_t *a)
{
	(void)a;
}

static void make(struct ends *e)
{
	assert_int_equal(post_init(&e->post), 0);
	assert_int_equal(uv_loop_init(&e->loop), 0);
	assert_int_equal(uv_async_init(&e->loop, &e->post.to_back, on_sent), 0);
	assert_int_equal(uv_async_init(&e->loop, &e->post.to_front, on_sent), 0);
	post_attach(&e->post);
}

static void done(struct ends *e)
{
	assert_true(post_detach(&e->post));
	assert_false(post_detach(&e->post));
	uv_close((uv_handle_t *)&e->post.to_back, NULL);
	uv_close((uv_handle_t *)&e->post.to_front, NULL);
	(void)uv_run(&e->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&e->loop), 0);
	post_done(&e->post);
}

static void test_life(void **state)
{
	(void)state;
	assert_life(&post_life, (const char *const[]){ "made: open", "open: over", "over:", NULL });
}

static void test_orders(void **state)
{
	struct order_list taken;
	struct ends e;

	(void)state;
	make(&e);
	post_order(&e.post, ORDER_START);
	post_status(&e.post, "2/8 started");
	post_add(&e.post, &e.post.orders.own, "a\n", 2);
	post_add(&e.post, &e.post.orders.own, "b\n", 2);
	post_add(&e.post, &e.post.orders.events, "{}\n", 3);
	assert_false(post_is_empty(&e.post));
	taken = post_take_orders(&e.post);
	assert_int_equal(taken.what, ORDER_START | ORDER_STATUS);
	assert_string_equal(taken.status, "2/8 started");
	assert_string_equal(text_string(&taken.own.text), "a\nb\n");
	assert_string_equal(text_string(&taken.events.text), "{}\n");
	assert_int_equal(taken.requests, -1);
	text_done(&taken.own.text);
	text_done(&taken.events.text);
	assert_true(post_is_empty(&e.post));
	taken = post_take_orders(&e.post); /* each is obeyed once */
	assert_int_equal(taken.what, 0);
	assert_int_equal(taken.own.text.len + taken.events.text.len, 0);
	done(&e);
}

/* A thread that stands still in a disk: what is said meanwhile has an end, and is counted. */
/* Who takes it late gets the latest. */
static void test_page(void **state)
{
	struct order_list taken;
	struct ends e;

	(void)state;
	make(&e);
	assert_true(post_is_empty(&e.post));
	post_page(&e.post, "old page\n", 9);
	post_page(&e.post, "new\n", 4);
	assert_false(post_is_empty(&e.post));
	taken = post_take_orders(&e.post);
	assert_string_equal(text_string(&taken.page), "new\n");
	text_done(&taken.page);
	assert_true(post_is_empty(&e.post));
	post_page(&e.post, "never taken\n", 12);
	done(&e);
}

static void test_too_much(void **state)
{
	static char line[100 * 1024];
	struct order_list taken;
	struct ends e;

	(void)state;
	memset(line, 'x', sizeof line);
	make(&e);
	for (int i = 0; i < 4; i++) {
		post_add(&e.post, &e.post.orders.own, line, sizeof line);
		post_add(&e.post, &e.post.orders.events, line, sizeof line);
	}
	taken = post_take_orders(&e.post);
	assert_int_equal(taken.own.text.len, 2 * sizeof line);
	assert_int_equal(taken.own.lost, 2 * sizeof line);
	assert_int_equal(taken.events.lost, 2 * sizeof line);
	text_done(&taken.own.text);
	text_done(&taken.events.text);
	taken = post_take_orders(&e.post);
	assert_int_equal(taken.own.lost + taken.events.lost, 0);
	done(&e);
}

/* Once the status line was taken away, it stays away. */
static void test_status_ends(void **state)
{
	struct order_list taken;
	struct ends e;

	(void)state;
	make(&e);
	post_status(&e.post, NULL);
	post_status(&e.post, "8/8 started");
	taken = post_take_orders(&e.post);
	assert_true(taken.status_ended);
	done(&e);
}

static void test_attempts(void **state)
{
	const struct failure fine = { 0 }, full = { .code = -28, .text = "no space" };
	struct logs *first = (struct logs *)&fine, *second = (struct logs *)&full; /* only names */
	struct news news;
	struct ends e;

	(void)state;
	make(&e);
	post_next_attempt(&e.post, NULL, 0);
	post_prepared(&e.post, 0, first, &fine);
	post_drained(&e.post, 0);
	post_next_attempt(&e.post, NULL, 1); /* overtakes it */
	post_prepared(&e.post, 0, first, &fine);
	post_drained(&e.post, 0);
	assert_int_equal(post_take_news(&e.post).what, 0);
	post_order(&e.post, ORDER_START);
	post_order(&e.post, ORDER_PREPARE);
	post_next_attempt(&e.post, NULL, 1); /* before it is prepared */
	assert_int_equal(post_take_orders(&e.post).what, ORDER_START);
	post_prepared(&e.post, 1, NULL, &full);
	post_tell(&e.post, NEWS_LINES);
	news = post_take_news(&e.post);
	assert_int_equal(news.what, NEWS_PREPARED | NEWS_LINES);
	assert_int_equal(news.why.code, -28);
	assert_string_equal(news.why.text, "no space");
	assert_null(post_made(&e.post, first));
	assert_ptr_equal(post_made(&e.post, second), first); /* which was never adopted */
	assert_ptr_equal(post_take_orders(&e.post).made, second);
	assert_null(post_made(&e.post, NULL));
	done(&e);
}

/* Workers without files may have ended before the event loop asks for their last words. */
static void test_collected(void **state)
{
	const struct failure a = { 0 }, b = { 0 };
	const struct logs *mine = (const struct logs *)&a, *other = (const struct logs *)&b;
	struct ends e;

	(void)state;
	make(&e);
	post_collected(&e.post, mine);
	post_drain(&e.post, other);
	assert_int_equal(post_take_orders(&e.post).what, ORDER_DRAIN);
	assert_int_equal(post_take_news(&e.post).what, 0);
	post_drain(&e.post, mine);
	assert_int_equal(post_take_orders(&e.post).what, 0);
	assert_int_equal(post_take_news(&e.post).what, NEWS_DRAINED);
	post_next_attempt(&e.post, NULL, 1);
	post_drain(&e.post, mine);
	assert_int_equal(post_take_orders(&e.post).what, ORDER_DRAIN);
	done(&e);
}

static void thread_main(void *arg)
{
	struct post *p = arg;

	while (!(post_take_orders(p).what & ORDER_CLOSE))
		uv_sleep(1);
	post_answer(p);
	while (!(post_take_orders(p).what & ORDER_CLOSE)) /* it is asked whether it is stuck */
		uv_sleep(1);
	post_over(p);
}

static void test_followed(void **state)
{
	static char much[200 * 1024];
	const struct followed_lines one = { 3, 2, 9, "a\nb\n", 4 }, none = { 4, 1, 0, "", 0 };
	const struct followed_lines large = { 5, 1, 0, much, sizeof much };
	const struct followed_lines count = { 5, 1, 2, "", 0 };
	struct followed_lines got;
	struct ends e;
	struct news n;
	size_t at = 0;

	(void)state;
	make(&e);
	assert_true(post_followed(&e.post, &one));
	assert_true(post_followed(&e.post, &none));
	assert_true(post_followed(&e.post, &large));
	assert_false(post_followed(&e.post, &large)); /* there is no room */
	n = post_take_news(&e.post);
	assert_int_equal(n.what, NEWS_FOLLOWED);
	assert_true(followed_next(&n.followed, &at, &got));
	assert_int_equal(got.rank, 3);
	assert_int_equal(got.fd, 2);
	assert_int_equal(got.lost, 9);
	assert_int_equal(got.len, 4);
	assert_memory_equal(got.at, "a\nb\n", 4);
	assert_true(followed_next(&n.followed, &at, &got));
	assert_true(followed_next(&n.followed, &at, &got));
	assert_int_equal(got.len, sizeof much);
	assert_false(followed_next(&n.followed, &at, &got));
	text_done(&n.followed);
	while (post_followed(&e.post, &one)) /* nobody takes them */
		;
	assert_true(post_followed(&e.post, &count));
	assert_true(post_followed(&e.post, &count));
	post_follow(&e.post, true);
	assert_true(post_take_orders(&e.post).follow);
	done(&e);
}

static bool is_answered(struct post *p)
{
	autolock held = lock_take(&p->lock);

	return !p->unanswered;
}

static void test_end(void **state)
{
	struct ends e;
	uv_thread_t thread;

	(void)state;
	make(&e);
	post_open(&e.post);
	post_close(&e.post, false, -1);
	assert_false(post_await_end(&e.post, 1000)); /* nobody has answered */
	(void)post_take_orders(&e.post);
	assert_int_equal(uv_thread_create(&thread, thread_main, &e.post), 0);
	post_close(&e.post, true, -1);
	while (!is_answered(&e.post))
		uv_sleep(1);
	while (!post_await_end(
		&e.post, 1000000)) /* 1 ms: on a machine that is busy more than once */
		;
	assert_true(e.post.orders.hurry);
	assert_int_equal(uv_thread_join(&thread), 0);
	done(&e);
}

TESTS(post)
{
	static struct suite s;

	suite_add(&s, "the thread's life", test_life, NULL, NULL);
	suite_add(&s, "orders, words and events are taken once", test_orders, NULL, NULL);
	suite_add(&s, "a page replaces the one before", test_page, NULL, NULL);
	suite_add(&s, "more words than there is room for", test_too_much, NULL, NULL);
	suite_add(&s, "a status line that was taken away", test_status_ends, NULL, NULL);
	suite_add(&s, "news of an attempt that was overtaken", test_attempts, NULL, NULL);
	suite_add(&s, "workers that have ended already", test_collected, NULL, NULL);
	suite_add(&s, "lines for those who follow them", test_followed, NULL, NULL);
	suite_add(&s, "the end, and a thread that is asked for it twice", test_end, NULL, NULL);
	return suite_run(&s);
}
