#!/usr/bin/python3
"""build.py - one file that runs everywhere: launchd for other machines than this one.

    packaging/bundled/build.py [--into DIRECTORY] [x86_64] [aarch64]

makes DIRECTORY/ARCHITECTURE/launchd (default: build-wheel), which needs the C library alone, and
that as old as TARGETS says. libuv, inih, libsodium, cJSON and hwloc are linked in, from the sources of
Debian that are listed in `sources`; the compiler, Zig's, is PyPI's package ziglang. Of PMIx the
headers are taken: its library is loaded at run time, and is the server's.

What is fetched and built is kept in DIRECTORY; the same sources give the same bytes, wherever they
lie. Exit code 1: it can't be built; 77: something can't be fetched here.
"""
import argparse
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
CANT = 77

# The oldest glibc that each is to run with: that of manylinux2014, the first one for aarch64.
TARGETS = {"x86_64": "x86_64-linux-gnu.2.17", "aarch64": "aarch64-linux-gnu.2.17"}
FLAGS = ["-UNDEBUG", "-ffunction-sections", "-fdata-sections", "-fstack-protector-strong",
         "-fstack-clash-protection"]
FLAGS_FOR = {"x86_64": ["-fcf-protection"], "aarch64": ["-mbranch-protection=standard"]}

UV_SOURCES = """fs-poll idna inet random strscpy strtok thread-common threadpool timer uv-common
    uv-data-getter-setters version unix/async unix/core unix/dl unix/fs unix/getaddrinfo
    unix/getnameinfo unix/linux unix/loop unix/loop-watcher unix/pipe unix/poll unix/process
    unix/procfs-exepath unix/proctitle unix/random-devurandom unix/random-getrandom
    unix/random-sysctl-linux unix/signal unix/stream unix/tcp unix/thread unix/tty unix/udp""".split()

HWLOC_COMPONENTS = "noos xml synthetic xml_nolibxml linux".split()
HWLOC_SOURCES = """base64 bind bitmap components cpukinds diff distances memattrs misc pci-common shmem
    topology topology-hardwired topology-linux topology-noos topology-synthetic topology-xml
    topology-xml-nolibxml traversal""".split()
# of what its configure looks for, that which glibc and the compiler have
HWLOC_HAS = """HAVE_CLOCK_GETTIME HAVE_CTYPE_H HAVE_DECL_FABSF HAVE_DECL_MODFF HAVE_DECL_SCHED_GETCPU
    HAVE_DECL_SNPRINTF HAVE_DECL_STRTOULL HAVE_DECL__SC_NPROCESSORS_CONF
    HAVE_DECL__SC_NPROCESSORS_ONLN HAVE_DECL__SC_PAGESIZE HAVE_DECL__SC_PAGE_SIZE HAVE_DIRENT_H
    HAVE_GETPAGESIZE HAVE_MALLOC_H HAVE_MKSTEMP HAVE_OPENAT HAVE_POSIX_MEMALIGN
    HAVE_PROGRAM_INVOCATION_NAME HAVE_STDINT_H HAVE_STRINGS_H HAVE_STRNCASECMP HAVE_SYS_MMAN_H
    HAVE_SYS_STAT_H HAVE_SYS_UTSNAME_H HAVE_TIME_H HAVE_UNAME HAVE_UNISTD_H
    HWLOC_HAVE_ATTRIBUTE_FORMAT HWLOC_HAVE_CORRECT_SNPRINTF HWLOC_HAVE_CPU_SET
    HWLOC_HAVE_CPU_SET_S HWLOC_HAVE_DECL_FFS HWLOC_HAVE_DECL_FFSL HWLOC_HAVE_DECL_STRCASECMP
    HWLOC_HAVE_DECL_STRNCASECMP HWLOC_HAVE_FFS HWLOC_HAVE_FFSL HWLOC_HAVE_LINUXIO
    HWLOC_HAVE_LINUXPCI HWLOC_HAVE_PTHREAD_MUTEX HWLOC_HAVE_SCHED_SETAFFINITY HWLOC_HAVE_SYSCALL
    HWLOC_INSIDE_LIBHWLOC HWLOC_LINUX_SYS""".split()


class Failed(Exception):
    """Says what, and how."""


class CantBeHad(Failed):
    """Something that is needed can't be fetched here."""


