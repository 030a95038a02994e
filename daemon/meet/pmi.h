/* pmi.h - PMI-1: lines of text to the launcher's process on this host, over the descriptor PMI_FD.
 * Hydra (MPICH, Intel MPI), Flux and srun --mpi=pmi2 speak it. Blocks: for a child process.
 *
 * A process that has said init must say finalize: mpiexec takes an exit between the two for a
 * failure, and kills the others without a word (MPICH 4 and 5). No process can begin a second time.
 */
#ifndef LAUNCHD_DAEMON_MEET_PMI_H
#define LAUNCHD_DAEMON_MEET_PMI_H

#include <stddef.h>
#include <stdint.h>

enum pmi_step {
	PMI_INIT,
	PMI_PUT,
	PMI_BARRIER,
	PMI_GET,
	PMI_FINALIZE,
	PMI_STEPS,
};

struct pmi {
	int fd;
	int64_t until_ms; /* for how long the others are awaited: monotonic_ms() */
	void (*enter)(void *owner, enum pmi_step step); /* before each */
	void *owner;
	char line[4096]; /* the last answer, or why there was none */
};

/* Says finalize for an exchange that was left because others had not come: before this process
 * exits with 0. */
void pmi_finish(int fd);

/* Gives `mine` (len 0: nothing) to all processes of the job, waits until all have come, and gets
 * what rank 0 gave: at most room bytes. Returns its length; negative errno: p->line says why
 * (-ETIMEDOUT: the others have not come). */
long pmi_exchange(struct pmi *p, const void *mine, size_t len, void *ret, size_t room);

#endif
