"""The shape of the project: who imports whom, what is public, and what the core needs."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import structdist

ROOT = Path(__file__).parent.parent
OURS = ("structdist", "models", "benchmarks", "tests")
UNFINISHED = ("TO" + "DO", "FIX" + "ME")


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path, *, everywhere: bool = True) -> Iterator[str]:
    """Dotted names of all that a file imports; with `from a import b`, `a.b`.

    Not those for type checkers alone and, unless `everywhere`, not those inside functions.
    """
    tree = ast.parse(path.read_text())
    for node in _statements(tree, everywhere):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, path)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _statements(node: ast.AST, everywhere: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef) and not everywhere:
            continue
        yield child
        yield from _statements(child, everywhere)


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    if node.level == 0:
        return node.module
    package = path.relative_to(ROOT).parts[: -node.level]
    return ".".join([*package, node.module] if node.module else package)


def within(name: str, *packages: str) -> bool:
    return any(name == p or name.startswith(p + ".") for p in packages)


def ours(path: Path) -> list[str]:
    return [name for name in imports(path) if within(name, *OURS)]


def outsiders(path: Path) -> set[str]:
    """Top-level packages that are neither ours nor the standard library's."""
    names = {name.split(".")[0] for name in imports(path, everywhere=False)}
    return names - set(OURS) - set(sys.stdlib_module_names)


ids = {"ids": lambda path: str(path.relative_to(ROOT))}


def test_semirings_are_a_leaf():
    path = ROOT / "structdist/semirings.py"
    assert ours(path) == []
    assert outsiders(path) <= {"torch"}


@pytest.mark.parametrize("path", sources("structdist/ops"), **ids)
def test_kernels_know_nothing_of_the_classes(path: Path):
    allowed = ("structdist.ops", "structdist.semirings")
    assert [name for name in ours(path) if not within(name, *allowed)] == []
    assert outsiders(path) <= {"torch"} | optional_packages(path)


def optional_packages(path: Path) -> set[str]:
    """Of what connects to other libraries, and of kernels that are imported when launched."""
    if path.parent.name == "compat":
        return {"torch_struct"}
    if path.parent.parent.name == "contrib":
        return {path.parent.name}
    return {"triton"} if path.parent.name == "kernels" else set()


@pytest.mark.parametrize("path", sources("structdist"), **ids)
def test_library_needs_torch_alone(path: Path):
    assert [name for name in ours(path) if not within(name, "structdist")] == []
    assert outsiders(path) <= {"torch"} | optional_packages(path)


PUBLIC_MODULES = (
    "structdist",
    "structdist.nn",
    "structdist.compat",
    "structdist.contrib.pyro",
    "structdist.estimators",
    "structdist.tagging",
)


def is_public(name: str) -> bool:
    """`name` is a public module, or a public name of one."""
    module, _, attribute = name.rpartition(".")
    if name in PUBLIC_MODULES:
        return True
    return module in PUBLIC_MODULES and (attribute == "__version__" or attribute[0] != "_")


@pytest.mark.parametrize("path", sources("models"), **ids)
def test_models_use_only_public_names(path: Path):
    library = [name for name in ours(path) if within(name, "structdist")]
    assert [name for name in library if not is_public(name)] == []
    assert [name for name in ours(path) if within(name, "benchmarks", "tests")] == []


# The packages and root modules of `models`, in order: each imports only those before it.
MODELS = (
    *("errors", "files", "locks", "process", "data", "metrics", "restaurants", "corpora"),
    *(
        "config",
        "surface",
        "vae",
        "runs",
        "templates",
        "generation",
        "training",
        "report",
        "study",
        "commands",
    ),
)
MODELS_ROOT = {path.stem for path in (ROOT / "models").glob("*.py")}
COMMANDS = [path for path in sources("models/commands") if path.stem != "__init__"]


def part_of_models(path: Path) -> str:
    return path.relative_to(ROOT / "models").parts[0].removesuffix(".py")


def reached(path: Path, seen: set[str] | None = None) -> set[str]:
    """Everything that importing `path` imports; not what functions import."""
    found = set() if seen is None else seen
    for name in imports(path, everywhere=False):
        if name in found:
            continue
        found.add(name)
        if within(name, "models"):
            for module in (name, name.rpartition(".")[0]):
                own = ROOT / f"{module.replace('.', '/')}.py"
                if own.is_file():
                    reached(own, found)
    return found


def test_models_have_a_small_root_and_a_place_for_each_part():
    assert len(MODELS_ROOT) <= 8
    parts = {part_of_models(path) for path in sources("models")}
    assert parts - {"__init__", "__main__"} == set(MODELS)


@pytest.mark.parametrize("path", sources("models"), **ids)
def test_models_import_one_way(path: Path):
    part = part_of_models(path)
    before = MODELS[: MODELS.index(part) + 1] if part in MODELS else MODELS
    allowed = tuple(f"models.{name}" for name in before)
    own = [name for name in ours(path) if within(name, "models")]
    assert [name for name in own if not within(name, *allowed)] == []


@pytest.mark.parametrize("path", sources("models"), **ids)
def test_only_training_needs_lightning(path: Path):
    if part_of_models(path) != "training":
        assert [name for name in imports(path) if within(name, "lightning")] == []
    if part_of_models(path) != "training" and path.stem != "train":
        assert [name for name in imports(path) if within(name, "models.training")] == []


