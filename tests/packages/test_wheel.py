"""The wheels: what is in them, what they need, and what pip makes of them. tests/roots installs them
by the pip of each release."""
import base64
import csv
import functools
import hashlib
import io
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from test_release import SOURCE, of_meson
from wheels import INTO, NoWheels, TOOL, program, wheel

pytestmark = [pytest.mark.needs("ninja", "dpkg-source", "readelf"), pytest.mark.xdist_group("wheel"),
              pytest.mark.skipif(platform.machine() != "x86_64", reason="what is installed and run is for x86_64")]
NAME = re.search(r'^NAME = "(.*)"', TOOL.read_text(), re.M)[1]
VERSION = of_meson("version")
LINKED = {"libuv1/LICENSE", "libuv1/LICENSE-extra", "libinih/LICENSE.txt", "libsodium/LICENSE",
          "cjson/LICENSE", "hwloc/COPYING", "zig/LICENSE"}
OLDEST = (2, 17)
# each takes a minute to build, so CI builds only its own architecture
ARCHITECTURES = [arch if arch == platform.machine() else pytest.param(arch, marks=pytest.mark.long)
                 for arch in ("x86_64", "aarch64")]


@pytest.fixture(scope="module")
def built():
    """built(architecture) -> its path."""
    @functools.cache
    def build(arch):
        try:
            return wheel(arch)
        except NoWheels as why:
            pytest.skip(str(why))

    return build


def read(path):
    """{name: content}, by the names that are the same in each version."""
    with zipfile.ZipFile(path) as whole:
        return {name.replace(f"{NAME}-{VERSION}.", ""): whole.read(name) for name in whole.namelist()}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_its_files(built, arch):
    assert built(arch).name == \
        f"{NAME}-{VERSION}-py3-none-manylinux_2_17_{arch}.manylinux2014_{arch}.whl"
    assert set(read(built(arch))) == {
        f"{NAME}/__init__.py", f"{NAME}/__main__.py", "data/scripts/launchd",
        "data/data/share/man/man1/launchd.1", "data/data/share/man/man1/launchctl.1",
        "data/data/share/man/man5/launchd.conf.5",
        "data/data/share/man/man7/launchd-control.7", "data/data/share/bash-completion/completions/launchd",
        "data/data/share/zsh/site-functions/_launchd", "dist-info/METADATA", "dist-info/WHEEL",
        "dist-info/RECORD", *(f"dist-info/licenses/{name}" for name in LINKED),
        *(["dist-info/licenses/LICENSE"] if (SOURCE / "LICENSE").exists() else [])}


def test_its_record_has_every_file(built):
    files = read(built("x86_64"))
    rows = [(name.replace(f"{NAME}-{VERSION}.", ""), digest, size) for name, digest, size
            in csv.reader(io.StringIO(files["dist-info/RECORD"].decode()))]
    assert {name for name, *_ in rows} == set(files)
    for name, digest, size in rows:
        if name != "dist-info/RECORD":
            sum_ = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode()
            assert (digest, int(size)) == (f"sha256={sum_.rstrip('=')}", len(files[name]))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_its_metadata(built, arch):
    files = read(built(arch))
    fields = files["dist-info/METADATA"].decode().partition("\n\n")[0].splitlines()
    assert {f"Name: {NAME}", f"Version: {VERSION}"} <= set(fields)
    assert {line.partition(": ")[2] for line in fields if line.startswith("License-File")} >= LINKED
    chosen = [line for line in fields if line.startswith("License-Expression")]
    assert len(chosen) == (of_meson("license") != "unknown")
    assert not [line for line in fields if line.startswith("Requires-Dist")]
    assert [line for line in files["dist-info/WHEEL"].decode().splitlines() if "Tag: " in line] == \
        [f"Tag: py3-none-manylinux_2_17_{arch}", f"Tag: py3-none-manylinux2014_{arch}"]
    assert b"install\\-torchrun" in files["data/data/share/man/man1/launchd.1"]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_its_program_needs_the_c_library_alone(built, arch, call):
    assert read(built(arch))["data/scripts/launchd"] == program(arch).read_bytes()
    said = call(["readelf", "-W", "-h", "-l", "-d", "-S", "--dyn-syms", program(arch)])
    needed = set(re.findall(r"\(NEEDED\) .*\[(.*)\]", said))
    assert needed - {"ld-linux-aarch64.so.1"} == {"libc.so.6", "libpthread.so.0", "libdl.so.2"}
    versions = re.findall(r"@GLIBC_(\d+)\.(\d+)", said)
    assert versions and max((int(a), int(b)) for a, b in versions) <= OLDEST
    # at no fixed address, nothing both written and executed, calls bound before main(), no symbols
    assert re.search(r"Type: +DYN ", said) and "GNU_RELRO" in said
    assert re.search(r"GNU_STACK .* RW ", said) and not re.search(r"LOAD .* RWE ", said)
    assert "BIND_NOW" in said and " .symtab " not in said
    assert "__stack_chk_fail" in said and "__memcpy_chk" in said


def test_twice_the_same_bytes(built, call, tmp_path):
    """The zip file; the whole of it is built once more below."""
    before = built("x86_64").read_bytes()
    os.utime(SOURCE / "packaging/wheel/package/__init__.py")
    assert wheel("x86_64").read_bytes() == before


