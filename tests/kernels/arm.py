#!/usr/bin/python3
"""arm.py DIRECTORY - what the whole-program tests need, built for 64-bit Arm: the program as it is
packaged, and their workers. Prints where: $LAUNCHD_BUILD_DIR for them. What the two have in common
with the packages' own builds is kept in DIRECTORY. Exit code 77: packaging/bundled/build.py says why.
"""
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "packaging" / "bundled"))
from build import CANT, Built, CantBeHad  # noqa: E402

TARGET = "aarch64-linux-gnu.2.36"  # of tests/kernels/run's system
LEFT_OUT = {"act", "actor", "pmix_probe"}  # linked statically; linked with the program's parts
PARTS = {"stubborn": ["births", "deeds"]}
LIBRARIES = {"fake_nvml": "libnvidia-ml.so.1"}


def build_workers(tools, into):
    workers = SOURCE / "tests" / "workers"
    into.mkdir(parents=True, exist_ok=True)
    parts = {part for of_one in PARTS.values() for part in of_one}
    for path in workers.glob("*.c"):
        if path.stem not in LEFT_OUT | parts:
            library = LIBRARIES.get(path.stem)
            tools.call(tools.zig, "cc", "-target", TARGET, "-D_GNU_SOURCE", "-pthread", "-O1",
                       *(["-shared", "-fPIC"] if library else []), "-o", into / (library or path.stem),
                       path, *(workers / f"{part}.c" for part in PARTS.get(path.stem, ())))


def main():
    into = Path(sys.argv[1]).resolve()
    try:
        built = Built(into)
        program = built.program("aarch64")
        build_workers(built.tools, program.parent / "tests" / "workers")
    except CantBeHad as why:
        print(f"arm.py: {why}")
        return CANT
    print(program.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
