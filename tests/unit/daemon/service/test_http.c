/* test_http.c - what scrapers ask for, and what is refused. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/service/http.h"

#define HOST "Host: h\r\n"

static const struct request_row {
	const char *says, *text;
	enum http_status status;
	const char *path; /* HTTP_OK */
	bool head;
} requests[] = {
	{ "what Prometheus sends",
		"GET /metrics HTTP/1.1\r\nHost: 10.0.0.4:9400\r\nUser-Agent: Prometheus/2.42.0\r\n"
		"Accept: application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1\r\n"
		"Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n",
		HTTP_OK, "/metrics", false },
	{ "HEAD", "HEAD /metrics HTTP/1.1\r\n" HOST "\r\n", HTTP_OK, "/metrics", true },
	{ "HTTP/1.0 without headers", "GET / HTTP/1.0\r\n\r\n", HTTP_OK, "/", false },
	{ "lines that end with a newline alone", "GET /x HTTP/1.1\n" HOST "\n", HTTP_OK, "/x",
		false },
	{ "a query", "GET /metrics?a=/b?c HTTP/1.1\r\n\r\n", HTTP_OK, "/metrics", false },
	{ "as a proxy is asked", "GET http://h:1/metrics HTTP/1.1\r\n\r\n", HTTP_OK, "/metrics",
		false },
	{ "as a proxy is asked, in capitals", "GET HTTP://h/m?x HTTP/1.1\r\n\r\n", HTTP_OK, "/m",
		false },
	{ "what follows a whole request", "GET /a HTTP/1.1\r\n\r\nGET /b", HTTP_OK, "/a", false },
	{ "a header without a value", "GET /a HTTP/1.1\r\nX:\r\n\r\n", HTTP_OK, "/a", false },
	{ "a tab and other languages in a header", "GET /a HTTP/1.1\r\nX:\t\xc3\xa4\r\n\r\n",
		HTTP_OK, "/a", false },
	{ "a later HTTP/1", "GET /a HTTP/1.9\r\n\r\n", HTTP_OK, "/a", false },

	{ "nothing yet", "", HTTP_UNFINISHED, NULL, false },
	{ "half a line", "GET /met", HTTP_UNFINISHED, NULL, false },
	{ "a line, and no blank one", "GET /a HTTP/1.1\r\n", HTTP_UNFINISHED, NULL, false },
	{ "a return, and no newline", "GET /a HTTP/1.1\r\n" HOST "\r", HTTP_UNFINISHED, NULL,
		false },
	{ "one that will be refused is read to its end", "DELETE /a HTTP/1.1\r\n" HOST,
		HTTP_UNFINISHED, NULL, false },

	{ "POST", "POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", HTTP_NOT_ALLOWED, NULL,
		false },
	{ "a method in small letters", "get / HTTP/1.1\r\n\r\n", HTTP_NOT_ALLOWED, NULL, false },
	{ "a method that begins as one", "GETS / HTTP/1.1\r\n\r\n", HTTP_NOT_ALLOWED, NULL, false },
	{ "a method cut short", "GE / HTTP/1.1\r\n\r\n", HTTP_NOT_ALLOWED, NULL, false },
	{ "another version", "GET / HTTP/2.0\r\n\r\n", HTTP_BAD_VERSION, NULL, false },
	{ "HTTP/2's first bytes", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HTTP_BAD_VERSION, NULL,
		false },

	{ "a blank line first", "\r\nGET / HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "no version", "GET /\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a version of another length", "GET / HTTP/1.10\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a version without a number", "GET / HTTP/1.x\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a version without a dot", "GET / HTTP/1,1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "another protocol", "GET / HTTQ/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "two blanks", "GET  / HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a blank behind the version", "GET / HTTP/1.1 \r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a blank before the method", " GET / HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "no path", "GET metrics HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "an asterisk", "GET * HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a host without a path", "GET http://h HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "only a scheme", "GET http:// HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a byte that can't be in a line", "GET /\x01 HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL,
		false },
	{ "a return within a line", "GET /\rx HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a bad method", "G(T / HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST, NULL, false },
	{ "a header without a colon", "GET / HTTP/1.1\r\nHost\r\n\r\n", HTTP_BAD_REQUEST, NULL,
		false },
	{ "a header without a name", "GET / HTTP/1.1\r\n: x\r\n\r\n", HTTP_BAD_REQUEST, NULL,
		false },
	{ "a blank before a colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", HTTP_BAD_REQUEST, NULL,
		false },
	{ "a folded header", "GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n", HTTP_BAD_REQUEST, NULL,
		false },
	{ "a delete in a header", "GET / HTTP/1.1\r\nX: \x7f\r\n\r\n", HTTP_BAD_REQUEST, NULL,
		false },
	{ "TLS", "\x16\x03\x01\n\n", HTTP_BAD_REQUEST, NULL, false },
};

static void test_request(void **state)
{
	const struct request_row *row = *state;
	size_t len = strlen(row->text);
	char *text = malloc(len + 1); /* its own, so that a byte too far is seen */
	struct http_request r = { .head = false };

	assert_non_null(text);
	memcpy(text, row->text, len);
	assert_int_equal(http_read(text, len, &r), row->status);
	if (row->status == HTTP_OK) {
		assert_int_equal(r.head, row->head);
		assert_int_equal(r.path_len, strlen(row->path));
		assert_memory_equal(r.path, row->path, r.path_len);
	}
	free(text);
}

/* However it is cut, nothing but the whole is an answer. */
static void test_pieces(void **state)
{
	const struct request_row *row = *state;
	const char *end = strstr(row->text, "\r\n\r\n");
	struct http_request r;

	if (row->status == HTTP_UNFINISHED || !end || strncmp(row->text, "\r\n", 2) == 0)
		return;
	for (size_t len = 0; len < (size_t)(end - row->text) + 4; len++)
		assert_int_equal(http_read(row->text, len, &r), HTTP_UNFINISHED);
	assert_int_equal(http_read(row->text, (size_t)(end - row->text) + 4, &r), row->status);
}

static const struct size_row {
	const char *says;
	size_t value; /* bytes of a header's */
	enum http_status status;
} sizes[] = {
	{ "a request as long as may be", HTTP_REQUEST_MAX - 23, HTTP_OK },
	{ "a request that is a byte longer", HTTP_REQUEST_MAX - 22, HTTP_TOO_LARGE },
	{ "a request that is far longer", HTTP_REQUEST_MAX * 2, HTTP_TOO_LARGE },
};

static void test_size(void **state)
{
	const struct size_row *row = *state;
	struct http_request r;
	struct text t = { 0 };

	text_add(&t, "GET / HTTP/1.1\r\nX: "); /* 19 bytes */
	for (size_t i = 0; i < row->value; i++)
		text_add(&t, "x");
	text_add(&t, "\r\n\r\n");
	if (row->status == HTTP_OK)
		assert_int_equal(t.len, HTTP_REQUEST_MAX);
	assert_int_equal(http_read(t.at, t.len, &r), row->status);
	text_done(&t);
}

static const struct head_row {
	const char *says;
	enum http_status status;
	const char *head;
} heads[] = {
	{ "an answer", HTTP_OK,
		"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 42\r\nConnection: "
		"close\r\n\r\n" },
	{ "not found", HTTP_NOT_FOUND,
		"HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\nContent-Length: 42\r\n"
		"Connection: close\r\n\r\n" },
	{ "a wrong method is told the right ones", HTTP_NOT_ALLOWED,
		"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Type: a/b\r\n"
		"Content-Length: 42\r\nConnection: close\r\n\r\n" },
	{ "a bad request", HTTP_BAD_REQUEST,
		"HTTP/1.1 400 Bad Request\r\nContent-Type: a/b\r\nContent-Length: 42\r\n"
		"Connection: close\r\n\r\n" },
	{ "too much", HTTP_TOO_LARGE,
		"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: a/b\r\n"
		"Content-Length: 42\r\nConnection: close\r\n\r\n" },
	{ "a version", HTTP_BAD_VERSION,
		"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: a/b\r\n"
		"Content-Length: 42\r\nConnection: close\r\n\r\n" },
};

static void test_head(void **state)
{
	const struct head_row *row = *state;
	struct text t = { 0 };

	http_add_head(&t, row->status, "a/b", 42);
	assert_string_equal(text_string(&t), row->head);
	text_done(&t);
}

TESTS(http)
{
	static struct suite s;

	SUITE_ROWS(&s, test_request, requests);
	SUITE_ROWS(&s, test_pieces, requests);
	SUITE_ROWS(&s, test_size, sizes);
	SUITE_ROWS(&s, test_head, heads);
	return suite_run(&s);
}
