/* http.c - see http.h */
#include "daemon/service/http.h"

#include <string.h>
#include <strings.h>

#include "common/text.h"

/* One line, without its end, which is "\n" or "\r\n". */
struct line {
	const char *at;
	size_t len;
};

/* False: it has no end yet. */
static bool take_line(const char **at, const char *end, struct line *ret)
{
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));

	if (!newline)
		return false;
	*ret = (struct line){ *at, (size_t)(newline - *at) };
	if (ret->len > 0 && newline[-1] == '\r')
		ret->len--;
	*at = newline + 1;
	return true;
}

/* Of a method or a header's name: RFC 9110, 5.6.2. */
static bool is_token(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = at[i];
		bool alphanumeric =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!alphanumeric && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return len > 0;
}

static bool is_text(const struct line *l)
{
	for (size_t i = 0; i < l->len; i++)
		if (((unsigned char)l->at[i] < 0x20 && l->at[i] != '\t') || l->at[i] == 0x7f)
			return false;
	return true;
}

static bool is_word(const char *at, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(at, word, len) == 0;
}

/* "HTTP/1.1" */
static enum http_status check_version(const char *at, size_t len)
{
	enum { LEN = 8, MAJOR = 5, DOT = 6, MINOR = 7 };

	if (len != LEN || memcmp(at, "HTTP/", MAJOR) != 0 || at[DOT] != '.' || at[MAJOR] < '0' ||
		at[MAJOR] > '9' || at[MINOR] < '0' || at[MINOR] > '9')
		return HTTP_BAD_REQUEST;
	return at[MAJOR] == '1' ? HTTP_OK : HTTP_BAD_VERSION;
}

/* "/metrics?x=y", or as a proxy is asked: "http://host/metrics". */
static enum http_status read_target(const char *at, size_t len, struct http_request *ret)
{
	static const char scheme[] = "http://";
	const size_t scheme_len = sizeof scheme - 1;
	const char *query;

	if (len > scheme_len && strncasecmp(at, scheme, scheme_len) == 0) {
		const char *path = memchr(at + scheme_len, '/', len - scheme_len);

		if (!path)
			return HTTP_BAD_REQUEST;
		len -= (size_t)(path - at);
		at = path;
	}
	if (len == 0 || *at != '/')
		return HTTP_BAD_REQUEST;
	query = memchr(at, '?', len);
	ret->path = at;
	ret->path_len = query ? (size_t)(query - at) : len;
	return HTTP_OK;
}

/* "GET /metrics HTTP/1.1" */
static enum http_status read_request_line(const struct line *l, struct http_request *ret)
{
	const char *end = l->at + l->len;
	const char *target = memchr(l->at, ' ', l->len), *version;
	enum http_status status;

	version = target ? memchr(target + 1, ' ', (size_t)(end - target - 1)) : NULL;
	if (!version || !is_text(l) || !is_token(l->at, (size_t)(target - l->at)))
		return HTTP_BAD_REQUEST;
	status = check_version(version + 1, (size_t)(end - version - 1));
	if (status != HTTP_OK)
		return status;
	ret->head = is_word(l->at, (size_t)(target - l->at), "HEAD");
	if (!ret->head && !is_word(l->at, (size_t)(target - l->at), "GET"))
		return HTTP_NOT_ALLOWED;
	return read_target(target + 1, (size_t)(version - target - 1), ret);
}

/* "Host: gpu07:9400" */
static bool is_header(const struct line *l)
{
	const char *colon = memchr(l->at, ':', l->len);

	return colon && is_token(l->at, (size_t)(colon - l->at)) && is_text(l);
}

/* Its end was seen: what is wrong with it, if anything is. */
static enum http_status judge(const char *at, const char *end, struct http_request *ret)
{
	struct line l = { at, 0 };
	enum http_status status;
	bool bad = false;

	(void)take_line(&at, end, &l);
	status = read_request_line(&l, ret);
	while (take_line(&at, end, &l) && l.len > 0)
		bad = bad || !is_header(&l);
	return bad ? HTTP_BAD_REQUEST : status;
}

enum http_status http_read(const char *at, size_t len, struct http_request *ret)
{
	size_t most = len < HTTP_REQUEST_MAX ? len : HTTP_REQUEST_MAX;
	const char *from = at;
	struct line l;
	bool first = true;

	while (take_line(&from, at + most, &l)) {
		if (l.len == 0 && first)
			return HTTP_BAD_REQUEST;
		if (l.len == 0)
			return judge(at, from, ret);
		first = false;
	}
	return len < HTTP_REQUEST_MAX ? HTTP_UNFINISHED : HTTP_TOO_LARGE;
}

static const char *words_of(enum http_status status)
{
	switch (status) {
	case HTTP_OK:
		return "OK";
	case HTTP_NOT_FOUND:
		return "Not Found";
	case HTTP_NOT_ALLOWED:
		return "Method Not Allowed";
	case HTTP_TOO_LARGE:
		return "Request Header Fields Too Large";
	case HTTP_BAD_VERSION:
		return "HTTP Version Not Supported";
	case HTTP_BAD_REQUEST:
	case HTTP_UNFINISHED:
		break;
	}
	return "Bad Request";
}

void http_add_head(struct text *out, enum http_status status, const char *type, size_t body_len)
{
	text_printf(out, "HTTP/1.1 %d %s\r\n", (int)status, words_of(status));
	if (status == HTTP_NOT_ALLOWED)
		text_add(out, "Allow: GET, HEAD\r\n");
	text_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		type, body_len);
}
