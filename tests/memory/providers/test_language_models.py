"""Requests to language models: how answers are checked and repaired, and what they cost."""

import json
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings
from werkzeug import Response

from memory.errors import ProviderReplyInvalid
from memory.providers.language_models import Usage, announce_default_model, language_model
from memory.providers.language_models.openai import knows_newer_name
from tests.language_model_server import KEY, MODEL, Asked, LanguageModelServer, replying, telling_usage, writing
from tests.memory.providers.recipes import BADLY_COUNTED, MATERIAL, WELL, WELL_COUNTED, Recipe, ask, usage_figures


@pytest.fixture
def server(language_model_server: LanguageModelServer) -> LanguageModelServer:
    language_model_server.write = lambda asked: WELL
    return language_model_server


def test_the_answer_comes_in_the_shape_asked_for(server: LanguageModelServer) -> None:
    usages: list[Usage] = []

    answer = ask(usages=usages)

    assert answer == Recipe.model_validate(WELL)
    assert usage_figures(usages) == [WELL_COUNTED]


def test_a_request_carries_instructions_material_limit_model_and_key(server: LanguageModelServer) -> None:
    ask(max_tokens=321)

    (request,) = server.requests
    assert request["messages"] == [
        {"role": "system", "content": "Read the recipe."},
        {"role": "user", "content": MATERIAL},
    ]
    assert (request["model"], request["max_tokens"]) == (MODEL, 321)
    assert set(request) == {"model", "messages", "max_tokens", "response_format"}
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_simultaneous_requests_of_threads_receive_their_own_answers(server: LanguageModelServer) -> None:
    server.write = lambda asked: {**WELL, "title": asked["messages"][1]["content"]}
    titles = [f"tea {number}" for number in range(12)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda title: ask(material=title), titles))

    assert [answer.title for answer in answers] == titles


def test_the_shape_is_sent_as_a_strict_schema(server: LanguageModelServer) -> None:
    ask()

    sent = server.requests[0]["response_format"]
    schema = sent["json_schema"]["schema"]
    assert (sent["type"], sent["json_schema"]["name"], sent["json_schema"]["strict"]) == ("json_schema", "Recipe", True)
    assert (schema["required"], schema["additionalProperties"]) == (["title", "mood", "steps", "note"], False)
    assert (schema["$defs"]["Step"]["required"], schema["$defs"]["Step"]["additionalProperties"]) == (
        ["name", "minutes"],
        False,
    )
    assert schema["properties"]["title"] == {"type": "string", "title": "Title", "description": "What it is called."}
    assert "default" not in schema["properties"]["note"]


def test_an_answer_that_breaks_a_bound_missing_from_the_schema_is_refused(server: LanguageModelServer) -> None:
    server.answer_next(writing({**WELL, "title": "x" * 21}))

    assert ask().title == "Tea"
    assert len(server.requests) == 2


def test_thinking_tokens_are_added_to_the_token_limit_of_the_answer(
    server: LanguageModelServer, settings: Settings
) -> None:
    settings.LANGUAGE_MODEL_THINKING_TOKENS = 4_000
    language_model.cache_clear()

    ask(max_tokens=500)

    assert server.requests[0]["max_tokens"] == 4_500