def call(*argv, failure=Failed, **options):
    """Its output. Raises failure, with the last that it said."""
    done = subprocess.run(list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise failure(f"{argv[0]} {argv[1]} failed:\n{done.stdout.strip()[-3000:]}")
    return done.stdout


class Source:
    """A source package of Debian's, unpacked and with its patches."""

    def __init__(self, line, into):
        self.name, self.version, self.suite, self.sha256, *licence = line.split()
        self.spdx = licence[0].split(",") if licence else []
        self.licences = licence[1:]
        self.upstream = self.version.rpartition("-")[0]
        self.place = into / f"{self.name}_{self.version}"
        self.tree = self.place / "tree"

    def get(self, apt):
        if self.tree.exists():
            return
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        call(*apt, "source", "--download-only", f"{self.name}={self.version}", cwd=self.place,
             failure=CantBeHad)
        dsc, = self.place.glob("*.dsc")
        found = sha256(dsc.read_bytes()).hexdigest()
        if found != self.sha256:
            raise Failed(f"{dsc.name} has the SHA-256 {found}, and not {self.sha256}")
        # which looks at the other files' checksums, too
        call("dpkg-source", "--no-check", "-x", dsc.name, "part", cwd=self.place)
        (self.place / "part").rename(self.tree)


def get_sources(into):
    """By their names."""
    lines = (HERE / "sources").read_text().splitlines()
    listed = [Source(line, into) for line in lines if not line.startswith("#")]
    if not all(source.tree.exists() for source in listed):
        apt = private_apt(into / "apt", {source.suite for source in listed})
        call(*apt, "update", failure=CantBeHad)
        for source in listed:
            source.get(apt)
    return {source.name: source for source in listed}


def private_apt(place, suites):
    """apt-get with lists of its own, of Debian's sources."""
    mirror = os.environ.get("DEBIAN_MIRROR") or next(iter(call(
        "apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian",
        "Created-By: Packages").split()), None)
    if not mirror:
        raise CantBeHad("apt knows no mirror of Debian's here; DEBIAN_MIRROR may name one")
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    for name in ("lists/partial", "cache/archives/partial"):
        (place / name).mkdir(parents=True, exist_ok=True)
    (place / "sources.list").write_text("".join(
        f"deb-src [signed-by={keys}] {mirror} {suite} main\n" for suite in sorted(suites)))
    options = {"Dir::Etc::sourcelist": place / "sources.list", "Dir::Etc::sourceparts": "-",
               "Dir::State::lists": place / "lists", "Dir::Cache": place / "cache",
               "Acquire::Languages": "none", "Acquire::Retries": "3"}
    return ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]


class Tools:
    """Compiler and meson, of the versions that are wanted, in a venv of their own."""

    def __init__(self, place):
        self.bin = place / "bin"
        wanted = (HERE / "requirements.txt").read_text()
        stamp = place / "has"
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(place, ignore_errors=True)
            venv.create(place, with_pip=True)
            call(self.bin / "pip", "install", "-q", "-r", HERE / "requirements.txt",
                 failure=CantBeHad)
            stamp.write_text(wanted)
        self.zig = next(place.glob("lib/python*/site-packages/ziglang/zig"))
        cache = str(place / "zig")
        self.env = dict(os.environ, ZIG_GLOBAL_CACHE_DIR=cache, ZIG_LOCAL_CACHE_DIR=cache)

    def call(self, *argv, **options):
        return call(*argv, env=self.env, **options)


