/* http.h - a request of HTTP/1 as a scraper sends it, and the head of an answer. Pure.
 *
 * There is nothing but GET and HEAD, no body is read, and a connection has one request. */
#ifndef LAUNCHD_DAEMON_SERVICE_HTTP_H
#define LAUNCHD_DAEMON_SERVICE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct text;

enum { HTTP_REQUEST_MAX = 8192 }; /* bytes of its line and headers */

enum http_status {
	HTTP_UNFINISHED = 0, /* more bytes are needed */
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	HTTP_NOT_ALLOWED = 405, /* the method */
	HTTP_TOO_LARGE = 431,
	HTTP_BAD_VERSION = 505,
};

struct http_request {
	bool head;
	const char *path; /* in the bytes that were read; without the query */
	size_t path_len;
};

/* Reads the first len bytes of what came. HTTP_OK: it is whole, and ret says what is asked for;
 * bytes behind its blank line are not looked at. Any other status but UNFINISHED: it is refused. */
enum http_status http_read(const char *at, size_t len, struct http_request *ret);

/* Adds the status line and headers of an answer, for a body of so many bytes. */
void http_add_head(struct text *out, enum http_status status, const char *type, size_t body_len);

#endif
