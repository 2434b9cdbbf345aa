"""Near-duplicates for tests: the embedder is the test model, which knows no text by itself; and runs of the job."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from pytest_django import Settings

from memory.maintenance import Batch, BatchReport
from memory.maintenance.memory_jobs import deduplicate
from memory.models import Link, Memory, MemoryRow
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.services.memories.links import DUPLICATE_OF, NewLink, insert_links
from tests.memory.episodes import MODEL, NOW, WIDTH

NEAR, FAR = 0.3, 0.5
"""Angles: to 0 similar by 0.955, and by 0.878."""


@pytest.fixture
def test_model(settings: Settings) -> Iterator[None]:
    """Make the model of the tests' vectors the current one, at an address without a server."""
    settings.EMBEDDING_PROVIDER, settings.OPENAI_BASE_URL = "openai", "http://127.0.0.1:9/v1"
    settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS = MODEL, WIDTH
    embedding_provider.cache_clear()
    yield
    embedding_provider.cache_clear()


def run(*, now: datetime = NOW, size: int = 100, **fields: Any) -> list[BatchReport]:
    """The reports of a whole run."""
    reports = [deduplicate(now=now, batch=Batch(size=size, **fields))]
    while cursor := reports[-1].cursor:
        reports.append(deduplicate(now=now, batch=Batch(size=size, cursor=cursor, **fields)))
    return reports


def merged(**fields: Any) -> int:
    """Count the merges of a whole run, and assert that none failed."""
    reports = run(**fields)
    assert not any(report.failed for report in reports)
    return sum(report.changed for report in reports)


def live() -> list[str]:
    """The texts that are not archived, oldest first."""
    return list(Memory.objects.filter(archived=False).order_by("id").values_list("text", flat=True))


def set_columns(row: Any, **columns: Any) -> None:
    type(row).objects.filter(pk=row.pk).update(**columns)


def reload(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


def link_to(owner: Owner, source: MemoryRow, type_: str, target: MemoryRow) -> None:
    insert_links(owner.account_id, [NewLink(source_id=source.id, type=type_, target_id=target.id)])


def linked(row: MemoryRow) -> set[tuple[str, Any]]:
    """Return the memory's links in both directions, except those of merges."""
    out = Link.objects.filter(source_id=row.id).values_list("type", "target_id")
    into = Link.objects.filter(target_id=row.id).values_list("type", "source_id")
    return {each for each in [*out, *into] if not each[0].endswith(DUPLICATE_OF)}
