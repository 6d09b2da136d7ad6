"""A pytest plugin: no program keeps edges in registers, as if there were too many states.

Every chain is then done in log space, and so are the gradients of edges that chains share.
"""

from __future__ import annotations

from structdist.ops.triton import launching


def pytest_configure() -> None:
    launching.MOST_BYTES_OF_EDGES = 0
