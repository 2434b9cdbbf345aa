"""Filters of lists: a text is compared unchanged, spaces included, because that is how it was stored."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, get_resolver
from django_filters import CharFilter

from tests.api_client import ServiceClient


def text_filters() -> Iterator[tuple[str, CharFilter]]:
    """Return every text filter by its name, such as `PoolFilter.task_id`."""
    for pattern in all_patterns():
        filters: Any = getattr(getattr(pattern.callback, "cls", None), "filterset_class", None)
        for name, found in getattr(filters, "base_filters", {}).items():
            if isinstance(found, CharFilter):
                yield f"{filters.__name__}.{name}", found


def all_patterns() -> Iterator[URLPattern]:
    waiting = list(get_resolver().url_patterns)
    while waiting:
        found = waiting.pop()
        if isinstance(found, URLPattern):
            yield found
        else:
            waiting += found.url_patterns


def test_no_text_filter_strips_spaces() -> None:
    found = dict(text_filters())

    assert "PoolFilter.task_id" in found
    assert [name for name, text in found.items() if text.field.strip] == []


@pytest.mark.parametrize(("wanted", "pool_ids"), [("task", ["plain"]), ("%20task", ["blank"]), ("task%20", [])])
def test_task_ids_that_differ_by_a_space_are_different(api: ServiceClient, wanted: str, pool_ids: list[str]) -> None:
    for pool_id, task_id in [("plain", "task"), ("blank", " task")]:
        api.post("/pools", {"pool_id": pool_id, "pool_type": "task_scoped", "task_id": task_id})

    found = api.get(f"/pools?task_id={wanted}").json()["results"]

    assert [pool["pool_id"] for pool in found] == pool_ids
