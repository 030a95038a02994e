"""Puts launchd in torchrun's place in PyTorch's own tests, without a change of their files: Python
reads this at its start, in the tests' process and in those that it spawns, but not in workers.

torch.distributed.run.main, torch.distributed.launch's main, elastic_launch and LocalElasticAgent
start the program $LAUNCHD_TORCHRUN; what the tests look at is made of its exit code and its report.
"""
import ctypes
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TORCHRUN = os.environ.get("LAUNCHD_TORCHRUN")
OURS = ("LAUNCHD_TORCHRUN", "LAUNCHD_STARTS")
USAGE = 2
LIMIT_S = 300
PR_SET_PDEATHSIG = 1
ETCD = ("etcd", "etcd-v2")


def start(program, arguments):
    """A launcher of the tests; its output goes where sys.stdout does, as that of a function would."""
    with open(os.environ["LAUNCHD_STARTS"], "a") as starts:
        starts.write(os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0] + "\n")
    env = {name: value for name, value in os.environ.items() if name not in OURS}
    env["PYTHONPATH"] = os.pathsep.join(path for path in env["PYTHONPATH"].split(os.pathsep)
                                        if Path(path) != HERE)
    # who kills the tests' process kills the agent in it
    die = ctypes.CDLL(None).prctl
    done = subprocess.run([program, *arguments], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", timeout=LIMIT_S,
                          preexec_fn=lambda: die(PR_SET_PDEATHSIG, signal.SIGKILL))
    print(done.stdout, end="", flush=True)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    if done.returncode == USAGE and "launchd: error: root cause" not in done.stderr:
        raise ValueError(done.stderr.strip())
    return done


def without_etcd(arguments):
    """c10d where a test says etcd, which launchd has none of: no test is about it."""
    if os.environ.get("PET_RDZV_BACKEND") in ETCD:
        os.environ["PET_RDZV_BACKEND"] = "c10d"
    return [re.sub(r"^(--rdzv[_-]backend)=etcd(-v2)?$", r"\1=c10d", arg) for arg in arguments]


def main_of(*launcher):
    """torch.distributed.run.main, or that of torch.distributed.launch."""

    def main(args=None):
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        args = without_etcd(sys.argv[1:] if args is None else args)
        with Reports() as reports:
            if start(launcher[0], [*launcher[1:], *reports.wanted(), *args]).returncode:
                raise ChildFailedError(str(args), reports.failures())

    return main


class Reports:
    """What a launchd reported, and where its workers' error files and return values are."""

    def __enter__(self):
        self.place = Path(tempfile.mkdtemp(prefix="launchd-"))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.place)

    def wanted(self):
        return ["--report", str(self.place / "%n.json")]

    def read(self):
        found = [json.loads(path.read_text()) for path in self.place.glob("*.json")]
        return found[0] if found else None

    def mine(self):
        """This node's workers, as they ended."""
        report = self.read()
        return [worker for worker in report["workers"] if worker["node"] == report["job"]["node_rank"]]

    def failures(self, logs=None):
        """rank -> ProcessFailure, of this node's workers; the one that failed first comes first, as
        torch looks no closer than at seconds."""
        from torch.distributed.elastic.multiprocessing.errors import ProcessFailure
        report, failures = self.read(), {}
        if not report:
            return failures
        first = (report["culprit"] or {}).get("rank")
        for worker in sorted(self.mine(), key=lambda worker: worker["rank"] != first):
            code = -signal.Signals[worker["signal"]] if worker["signal"] else worker["exit_code"]
            if not code:
                continue
            found = f"*/attempt_{worker['attempt']}/{worker['local_rank']}/error.json"
            files = [*Path(logs).glob(found)] if logs else []
            failures[worker["rank"]] = ProcessFailure(
                local_rank=worker["local_rank"], pid=worker["pid"], exitcode=code,
                error_file=str(files[0]) if files else "<N/A>")
        return failures