class Prefix:
    """The libraries of one architecture, where pkg-config finds them."""

    def __init__(self, place, arch, tools, sources):
        self.place, self.arch, self.tools, self.sources = place, arch, tools, sources

    def make(self):
        """Anew, where what they are made of or by has changed; then what was built with them goes, as
        meson keeps what pkg-config said."""
        wanted = "".join(path.read_text() for path in sorted(HERE.iterdir()) if path.is_file())
        stamp = self.place / "made"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        shutil.rmtree(self.place.parent, ignore_errors=True)
        (self.place / "lib/pkgconfig").mkdir(parents=True)
        self.make_uv(self.sources["libuv1"])
        self.make_inih(self.sources["libinih"])
        self.make_cjson(self.sources["cjson"])
        self.make_sodium(self.sources["libsodium"])
        self.make_hwloc(self.sources["hwloc"])
        self.make_pmix(self.sources["pmix"])
        self.make_cmocka(self.sources["cmocka"])
        stamp.write_text(wanted)

    def make_uv(self, source):
        self.headers(source.tree / "include")
        self.library("uv", source, [f"src/{name}.c" for name in UV_SOURCES],
                     "-D_GNU_SOURCE", "-Iinclude", "-Isrc")
        self.describe("libuv-static", source, "-luv -lpthread -ldl")

    def make_inih(self, source):
        self.headers(source.tree, "ini.h")
        self.library("inih", source, ["ini.c"])
        self.describe("inih", source, "-linih")

    def make_cjson(self, source):
        self.headers(source.tree, "cJSON.h", "cjson")
        self.library("cjson", source, ["cJSON.c"])
        self.describe("libcjson", source, "-lcjson")

    def make_sodium(self, source):
        include = self.place / "include"
        self.headers(source.tree / "src/libsodium/include")
        shutil.copy(source.tree / "builds/msvc/version.h", include / "sodium")
        files = sorted(source.tree.glob("src/libsodium/**/*.c"))
        self.library("sodium", source, [path.relative_to(source.tree) for path in files],
                     "-DCONFIGURED=1", "-D_GNU_SOURCE", "-w", f"-I{include}/sodium", f"-I{include}")
        self.describe("libsodium", source, "-lsodium")

    def make_hwloc(self, source):
        """What reads this machine by Linux' own files, a file or a line; without what configure finds
        out, and without plugins."""
        include = self.place / "include"
        self.headers(source.tree / "include", "hwloc.h")
        self.headers(source.tree / "include/hwloc", into="hwloc")
        known = {"HWLOC_VERSION": f'"{source.upstream}"', "HWLOC_LINUX_SYS": "1",
                 "HWLOC_HAVE_CPU_SET": "1", "HWLOC_HAVE_STDINT_H": "1", "HWLOC_SYM_TRANSFORM": "0",
                 "HWLOC_SYM_PREFIX": "hwloc_", "HWLOC_SYM_PREFIX_CAPS": "HWLOC_",
                 "hwloc_pid_t": "pid_t", "hwloc_thread_t": "pthread_t"}
        self.fill(source.tree / "include/hwloc/autogen/config.h.in", "hwloc/autogen/config.h", {
            f"undef {name}\n": f"define {name} {value}\n" for name, value in known.items()})
        private = self.place / "hwloc"
        (private / "private/autogen").mkdir(parents=True)
        (private / "private/autogen/config.h").write_text("")  # all of it is in the flags below
        (private / "static-components.h").write_text(
            "#include <private/internal-components.h>\n"
            "static const struct hwloc_component *hwloc_static_components[] = {"
            + "".join(f"&hwloc_{name}_component, " for name in HWLOC_COMPONENTS) + "NULL};\n"
            # all that it would need libm for
            "float hwloc_modff(float x, float *whole);\n"
            "float hwloc_modff(float x, float *whole)\n"
            "{ *whole = x < 1e9f && x > -1e9f ? (float)(int)x : x; return x - *whole; }\n")
        self.library("hwloc", source, [f"hwloc/{name}.c" for name in HWLOC_SOURCES], "-D_GNU_SOURCE",
                     "-w", "-Dmodff=hwloc_modff", *(f"-D{name}=1" for name in HWLOC_HAS),
                     '-DRUNSTATEDIR="/var/run"', "-DHWLOC_SIZEOF_UNSIGNED_INT=4",
                     "-DHWLOC_SIZEOF_UNSIGNED_LONG=8", f"-I{private}", f"-I{include}", "-Iinclude")
        self.describe("hwloc", source, "-lhwloc -lpthread")

    def make_pmix(self, source):
        """Headers alone; two of them are what configure makes of others."""
        self.headers(source.tree / "include")
        numbers = source.upstream.split(".")
        filled = {"#undef PMIX_HAVE_VISIBILITY": "#define PMIX_HAVE_VISIBILITY 1",
                  "@pmixnumeric@": "0x%04x%02x%02x" % tuple(map(int, numbers)),
                  **dict(zip(("@pmixmajor@", "@pmixminor@", "@pmixrelease@"), numbers))}
        for path in (source.tree / "include").glob("*.h.in"):
            self.fill(path, path.stem, filled)
        self.describe("pmix", source, "")

    def fill(self, template, name, filled):
        """A header as configure would make it."""
        text = template.read_text()
        for undefined, defined in filled.items():
            text = text.replace(undefined, defined)
        path = self.place / "include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def make_cmocka(self, source):
        self.headers(source.tree / "include")
        self.library("cmocka", source, ["src/cmocka.c"], "-Iinclude", "-w", "-D_GNU_SOURCE", *(
            f"-DHAVE_{name}=1" for name in (
                "INTTYPES_H", "MALLOC_H", "SIGNAL_H", "STRINGS_H", "STRSIGNAL", "STRUCT_TIMESPEC",
                "CLOCK_REALTIME", "GCC_THREAD_LOCAL_STORAGE")))
        self.describe("cmocka", source, "-lcmocka")

    def headers(self, folder, names="**/*.h", into="."):
        for path in folder.glob(names):
            to = self.place / "include" / into / path.relative_to(folder)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)

    def library(self, name, source, files, *flags):
        self.tools.call(
            self.tools.zig, "build-lib", "-static", "--name", name, "-target", TARGETS[self.arch],
            "-OReleaseSmall", "-fstrip", "-fPIC", "-lc", f"-femit-bin={self.place}/lib/lib{name}.a",
            "-cflags", *FLAGS, *FLAGS_FOR[self.arch], *flags, "--", *files, cwd=source.tree)

    def describe(self, name, source, flags):
        (self.place / f"lib/pkgconfig/{name}.pc").write_text(
            f"prefix={self.place}\nName: {name}\nDescription: for launchd\n"
            f'Version: {source.upstream}\nCflags: -I"${{prefix}}/include"\n'
            f'Libs: -L"${{prefix}}/lib" {flags}\n')


