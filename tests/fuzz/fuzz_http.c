/* fuzz_http.c - what comes to --metrics-listen. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/service/http.h"

/* The first len bytes, in memory of their own size, so that a byte too far is seen. */
static enum http_status read_first(const uint8_t *bytes, size_t len, struct http_request *ret)
{
	char *own = malloc(len ? len : 1);
	enum http_status status;

	PROMISE(own != NULL);
	memcpy(own, bytes, len);
	*ret = (struct http_request){ .head = false };
	status = http_read(own, len, ret);
	if (status == HTTP_OK) {
		PROMISE(ret->path >= own && ret->path_len > 0 && *ret->path == '/');
		PROMISE((size_t)(ret->path - own) + ret->path_len < len);
		PROMISE(!memchr(ret->path, '?', ret->path_len));
	}
	free(own);
	return status;
}

/* An answer comes with the byte that ends the request, and what follows changes nothing of it. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct http_request all, some;
	enum http_status status = read_first(bytes, len, &all), first = HTTP_UNFINISHED;
	size_t at = 0;

	PROMISE(status == HTTP_UNFINISHED || status == HTTP_OK || status == HTTP_BAD_REQUEST ||
		status == HTTP_NOT_ALLOWED || status == HTTP_TOO_LARGE ||
		status == HTTP_BAD_VERSION);
	PROMISE(status != HTTP_UNFINISHED || len < HTTP_REQUEST_MAX);
	PROMISE(status != HTTP_TOO_LARGE || len >= HTTP_REQUEST_MAX);
	while (first == HTTP_UNFINISHED && at < len)
		first = read_first(bytes, ++at, &some);
	PROMISE(first == status);
	PROMISE(status != HTTP_OK || (some.head == all.head && some.path_len == all.path_len));
	PROMISE(first == HTTP_UNFINISHED || first == HTTP_TOO_LARGE || bytes[at - 1] == '\n');
	return 0;
}
