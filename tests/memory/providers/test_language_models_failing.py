"""Endpoints of language models that fail, each in its own way: the real client against a server on this machine."""

import json
import time
import traceback
from typing import Any

import pytest
from pytest_django import Settings

from memory.errors import ProviderError, ProviderRefused, ProviderReplyInvalid, ProviderUnavailable
from memory.providers.language_models import Question, Usage, language_model
from memory.providers.language_models.openai import ChatEndpoint, ChatModel
from tests.language_model_server import (
    KEY,
    MODEL,
    Answer,
    LanguageModelServer,
    answering_html,
    choosing_nothing,
    cut_off,
    failing,
    refusing,
    replying,
    writing,
)
from tests.memory.providers.recipes import (
    BADLY_COUNTED,
    MATERIAL,
    UNCOUNTED,
    WELL,
    WELL_COUNTED,
    Recipe,
    ask,
    usage_figures,
)


@pytest.fixture
def server(language_model_server: LanguageModelServer) -> LanguageModelServer:
    language_model_server.write = lambda asked: WELL
    return language_model_server


@pytest.mark.parametrize(
    ("answer", "message", "count"),
    [
        pytest.param(refusing("I will not."), "declined", BADLY_COUNTED, id="refusal"),
        pytest.param(cut_off(), "LANGUAGE_MODEL_THINKING_TOKENS", BADLY_COUNTED, id="cut off"),
        pytest.param(cut_off(json.dumps(WELL)), "cut off", BADLY_COUNTED, id="cut off after the end"),
        pytest.param(choosing_nothing(), "no choices", (1, 7, 0), id="no choices"),
        pytest.param(answering_html(), "not the JSON", UNCOUNTED, id="HTML"),
        pytest.param(replying(""), "not the JSON", UNCOUNTED, id="nothing"),
        pytest.param(replying('"a string"'), "not the JSON", UNCOUNTED, id="a string"),
        pytest.param(replying('{"error": "private words"}'), "not the JSON", UNCOUNTED, id="an error with 200"),
        pytest.param(replying('{"choices": [{"message": {"content": 7}}]}'), "not the JSON", UNCOUNTED, id="a number"),
        pytest.param(replying(b"\xff\xfe"), "not the JSON", UNCOUNTED, id="no Unicode"),
        pytest.param(replying(b" " * 500_000), "larger than", UNCOUNTED, id="far too much"),
    ],
)
def test_a_reply_that_cannot_be_corrected_is_refused_without_a_retry(
    server: LanguageModelServer, answer: Answer, message: str, count: tuple[int, int, int]
) -> None:
    usages: list[Usage] = []
    server.answer = answer

    with pytest.raises(ProviderReplyInvalid, match=message) as caught:
        ask(usages=usages)

    assert len(server.requests) == 1
    assert usage_figures(usages) == [count]
    assert caught.value.__context__ is None
    assert not any(words in str(caught.value) for words in ("private", "I will not", "They"))


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503])
def test_a_temporary_failure_is_retried_and_metered(server: LanguageModelServer, status: int) -> None:
    usages: list[Usage] = []
    server.answer_next(failing(status))

    assert ask(usages=usages).title == "Tea"

    assert usage_figures(usages) == [UNCOUNTED, WELL_COUNTED]


def test_a_lasting_failure_is_given_up_after_four_attempts(server: LanguageModelServer) -> None:
    usages: list[Usage] = []
    server.answer = failing(500, text="secret words of the server")

    with pytest.raises(ProviderUnavailable, match="language model endpoint answered 500") as caught:
        ask(usages=usages)

    assert usage_figures(usages) == [UNCOUNTED] * 4
    assert "secret words" not in str(caught.value)


def test_retry_after_is_obeyed(server: LanguageModelServer) -> None:
    server.answer_next(failing(429, retry_after="1"))
    began = time.monotonic()

    ask()

    assert time.monotonic() - began >= 1


def test_a_wait_beyond_the_deadline_is_not_begun(server: LanguageModelServer) -> None:
    server.answer = failing(429, retry_after="20")
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable) as caught:
        ask(deadline_seconds=3)

    assert caught.value.retry_after_seconds == 20
    assert time.monotonic() - began < 2


def test_a_silent_server_is_abandoned_at_the_deadline(server: LanguageModelServer) -> None:
    usages: list[Usage] = []
    server.hang()
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable):
        ask(deadline_seconds=0.3, usages=usages)

    assert time.monotonic() - began < 4
    assert usage_figures(usages) == [UNCOUNTED]


