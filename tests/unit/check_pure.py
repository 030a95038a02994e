#!/usr/bin/env python3
"""Looks at what files promise: pure sources stay pure, the child stays async-signal-safe.

check_pure.py pure FILE...     none includes <uv.h> or <unistd.h>, itself or by a header of ours
check_pure.py child NM OBJECT  OBJECT needs no symbol but those of the list below
"""
import pathlib
import re
import subprocess
import sys

FORBIDDEN = {"uv.h", "unistd.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# signal-safety(7), as far as the child needs it
SAFE = {
    "_exit", "close", "dup2", "execve", "fcntl", "fcntl64", "getpid", "getppid", "kill", "setpgid", "open", "open64", "setsid",
    "sigaction", "sigaddset", "sigdelset", "sigemptyset", "sigfillset", "sigismember",
    "sigprocmask", "write",
}
# bare system calls on Linux, which neither lock nor allocate, although POSIX says nothing of them
BARE = {"prctl", "setpriority", "syscall", "setrlimit", "setrlimit64", "sched_setaffinity"}
# what compilers add: the place of errno, the stack protector, position independence
COMPILER = {"__errno_location", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_", "memset", "memcpy", "strlen"}
SANITIZER = re.compile(r"__(asan|ubsan|tsan|sanitizer|gcov|llvm)_|_ITM_|__gmon_start__")


def includes(path, root, seen):
    """Every include of a file, with ours followed."""
    for kind, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        ours = root / name
        if kind == "<":
            yield path, name
        elif ours not in seen:
            seen.add(ours)
            yield from includes(ours, root, seen)


def check_pure(root, files):
    bad = []
    for file in map(pathlib.Path, files):
        bad += [f"{file}: {by} includes <{name}>"
                for by, name in includes(file, root, set()) if name in FORBIDDEN]
    if not files:
        bad.append("no pure sources were given")
    return bad


def check_child(nm, target):
    lines = subprocess.run([nm, "--undefined-only", "--format=posix", target], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.splitlines()
    symbols = {line.split()[0] for line in lines if len(line.split()) > 1}
    bad = [f"{target}: {name} is not async-signal-safe" for name in sorted(symbols)
           if name not in SAFE | BARE | COMPILER and not SANITIZER.match(name)]
    if "execve" not in symbols:
        bad.append(f"{target}: execve is not used: is this the child?")
    return bad


def main(argv):
    root = pathlib.Path(__file__).resolve().parents[2]
    bad = check_pure(root, argv[2:]) if argv[1] == "pure" else check_child(argv[2], argv[3])
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
