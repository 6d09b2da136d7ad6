"""What looks at code from above: transforms, traces and the compiler."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad


def transforming() -> bool:
    """Is this code inside a `torch.func` transform or forward-mode level, or traced by `jit`?

    Kernels see numbers, which these do not show: they go through the reference.
    """
    if torch.compiler.is_compiling():
        return False  # operators serve the compiler, where a backend has them
    if forward_ad._current_level >= 0:
        return True
    return bool(torch._C._are_functorch_transforms_active() or torch._C._is_tracing())


def numbers_are_hidden() -> bool:
    """Is this code transformed, traced or compiled, so that values cannot be looked at?"""
    return torch.compiler.is_compiling() or transforming()
