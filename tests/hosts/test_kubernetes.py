"""examples/kubernetes: what its pods would run, on simulated hosts that have the pods' names. A pod is
a mount namespace in which its volumes lie where the example mounts them."""
import re
import shutil

import pytest
from cluster import HOME
from harness import BUILD, TESTS

yaml = pytest.importorskip("yaml")
EXAMPLES = TESTS.parent / "examples" / "kubernetes"
NAMES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))
IMAGE = f"{HOME}/image"  # with the files of packaging/Containerfile
# $1: where a volume lies; $2: where it is mounted; $3: how. $2 must be below /opt.
POD = f"""set -e
mount -t tmpfs none /opt
mkdir "$2"
mount --bind "$1" "$2"
mount -o "remount,bind,$3" "$2"
mount --bind {IMAGE} /usr/local
shift 3
exec "$@"
"""
# What containers find in a pod, however its host is made: Python, and the NVML that stands for a driver's.
NEEDED = f"import ctypes; ctypes.CDLL('{BUILD}/tests/workers/libnvidia-ml.so.1')"
TRAIN = """
import os, signal, sys
rank = os.environ["RANK"]
print(f"rank {rank} of {os.environ['WORLD_SIZE']} on {os.uname().nodename}", flush=True)
with open("told", "w") as told:
    told.write(f"{rank} {os.getpid()} started\\n")
os.read(os.open("go", os.O_RDONLY), 1)
if os.path.exists("bad"):
    sys.exit(7) if rank == "2" else signal.pause()
"""


class Pods:
    """Those of an example."""

    def __init__(self, hosts, name):
        self.hosts = hosts
        documents = list(yaml.safe_load_all((EXAMPLES / name).read_text()))
        self.service, self.owner = documents
        self.spec = self.owner["spec"]["template"]["spec"]
        self.names = [f"{self.owner['metadata']['name']}-{i}" for i in range(len(hosts.names))]
        subdomain = self.service["metadata"]["name"]
        # what the cluster's name service says
        with open(hosts.home.parent / "hosts", "a", encoding="utf-8") as file:
            for pod, address in zip(self.names, hosts.addresses):
                print(address, f"{pod}.{subdomain}", pod, file=file)
        for host, pod in enumerate(self.names):
            assert hosts.run(host, ["hostname", pod]).returncode == 0
            (hosts.home / pod).mkdir()
        (hosts.home / "image/bin").mkdir(parents=True)
        shutil.copy(BUILD / "launchd", hosts.home / "image/bin")
        (hosts.home / "train.py").write_text(TRAIN)
        self.told, self.go = hosts.fifo("told")[0], hosts.fifo("go")[0]

    def start(self, host, container, **options):
        """Of the pod on that host."""
        mount, = [mount for mount in container["volumeMounts"] if mount["name"] == "launchd"]
        secrets = [entry["name"] for entry in container.get("env", ()) if "valueFrom" in entry]
        return self.hosts.popen(host, [
            "unshare", "--mount", "sh", "-c", POD, "sh", f"{HOME}/{self.names[host]}",
            mount["mountPath"], "ro" if mount.get("readOnly") else "rw", *container["command"]],
            {**self.hosts.sanitizers(), **dict.fromkeys(secrets, "0123456789abcdef" * 2),
             "LD_LIBRARY_PATH": str(BUILD / "tests/workers"), "FAKE_GPUS": "2",
             "OMP_NUM_THREADS": "1"}, **options)

    def start_all(self):
        """As Kubernetes does: in each pod the init container, and then the other."""
        init, = self.spec["initContainers"]
        main, = self.spec["containers"]
        for host in range(len(self.names)):
            done = self.hosts.finish(self.start(host, init))
            assert done.returncode == 0, done.stderr
        return [self.start(host, main) for host in range(len(self.names))]

    def all_started(self, running):
        self.told.expect("started", 4, running)


def why_no_pods(hosts):
    """Why a host can't have them, in the words of what failed; None: it can."""
    (hosts.home / "trial").mkdir()
    (hosts.home / "image").mkdir(exist_ok=True)
    trial = hosts.run(0, ["unshare", "--mount", "sh", "-c", POD, "sh", f"{HOME}/trial", "/opt/trial", "ro",
                          "python3", "-c", NEEDED])
    return trial.stderr.strip() or f"a trial ended with {trial.returncode}" if trial.returncode else None


@pytest.fixture
def pods(make_hosts):
    def make(name):
        hosts = make_hosts(2)
        why = why_no_pods(hosts)
        if why:
            pytest.skip(f"pods can't be made here: {why}")
        return Pods(hosts, name)

    return make


@pytest.mark.parametrize("name", NAMES)
def test_the_pods_meet_and_end(pods, name):
    pods = pods(name)
    pods.go.go(4)
    done = [pods.hosts.finish(process) for process in pods.start_all()]
    assert [one.returncode for one in done] == [0, 0], done
    for host, one in enumerate(done):
        assert sorted(one.stdout.splitlines()) == [
            f"rank {2 * host + i} of 4 on {pods.names[host]}" for i in range(2)]


@pytest.mark.parametrize("name", NAMES)
def test_all_pods_end_with_the_code_of_a_worker_that_fails(pods, name):
    pods = pods(name)
    (pods.hosts.home / "bad").touch()
    running = pods.start_all()
    pods.all_started(running)
    pods.go.go(4)
    done = [pods.hosts.finish(process) for process in running]
    assert [one.returncode for one in done] == [7, 7], done
    assert re.search(r"root cause: rank 2 \(local rank 0, pid \d+\) on train-1 ", done[0].stderr)


def test_a_pod_that_dies_and_comes_back(pods):
    """As a StatefulSet lets it: the other pod ends, and all containers are started again."""
    pods = pods("statefulset.yaml")
    first, second = running = pods.start_all()
    pods.all_started(running)
    pods.hosts.kill_all(1)
    assert pods.hosts.finish(first).returncode == 125
    pods.hosts.finish(second)
    pods.go.go(4)
    assert [pods.hosts.finish(process).returncode for process in pods.start_all()] == [0, 0]


@pytest.mark.parametrize("name", NAMES)
def test_grace_and_names_fit(pods, launch, name):
    """What Kubernetes would not say: it kills after its grace, and finds nobody by a wrong name."""
    pods = pods(name)
    default = re.search(r"--shutdown-timeout SECONDS.*?\[(\d+)\]", launch(["--help"]).out, re.S)[1]
    assert pods.spec["terminationGracePeriodSeconds"] > int(default)
    name_of_service = pods.service["metadata"]["name"]
    assert name_of_service in (pods.owner["spec"].get("serviceName"), pods.spec.get("subdomain"))
    assert f"--rdzv-endpoint={pods.names[0]}.{name_of_service}:29400" in \
        pods.spec["containers"][0]["command"]
    labels = pods.owner["spec"]["template"]["metadata"]["labels"]
    assert pods.service["spec"]["selector"].items() <= labels.items()
