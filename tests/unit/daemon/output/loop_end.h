/* loop_end.h - the end of a test's loop, as its owner brings it about: consoles close no handles.
 */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_LOOP_END_H
#define LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_LOOP_END_H

#include <uv.h>

/* Closes all that it has, and then the loop. */
void loop_end(uv_loop_t *loop);

#endif