class Agent:
    """LocalElasticAgent, as far as its users see it."""

    def __init__(self, spec, logs_specs=None, start_method="spawn", exit_barrier_timeout=300,
                 log_line_prefix_template=None, log_dir=None, redirects=None, tee=None, **_):
        from torch.distributed.elastic.agent.server.api import WorkerGroup
        self.spec, self.template, self.start_method = spec, log_line_prefix_template, start_method
        self.logs = logs_specs.root_log_dir if logs_specs else log_dir
        self.redirects = getattr(logs_specs, "_redirects", redirects)
        self.tee = getattr(logs_specs, "_tee", tee)
        self.group = WorkerGroup(spec)

    def get_worker_group(self, role=None):
        return self.group

    def run(self, role="default"):
        from torch.distributed.elastic.agent.server.api import RunResult, WorkerState
        with Reports() as reports:
            done = start(TORCHRUN, [*reports.wanted(), *self.options(reports), *self.command(reports)])
            failed = done.returncode != 0
            failures = reports.failures(self.logs) if failed else {}
            values = {} if failed else self.values(reports)
            self.tell(reports.read()["job"])
        self.group.state = WorkerState.FAILED if failed else WorkerState.SUCCEEDED
        return RunResult(state=self.group.state, return_values=values, failures=failures)

    def tell(self, job):
        """What tests look at in an agent that has ended."""
        self._remaining_restarts = job["max_restarts"] - job["attempt"]
        self._total_execution_time = job["seconds"]

    def get_event_succeeded(self):
        from torch.distributed.elastic.events import Event, EventSource
        return Event("torchrun", EventSource.AGENT)

    get_event_failed = get_event_succeeded

    def options(self, reports):
        spec, handler = self.spec, self.spec.rdzv_handler
        nodes = sorted({handler.min_nodes, handler.max_nodes})
        options = {
            "--nnodes": ":".join(map(str, nodes)), "--nproc-per-node": spec.local_world_size,
            "--rdzv-backend": "c10d" if handler.backend in ETCD else handler.backend,
            "--rdzv-endpoint": handler.endpoint, "--rdzv-id": handler.run_id,
            "--node-rank": handler.config.get("rank"), "--role": spec.role,
            "--max-restarts": spec.max_restarts, "--monitor-interval": spec.monitor_interval,
            "--start-method": self.start_method, "--log-dir": self.logs or reports.place / "logs",
            "--redirects": streams(self.redirects) or None, "--tee": streams(self.tee) or None,
            "--master-addr": spec.master_addr, "--master-port": spec.master_port,
            "--log-line-prefix-template": self.template,
        }
        self.logs = options["--log-dir"]
        return [f"{name}={value}" for name, value in options.items() if value is not None]

    def command(self, reports):
        entry, args = self.spec.entrypoint or self.spec.fn, self.spec.args
        if isinstance(entry, str):
            return ["--no-python", entry, *map(str, args)]
        (reports.place / "function").write_bytes(pickle.dumps(sys.path) + pickle.dumps((entry, args)))
        return ["--no-python", sys.executable, str(HERE / "call.py"), str(reports.place)]

    def values(self, reports):
        kept = {worker["rank"]: reports.place / f"value.{worker['rank']}" for worker in reports.mine()}
        return {rank: pickle.loads(path.read_bytes()) if path.exists() else None
                for rank, path in kept.items()}


def streams(which):
    """As on torchrun's command line."""
    if isinstance(which, dict):
        return ",".join(f"{rank}:{int(value)}" for rank, value in which.items())
    return int(which or 0)


class Handler:
    """A rendezvous handler that keeps how launchd is to meet: launchd meets by itself."""

    def __init__(self, parameters):
        vars(self).update(vars(parameters))

    def shutdown(self):
        return True


class NoEtcd:
    """Of etcd, an address."""

    def start(self, *_, **__):
        from torch.distributed.elastic.utils import get_socket_with_port
        with get_socket_with_port() as listening:
            self.endpoint = f"localhost:{listening.getsockname()[1]}"

    def get_endpoint(self):
        return self.endpoint

    def stop(self):
        pass


def take_over():
    import torch
    import torch.distributed.elastic.agent.server.local_elastic_agent as agent
    import torch.distributed.elastic.rendezvous.etcd_server as etcd_server
    import torch.distributed.elastic.rendezvous.registry as registry
    import torch.distributed.launch as classic
    import torch.distributed.launcher.api as api
    import torch.distributed.run as run
    os.environ["PYTHON_EXEC"] = sys.executable
    spelling = "--local_rank" if torch.__version__ < "2" else "--local-rank"
    run.main = main_of(TORCHRUN)
    classic.main = main_of(os.path.realpath(TORCHRUN), f"--local_rank_arg={spelling}")
    agent.LocalElasticAgent = api.LocalElasticAgent = Agent
    registry.get_rendezvous_handler = Handler
    etcd_server.EtcdServer = NoEtcd


if TORCHRUN:
    take_over()
