"""A worker of PyTorch's own tests: calls the function that was pickled, and keeps what it returns."""
import os
import pickle
import sys
from pathlib import Path

from torch.distributed.elastic.multiprocessing.errors import record

place = Path(sys.argv[1])
with open(place / "function", "rb") as kept:
    sys.path[:] = pickle.load(kept)  # before the function's module is looked for
    function, args = pickle.load(kept)
value = record(function)(*args)
(place / f"value.{os.environ['RANK']}").write_bytes(pickle.dumps(value))
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)  # as processes of multiprocessing end: a process group that is left open may abort otherwise