def test_it_is_not_built_among_other_files(tmp_path):
    """As --into . would: what it keeps there has common names, and is made anew."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/mine").touch()
    done = subprocess.run([sys.executable, TOOL, "--into", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and f"{tmp_path} has other files than ours" in done.stderr, done
    assert [path.name for path in tmp_path.rglob("*")] == ["tools", "mine"]


@pytest.mark.long
def test_built_elsewhere_it_has_the_same_bytes(built, make_checkout, call):
    made = make_checkout()
    copy = made.rename(made.with_name("a checkout"))
    into = copy / "build-elsewhere" / "deep"
    (into / "tools").mkdir(parents=True)
    (into / "lock").touch()
    (into / "sources").symlink_to(INTO / "sources")
    for path in (INTO / "tools").iterdir():
        if path.name != "zig":  # what has been compiled
            (into / "tools" / path.name).symlink_to(path)
    call([sys.executable, copy / TOOL.relative_to(SOURCE), "--into", into, "x86_64"])
    again, = (into / "dist").iterdir()
    assert again.read_bytes() == built("x86_64").read_bytes()


@pytest.mark.long
def test_auditwheel_and_twine_pass_it(built, call, tmp_path):
    call([sys.executable, "-m", "venv", tmp_path / "venv"])
    fetched = subprocess.run([tmp_path / "venv/bin/pip", "install", "-q", "auditwheel", "twine"],
                             capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip("no auditwheel and twine to be had here")
    both = {arch: built(arch) for arch in ("x86_64", "aarch64")}
    for arch, path in both.items():
        said = call([tmp_path / "venv/bin/auditwheel", "show", path])
        assert f'is consistent with the following platform tag:\n"manylinux_2_17_{arch}"' in said
    assert call([tmp_path / "venv/bin/twine", "check", "--strict", *both.values()]).count("PASSED") == 2


# --- installed ---


@pytest.fixture(scope="module")
def venv(built, call, tmp_path_factory):
    """One that sees this machine's PyTorch."""
    path = tmp_path_factory.mktemp("venv") / "venv"
    call([sys.executable, "-m", "venv", "--system-site-packages", path])
    call([path / "bin/pip", "install", "-q", "--no-index", built("x86_64")])
    return path


def test_python_runs_and_finds_the_program(venv, call):
    python, found = venv / "bin/python", venv / "bin/launchd"
    assert call([found, "--version"]) == call([python, "-m", NAME, "--version"]) == \
        f"launchd {VERSION}\n"
    assert call([python, "-c", f"import {NAME}; print({NAME}.find_launchd())"]) == f"{found}\n"
    done = subprocess.run([python, "-m", NAME, "--standalone", "--no-python", "--use_env", "/bin/sh",
                           "-c", "exit 7"], capture_output=True)
    assert done.returncode == 7
    assert (venv / "share/man/man1/launchd.1").exists() and not (venv / "bin/torchrun").exists()


@pytest.mark.parametrize("chosen", [None, "/usr/bin/python3"])
def test_workers_have_the_python_that_runs_it(venv, tmp_path, chosen):
    """A venv that is not active, as in an image: its packages are what the training imports."""
    script = tmp_path / "train.py"
    script.write_text("import sys; print(sys.executable)")
    env = {"PATH": "/usr/bin:/bin", **({"PYTHON_EXEC": chosen} if chosen else {})}
    done = subprocess.run([venv / "bin/python", "-m", NAME, "--standalone", "--use_env", script],
                          env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{chosen or venv / 'bin/python'}\n"), done


@pytest.mark.parametrize("how", [["--target", "{to}/t"], ["--prefix", "{to}/p"], ["--user"]])
def test_it_is_found_wherever_it_was_installed(built, call, tmp_path, how):
    env = {"HOME": str(tmp_path), "PIP_BREAK_SYSTEM_PACKAGES": "1", "PYTHONUSERBASE": ""}
    call([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-warn-script-location",
          "--ignore-installed", *(word.format(to=tmp_path) for word in how), built("x86_64")], env)
    package, = tmp_path.rglob(f"{NAME}/__init__.py")
    there, = tmp_path.rglob("bin/launchd")
    assert call([sys.executable, "-c", f"import {NAME}; print({NAME}.find_launchd())"],
                {**env, "PYTHONPATH": str(package.parent.parent)}) == \
        f"{there}\n"


def test_it_says_where_it_has_looked(venv, call):
    program_there = venv / "bin/launchd"
    program_there.rename(venv / "elsewhere")
    try:
        done = subprocess.run([venv / "bin/python", "-m", NAME], capture_output=True, text=True)
    finally:
        (venv / "elsewhere").rename(program_there)
    assert done.returncode == 1
    assert "FileNotFoundError: launchd is not in " in done.stderr and str(venv / "bin") in done.stderr


def test_it_trains_under_mpirun_without_a_compiler(venv, tmp_path):
    """As ./bootstrap demo does: two launchers, two workers each; rank 3 dies."""
    for tool in ("mpirun", "orted"):
        if not Path("/usr/bin", tool).exists():
            pytest.skip(f"no {tool} here")
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    (tmp_path / "ssh").symlink_to("/bin/true")  # it starts nothing without one
    if subprocess.run([venv / "bin/python", "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("no torch here")
    done = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2",
         "launchd", "--nproc_per_node", "2", "--use_env", "examples/train_ddp.py", "--steps", "40",
         "--fail-rank", "3", "--fail-step", "20", "--fail-code", "7"],
        cwd=SOURCE, env={"PATH": f"{venv}/bin:{tmp_path}", "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 7, done
    assert "root cause: rank 3 " in done.stderr and "loss" in done.stdout, done


def test_nothing_is_left_of_it(built, call, tmp_path):
    call([sys.executable, "-m", "venv", tmp_path / "venv"])

    def files():
        return {path for path in (tmp_path / "venv").rglob("*") if "__pycache__" not in path.parts
                and not path.is_dir()}

    before = files()
    call([tmp_path / "venv/bin/pip", "install", "-q", "--no-index", built("x86_64")])
    assert len(files()) > len(before)
    call([tmp_path / "venv/bin/pip", "uninstall", "-q", "-y", NAME])
    assert files() == before