def replace(path, text):
    """Whether it had another text before, or none."""
    if path.exists() and path.read_text() == text:
        return False
    path.write_text(text)
    return True


def describe_compiler(place, arch, tools, meson):
    """To meson, by a cross file: its path. What another one has compiled goes."""
    compiler, path = place / "cc", place / f"{meson.name}.ini"
    # where meson asks for the predefined macros, Zig hands the C library's version on to clang
    changed = replace(compiler, f"""#!/bin/sh
target={TARGETS[arch]}
case " $* " in *" -dM "*) target=${{target%%.*}} ;; esac
exec "{tools.zig}" cc -target "$target" "$@"
""")
    compiler.chmod(0o755)
    above = os.path.relpath(SOURCE, meson)
    changed |= replace(path, f"""[binaries]
c = '{compiler}'
ar = ['{tools.zig}', 'ar']
pkg-config = 'pkg-config'
[built-in options]
c_args = {[*FLAGS, *FLAGS_FOR[arch], f"-ffile-prefix-map={above}/="]}
c_link_args = ['-s', '-Wl,--gc-sections']
[properties]
pkg_config_libdir = '{place}/prefix/lib/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = '{arch}'
cpu = '{arch}'
endian = 'little'
""")
    if changed:
        shutil.rmtree(meson, ignore_errors=True)
    return path


class Built:
    """What is made below a directory, by one process at a time. Raises Failed."""

    def __init__(self, into):
        self.into = Path(into).resolve()
        self.into.mkdir(parents=True, exist_ok=True)
        if any(self.into.iterdir()) and not (self.into / "lock").exists():
            raise Failed(f"{self.into} has other files than ours, some of which would be replaced: "
                         "name a directory that is empty or new")
        self.lock = open(self.into / "lock", "w", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.tools = Tools(self.into / "tools")
        self.sources = get_sources(self.into / "sources")

    def project(self):
        """What meson.build says of the project: version, license ..."""
        return json.loads(self.tools.call(self.tools.bin / "meson", "introspect", "--projectinfo",
                                          SOURCE / "meson.build"))

    def licences(self):
        """Ours, once there is one, and those of what is linked in: {where to put it: the file}."""
        own = {"LICENSE": SOURCE / "LICENSE"} if (SOURCE / "LICENSE").exists() else {}
        linked = {f"{source.name}/{name}": source.tree / name
                  for source in self.sources.values() for name in source.licences}
        return {**own, **linked, "zig/LICENSE": self.tools.zig.parent / "LICENSE"}

    def here(self):
        """This machine's architecture: what makes the man page and the completion has to run."""
        arch = platform.machine()
        if arch not in TARGETS:
            raise CantBeHad(f"nothing is built on {arch}")
        return arch

    def program(self, arch):
        """Its path."""
        meson = self.set_up(arch, "build", "-Dbuildtype=minsize", "-Dwerror=true", "-Dtests=disabled")
        self.tools.call("ninja", "-C", meson)
        return meson / "launchd"

    def set_up(self, arch, name, *options):
        """meson's directory, with nothing built yet."""
        place = self.into / arch
        Prefix(place / "prefix", arch, self.tools, self.sources).make()
        meson = place / name
        cross = describe_compiler(place, arch, self.tools, meson)
        again = ["--reconfigure"] if (meson / "build.ninja").exists() else []
        self.tools.call(
            self.tools.bin / "meson", "setup", *again, "--cross-file", cross, "-Dbundled=true", *options,
            meson, SOURCE)
        return meson


def main(about, make):
    """make(built, architectures) gives the paths of what it made, which are printed."""
    summary, _, rest = about.partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", metavar="DIRECTORY", type=Path, default=SOURCE / "build-wheel")
    parser.add_argument("architectures", metavar="ARCHITECTURE", nargs="*", default=list(TARGETS))
    args = parser.parse_args()
    for arch in args.architectures:
        if arch not in TARGETS:
            parser.error(f"{arch!r} is not one of {', '.join(TARGETS)}")
    try:
        print(*make(Built(args.into), args.architectures), sep="\n")
    except Failed as why:
        print(f"{parser.prog}: {why}", file=sys.stderr)
        return CANT if isinstance(why, CantBeHad) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(__doc__, lambda built, architectures: list(map(built.program, architectures))))
