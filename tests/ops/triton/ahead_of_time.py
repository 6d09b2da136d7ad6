"""Compile kernels for cards that are not there, and say what they would take of them.

    python -m tests.ops.triton.ahead_of_time TARGET log-z|log-z-of-segments|all

prints one line of JSON for each kernel that is launched: for log Z and its gradient with shared
scores, of linear chains or (32 labels in float32 alone) of semi-Markov chains, or for all
operations and forms. It needs a process of its own, in which Triton does not interpret.
"""

from __future__ import annotations

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

from structdist.ops.triton.launching import Launch, _found, recorded_launches
from tests.chains import FORMS
from tests.ops.triton.every_operation import EXAMPLES, run_every_operation, run_log_z

LOG_Z = {"log-z": "linear", "log-z-of-segments": "segments"}
EVERY_SIZE = list(itertools.product((16, 32, 64, 128), (torch.float32, torch.float64)))
SIZES = {"log-z": EVERY_SIZE, "log-z-of-segments": [(32, torch.float32)], "all": EVERY_SIZE}
TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}


def launches_of(num_states: int, dtype: torch.dtype, which: str) -> dict[str, Launch]:
    """Kernels that are launched, by a name that tells apart what they are compiled for."""
    with recorded_launches(run=False) as launches:
        if which in LOG_Z:
            run_log_z(EXAMPLES[LOG_Z[which]]("shared", num_states, dtype))
        else:
            for example, form in itertools.product(EXAMPLES.values(), FORMS):
                run_every_operation(example(form, num_states, dtype))
    return {f"{x.kernel} {json.dumps(x.constants)}": x for x in launches}


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
    if target.backend == "hip":
        text = kernel.asm["amdgcn"]
        registers = int(re.search(r"\.vgpr_count:\s+(\d+)", text)[1])
        spilled = int(re.search(r"\.vgpr_spill_count:\s+(\d+)", text)[1])
        return {"registers": registers, "spilled": spilled, "tf32": "xf32" in text}
    text = kernel.asm["ptx"]
    tools = Path(triton.__file__).parent / "backends/nvidia/bin"
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        options = ["-v", f"--gpu-name={_architecture(text)}", file.name, "-o", "/dev/null"]
        said = subprocess.run([tools / "ptxas", *options], capture_output=True, text=True).stderr
    spilled = sum(int(x) for x in re.findall(r"(\d+) bytes spill", said))
    registers = int(re.search(r"Used (\d+) registers", said)[1])
    return {"registers": registers, "spilled": spilled, "tf32": "tf32" in text}


def _architecture(ptx: str) -> str:
    return re.search(r"\.target (\w+)", ptx)[1]


def main(target_name: str, which: str) -> None:
    target = TARGETS[target_name]
    for num_states, dtype in SIZES[which]:
        for name, launch in launches_of(num_states, dtype, which).items():
            kernel = compiled(launch, target)
            found = {**resources(kernel, target), "shared": kernel.metadata.shared}
            print(json.dumps({"kernel": name, "dtype": str(dtype), **found}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
