#!/bin/sh
# Open MPI without a batch system: ./mpirun.sh gpu01,gpu02,gpu03,gpu04
# The hosts share this directory, and ssh to each of them works without a password.
hosts=${1:?the hosts, separated by commas}
shift

# mpirun sends SIGKILL so many seconds after its SIGTERM (1 by default): training needs them for its
# checkpoint. The other three let mpirun notice within half a minute that a host was lost.
export OMPI_MCA_odls_base_sigkill_timeout=5
export OMPI_MCA_oob_tcp_keepalive_time=2 OMPI_MCA_oob_tcp_keepalive_intvl=1
export OMPI_MCA_oob_tcp_keepalive_probes=12

# One launchd on each host, on all of its CPUs. They find one another by Open MPI's PMIx.
exec mpirun --host "$hosts" --map-by ppr:1:node --bind-to none \
	launchd --nproc_per_node gpu --use_env \
	train_ddp.py --checkpoint checkpoint.pt "$@"
