"""The real client against a server on this machine that speaks the protocols, well or badly."""

import time
import traceback
from typing import Any

import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Response

from memory.errors import ProviderError, ProviderRefused, ProviderReplyInvalid, ProviderUnavailable
from memory.providers.connections import Deadline
from memory.providers.rerankers import reranking_provider
from memory.providers.rerankers.http import LONGEST_QUESTION, LONGEST_TEXT, SHAPES
from tests.reranker_server import KEY, MODEL, RerankerServer, answer_scores

TEXTS = ("the archive moved", "the archive moved to Berlin", "no word of it")
QUESTION = "where is the archive moved to"
SCORES = [3.0, 4.0, 0.0]


def score(*texts: str, question: str = QUESTION, seconds: float | None = 5) -> list[float]:
    provider = reranking_provider()
    assert provider is not None
    return provider.score(question, texts or TEXTS, deadline=Deadline.after(seconds))


@pytest.mark.parametrize(
    ("shape", "asked"),
    [
        ("cohere", {"model": MODEL, "query": QUESTION, "documents": [*TEXTS], "top_n": 3}),
        ("jina", {"model": MODEL, "query": QUESTION, "documents": [*TEXTS], "top_n": 3, "return_documents": False}),
        ("tei", {"query": QUESTION, "texts": [*TEXTS], "truncate": True}),
    ],
)
def test_each_protocol_gives_the_scores_in_the_order_of_the_texts(
    reranker_server: RerankerServer, settings: Settings, shape: str, asked: dict[str, Any]
) -> None:
    settings.RERANK_SHAPE = shape

    assert score() == SCORES
    assert reranker_server.requests == [asked]


def test_the_key_goes_in_its_header(reranker_server: RerankerServer) -> None:
    score()

    assert [headers["Authorization"] for headers in reranker_server.headers] == [f"Bearer {KEY}"]


def test_without_a_key_none_is_sent(reranker_server: RerankerServer, settings: Settings) -> None:
    settings.RERANK_API_KEY = ""

    assert score() == SCORES
    assert "Authorization" not in reranker_server.headers[0]


def test_question_and_texts_are_bounded(reranker_server: RerankerServer) -> None:
    score("語" * 100_000, question="q" * 100_000)

    asked = reranker_server.requests[0]
    assert (len(asked["query"]), len(asked["documents"][0])) == (LONGEST_QUESTION, LONGEST_TEXT)


def test_many_texts_go_in_batches_and_keep_their_order(reranker_server: RerankerServer) -> None:
    reranker_server.score = lambda question, text: float(text)

    assert score(*map(str, range(70))) == [float(number) for number in range(70)]
    assert [len(asked["documents"]) for asked in reranker_server.requests] == [32, 32, 6]


