"""What the kernel of a machine with NVIDIA's driver shows, in a mount namespace of a launcher: /proc/driver/nvidia or
the PCI bus, and device files of GPUs in /dev."""
from own_mounts import OWN_MOUNTS

DRIVER = r'''
mount -t tmpfs none /proc/driver
mkdir -p /proc/driver/nvidia
echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06' >/proc/driver/nvidia/version
'''
BUS = r'''
mount -t tmpfs none /sys/bus/pci/devices
n=0
for driver in $1; do
    n=$((n + 1)); at=/sys/bus/pci/devices/0000:1$n:00.0; mkdir $at
    echo 0x10de >$at/vendor; echo 0x030200 >$at/class
    [ $driver = - ] || ln -s ../../drivers/$driver $at/driver
done
shift
'''
NODES = r'''
mount -t tmpfs none /mnt
for one in null zero full random urandom tty kmsg shm pts; do
    if [ -d /dev/$one ]; then mkdir /mnt/$one; elif [ -e /dev/$one ]; then : >/mnt/$one; else continue; fi
    mount --rbind /dev/$one /mnt/$one
done
ln -s /proc/self/fd /mnt/fd
for ((gpu = 0; gpu < $1; gpu++)); do : >/mnt/nvidia$gpu; done
mount --rbind /mnt /dev
for one in $2; do : >/mnt/$one; done
shift 2
exec "$@"
'''


def with_gpus(count, *others):
    """What to put before a launcher (wrap=), for a machine with so many GPUs; 0: a container without any. others: more
    device files."""
    return [*OWN_MOUNTS, 'bash', '-ec', DRIVER + NODES, 'bash', str(count), ' '.join(others)]


def on_bus(drivers, nodes=0):
    """What to put before a launcher, for a machine whose PCI bus has a GPU of NVIDIA's for each driver (-: none), and
    so many device files."""
    return [*OWN_MOUNTS, 'bash', '-ec', BUS + NODES, 'bash', ' '.join(drivers), str(nodes), '']
