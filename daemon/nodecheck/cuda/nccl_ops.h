/* nccl_ops.h - struct collective_ops by NCCL, which is loaded at run time: from $NCCL_HOME/lib, or
 * where the loader looks. So the program runs where there is none, and takes the one that jobs
 * take. */
#ifndef LAUNCHD_DAEMON_NODECHECK_CUDA_NCCL_OPS_H
#define LAUNCHD_DAEMON_NODECHECK_CUDA_NCCL_OPS_H

struct collective_ops;

extern const struct collective_ops nccl_ops;

#endif