def test_scoring_no_texts_sends_no_request(reranker_server: RerankerServer) -> None:
    provider = reranking_provider()

    assert provider is not None
    assert provider.score(QUESTION, [], deadline=Deadline.after(5)) == []
    assert reranker_server.requests == []


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_temporary_failure_is_retried_once(reranker_server: RerankerServer, status: int) -> None:
    reranker_server.fail(status, text=f"echo of {KEY}")

    with pytest.raises(ProviderUnavailable, match=f"answered {status}"):
        score()

    assert len(reranker_server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_refusal_is_final_and_does_not_disclose_the_request(reranker_server: RerankerServer, status: int) -> None:
    reranker_server.fail(status, text=f"{KEY} may not ask about {TEXTS[0]}")

    with pytest.raises(ProviderRefused) as caught:
        score()

    logged = "".join(traceback.format_exception(caught.value))
    assert len(reranker_server.requests) == 1
    assert KEY not in logged
    assert TEXTS[0] not in logged
    assert caught.value.__context__ is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirection_is_followed(reranker_server: RerankerServer, httpserver: HTTPServer, status: int) -> None:
    elsewhere = httpserver.url_for("/elsewhere").replace("localhost", "127.0.0.1")
    reranker_server.fail(status, Location=elsewhere)

    with pytest.raises(ProviderReplyInvalid, match=str(status)):
        score()

    assert [request.path for request, _response in httpserver.log] == ["/rerank"]


def items(*pairs: str) -> str:
    listed = ", ".join(f'{{"index": {index}, "relevance_score": {value}}}' for index, value in map(str.split, pairs))
    return f'{{"results": [{listed}]}}'


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<html>Down for maintenance</html>", id="HTML"),
        pytest.param("", id="nothing"),
        pytest.param("null", id="null"),
        pytest.param('{"results": null}', id="null results"),
        pytest.param('[{"index": 0, "score": 1}, {"index": 1, "score": 1}]', id="another protocol"),
        pytest.param(items("0 0.5"), id="too few"),
        pytest.param(items("0 0.5", "1 0.5", "2 0.5"), id="too many"),
        pytest.param(items("0 0.5", "0 0.5"), id="an index twice"),
        pytest.param(items("0 0.5", "2 0.5"), id="an index of no text"),
        pytest.param(items("0 0.5", "-1 0.5"), id="an index below zero"),
        pytest.param(items("0 0.5", "1.0 0.5"), id="an index with a point"),
        pytest.param(items("0 0.5", "true 0.5"), id="an index that is a flag"),
        pytest.param(items("0 0.5", "1 NaN"), id="NaN"),
        pytest.param(items("0 0.5", "1 Infinity"), id="infinity"),
        pytest.param(items("0 0.5", "1 1e400"), id="beyond floats"),
        pytest.param(items("0 0.5", '1 "0.5"'), id="a score as a text"),
        pytest.param(items("0 0.5", "1 null"), id="no score"),
        pytest.param(" " * 1_000_000, id="far too much"),
        pytest.param("[" * 50_000, id="far too deep"),
    ],
)
def test_a_nonsensical_reply_is_refused(reranker_server: RerankerServer, body: str) -> None:
    reranker_server.reply(body)

    with pytest.raises(ProviderReplyInvalid) as caught:
        score("one", "two")

    assert caught.value.__context__ is None
    assert len(reranker_server.requests) == 1


@pytest.mark.parametrize("scores", [[-7.5, 3], [0, 1e-9]], ids=["logits", "whole numbers"])
def test_scores_of_any_range_are_taken(reranker_server: RerankerServer, scores: list[float]) -> None:
    reranker_server.answer = lambda asked: answer_scores(asked, scores)

    assert score("one", "two") == scores


@pytest.mark.parametrize("behave", [RerankerServer.hang, RerankerServer.drip], ids=["silent", "dripping"])
def test_a_slow_server_is_abandoned_at_the_deadline(reranker_server: RerankerServer, behave: Any) -> None:
    behave(reranker_server)
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable):
        score(seconds=0.3)

    assert time.monotonic() - began < 4


def test_no_request_is_sent_past_the_deadline(reranker_server: RerankerServer) -> None:
    with pytest.raises(ProviderUnavailable, match="deadline"):
        score(seconds=0)

    assert reranker_server.requests == []


def test_a_broken_encoding_is_a_provider_error(reranker_server: RerankerServer) -> None:
    reranker_server.answer = lambda asked: Response(b"no gzip", headers={"Content-Encoding": "gzip"})

    with pytest.raises(ProviderError):
        score()


def test_a_server_that_is_not_there_is_unavailable(settings: Settings, reranker_server: RerankerServer) -> None:
    settings.RERANK_URL = "http://127.0.0.1:9/rerank"

    with pytest.raises(ProviderUnavailable, match="connection"):
        score()


def test_the_key_is_shown_nowhere(reranker_server: RerankerServer) -> None:
    provider: Any = reranking_provider()

    assert KEY not in repr(provider._endpoint)
    assert KEY not in repr(provider._client.get().headers)


def test_every_protocol_of_the_setting_is_implemented() -> None:
    assert set(SHAPES) == {"cohere", "jina", "tei"}