@pytest.mark.parametrize(
    ("base_url", "is_newer"),
    [
        ("", True),
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://mine.openai.azure.com/openai/v1/", True),
        ("http://127.0.0.1:8000/v1", False),
        ("https://notopenai.com/v1", False),
        ("https://api.openai.com.example/v1", False),
    ],
)
def test_the_token_limit_is_sent_under_the_name_that_the_endpoint_accepts(base_url: str, is_newer: bool) -> None:
    assert knows_newer_name(base_url) is is_newer


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        pytest.param("Sure! Here is your recipe.", "the whole: json_invalid", id="no JSON"),
        pytest.param(f"```json\n{json.dumps(WELL)}\n```", "the whole: json_invalid", id="JSON in a fence"),
        pytest.param('{"title": "Te', "the whole: json_invalid", id="half of it"),
        pytest.param("[]", "the whole: model_type", id="a list"),
        pytest.param(json.dumps({**WELL, "mood": "odd"}), "mood: literal_error", id="no such choice"),
        pytest.param(json.dumps({**WELL, "steps": [{"name": "boil"}]}), "steps.0.minutes: missing", id="a hole"),
        pytest.param(json.dumps({**WELL, "title": 7}), "title: string_type", id="a number for a text"),
        pytest.param(
            json.dumps({**WELL, "steps": [{"name": "boil", "minutes": "3"}]}), "steps.0.minutes: int_type", id="strict"
        ),
        pytest.param(json.dumps({**WELL, "Obey me.": 1}), "the whole: extra_forbidden", id="a field of its own"),
        pytest.param(json.dumps({**WELL, "title": "a\0b"}), "a text: nul_character", id="NUL"),
        pytest.param('{"title": "\\ud800"}', "the whole: json_invalid", id="a lone surrogate"),
        pytest.param("[" * 50_000, "the whole: json_invalid", id="far too deep"),
    ],
)
def test_an_answer_that_breaks_the_schema_is_returned_once_with_its_faults(
    server: LanguageModelServer, answer: str, fault: str
) -> None:
    usages: list[Usage] = []
    server.answer_next(writing(answer))

    assert ask(usages=usages).title == "Tea"

    first, second = (request["messages"] for request in server.requests)
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": answer}
    assert f"- {fault}\n" in second[3]["content"]
    assert "Obey me." not in second[3]["content"]
    assert usage_figures(usages) == [BADLY_COUNTED, WELL_COUNTED]


def test_a_correction_request_repeats_the_schema_and_its_bounds(server: LanguageModelServer) -> None:
    server.answer_next(writing("Sure!"))

    ask()

    sent_schema = json.loads(server.requests[1]["messages"][3]["content"].splitlines()[-1])
    assert sent_schema == Recipe.model_json_schema()
    assert sent_schema["properties"]["title"]["maxLength"] == 20


@pytest.mark.parametrize("message", [{"content": ""}, {"content": None}, {}, {"content": " \n"}], ids=str)
def test_an_empty_answer_is_complained_of_without_repeating_it(
    server: LanguageModelServer, message: dict[str, Any]
) -> None:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    server.answer_next(replying(json.dumps({"choices": [choice]})))

    assert ask().title == "Tea"

    assert [message["role"] for message in server.requests[1]["messages"]] == ["system", "user", "user"]


def test_a_second_answer_that_breaks_the_schema_is_refused_without_quoting_it(server: LanguageModelServer) -> None:
    usages: list[Usage] = []
    server.answer = writing({"private words": "of the model"})

    with pytest.raises(ProviderReplyInvalid, match=r"twice .*\(extra_forbidden, missing\)$") as caught:
        ask(usages=usages)

    assert len(server.requests) == 2
    assert "private" not in "".join(traceback.format_exception(caught.value))
    assert usage_figures(usages) == [BADLY_COUNTED, BADLY_COUNTED]


def test_a_backslash_before_the_letters_of_a_nul_is_no_nul(server: LanguageModelServer) -> None:
    server.answer_next(writing({**WELL, "title": r"\u0000"}))

    assert ask().title == r"\u0000"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("prompt_price", "completion_price", "cost"),
    [
        # 1,200 tokens at 2.5 a million, 300 at 10 a million: 0.003 + 0.003
        (2.5, 10.0, "0.006"),
        # 1,200 at 0.15, 300 at 0.6: 0.00018 + 0.00018
        (0.15, 0.6, "0.00036"),
        (0.0, 0.0, "0"),
    ],
)
def test_cost_is_tokens_times_their_price_of_a_million(
    server: LanguageModelServer, settings: Settings, prompt_price: float, completion_price: float, cost: str
) -> None:
    settings.LANGUAGE_MODEL_PROMPT_PRICE, settings.LANGUAGE_MODEL_COMPLETION_PRICE = prompt_price, completion_price
    language_model.cache_clear()
    usages: list[Usage] = []

    ask(usages=usages)

    assert [usage.cost for usage in usages] == [Decimal(cost)]


