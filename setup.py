"""Packaging. Only `structdist` is installed; `models` and `benchmarks` run from a checkout."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "structdist/__init__.py").read_text())[1]

TORCH_STRUCT = ["torch-struct>=0.5"]
BENCHMARKS = [*TORCH_STRUCT, "pytorch-crf>=0.7.2", "rich>=13", "typer>=0.12", "matplotlib>=3.8"]
DEV = [*BENCHMARKS, "pytest>=8", "hypothesis>=6.100", "numpy>=1.26", "ruff>=0.6", "mypy>=1.11"]

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
    install_requires=["torch>=2.4"],
    extras_require={"torch-struct": TORCH_STRUCT, "benchmarks": BENCHMARKS, "dev": DEV},
)
