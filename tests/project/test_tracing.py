"""Tracing is off unless it is configured. A configuration without the packages is reported at start."""

import sys
from collections.abc import Iterator
from uuid import UUID

import pytest
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpResponse

from memory.checks import check_tracing
from memory_project.tracing import ENDPOINTS, TraceParentMiddleware, find_tracer, span, traced

ACCOUNT = UUID(int=7)


@pytest.fixture(autouse=True)
def _untraced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Behave as where OpenTelemetry is not installed."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    find_tracer.cache_clear()
    yield
    find_tracer.cache_clear()


def test_without_an_endpoint_nothing_is_traced() -> None:
    with span("recall", account_id=ACCOUNT) as found:
        found.note(results=3)

    assert find_tracer() is None
    assert traced("recall")(len)("four") == 4
    assert check_tracing() == []
    with pytest.raises(MiddlewareNotUsed):
        TraceParentMiddleware(lambda request: HttpResponse())


def test_a_tracing_endpoint_without_the_packages_is_reported_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")

    [warning] = check_tracing()

    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in warning.msg
    assert find_tracer() is None
