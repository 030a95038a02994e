/* ask_memory.h - sources of the black box: memory, pressure and the kernel's OOM killer; and room
 * in the file systems that jobs fill. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_ASK_MEMORY_H
#define LAUNCHD_DAEMON_BLACKBOX_ASK_MEMORY_H

struct source_input;
struct task_answer;

/* Of the machine, of the workers' cgroups up to the top, and of each worker. Leaves memory.txt. */
void ask_memory(const struct source_input *in, struct task_answer *a);

/* /dev/shm, the run's directory, and that of the bundle: statvfs(2) may hang with a file server. */
void ask_room(const struct source_input *in, struct task_answer *a);

#endif
