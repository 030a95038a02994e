/* nodecheck.h - the program launchd-nodecheck, whatever stands behind its tables of functions. */
#ifndef LAUNCHD_DAEMON_NODECHECK_NODECHECK_H
#define LAUNCHD_DAEMON_NODECHECK_NODECHECK_H

struct collective_ops;
struct gpu_ops;

/* main(): returns the exit code, of enum nodecheck_exit. */
int nodecheck_main(
	int argc, char **argv, const struct gpu_ops *gpu, const struct collective_ops *collective);

#endif
