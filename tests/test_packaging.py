"""What is built from this tree: a wheel that needs no compiler, one for all others, an sdist."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

import structdist
from structdist.ops.native import library

ROOT = Path(__file__).parent.parent
KERNELS = f"structdist/ops/native/{library.FILE_NAME}"
NOT_IN_THE_SDIST = (".ci/", ".github/")


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """What a command prints; an error with all of that if it fails."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


# Without a compiler --------------------------------------------------------------------------


def build_kernels(folder: Path, compiler: str, **environment: str) -> str:
    into = ["--build-lib", folder, "--build-temp", folder / "temporary"]
    return run(sys.executable, "setup.py", "build_ext", *into, CXX=compiler, **environment)


@pytest.mark.parametrize("compiler", ["/no/such/compiler", f"{sys.executable} -c raise"])
def test_an_install_goes_on_without_a_compiler_and_says_why(compiler: str, tmp_path: Path):
    build_kernels(tmp_path, compiler)
    loaded, reason = library.load((tmp_path / KERNELS).parent)
    assert loaded is None
    assert reason.startswith(f"it was not built: at install {compiler.split()[0]} did not ")


def test_a_release_does_not_go_on_without_a_compiler(tmp_path: Path):
    with pytest.raises(AssertionError, match="no/such/compiler"):
        build_kernels(tmp_path, "/no/such/compiler", STRUCTDIST_KERNELS="require")


# What is built -------------------------------------------------------------------------------


class Built(NamedTuple):
    sdist: Path
    wheel: Path
    pure_wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist, and two wheels that are built from it alone."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder]
    run(*build, STRUCTDIST_KERNELS="require")
    run(*build, STRUCTDIST_KERNELS="none")
    (pure_wheel,) = folder.glob("*-any.whl")
    (wheel,) = set(folder.glob("*.whl")) - {pure_wheel}
    (sdist,) = folder.glob("*.tar.gz")
    return Built(sdist, wheel, pure_wheel)


@pytest.fixture(scope="module")
def unpacked(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built.sdist) as archive:
        archive.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return found


@pytest.mark.slow
def test_a_wheel_is_for_every_python_of_a_platform(built: Built):
    version = structdist.__version__
    assert built.wheel.name.startswith(f"structdist-{version}-py3-none-")
    assert built.pure_wheel.name == f"structdist-{version}-py3-none-any.whl"
    names, pure_names = (set(zipfile.ZipFile(path).namelist()) for path in built[1:])
    assert names - pure_names == {KERNELS}
    folders = {name.split("/")[0] for name in pure_names}
    assert folders == {"structdist", f"structdist-{version}.dist-info"}


@pytest.mark.slow
def test_descriptions_are_fit_for_an_index(built: Built):
    assert run(sys.executable, "-m", "twine", "check", "--strict", *built).count("PASSED") == 3


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout")
def test_the_sdist_has_every_file(unpacked: Path):
    tracked = run("git", "ls-files").split("\n")[:-1]
    wanted = [name for name in tracked if not name.startswith(NOT_IN_THE_SDIST)]
    assert [name for name in wanted if not (unpacked / name).exists()] == []


@pytest.mark.slow
def test_tests_of_the_sdist_run(unpacked: Path):
    """A selection, in which every backend and the shape of the project are."""
    run(sys.executable, "setup.py", "build_ext", "--inplace", folder=unpacked)
    chosen = ["tests/test_architecture.py", "tests/test_every_backend.py", "tests/linear_chain"]
    pytest_command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *chosen]
    assert " passed" in run(*pytest_command, folder=unpacked, PYTHONPATH=str(unpacked))


# What is installed ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has torch, what torch needs, and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--constraint", ROOT / "constraints.txt", "torch")
    return python


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), [("wheel", "native"), ("pure_wheel", "rescaled")])
def test_a_wheel_works_where_there_is_nothing_but_torch(
    name: str, backend: str, built: Built, clean_python: Path, tmp_path: Path
):
    wheel = getattr(built, name)
    run(clean_python, "-m", "pip", "install", "--no-deps", "--force-reinstall", wheel)
    run(clean_python, "-m", "pip", "check")
    script = ROOT / "tests" / "installed.py"
    printed = run(clean_python, script, "--backend", backend, folder=tmp_path)
    assert str(clean_python.parent.parent) in printed
    assert structdist.__version__ in printed
