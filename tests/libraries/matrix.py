"""matrix.py - libraries, and which of them are run from which source. What is left out says why."""
import fnmatch
from dataclasses import dataclass
from typing import Callable

from sources import SOURCES


@dataclass(frozen=True)
class Library:
    """title: for the table. script: of scripts/. environment: where its Python is; None: it is
    Debian's. packages: whose versions the table has, the first one behind the title. ends: the exit
    code, and what the launchers say."""
    title: str
    script: str
    environment: str | None
    packages: tuple
    options: tuple = ("--use_env",)
    arguments: tuple = ()
    ends: tuple = (0, None)


FAILS = (1, "ValueError: the loss of rank 3 is NaN")
TRAINER = ("--output_dir", "trained", "--use_cpu", "--max_steps", "2", "--logging_steps", "1",
           "--per_device_train_batch_size", "2", "--learning_rate", "0.01", "--optim", "sgd",
           "--lr_scheduler_type", "constant", "--save_strategy", "no", "--report_to", "none",
           "--disable_tqdm", "true")


def of_torch(title, script, **more):
    return Library(f"{title}, torch", script, "torch", ("torch",), **more)


LIBRARIES = {
    "ddp-old": Library("DDP, torch", "torch_ddp.py", "torch1.8", ("torch",)),
    "ddp-debian": Library("DDP, torch", "torch_ddp.py", None, ("torch",)),
    "ddp": of_torch("DDP", "torch_ddp.py"),
    "fsdp2": of_torch("FSDP2 on CPUs", "torch_fsdp2.py"),
    "loader": of_torch("DataLoader workers", "torch_loader.py"),
    "checkpoint": of_torch("dcp.async_save", "torch_checkpoint.py"),
    "barrier": of_torch("monitored_barrier", "torch_barrier.py"),
    "record": of_torch("@record", "torch_record.py", ends=FAILS),
    "rpc": of_torch("RPC", "torch_rpc.py"),
    "lightning": Library("Lightning", "lightning_fit.py", "torch", ("lightning", "torch")),
    "accelerate": Library("Accelerate", "accelerate_train.py", "torch", ("accelerate", "torch")),
    "transformers": Library("Trainer, Transformers", "transformers_train.py", "torch",
                            ("transformers", "torch"), arguments=TRAINER),
    "transformers-local-rank": Library(
        "Trainer with --local_rank, Transformers", "transformers_train.py", "torch",
        ("transformers", "torch"), options=(), arguments=TRAINER),
    "deepspeed-init": Library("init_distributed, DeepSpeed", "deepspeed_init.py", "torch",
                              ("deepspeed", "torch")),
    "deepspeed": Library("initialize, DeepSpeed", "deepspeed_engine.py", "torch",
                         ("deepspeed", "torch")),
    "jax": Library("psum with an address, JAX", "jax_psum.py", "jax", ("jax",)),
    "mpi4py": Library("beside DDP, mpi4py", "mpi4py_beside.py", None, ("mpi4py", "torch")),
    "mpi4py-own": Library("beside DDP, with the launcher's own MPI, mpi4py", "mpi4py_beside.py",
                          "source", ("mpi4py", "torch")),
}

# (sources, libraries, why), as patterns; the first that fits says it
LEFT_OUT = (
    ("*", "mpi4py-own", "the launcher has no MPI but Debian's, or none"),
)
OWN_MPI = [name for name, source in SOURCES.items() if source.python]
# CI has no time for the others, nor for environments
IN_CI = {("*", "ddp-debian"), ("*", "mpi4py")}


def fits(pair, patterns):
    return all(fnmatch.fnmatchcase(name, pattern) for name, pattern in zip(pair, patterns))


def left_out(source, library):
    """Why this cell is not tested; None: it is."""
    if library == "mpi4py-own" and source in OWN_MPI:
        return None
    return next((why for *patterns, why in LEFT_OUT if fits((source, library), patterns)), None)


def cells():
    return [(source, library) for library in LIBRARIES for source in SOURCES
            if not left_out(source, library)]


def environments_of(source, library):
    """What must be there besides what ./bootstrap installs."""
    own = LIBRARIES[library].environment
    return {own if own != "source" else SOURCES[source].python} - {None}


def in_ci(source, library):
    return any(fits((source, library), patterns) for patterns in IN_CI) and \
        source not in OWN_MPI
