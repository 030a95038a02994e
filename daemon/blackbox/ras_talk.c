/* ras_talk.c - see ras_talk.h */
#include "daemon/blackbox/ras_talk.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"

enum { WORDS_MAX = 140 };

struct ras_line {
	const char *at;
	size_t len;
};

/* The next line without blanks around it. False: there is none. */
static bool next_line(struct ras_line *rest, struct ras_line *ret)
{
	const char *end;
	size_t len;

	if (rest->len == 0)
		return false;
	end = memchr(rest->at, '\n', rest->len);
	len = end ? (size_t)(end - rest->at) : rest->len;
	*ret = (struct ras_line){ rest->at, len };
	rest->at += len + (end != NULL);
	rest->len -= len + (end != NULL);
	while (ret->len > 0 && strchr(" \t\r", ret->at[ret->len - 1]))
		ret->len--;
	while (ret->len > 0 && strchr(" \t", *ret->at)) {
		ret->at++;
		ret->len--;
	}
	return true;
}

static bool is(const struct ras_line *line, const char *word)
{
	return line->len == strlen(word) && memcmp(line->at, word, line->len) == 0;
}

static bool is_ruler(const struct ras_line *line)
{
	for (size_t i = 0; i < line->len; i++)
		if (line->at[i] != '=')
			return false;
	return line->len > 2;
}

/* Where a section's lines begin: behind its name and the ruler below that. */
static bool find_section(struct ras_line rest, const char *name, struct ras_line *ret)
{
	struct ras_line line;
	bool named = false;

	while (next_line(&rest, &line)) {
		if (named && is_ruler(&line)) {
			*ret = rest;
			return true;
		}
		named = is(&line, name);
	}
	return false;
}

static void add(struct text *out, const char *between, const struct ras_line *words)
{
	text_add(out, between);
	text_add_shown(out, words->at, words->len < WORDS_MAX ? words->len : WORDS_MAX);
}

/* Its first paragraph: a word in capitals, and what that means. False: the section is empty. */
static bool add_first(struct ras_line rest, struct text *out)
{
	static const char *const between[] = { "", ": ", "; ", "; " };
	struct ras_line line, ahead;
	size_t told = 0;

	while (told < sizeof between / sizeof *between && next_line(&rest, &line)) {
		if (line.len == 0 && told > 0)
			break;
		if (line.len == 0)
			continue;
		ahead = rest;
		if (told == 0 && next_line(&ahead, &(struct ras_line){ NULL, 0 }) &&
			(is(&line, "Errors") || is(&line, "Warnings")))
			break; /* the next section: this one has nothing */
		add(out, between[told++], &line);
	}
	return told > 0;
}

static void add_unclear(struct ras_line rest, struct text *out)
{
	struct ras_line line;

	while (next_line(&rest, &line))
		if (line.len > 0 && !is(&line, "OK")) {
			add(out, "it answers: ", &line);
			return;
		}
	text_add(out, "it answers nothing");
}

enum ras_says ras_talk_read(const char *answer, size_t len, struct text *out)
{
	struct ras_line section, all = { answer, len };

	if (!find_section(all, "Errors", &section)) {
		add_unclear(all, out);
		return RAS_UNCLEAR;
	}
	if (add_first(section, out))
		return RAS_ERRORS;
	if (!find_section(all, "Warnings", &section) || !add_first(section, out))
		text_add(out,
			"no errors, as far as NCCL counts: operations that were launched, not done");
	return RAS_WELL;
}

bool ras_talk_address(const char *at, char *host, size_t host_size, char *port, size_t port_size)
{
	const char *colon = strrchr(at, ':');
	size_t len;

	if (!colon || colon == at || !colon[1])
		return false;
	len = (size_t)(colon - at);
	if (*at == '[' && len > 2 && at[len - 1] == ']') {
		at++;
		len -= 2;
	}
	if (len >= host_size || strlen(colon + 1) >= port_size)
		return false;
	(void)snprintf(host, host_size, "%.*s", (int)len, at);
	(void)snprintf(port, port_size, "%s", colon + 1);
	return true;
}
