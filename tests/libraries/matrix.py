"""matrix.py - libraries, and which of them are run from which source. What is left out says why."""
from dataclasses import dataclass, replace

from sources import BY_HAND, BY_LAUNCHERS, PER_WORKER, SOURCES


@dataclass(frozen=True)
class Library:
    """title: for the table. script: of scripts/. environment: where its Python is; None: it is
    Debian's, OF_SOURCE: the source's. packages: whose versions the table has. ends: the exit code, and
    what the launchers say."""
    title: str
    script: str
    environment: str | None
    packages: tuple
    options: tuple = ("--use_env",)
    arguments: tuple = ()
    ends: tuple = (0, None)


OF_SOURCE = "the source's"
FAILS = (1, "ValueError: the loss of rank 3 is NaN")
TRAINER = ("--output_dir", "trained", "--use_cpu", "--max_steps", "2", "--logging_steps", "1",
           "--per_device_train_batch_size", "2", "--learning_rate", "0.01", "--optim", "sgd",
           "--lr_scheduler_type", "constant", "--save_strategy", "no", "--report_to", "none",
           "--disable_tqdm", "true")


def of_torch(title, script, **more):
    return Library(title, script, "torch", ("torch",), **more)


LIBRARIES = {
    "ddp-old": Library("DistributedDataParallel", "torch_ddp.py", "torch1.8", ("torch",)),
    "ddp-debian": Library("DistributedDataParallel", "torch_ddp.py", None, ("torch",)),
    "ddp": of_torch("DistributedDataParallel", "torch_ddp.py"),
    "fsdp2": of_torch("FSDP2 on CPUs", "torch_fsdp2.py"),
    "loader": of_torch("DataLoader workers", "torch_loader.py"),
    "checkpoint": of_torch("`dcp.async_save`", "torch_checkpoint.py"),
    "barrier": of_torch("`monitored_barrier`", "torch_barrier.py"),
    "record": of_torch("`@record`", "torch_record.py", ends=FAILS),
    "rpc": of_torch("RPC", "torch_rpc.py"),
    "lightning": Library("Trainer", "lightning_fit.py", "torch", ("lightning", "torch")),
    "accelerate": Library("Accelerator", "accelerate_train.py", "torch", ("accelerate", "torch")),
    "transformers": Library("Trainer", "transformers_train.py", "torch",
                            ("transformers", "torch"), arguments=TRAINER),
    "transformers-local-rank": Library(
        "Trainer with `--local_rank`", "transformers_train.py", "torch",
        ("transformers", "torch"), options=(), arguments=TRAINER),
    "deepspeed-init": Library("`init_distributed`", "deepspeed_init.py", "torch",
                              ("deepspeed", "torch")),
    "deepspeed": Library("`initialize`", "deepspeed_engine.py", "torch",
                         ("deepspeed", "torch")),
    "jax": Library("`psum`, `initialize()` with an address", "jax_psum.py", "jax", ("jax",)),
    "jax-env": Library("`psum`, `initialize()` without arguments: `--jax-env`", "jax_psum.py", "jax",
                       ("jax",), options=("--use_env", "--jax-env")),
    "tensorflow": Library("MultiWorkerMirroredStrategy: `--tf-config`", "tensorflow_mirrored.py",
                          "tensorflow", ("tensorflow-cpu",), options=("--use_env", "--tf-config")),
    "tensorflow-ps": Library(
        "ParameterServerStrategy: `--tf-config --tf-roles`", "tensorflow_ps.py", "tensorflow",
        ("tensorflow-cpu",),
        options=("--use_env", "--tf-config", "--tf-roles", "chief=1,ps=1,worker=2")),
    "mpi4py": Library("DistributedDataParallel, and mpi4py imported", "mpi4py_beside.py", None,
                      ("mpi4py", "torch")),
    "mpi4py-own": Library("DistributedDataParallel, and mpi4py with the launcher's own MPI",
                          "mpi4py_beside.py", OF_SOURCE, ("mpi4py", "torch")),
    "mpi4py-job": Library("all communication by mpi4py, with the launcher's own MPI",
                          "mpi4py_job.py", OF_SOURCE, ("mpi4py",)),
    "horovod": Library("DistributedOptimizer", "horovod_train.py", "horovod", ("horovod", "torch")),
}
# what one library wants must not confuse another
EVERYTHING = ("--tf-config", "--jax-env")
WITH_ALL = {f"{name}-all": replace(
    LIBRARIES[name], title=f"{LIBRARIES[name].title}, beside `{' '.join(EVERYTHING)}`",
    options=(*LIBRARIES[name].options, *(o for o in EVERYTHING if o not in LIBRARIES[name].options)))
    for name in ("ddp-debian", "ddp", "lightning", "accelerate", "transformers", "deepspeed-init",
                 "jax-env", "tensorflow", "mpi4py")}
LIBRARIES |= WITH_ALL

# What is left out: sources, libraries, why; the first that has both says it.
ALL = set(SOURCES)
OWN_MPI = {name for name, source in SOURCES.items() if source.python}
STAND_FOR_ALL = {"shell", "torchrun", "openmpi4", "srun-pmix"}
LIKE_OTHERS = {"fsdp2", "loader", "checkpoint", "barrier", "record", "rpc", "transformers-local-rank",
               "deepspeed", "tensorflow-ps", *WITH_ALL}
OF_MPI = {"mpi4py-job", "horovod"}
STANDS_FOR = "it gets its ranks as the other rows of its library do: where it runs stands for the rest"
LEFT_OUT = (
    ({*BY_HAND, *BY_LAUNCHERS}, OF_MPI,
     "MPI knows the launchers and not their workers, each of which is an MPI job of its own, unless "
     "there is a launcher for each (`--per-process`)"),
    ({"srun-each"}, OF_MPI, "without PMIx each of srun's processes is an MPI job of its own"),
    ({"mpich4-each"}, OF_MPI, "Debian's mpi4py, and Horovod here, are compiled for Open MPI 4"),
    ({"openmpi5-each", "mpich5-each", "impi-each"}, {"horovod"}, "Horovod is compiled for Open MPI 4"),
    (set(PER_WORKER), {"mpi4py", "mpi4py-own"}, "MPI knows these workers: see the row in which all "
     "communication is mpi4py's"),
    (ALL - OWN_MPI, {"mpi4py-own"}, "its MPI is Debian's, which the row above has, or it has none"),
    (ALL - STAND_FOR_ALL, LIKE_OTHERS, STANDS_FOR),
    (set(PER_WORKER), set(LIBRARIES) - {"ddp", "ddp-debian", "lightning", "deepspeed-init", "jax-env",
                                        "tensorflow", *OF_MPI},
     STANDS_FOR),
)
# CI has each source with one library, PyTorch where most users are, and no time for environments
IN_CI = {"ddp-debian-all": {"openmpi4"}, "ddp-debian": {"openmpi4", "srun-pmix", "torchrun", "openmpi4-each"},
         "mpi4py": {"shell", "pet", "mpich4", "srun", "azureml"}, "mpi4py-job": {"srun-pmix-each"}}


def left_out(source, library):
    """Why this cell is not tested; None: it is."""
    return next((why for sources, libraries, why in LEFT_OUT
                 if source in sources and library in libraries), None)


def cells():
    return [(source, library) for library in LIBRARIES for source in SOURCES
            if not left_out(source, library)]


def environment_of(source, library):
    """Where its Python is; None: it is Debian's."""
    own = LIBRARIES[library].environment
    return SOURCES[source].python if own == OF_SOURCE else own


def in_ci(source, library):
    return source in IN_CI.get(library, ()) and not SOURCES[source].python
