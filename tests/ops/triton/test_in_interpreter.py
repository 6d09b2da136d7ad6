"""The conformance suite on Triton kernels, interpreted on the CPU between guard zones."""

from __future__ import annotations

import pytest

from tests.ops.triton.processes import CONFORMANCE, passed_tests

GUARDED = ("-p", "tests.ops.triton.guarded", "-p", "tests.ops.triton.patched_once")


def test_kernels_agree_with_the_reference():
    """Values and gradients of every operation: forms, lengths, what is forbidden, underflow.

    Each form and each kind of problem, not all pairs of them; the slow tests have those, too.
    """
    problems = "(shared or per_chain-forbidden or per_step-wide) and 17 and not (0.1 or 5.0)"
    chosen = f"test_values_and_gradients and linear and {problems}"
    assert passed_tests(*GUARDED, CONFORMANCE[0], "-k", chosen, TRITON_INTERPRET="1") == 50


def test_kernels_agree_where_edges_do_not_fit_into_registers():
    plugins = (*GUARDED, "-p", "tests.ops.triton.nothing_resident")
    problems = "(shared-plain or per_chain-forbidden) and 17 and not (0.1 or 5.0)"
    chosen = f"test_values_and_gradients and linear and {problems}"
    assert passed_tests(*plugins, CONFORMANCE[0], "-k", chosen, TRITON_INTERPRET="1") == 20


def test_kernels_of_segments_agree_with_the_reference():
    """One problem of each form, and one of two forms; the slow tests have all of them."""
    problems = "(shared-plain and 17 or per_chain-forbidden or per_step-wide)"
    questions = "(log_partition or entropy or expectation or temperature)"
    chosen = f"{problems} and {questions} or mixed and (log_partition or segments)"
    chosen = f"test_values_and_gradients and semi-Markov and ({chosen})"
    assert passed_tests(*GUARDED, CONFORMANCE[0], "-k", chosen, TRITON_INTERPRET="1") == 17


def test_distributions_agree_with_enumeration():
    chosen = "this_backend or forbidden-nan-shared and (enumeration or same_noise or best_paths)"
    assert passed_tests(*GUARDED, CONFORMANCE[1], "-k", chosen, TRITON_INTERPRET="1") > 20


def test_the_compiler_keeps_them_in_graphs():
    chosen = "test_each_question and aot_eager and triton and (log_partition or rsample-)"
    file = ("tests/test_compile.py", "-m", "slow", "-k", chosen)
    assert passed_tests(*GUARDED, *file, TRITON_INTERPRET="1") == 4


@pytest.mark.slow
def test_kernels_of_segments_agree_where_edges_do_not_fit_into_registers():
    plugins = (*GUARDED, "-p", "tests.ops.triton.nothing_resident")
    chosen = "test_values_and_gradients and semi-Markov and (shared or mixed) and not (0.1 or 5.0)"
    assert passed_tests(*plugins, CONFORMANCE[0], "-k", chosen, TRITON_INTERPRET="1") > 40


@pytest.mark.slow
def test_the_whole_suite():
    assert passed_tests(*GUARDED, *CONFORMANCE, TRITON_INTERPRET="1") > 1000
