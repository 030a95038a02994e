/* cuda_ops.h - struct gpu_ops by the CUDA runtime. One GPU and one stream in a process. */
#ifndef LAUNCHD_DAEMON_NODECHECK_CUDA_CUDA_OPS_H
#define LAUNCHD_DAEMON_NODECHECK_CUDA_CUDA_OPS_H

#include <cuda_runtime_api.h>

struct failure;
struct gpu_ops;

extern const struct gpu_ops cuda_ops;

/* The stream of the GPU that is open. */
cudaStream_t cuda_stream(void);

/* 0, or the failure: -EIO where the GPU itself is at fault, -ENOMEM, else another one. */
int cuda_failed(cudaError_t error, const char *call, struct failure *why);

#endif
