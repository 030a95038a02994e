#!/usr/bin/python3
"""tarball.py - what meson installs, for other machines than this one: tar -C /usr/local -xf does.

    packaging/tarball.py [--into DIRECTORY] [x86_64] [aarch64]

makes DIRECTORY/dist/launchd-VERSION-linux-....tar.gz (default: build-wheel) with each program that
packaging/bundled/build.py builds and the licences of what is linked in, and prints its path. The same
sources give the same bytes. Exit codes are packaging/bundled/build.py's.
"""
import gzip
import io
import os
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "bundled"))
from build import main  # noqa: E402

NAMES = {"x86_64": "amd64", "aarch64": "arm64"}  # those of containers: packaging/Containerfile
MADE_S = 315532800  # 1980, as in the wheel


def installed(built, arch):
    """What meson installs, by its path below the prefix; of the program, only what is in it differs."""
    with tempfile.TemporaryDirectory() as place:
        built.tools.call(built.tools.bin / "meson", "install", "-C", built.into / arch / "build",
                         "--no-rebuild", "--destdir", place)
        prefix = Path(place) / "usr/local"
        return {str(path.relative_to(prefix)):
                os.readlink(path) if path.is_symlink() else path.read_bytes()
                for path in prefix.rglob("*") if path.is_file()}


def write(path, files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.mtime = MADE_S
            entry.mode = 0o755 if name.startswith("bin/") else 0o644
            if isinstance(files[name], str):  # a link
                entry.type, entry.linkname = tarfile.SYMTYPE, files[name]
                tar.addfile(entry)
                continue
            entry.size = len(files[name])
            tar.addfile(entry, io.BytesIO(files[name]))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(content.getvalue(), mtime=0))
    return path


def build(built, architectures):
    """The tarballs' paths."""
    here = built.here()
    programs = {arch: built.program(arch) for arch in sorted({here, *architectures})}
    files = installed(built, here)
    for name, path in built.licences().items():
        files[f"share/doc/launchd/licences/{name}"] = path.read_bytes()
    stem = f"launchd-{built.project()['version']}-linux"
    return [write(built.into / "dist" / f"{stem}-{NAMES[arch]}.tar.gz",
                  {**files, "bin/launchd": programs[arch].read_bytes()}) for arch in architectures]


if __name__ == "__main__":
    sys.exit(main(__doc__, build))
