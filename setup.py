"""Packaging. Only `structdist` is installed; `models` and `benchmarks` run from a checkout.

The compiled kernels are plain C++ behind C names, loaded with ctypes: they need neither torch nor
Python's headers to build, and one library fits every version of both. Hence a wheel has the tag
`py3-none-PLATFORM`. Where they do not compile, the install goes on without them, and torch does the
work; `structdist.ops.backends()` says why. `STRUCTDIST_KERNELS=require` makes that an error (for
releases), and `STRUCTDIST_KERNELS=none` leaves them out (for the wheel of all other platforms).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "structdist/__init__.py").read_text())[1]

TORCH_STRUCT = ["torch-struct>=0.5"]
PYRO = ["pyro-ppl>=1.9"]
TRITON = ["triton>=3.0; platform_system == 'Linux'"]  # which torch brings along where it has CUDA
BENCHMARKS = [*TORCH_STRUCT, "pytorch-crf>=0.7.2", "rich>=13", "typer>=0.12", "matplotlib>=3.8"]
MODELS = ["lightning>=2.6", "tensorboard>=2.16", "jsonargparse[signatures]>=4.49", "rich>=13"]
MODELS += ["numpy>=1.26", "jinja2>=3.1"]
METRICS = ["sacrebleu>=2.4", "pycocoevalcap>=1.2", "nltk>=3.8", "rouge-score>=0.1.2"]
DOCS = ["sphinx>=8.1", "furo>=2024.8.6", "myst-nb>=1.2", "latex2mathml>=3.77", "matplotlib>=3.8"]
EXTRAS = {
    "torch-struct": TORCH_STRUCT,
    "pyro": PYRO,
    "triton": TRITON,
    "metrics": METRICS,
    "docs": [*DOCS, *TORCH_STRUCT, "pytorch-crf>=0.7.2", *PYRO],
    "for-benchmarks": BENCHMARKS,  # what `benchmarks` and `models` of a checkout need; they are
    "for-models": MODELS,  # not installed themselves
    "browser": ["selenium>=4.20"],  # drives chromium, for the tests of the report's script
}
TOOLS = ["pytest>=8", "hypothesis>=6.100", "numpy>=1.26", "ruff>=0.6", "mypy>=1.11"]
TOOLS += ["pytest-xdist>=3.5", "build>=1.2", "twine>=6"]
EXTRAS["dev"] = [*BENCHMARKS, *MODELS, *METRICS, *PYRO, *TRITON, *TOOLS]

# The kernels ---------------------------------------------------------------------------------

WANTED = os.environ.get("STRUCTDIST_KERNELS", "if possible")
ON_WINDOWS = sys.platform == "win32"
ON_X86 = sysconfig.get_platform().endswith(("x86_64", "amd64"))
FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
FLAGS += ["-shared"] if ON_WINDOWS else ["-shared", "-fPIC", "-pthread"]
REASON = "not_built.txt"  # why there is no library; read by ops/native/library.py
KERNELS = Extension(
    "structdist.ops.native._kernels",
    sources=sorted(str(f.relative_to(ROOT)) for f in ROOT.glob("structdist/ops/native/csrc/*.cpp")),
    depends=sorted(str(f.relative_to(ROOT)) for f in ROOT.glob("structdist/ops/native/csrc/*.h")),
    optional=WANTED != "require",
)


def compiler() -> list[str]:
    """A compiler that has vector types, as GCC and Clang do and MSVC does not; for AVX2 on x86."""
    if ON_WINDOWS and importlib.util.find_spec("ziglang"):  # Clang, from a wheel
        return [sys.executable, "-m", "ziglang", "c++", "-mcpu=x86_64_v3"]
    names = [] if ON_WINDOWS else ["c++", "g++", "clang++"]
    found = next(filter(shutil.which, names), None)
    if "CXX" in os.environ or found:
        command = shlex.split(os.environ.get("CXX") or found)
        return [*command, "-march=x86-64-v3"] if ON_X86 else command
    raise CompileError("at install there was no C++ compiler")


def from_environment(*names: str) -> list[str]:
    """Flags that packagers give."""
    return [flag for name in names for flag in shlex.split(os.environ.get(name, ""))]


class BuildKernels(build_ext):
    """Compiles all sources in one go into a library without Python's name for itself."""

    def get_ext_filename(self, fullname: str) -> str:
        suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
        return str(Path(*fullname.split("."))) + suffix

    def build_extension(self, extension: Extension) -> None:
        library = Path(self.get_ext_fullpath(extension.name))
        library.parent.mkdir(parents=True, exist_ok=True)
        reason = library.with_name(REASON)
        try:
            self._compile(extension, library)
            reason.unlink(missing_ok=True)
        except CompileError as error:
            library.unlink(missing_ok=True)
            reason.write_text(f"{error}\n")
            raise

    def copy_extensions_to_source(self) -> None:
        """For a checkout: the new library alone, or the reason alone why there is none."""
        super().copy_extensions_to_source()
        library = Path(self.get_ext_filename(KERNELS.name))
        reason = library.with_name(REASON)
        failed = (self.build_lib / reason).exists()
        (ROOT / (library if failed else reason)).unlink(missing_ok=True)
        if failed:
            shutil.copy(self.build_lib / reason, ROOT / reason)

    def _compile(self, extension: Extension, library: Path) -> None:
        flags = [*FLAGS, *from_environment("ARCHFLAGS", "CXXFLAGS", "LDFLAGS")]
        command = [*compiler(), *flags, *extension.sources, "-o", str(library)]
        self.announce(shlex.join(command), level=2)
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        except OSError as error:
            raise CompileError(f"at install {command[0]} did not run: {error}") from None
        print(done.stderr, end="", file=sys.stderr)
        if done.returncode != 0:
            first = next((x for x in done.stderr.splitlines() if "error" in x), "it gave no reason")
            raise CompileError(f"at install {command[0]} did not compile it: {first.strip()}")


class PlatformWheel(bdist_wheel):
    """A wheel for every Python of one platform."""

    def get_tag(self) -> tuple[str, str, str]:
        *_, platform = super().get_tag()
        return "py3", "none", platform


# The package ---------------------------------------------------------------------------------

CLASSIFIERS = [
    "Development Status :: 4 - Beta",
    "Intended Audience :: Science/Research",
    "Operating System :: OS Independent",
    "Programming Language :: C++",
    "Programming Language :: Python :: 3",
    *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 14)),
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Typing :: Typed",
]
KEYWORDS = ["pytorch", "structured prediction", "conditional random field", "crf", "semi-markov"]
KEYWORDS += ["hidden markov model", "gumbel-softmax", "latent variables", "sequence tagging"]

setup(
    name="structdist",
    version=VERSION,
    description="Structured distributions for PyTorch, with samples that carry gradients",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    keywords=KEYWORDS,
    classifiers=CLASSIFIERS,
    project_urls={"Gumbel-CRF, the paper": "https://arxiv.org/abs/2011.14244"},
    python_requires=">=3.10",
    packages=find_packages(include=["structdist", "structdist.*"]),
    package_data={"structdist": ["py.typed"]},
    ext_modules=[] if WANTED == "none" else [KERNELS],
    cmdclass={"build_ext": BuildKernels, "bdist_wheel": PlatformWheel},
    install_requires=["torch>=2.4"],
    extras_require=EXTRAS,
)
