/* near_nic.h - which port of an InfiniBand or RoCE device a GPU is closest to. Pure. */
#ifndef LAUNCHD_DAEMON_PLACE_NEAR_NIC_H
#define LAUNCHD_DAEMON_PLACE_NEAR_NIC_H

struct arena;
struct machine;
struct machine_nic;

/* Of the ports that are up the closest, an index of m->nics; of several that are equally close they
 * share these in turn with the GPUs that are as close to the same ones. NCCL chooses by the same
 * distances. MACHINE_NOWHERE: there is none, or gpu is MACHINE_NOWHERE. */
int near_nic(const struct machine *m, int gpu);

/* As UCX and NCCL call it: "mlx5_0:1"; of an interface without a device "eth0". The arena's. */
const char *nic_name(const struct machine_nic *nic, struct arena *arena);

#endif
