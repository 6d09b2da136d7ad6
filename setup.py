"""Packaging. Only `structdist` is installed; `models` and `benchmarks` run from a checkout."""

import platform
import re
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "structdist/__init__.py").read_text())[1]

TORCH_STRUCT = ["torch-struct>=0.5"]
PYRO = ["pyro-ppl>=1.9"]
TRITON = ["triton>=3.0; platform_system == 'Linux'"]  # which torch brings along where it has CUDA
BENCHMARKS = [*TORCH_STRUCT, "pytorch-crf>=0.7.2", "rich>=13", "typer>=0.12", "matplotlib>=3.8"]
MODELS = ["lightning>=2.4", "tensorboard>=2.16", "jsonargparse[signatures]>=4.49", "rich>=13"]
MODELS += ["numpy>=1.26", "jinja2>=3.1"]
METRICS = ["sacrebleu>=2.4", "pycocoevalcap>=1.2", "nltk>=3.8", "rouge-score>=0.1.2"]
EXTRAS = {
    "torch-struct": TORCH_STRUCT,
    "pyro": PYRO,
    "triton": TRITON,
    "benchmarks": BENCHMARKS,
    "models": MODELS,
    "metrics": METRICS,
    "browser": ["selenium>=4.20"],  # drives chromium, for the tests of the report's script
}
TOOLS = ["pytest>=8", "hypothesis>=6.100", "numpy>=1.26", "ruff>=0.6", "mypy>=1.11"]
TOOLS += ["pytest-xdist>=3.5"]
EXTRAS["dev"] = [*BENCHMARKS, *MODELS, *METRICS, *PYRO, *TRITON, *TOOLS]

# Plain C++ behind C names, loaded with ctypes: it needs no torch to build and fits every version.
# Where it does not compile, the install goes on without it, and torch does the work.
ON_X86 = platform.machine() in ("x86_64", "AMD64")
NATIVE = Extension(
    "structdist.ops.native._kernels",
    sources=sorted(str(f.relative_to(ROOT)) for f in ROOT.glob("structdist/ops/native/csrc/*.cpp")),
    depends=sorted(str(f.relative_to(ROOT)) for f in ROOT.glob("structdist/ops/native/csrc/*.h")),
    extra_compile_args=[
        *["-std=c++17", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"],
        *(["-march=x86-64-v3"] if ON_X86 else []),
        "-pthread",
    ],
    extra_link_args=["-pthread"],
    optional=True,
)

setup(
    name="structdist",
    version=VERSION,
    description="Structured distributions for PyTorch, with samples that carry gradients",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10",
    packages=find_packages(include=["structdist", "structdist.*"]),
    package_data={"structdist": ["py.typed"]},
    ext_modules=[NATIVE] if sys.platform != "win32" else [],
    install_requires=["torch>=2.4"],
    extras_require=EXTRAS,
)
