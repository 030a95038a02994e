#!/bin/bash
# Slurm: sbatch slurm.sh. Saves a checkpoint before the time limit and goes back into the queue.
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=04:00:00
# 120 s before the limit: SIGUSR1 to launchd on all nodes, not to this script (that would be B:USR1).
# Slurm may send it up to a minute early.
#SBATCH --signal=USR1@120
# A job that lost a node or was preempted starts again by itself; its output is kept.
#SBATCH --requeue
#SBATCH --open-mode=append
#
# On a cluster add what its nodes need: --gpus-per-node=8, --cpus-per-task=96, --exclusive, --partition.

# - Slurm sends SIGTERM when it preempts or cancels the job; training then has KillWait (30 s unless
#   slurm.conf says another number) for its checkpoint.
# - At SIGUSR1 launchd sends the workers SIGTERM, too (or what --preempt-signal says), but they have 100 s.
# - Without "--mpi=pmix" launchers meet at the step's first host; then give them a key (LAUNCHD_KEY).
srun --mpi=pmix launchd --nproc_per_node gpu --use_env --on-signal USR1=preempt:100 \
	train_ddp.py --checkpoint checkpoint.pt "$@"
code=$?

# 75 asks for it: the time was over, and a checkpoint is there. Any other failure ends the job.
[ "$code" -ne 75 ] || scontrol requeue "$SLURM_JOB_ID"
exit "$code"
