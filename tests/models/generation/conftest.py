"""The built-in corpus, small, and the real one if `STRUCTDIST_DATA` names it."""

from __future__ import annotations

import pytest

from models.data.e2e import FILES, Row, read_e2e
from models.data.synthetic import synthetic_corpus
from tests.models.data.conftest import real_data


@pytest.fixture(scope="session")
def synthetic_examples():
    splits = synthetic_corpus(200, 50, 50).splits
    return [example for split in splits.values() for example in split]


@pytest.fixture(scope="session")
def e2e_dev_rows() -> list[Row]:
    return read_e2e(real_data("e2e") / f"{FILES['dev']}.gz")
