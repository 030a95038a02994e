"""What the kernel of a machine with NVIDIA's driver shows, in a mount namespace of a launcher: /proc/driver/nvidia, and
device files of GPUs in /dev."""
from own_mounts import OWN_MOUNTS

SCRIPT = r'''
mount -t tmpfs none /proc/driver
mkdir -p /proc/driver/nvidia
echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06' >/proc/driver/nvidia/version
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
    return [*OWN_MOUNTS, 'bash', '-ec', SCRIPT, 'bash', str(count), ' '.join(others)]
