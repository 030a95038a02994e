/* ask_recorder.h - a source of the black box: torch's flight recorder, which knows each rank's last
 * collectives. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_ASK_RECORDER_H
#define LAUNCHD_DAEMON_BLACKBOX_ASK_RECORDER_H

#include <stdbool.h>

struct source_input;
struct task_answer;

bool has_recorder_files(const struct source_input *in);

/* Takes the dumps that ranks of this node have written in this attempt, asks those that live for
 * one by their pipes, which torch looks at once a second, and takes these too. Leaves
 * flight-recorder.rank-N, whole or not at all. */
void ask_recorder(const struct source_input *in, struct task_answer *a);

#endif
