"""Fixtures that tests of several packages of the memory service use."""

from collections.abc import Iterator

import pytest

from memory import conf
from memory.services.embedding.vector_index import drop_indexes
from tests.memory.nested_vectors import indexes_of_accounts


@pytest.fixture
def large_from_100(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Accounts of more than a hundred vectors are large; no index outlives the test."""
    monkeypatch.setattr(conf, "EXACT_SEARCH_ROWS", 100)
    yield
    drop_indexes(indexes_of_accounts())
