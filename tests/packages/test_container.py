"""packaging/Containerfile, and examples/kubernetes as far as that goes without a cluster;
tests/hosts/test_kubernetes.py runs what the pods would."""
import os
import shutil
import tarfile
import venv

import pytest

from harness import BUILD
from needs import needs_mounts
from test_release import SOURCE, of_meson

yaml = pytest.importorskip("yaml")
EXAMPLES = sorted((SOURCE / "examples/kubernetes").glob("*.yaml"))


@pytest.fixture
def buildah(call, tmp_path):
    """buildah(words) -> what it says. Its images go with the test."""
    return lambda *words: call(["buildah", "--storage-driver", "vfs", "--root", tmp_path / "images",
                                "--runroot", tmp_path / "run", *words]).strip()


def image_of(buildah, tmp_path, *options):
    """The directory with its files, of a tarball with the program that is tested."""
    context = tmp_path / "context"
    context.mkdir()
    with tarfile.open(context / f"launchd-{of_meson('version')}-linux-amd64.tar.gz", "w:gz") as tar:
        tar.add(BUILD / "launchd", "bin/launchd")
    # of a machine of ours, whatever it is
    buildah("bud", "--pull-never", "--isolation", "chroot", "--build-arg", "TARGETARCH=amd64", *options,
            "-t", "launchd", "-f", SOURCE / "packaging/Containerfile", context)
    return buildah("mount", buildah("from", "--pull-never", "launchd"))


def files_of(image):
    return {os.path.relpath(os.path.join(place, name), image)
            for place, _, names in os.walk(image) for name in names}


@needs_mounts
@pytest.mark.needs("buildah")
@pytest.mark.skipif(os.geteuid() != 0, reason="to look into an image needs root")
def test_the_image_has_the_programs_files_alone(buildah, tmp_path):
    image = image_of(buildah, tmp_path, "--target", "files")
    assert files_of(image) == {"usr/local/bin/launchd"}


@needs_mounts
@pytest.mark.needs("buildah", "busybox")
@pytest.mark.skipif(os.geteuid() != 0, reason="to look into an image needs root")
def test_the_init_container_copies_the_program(buildah, call, tmp_path):
    base = buildah("from", "scratch")
    buildah("copy", base, shutil.which("busybox"), "/bin/busybox")
    buildah("copy", base, shutil.which("busybox"), "/bin/cp")
    buildah("commit", base, "busybox")
    image = image_of(buildah, tmp_path)
    assert files_of(image) == {"bin/busybox", "bin/cp", "usr/local/bin/launchd"}
    for path in EXAMPLES:
        _, owner = yaml.safe_load_all(path.read_text())
        init, = owner["spec"]["template"]["spec"]["initContainers"]
        mount, = init["volumeMounts"]
        volume = os.path.join(image, mount["mountPath"].lstrip("/"))
        os.makedirs(volume)
        call(["chroot", image, *init["command"]])
        with open(os.path.join(volume, "launchd"), "rb") as copy:
            assert copy.read() == (BUILD / "launchd").read_bytes()
        assert os.access(os.path.join(volume, "launchd"), os.X_OK)
        assert init["image"] == f"launchd:{of_meson('version')}"
        shutil.rmtree(volume)


@pytest.fixture(scope="session")
def validate(tmp_path_factory):
    """The program of PyPI's package that has Kubernetes' schemas."""
    place = tmp_path_factory.mktemp("kubernetes")
    venv.create(place, with_pip=True)
    if os.system(f"{place}/bin/pip install -q kubernetes-validate >/dev/null 2>&1"):
        pytest.skip("PyPI's kubernetes-validate can't be had here")
    return place / "bin/kubernetes-validate"


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_kubernetes_would_take_it(validate, call, path):
    said = call([validate, "--strict", path])
    assert said.count(" passed for resource ") == 2
