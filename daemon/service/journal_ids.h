/* journal_ids.h - MESSAGE_ID of what launchd says of a job in systemd's journal. Pure.
 *
 * systemd/launchd.catalog explains each to the reader of `journalctl -x`; a test holds the two
 * against one another. An id never changes its meaning: a new one takes another number. */
#ifndef LAUNCHD_DAEMON_SERVICE_JOURNAL_IDS_H
#define LAUNCHD_DAEMON_SERVICE_JOURNAL_IDS_H

struct run_end;

/* name, number, the word in EVENT=. Verdicts, of which a job has one, begin at ENDED_WELL. */
#define JOURNAL_IDS(ID) \
	ID(JOB_STARTED, "47a2ea0d3ff5479797e0479af5912fa8", "job_started") \
	ID(ATTEMPT_STARTED, "66eb11243d1d413fa9d20066bbe25d94", "attempt_started") \
	ID(WORKER_FAILED, "58ccff1e313b4ead8b482bc6bda934b6", "worker_failed") \
	ID(STOP, "cc8f9288be544c1d9c1ab78d11fbec7d", "stop") \
	ID(NODE_LOST, "bf7e66bd0ddb4fbaaa785db76d8b1120", "node_lost") \
	ID(RESTART, "708e809d3ddc44cf8cf580b9906700d8", "restart") \
	ID(ENDED_WELL, "04bcfc218ac94f71bce31305e618515b", "verdict_success") \
	ID(BY_EXIT, "81b9253080bf453c804975007a920f36", "verdict_exit") \
	ID(BY_SIGNAL, "2424351620f84699a4d0f47c33ecdc45", "verdict_signal") \
	ID(BY_OOM, "c066e38d4bc84c1f920c08f3d16b089b", "verdict_oom") \
	ID(BY_START, "c2832b44d3d04915b7bbb8c8fac8bc15", "verdict_not_startable") \
	ID(BY_REQUEST, "3c92339970f94e64be112812923f9c52", "verdict_stop_signal") \
	ID(BY_MAX_RUNTIME, "e2e30764f30347c1a661a91b3e66bdab", "verdict_max_runtime") \
	ID(BY_NODE_LOST, "93c0233d9c784c1d8db3b7fdc12f6c84", "verdict_node_lost") \
	ID(BY_BAD_NODE, "33eb12fd4b42439ab792e70f6deb8dab", "verdict_bad_node") \
	ID(BY_HANG, "b0d1a9d0f64a4f0f8f6a0f6c1c7e52d3", "verdict_hang") \
	ID(BY_PREEMPTION, "5c1e0b7a9d3f4e6ab2f8d4c07e91a635", "verdict_preempted") \
	ID(BY_TIMEOUT, "b7e40d3c5a2f4d0e9c61f8a27d93b514", "verdict_collective_timeout") \
	ID(BY_GUARD, "7a4b2e3b6ab7490f8208470e7590e617", "verdict_launchd_killed") \
	ID(BY_LAUNCHER, "3275c1aa704d4e4491c9144d1cb0b1cd", "verdict_launcher_ended") \
	ID(NOT_RUN, "f5028797bdbe464b8e14c5df2b1de04f", "verdict_not_run")

#define JOURNAL_ID_NAME(name, number, word) JOURNAL_ID_##name,
enum journal_id { JOURNAL_IDS(JOURNAL_ID_NAME) JOURNAL_ID_COUNT };
#undef JOURNAL_ID_NAME

/* 32 hexadecimal digits. */
const char *journal_id_number(enum journal_id id);

/* The word in EVENT=. */
const char *journal_id_word(enum journal_id id);

/* The verdict on a job; NULL: none was run. */
enum journal_id journal_id_of_end(const struct run_end *end);

#endif
