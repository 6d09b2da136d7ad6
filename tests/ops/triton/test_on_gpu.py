"""The conformance suite with kernels on a real GPU, where there is one: `make test-gpu`."""

from __future__ import annotations

import pytest
import torch

from tests.ops.triton.processes import CONFORMANCE, passed_tests


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_kernels_on_a_gpu():
    plugin = ("-p", "tests.ops.triton.on_gpu")
    assert passed_tests(*plugin, *CONFORMANCE, STRUCTDIST_TEST_DEVICE="cuda") > 1000