@pytest.mark.parametrize(
    ("usage", "count"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11}, (0, 5, 6)),
        ({"prompt_tokens": 5}, (0, 5, 0)),
        ({}, (0, 0, 0)),
        ("many", (0, 0, 0)),
        ({"prompt_tokens": -5, "completion_tokens": 6}, (0, 0, 0)),
        ({"prompt_tokens": 10**30, "completion_tokens": 6}, (0, 0, 0)),
        ({"prompt_tokens": None, "completion_tokens": None}, (0, 0, 0)),
    ],
    ids=str,
)
def test_an_invalid_token_count_does_not_lose_the_answer(
    server: LanguageModelServer, usage: Any, count: tuple[int, int, int]
) -> None:
    usages: list[Usage] = []
    server.answer = telling_usage(WELL, usage)

    assert ask(usages=usages).title == "Tea"

    assert usage_figures(usages) == [count]


def test_a_purpose_with_an_empty_setting_has_no_language_model(settings: Settings, server: LanguageModelServer) -> None:
    settings.SUMMARY_MODEL = ""
    language_model.cache_clear()

    assert language_model("summary") is None


def test_a_model_is_made_once(server: LanguageModelServer) -> None:
    assert language_model("summary") is language_model("summary")


def test_a_model_without_key_or_address_is_refused(settings: Settings, server: LanguageModelServer) -> None:
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = ""
    language_model.cache_clear()

    with pytest.raises(ImproperlyConfigured, match=r"SUMMARY_MODEL needs OPENAI_API_KEY, or OPENAI_BASE_URL"):
        language_model("summary")


def test_a_model_name_too_long_for_the_usage_table_is_refused(settings: Settings, server: LanguageModelServer) -> None:
    settings.SUMMARY_MODEL = "m" * 101
    language_model.cache_clear()

    with pytest.raises(ImproperlyConfigured, match="at most 100"):
        language_model("summary")


def test_the_test_server_does_not_change_the_embedding_provider(
    server: LanguageModelServer, settings: Settings
) -> None:
    assert settings.EMBEDDING_PROVIDER != "openai"


def takes(*formats: str) -> Callable[[Asked], Response]:
    """Answer well to requests with these values of response_format, and refuse others with 400."""

    def answer(asked: Asked) -> Response:
        asked_for = asked.get("response_format", {"type": "text"})["type"]
        if asked_for not in formats:
            return Response("unknown response_format", status=400)
        fenced = f"Here it is:\n```json\n{json.dumps(WELL)}\n```"
        return writing(fenced if asked_for == "text" else WELL)(asked)

    return answer


@pytest.mark.parametrize(
    ("taken", "asked_for"),
    [
        ("json_schema", ["json_schema", "json_schema"]),
        ("json_object", ["json_schema", "json_object", "json_object"]),
        ("text", ["json_schema", "json_object", "text", "text"]),
    ],
)
def test_a_model_is_asked_in_the_strictest_format_that_it_takes(
    server: LanguageModelServer, taken: str, asked_for: list[str]
) -> None:
    server.answer = takes(taken)

    answers = [ask(), ask()]

    assert answers == [Recipe.model_validate(WELL)] * 2
    assert [each.get("response_format", {"type": "text"})["type"] for each in server.requests] == asked_for
    has_schema = '"title"' in server.requests[-1]["messages"][0]["content"]
    assert has_schema is (taken != "json_schema")


@pytest.mark.parametrize(
    ("key", "address", "named", "expected"),
    [
        ("key", "", "", "gpt-4o-mini"),
        ("key", "", "none", None),
        ("key", "", "other", "other"),
        ("key", "http://127.0.0.1:9/v1", "", None),
        ("", "", "", None),
    ],
)
def test_with_a_key_alone_the_default_model_writes_summaries(
    settings: Settings, key: str, address: str, named: str, expected: str | None
) -> None:
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL, settings.SUMMARY_MODEL = key, address, named
    settings.EXTRACTION_MODEL = ""
    language_model.cache_clear()

    chosen = language_model("summary")

    assert (chosen and chosen.model) == expected
    assert language_model("extraction") is None
    language_model.cache_clear()


def test_a_default_model_is_announced_in_one_sentence(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL, settings.SUMMARY_MODEL = "key", "", ""
    with caplog.at_level("INFO", logger="memory.providers.language_models"):
        announce_default_model()

    settings.SUMMARY_MODEL = "other"
    announce_default_model()

    [sentence] = caplog.messages
    assert sentence.startswith("Summaries are written by gpt-4o-mini")
