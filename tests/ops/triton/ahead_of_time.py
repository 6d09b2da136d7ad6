"""Compile kernels for cards that are not there, and keep what they would take of them.

    python -m tests.ops.triton.ahead_of_time TARGET [FOLDER]

compiles every kernel that any operation launches, of all structures and forms, at 16 to 128 states
in both dtypes, and writes `compiled/TARGET.json`: minutes for each target. The record belongs to
the kernels' sources and to one version of Triton, which it names, so that a test can tell whether
it is out of date. To be run again after every change of a kernel.

    python -m tests.ops.triton.ahead_of_time sample COUNT

prints what is launched today, and what COUNT of the kernels take for each target, compiled anew.
Both need a process of their own, in which Triton does not interpret.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

from structdist.ops.triton import kernels
from structdist.ops.triton.launching import Launch, _found, recorded_launches
from tests.chains import FORMS
from tests.ops.triton.every_operation import EXAMPLES, run_every_operation

SIZES = list(itertools.product((16, 32, 64, 128), (torch.float32, torch.float64)))
TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
RECORDS = Path(__file__).parent / "compiled"


def launches() -> dict[str, Launch]:
    """Every kernel that is launched, by a name that tells apart what it is compiled for."""
    with recorded_launches(run=False) as found:
        for (num_states, dtype), example, form in itertools.product(
            SIZES, EXAMPLES.values(), FORMS
        ):
            run_every_operation(example(form, num_states, dtype))
    return {_name(x): x for x in found}


def _name(launch: Launch) -> str:
    """The kernel, its types and its constants."""
    constants = ",".join(f"{name}={value}" for name, value in launch.constants.items())
    return f"{launch.kernel}({','.join(launch.signature)})[{constants}]"


def sources() -> str:
    """A digest of all kernels, and the version of Triton."""
    files = sorted(Path(kernels.__path__[0]).glob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    return f"{digest[:16]}, Triton {triton.__version__}"


def compiled(launch: Launch, target: GPUTarget) -> CompiledKernel:
    function = _found(launch.kernel)
    constants = dict(launch.constants)
    options = {name: constants.pop(name) for name in ("num_warps", "maxnreg")}
    if target.backend == "hip":
        del options["maxnreg"]
    types = iter(launch.signature)
    signature = {p.name: "constexpr" if p.is_constexpr else next(types) for p in function.params}
    source = ASTSource(function, signature, constexprs=constants)
    return triton.compile(source, target=target, options=options)


def resources(kernel: CompiledKernel, target: GPUTarget) -> dict[str, Any]:
    """Registers of a thread, bytes that did not fit into them, shared memory, and whether TF32."""
    of_target = _of_amd(kernel) if target.backend == "hip" else _of_nvidia(kernel)
    return {**of_target, "shared": kernel.metadata.shared}


def _of_amd(kernel: CompiledKernel) -> dict[str, Any]:
    text = kernel.asm["amdgcn"]
    registers = int(re.search(r"\.vgpr_count:\s+(\d+)", text)[1])
    spilled = int(re.search(r"\.vgpr_spill_count:\s+(\d+)", text)[1])
    return {"registers": registers, "spilled": spilled, "tf32": "xf32" in text}


def _of_nvidia(kernel: CompiledKernel) -> dict[str, Any]:
    """What is spilled lies on the stack of a thread, for which kernels have no other use."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        command = [tool, "--dump-resource-usage", file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack, local = (
        int(re.search(rf"\b{kind}:(\d+)", said)[1]) for kind in ("REG", "STACK", "LOCAL")
    )
    tf32 = "tf32" in kernel.asm["ptx"]
    return {"registers": registers, "spilled": stack + local, "tf32": tf32}


def taken(name: str, launch: Launch, target: str) -> list[Any]:
    """One line of a record: the kernel, and what it takes."""
    found = resources(compiled(launch, TARGETS[target]), TARGETS[target])
    return [name, found]


def record(target: str, folder: str | Path = RECORDS) -> None:
    lines = [json.dumps(taken(*item, target)) for item in sorted(launches().items())]
    text = ",\n".join(lines)
    file = Path(folder) / f"{target}.json"
    file.write_text(f'{{"sources": "{sources()}", "kernels": [\n{text}\n]}}\n')


def sample(count: int) -> None:
    """An even choice over all kernels, another one for each target."""
    found = sorted(launches().items())
    print(json.dumps({"sources": sources(), "launched": [name for name, _ in found]}))
    for offset, target in enumerate(TARGETS):
        step = len(found) // count
        for name, launch in found[offset * step // len(TARGETS) :: step][:count]:
            print(json.dumps({"target": target, "taken": taken(name, launch, target)}), flush=True)


if __name__ == "__main__":
    sample(int(sys.argv[2])) if sys.argv[1] == "sample" else record(*sys.argv[1:])
