/* nodecheck_main.c - launchd-nodecheck: checks the GPUs of a job's nodes, their links and network
 * cards. */
#include "daemon/nodecheck/cuda/cuda_ops.h"
#include "daemon/nodecheck/cuda/nccl_ops.h"
#include "daemon/nodecheck/nodecheck.h"

int main(int argc, char **argv)
{
	return nodecheck_main(argc, argv, &cuda_ops, &nccl_ops);
}
