"""The reranker that the settings name, and settings that cannot work."""

from collections.abc import Iterator

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from memory import checks
from memory.providers.rerankers import reranking_provider

URL = "http://127.0.0.1:9/rerank"


@pytest.fixture(autouse=True)
def fresh_reranker() -> Iterator[None]:
    reranking_provider.cache_clear()
    yield
    reranking_provider.cache_clear()


def configure(settings: Settings, url: str = URL, model: str = "m", key: str = "", shape: str = "cohere") -> None:
    settings.RERANK_URL, settings.RERANK_MODEL = url, model
    settings.RERANK_API_KEY, settings.RERANK_SHAPE = key, shape


def test_no_reranker_is_configured_by_default(settings: Settings) -> None:
    configure(settings, url="", model="")

    assert reranking_provider() is None
    assert checks.check_reranker() == []


@pytest.mark.parametrize(("model", "shape"), [("m", "cohere"), ("m", "jina"), ("", "tei"), ("m", "tei")])
def test_a_configured_address_selects_a_reranker(settings: Settings, model: str, shape: str) -> None:
    configure(settings, model=model, shape=shape)

    provider = reranking_provider()

    assert provider is not None
    assert provider.model == model
    assert checks.check_reranker() == []


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        pytest.param({"url": ""}, "RERANK_URL names none", id="a model without an address"),
        pytest.param({"url": "", "model": "", "key": "hunter2"}, "RERANK_URL names none", id="a key without one"),
        pytest.param({"url": "ftp://hunter2/rerank"}, "RERANK_URL must be", id="another scheme"),
        pytest.param({"url": "hunter2"}, "RERANK_URL must be", id="no URL"),
        pytest.param({"url": "https://host.example/"}, "whole address", id="a host alone"),
        pytest.param({"url": "https://ana:hunter2@host.example/r", "key": "k"}, "take the place", id="two passwords"),
        pytest.param({"key": "hunter2\n"}, "RERANK_API_KEY must be", id="a key with a line break"),
        pytest.param({"model": ""}, "RERANK_MODEL must name", id="no model"),
        pytest.param({"shape": "oracle"}, "RERANK_SHAPE must be", id="an unknown protocol"),
    ],
)
def test_settings_that_cannot_work_are_an_error_that_repeats_no_secret(
    settings: Settings, changes: dict[str, str], complaint: str
) -> None:
    configure(settings, **changes)

    [message] = checks.check_reranker()

    assert (message.id, complaint in message.msg) == ("memory.E011", True)
    assert message.hint
    assert "hunter" not in message.msg
    with pytest.raises(ImproperlyConfigured):
        reranking_provider()