@pytest.mark.parametrize("path", [*sources("models/metrics"), *COMMANDS], **ids)
def test_metrics_and_help_do_not_wait_for_torch(path: Path):
    assert [name for name in reached(path) if within(name, "torch", "lightning")] == []


ORACLES = (
    *("tests.enumeration", "tests.oracle", "tests.structures.segment_oracle"),
    *("tests.fuzz.listings", "tests.fuzz.parts", "tests.fuzz.exact"),
)


@pytest.mark.parametrize("name", ORACLES)
def test_oracles_know_nothing_of_the_library(name: str):
    """What answers are compared with is found from the definitions alone."""
    path = ROOT / f"{name.replace('.', '/')}.py"
    assert [imported for imported in ours(path) if not within(imported, *ORACLES)] == []
    assert outsiders(path) <= {"torch"}


@pytest.mark.parametrize("path", sources("benchmarks"), **ids)
def test_benchmarks_import_no_tests(path: Path):
    assert [name for name in ours(path) if within(name, "tests")] == []


def test_the_rules_can_fail():
    """The parser sees through both kinds of import, and through relative ones."""
    names = list(imports(ROOT / "structdist/linear_chain.py"))
    assert "structdist.perturb_map" in names
    assert "torch.Tensor" in names
    assert not is_public("structdist.ops.reference")
    assert not is_public("structdist._private")
    assert "torch" in reached(ROOT / "models/runs.py")
    assert "structdist.LinearChainCRF" in reached(ROOT / "models/templates/of_runs.py")


# The public API ------------------------------------------------------------------------------

CRF_API = {
    "arg_constraints",
    "argmax",
    "batch_shape",
    "cdf",
    "condition",
    "cross_entropy",
    "edge_marginals",
    "emissions",
    "end",
    "entropy",
    "enumerate_support",
    "event_of",
    "event_shape",
    "expand",
    "expectation",
    "from_hmm",
    "from_torch_struct",
    "has_enumerate_support",
    "has_rsample",
    "icdf",
    "lengths",
    "log_evidence",
    "log_partition",
    "log_prob",
    "marginals",
    "markov",
    "mean",
    "mode",
    "noise_shape",
    "perplexity",
    "perturb_and_map",
    "relaxed",
    "relaxed_support",
    "renyi_entropy",
    "restrict",
    "rsample",
    "rsample_with_paths",
    "sample",
    "sample_n",
    "sample_paths",
    "sample_with_log_prob",
    "set_default_validate_args",
    "start",
    "stddev",
    "straight_through",
    "support",
    "to_torch_struct",
    "topk",
    "transitions",
    "variance",
}

OF_LINEAR_CHAINS = {"from_hmm", "from_torch_struct", "markov", "to_torch_struct"}
OF_SEMI_MARKOV_CHAINS = {
    "boundary_marginals",
    "durations",
    "labels_of",
    "rsample_labels",
    "sample_labels",
    "segments",
    "token_marginals",
}
APIS = {
    structdist.LinearChainCRF: CRF_API,
    structdist.SemiMarkovCRF: CRF_API - OF_LINEAR_CHAINS | OF_SEMI_MARKOV_CHAINS,
}


def test_public_names_of_the_package():
    assert set(structdist.__all__) == {
        "LinearChain",
        "LinearChainCRF",
        "PathsWithLogProb",
        "Relaxed",
        "RelaxedLabels",
        "RelaxedWithPaths",
        "SegmentLabels",
        "SemiMarkov",
        "SemiMarkovCRF",
        "StraightThrough",
        "StructuredDistribution",
        "TopK",
        "__version__",
        "lengths_from_mask",
    }
    assert all(hasattr(structdist, name) for name in structdist.__all__)


@pytest.mark.parametrize("kind", APIS)
def test_public_names_of_the_distributions(kind: type):
    assert {name for name in dir(kind) if not name.startswith("_")} == APIS[kind]


@pytest.mark.parametrize("kind", APIS)
def test_public_names_are_documented(kind: type):
    undocumented = {
        name
        for name in vars(kind).keys() & APIS[kind]
        if callable(getattr(kind, name)) and not getattr(kind, name).__doc__
    }
    assert undocumented <= {"expand"}  # documented by torch


# At run time ---------------------------------------------------------------------------------

WITHOUT_EXTRAS = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch_struct", "pyro", "numpy", "torchcrf", "rich", "typer"}:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
import torch
import structdist

crf = structdist.LinearChainCRF(torch.zeros(2, 4, 3), torch.zeros(3, 3), torch.tensor([4, 0]))
crf.rsample((2,)).shape, crf.entropy(), crf.topk(2), crf.sample()
structdist.LinearChain(3)(torch.zeros(4, 3)).log_partition.backward()
assert "torch_struct" not in sys.modules
print("works")
"""


def test_core_runs_on_torch_alone():
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(WITHOUT_EXTRAS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout.strip() == "works", done.stderr


def test_nothing_is_left_unfinished():
    files = [path for folder in OURS for path in sources(folder)]
    files += [ROOT / "README.md", ROOT / "Makefile", ROOT / "setup.py"]
    files += [p for p in (ROOT / "structdist").rglob("*") if p.suffix in (".cpp", ".h", ".hpp")]
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in files
        for word in UNFINISHED
        if word in path.read_text()
    ]
    assert found == []
