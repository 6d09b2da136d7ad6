"""Libraries that only the metrics need: imported where they are used, so they are optional."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingLibraryError(ImportError):
    """A library of the extra `metrics` is not installed."""


@contextmanager
def metrics_extra() -> Iterator[None]:
    """Imports in its body that fail say what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingLibraryError(
            f"{error.name} is not installed: pip install 'structdist[metrics]'", name=error.name
        ) from error
