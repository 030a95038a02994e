#!/usr/bin/python3
"""arm.py DIRECTORY - what the whole-program tests need, built for 64-bit Arm: the program as it is
packaged, and their workers. Prints where: $LAUNCHD_BUILD_DIR for them. What the two have in common
with the packages' own builds is kept in DIRECTORY. Exit code 77: packaging/bundled/build.py says why.

arm.py --unit-tests DIRECTORY - the unit tests, by qemu-user. Prints how they ended, for
DIRECTORY/aarch64/tests/meson-logs/testlog.junit.xml.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "packaging" / "bundled"))
from build import CANT, Built, CantBeHad  # noqa: E402

TARGET = "aarch64-linux-gnu.2.36"  # of tests/kernels/run's system
LEFT_OUT = {"act", "actor", "pmix_probe"}  # linked statically; linked with the program's parts
PARTS = {"stubborn": ["births", "deeds"]}
LIBRARIES = {"fake_nvml": "libnvidia-ml.so.1"}
QEMU = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]  # Debian's libc6-arm64-cross
# qemu-user makes a fork of a child that is to share our memory, has threads and memory of its own
# beside ours, another root for what is opened than for what links lead to, and is slow; and Debian's
# other libraries are not there
NOT_BY_QEMU = {"back", "cgroup", "cgroup_kill", "child", "child_signal_safe", "dlib", "guard", "helper",
               "joined", "leftovers", "look_at_worker", "oom", "pool", "procfs", "report_schema", "shed",
               "sodium", "spawn", "store_limits", "tree", "witness"}


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


def run_unit_tests(into):
    if not shutil.which(QEMU[0]) or not Path(QEMU[-1]).exists():
        raise CantBeHad("no qemu-user and libc6-arm64-cross here")
    built = Built(into)
    wrapper = into / "qemu.ini"
    wrapper.write_text(f"[binaries]\nexe_wrapper = {QEMU}\n")
    meson = built.set_up("aarch64", "tests", "-Dtests=enabled", "--cross-file", wrapper)
    tests = json.loads(built.tools.call(built.tools.bin / "meson", "introspect", "--tests", meson))
    names = {test["name"] for test in tests if {"unit", "no_valgrind"} & {
        suite.partition(":")[2] for suite in test["suite"]}}
    assert names > NOT_BY_QEMU, NOT_BY_QEMU - names
    return subprocess.run([built.tools.bin / "meson", "test", "-C", meson, "--num-processes",
                           str(len(os.sched_getaffinity(0))), "--timeout-multiplier", "5",
                           "--print-errorlogs", *sorted(names - NOT_BY_QEMU)],
                          env=built.tools.env).returncode


def main():
    into = Path(sys.argv[-1]).resolve()
    try:
        if "--unit-tests" in sys.argv:
            return run_unit_tests(into)
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
