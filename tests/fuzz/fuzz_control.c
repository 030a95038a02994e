/* fuzz_control.c - a line that came to the control socket. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/control/demand.h"
#include "daemon/os/cjson.h"

/* What is refused has a sentence; what is taken is within its bounds. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct cjson cjson;
	static struct demand d;
	struct failure none;
	struct text why = { 0 };
	enum control_error e;
	char *line;

	if (!cjson.parse_to_end)
		PROMISE(cjson_open(NULL, &cjson, &none) == 0);
	if (len >= CONTROL_LINE_MAX)
		return 0;
	line = malloc(len + 1); /* of its own size, so that a byte too far is seen */
	PROMISE(line != NULL);
	if (len > 0)
		memcpy(line, bytes, len);
	line[len] = '\n';
	e = demand_read(&cjson, line, len, &d, &why);
	PROMISE(e >= CONTROL_OK && e < CONTROL_ERRORS);
	PROMISE((e == CONTROL_OK) == (why.len == 0));
	if (e == CONTROL_OK) {
		PROMISE(d.has_id && d.id >= 0 && d.op < OPS);
		PROMISE(d.lines > 0 && d.lines <= CONTROL_TAIL_LINES_MAX);
		PROMISE(d.rank_count <= DEMAND_RANKS_MAX && (d.has_ranks || d.rank_count == 0));
		PROMISE(d.op != OP_SIGNAL || d.signal > 0);
	}
	text_done(&why);
	free(line);
	return 0;
}