def test_a_server_that_drips_its_reply_is_abandoned_at_the_deadline(server: LanguageModelServer) -> None:
    server.drip()
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable, match="in time"):
        ask(deadline_seconds=0.4)

    assert time.monotonic() - began < 4


def test_a_slow_answer_within_the_timeout_is_taken(server: LanguageModelServer) -> None:
    server.dawdle(0.3)

    assert ask().title == "Tea"


def test_a_request_has_its_own_timeout_below_the_deadline(server: LanguageModelServer, settings: Settings) -> None:
    usages: list[Usage] = []
    settings.LANGUAGE_MODEL_TIMEOUT_SECONDS = 0.2
    language_model.cache_clear()
    server.hang()

    with pytest.raises(ProviderUnavailable):
        ask(deadline_seconds=1.5, usages=usages)

    assert len(usages) > 1


def test_past_the_deadline_no_request_is_sent_or_metered(server: LanguageModelServer) -> None:
    usages: list[Usage] = []

    with pytest.raises(ProviderUnavailable, match="deadline"):
        ask(deadline_seconds=0, usages=usages)

    assert (server.requests, usages) == ([], [])


@pytest.mark.slow
def test_a_correction_request_is_under_the_same_deadline(server: LanguageModelServer, settings: Settings) -> None:
    settings.LANGUAGE_MODEL_TIMEOUT_SECONDS = 30.0
    language_model.cache_clear()
    server.answer_next(writing("Sure!"))
    # less than the time that a request has
    server.dawdle(25.0)

    with pytest.raises(ProviderUnavailable):
        ask(deadline_seconds=10)

    assert len(server.requests) == 2


def test_a_server_that_is_not_there_is_unavailable_and_metered() -> None:
    usages: list[Usage] = []
    model = ChatModel(ChatEndpoint(model=MODEL, base_url="http://127.0.0.1:9/v1", backoff_seconds=0.01))
    question = Question(instructions="i", material="m", max_tokens=10)

    with pytest.raises(ProviderUnavailable, match="connection"):
        model.ask(question, Recipe, meter=usages.append, deadline_seconds=5)

    assert usage_figures(usages) == [UNCOUNTED] * 4


@pytest.mark.parametrize(("status", "requests"), [(400, 3), (401, 1), (403, 1), (404, 1), (413, 1), (422, 3)])
def test_a_refusal_is_final_once_no_format_is_left(server: LanguageModelServer, status: int, requests: int) -> None:
    usages: list[Usage] = []
    server.fail(status)

    with pytest.raises(ProviderRefused, match=str(status)) as caught:
        ask(usages=usages)

    assert caught.value.status == status
    assert usage_figures(usages) == [UNCOUNTED] * requests


@pytest.mark.parametrize(("status", "has_hint"), [(400, True), (422, True), (413, True), (401, False), (404, False)])
def test_the_error_for_a_refused_request_names_the_features_the_model_needs(
    server: LanguageModelServer, status: int, has_hint: bool
) -> None:
    server.fail(status)

    with pytest.raises(ProviderRefused) as caught:
        ask()

    assert ("response_format json_schema" in str(caught.value)) is has_hint


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_key_or_material_that_the_server_echoes_is_nowhere_in_the_error(
    server: LanguageModelServer, status: int
) -> None:
    echo = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY} for {MATERIAL}", "code": "no_key"}})
    server.answer = failing(status, text=echo)

    with pytest.raises(ProviderError) as caught:
        ask()

    logged = "".join(traceback.format_exception(caught.value))
    assert KEY not in logged
    assert MATERIAL not in logged


def test_the_key_is_not_shown_by_the_settings_that_hold_it() -> None:
    assert KEY not in repr(ChatEndpoint(model=MODEL, api_key=KEY))


def test_material_that_is_no_valid_unicode_is_refused_before_any_request(server: LanguageModelServer) -> None:
    with pytest.raises(ValueError, match="lone surrogate") as caught:
        ask(material="lone \ud800 surrogate")

    assert caught.value.__context__ is None
    assert server.requests == []


def test_a_broken_encoding_is_a_provider_error(server: LanguageModelServer) -> None:
    def answer_no_gzip(asked: dict[str, Any]) -> Any:
        response = writing(WELL)(asked)
        response.headers["Content-Encoding"] = "gzip"
        return response

    server.answer = answer_no_gzip

    with pytest.raises(ProviderError):
        ask()


def test_the_model_serves_again_after_a_failure(server: LanguageModelServer) -> None:
    server.answer_next(answering_html())

    with pytest.raises(ProviderReplyInvalid):
        ask()

    assert ask().title == "Tea"
