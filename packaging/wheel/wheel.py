#!/usr/bin/python3
"""wheel.py - the wheel: launchd for pip install.

    packaging/wheel/wheel.py [--into DIRECTORY] [x86_64] [aarch64]

makes DIRECTORY/dist/NAME-VERSION-py3-none-....whl (default: build-wheel) of each program that
packaging/bundled/build.py builds, and prints its path. The version and the licence are those of
meson.build. The same sources give the same bytes. Exit codes are packaging/bundled/build.py's.
"""
import base64
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bundled"))
from build import main  # noqa: E402

NAME = "ranklaunch"  # on PyPI and for import: launchd is taken there
SUMMARY = "A launcher for distributed PyTorch training, one for each node, in place of torchrun"
DOCUMENTS = {"launchd.1": "man/man1", "launchctl.1": "man/man1", "launchd.conf.5": "man/man5",
             "launchd-control.7": "man/man7", "launchd": "bash-completion/completions",
             "_launchd": "zsh/site-functions"}


def tags_of(arch):
    """The second one is the first one's older name, by which pip before 20.3 knows it."""
    return [f"py3-none-{system}_{arch}" for system in ("manylinux_2_17", "manylinux2014")]


def metadata(project, licences, spdx):
    own = " AND ".join(project["license"])
    return "\n".join([
        "Metadata-Version: 2.4", f"Name: {NAME}", f"Version: {project['version']}",
        f"Summary: {SUMMARY}",
        *([] if own == "unknown" else [f"License-Expression: {' AND '.join([own, *spdx])}"]),
        *(f"License-File: {name}" for name in licences),
        "Keywords: pytorch,torchrun,distributed,launcher,mpi,slurm",
        "Classifier: Environment :: Console", "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: C",
        "Classifier: Topic :: System :: Distributed Computing", "Requires-Python: >=3.6",
        "Description-Content-Type: text/markdown", "",
        (HERE / "description.md").read_text().format(name=NAME)])


class Wheel:
    """A zip file with the sum of each file in its last one."""

    def __init__(self, path):
        self.path, self.record = path, []

    def __enter__(self):
        self.part = self.path.with_name(self.path.name + ".part")
        self.zip = zipfile.ZipFile(self.part, "w", zipfile.ZIP_DEFLATED)
        return self

    def __exit__(self, kind, *_):
        self.zip.close()
        if kind is None:
            self.part.rename(self.path)

    def add(self, name, content, mode=0o644):
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        info.create_system = 3  # or the mode is not Unix's
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, content, compresslevel=9)
        digest = base64.urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=")
        self.record.append(f"{name},sha256={digest},{len(content)}\n")

    def add_record(self, name):
        self.add(name, ("".join(self.record) + f"{name},,\n").encode())


def write(built, arch, documents):
    """documents: the directory with what meson made of them. The wheel's path."""
    project, tags = built.project(), tags_of(arch)
    licences = built.licences()
    spdx = sorted({name for source in built.sources.values() for name in source.spdx})
    whole = f"{NAME}-{project['version']}"
    data, info = f"{whole}.data", f"{whole}.dist-info"
    into = built.into / "dist"
    into.mkdir(exist_ok=True)
    with Wheel(into / f"{whole}-{tags[0]}.{tags[1].rpartition('-')[2]}.whl") as wheel:
        for path in sorted((HERE / "package").glob("*.py")):
            wheel.add(f"{NAME}/{path.name}", path.read_bytes())
        wheel.add(f"{data}/scripts/launchd", (built.into / arch / "build/launchd").read_bytes(), 0o755)
        for name, folder in DOCUMENTS.items():
            wheel.add(f"{data}/data/share/{folder}/{name}", (documents / name).read_bytes())
        for name, path in licences.items():
            wheel.add(f"{info}/licenses/{name}", path.read_bytes())
        wheel.add(f"{info}/METADATA", metadata(project, licences, spdx).encode())
        wheel.add(f"{info}/WHEEL", "".join([
            "Wheel-Version: 1.0\n", "Generator: launchd's packaging/wheel/wheel.py\n",
            "Root-Is-Purelib: false\n", *(f"Tag: {tag}\n" for tag in tags)]).encode())
        wheel.add_record(f"{info}/RECORD")
    return wheel.path


def build(built, architectures):
    """The wheels' paths."""
    here = built.here()
    for arch in {here, *architectures}:
        built.program(arch)
    return [write(built, arch, built.into / here / "build/config/docs") for arch in architectures]


if __name__ == "__main__":
    sys.exit(main(__doc__, build))
