"""The real client against a server on this machine that speaks the protocol, well or badly."""

import json
import time
import traceback
from collections.abc import Callable, Iterator
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memory.errors import ProviderError, ProviderRefused, ProviderReplyInvalid, ProviderUnavailable
from memory.providers.embeddings.openai import (
    MAX_CHUNK_BYTES,
    MAX_REQUEST_BYTES,
    OpenAIEmbeddings,
    OpenAIEndpoint,
    cut_text,
)

KEY = "sk-very-secret"
WIDTH = 4
Answer = Callable[[Request], Response]


@pytest.fixture
def release(httpserver: HTTPServer) -> Iterator[Event]:
    """Lets a handler that plays dead go home when its test is over, before `httpserver` waits for it."""
    event = Event()
    yield event
    event.set()


def endpoint(server: HTTPServer, **changes: object) -> OpenAIEmbeddings:
    settings = {"model": "m", "api_key": KEY, "base_url": server.url_for("/v1"), "dimensions": WIDTH}
    return OpenAIEmbeddings(OpenAIEndpoint(**{**settings, "backoff_seconds": 0.01, **changes}))  # type: ignore[arg-type]


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 1, 0, -1]


def direction_of(text: str) -> NDArray[np.float64]:
    return np.array(vector_of(text)) / float(np.linalg.norm(vector_of(text)))


def answer_well(request: Request) -> Response:
    """Last text first: the order is in `index`, not in the list."""
    texts = json.loads(request.data)["input"]
    return answer_vectors([{"index": at, "embedding": vector_of(texts[at])} for at in reversed(range(len(texts)))])


def answer_vectors(items: list[dict[str, object]]) -> Response:
    data = [{"object": "embedding", **item} for item in items]
    body = {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    return Response(json.dumps(body), content_type="application/json")


def serve(server: HTTPServer, answer: Answer) -> None:
    server.expect_request("/v1/embeddings", method="POST").respond_with_handler(answer)


def serve_in_turn(server: HTTPServer, *answers: Response) -> None:
    for answer in answers:
        server.expect_ordered_request("/v1/embeddings").respond_with_response(answer)
    server.expect_ordered_request("/v1/embeddings").respond_with_handler(answer_well)


def sent_bodies(server: HTTPServer) -> list[dict[str, object]]:
    return [json.loads(request.data) for request, _ in server.log]


def test_vectors_come_back_normalized_and_in_the_order_of_the_texts(httpserver: HTTPServer) -> None:
    serve(httpserver, answer_well)

    vectors = endpoint(httpserver).embed(["a", "bbb", "cc"], deadline_seconds=5)

    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [direction_of(text) for text in ("a", "bbb", "cc")], rtol=1e-6)


def test_a_request_carries_model_width_format_and_key(httpserver: HTTPServer) -> None:
    serve(httpserver, answer_well)

    endpoint(httpserver).embed(["a"], deadline_seconds=5)

    assert sent_bodies(httpserver) == [{"input": ["a"], "model": "m", "dimensions": WIDTH, "encoding_format": "float"}]
    assert httpserver.log[0][0].headers["Authorization"] == f"Bearer {KEY}"


def test_many_texts_go_in_batches_of_128_and_keep_their_order(httpserver: HTTPServer) -> None:
    serve(httpserver, answer_well)
    texts = ["x" * length for length in range(1, 301)]

    vectors = endpoint(httpserver).embed(texts, deadline_seconds=20)

    assert [len(body["input"]) for body in sent_bodies(httpserver)] == [128, 128, 44]  # type: ignore[arg-type]
    np.testing.assert_allclose(vectors, [direction_of(text) for text in texts], rtol=1e-6)


def test_a_request_is_bounded_in_bytes_too(httpserver: HTTPServer) -> None:
    serve(httpserver, answer_well)

    endpoint(httpserver).embed(["y" * MAX_CHUNK_BYTES] * 40, deadline_seconds=20)

    sizes = [sum(map(len, body["input"])) for body in sent_bodies(httpserver)]  # type: ignore[call-overload]
    assert len(sizes) == 2
    assert max(sizes) <= MAX_REQUEST_BYTES


def test_a_long_text_becomes_the_weighted_mean_of_its_chunks(httpserver: HTTPServer) -> None:
    serve(httpserver, answer_well)
    text = "z" * (MAX_CHUNK_BYTES + 10)

    vector = endpoint(httpserver).embed([text], deadline_seconds=5)[0]

    mean = MAX_CHUNK_BYTES * direction_of("z" * MAX_CHUNK_BYTES) + 10 * direction_of("z" * 10)
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), rtol=1e-6)


@pytest.mark.parametrize("text", ["word " * 5_000, "語" * 9_000, "x" * 20_000, "\n" * 9_000 + "end", "é " * 7_000])
def test_chunks_hold_the_whole_text_and_none_is_too_long_or_blank(text: str) -> None:
    pieces = list(cut_text(text))

    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece.strip() and len(piece.encode()) <= MAX_CHUNK_BYTES for piece in pieces)


def test_without_configured_dimensions_the_width_is_determined_by_a_request(httpserver: HTTPServer) -> None:
    serve(httpserver, answer_well)

    provider = endpoint(httpserver, dimensions=0)

    assert provider.width == WIDTH
    assert provider.embed(["a"], deadline_seconds=5).shape == (1, WIDTH)
    assert not any("dimensions" in body for body in sent_bodies(httpserver))


def test_embedding_no_texts_sends_no_request(httpserver: HTTPServer) -> None:
    assert endpoint(httpserver).embed([], deadline_seconds=5).shape == (0, WIDTH)
    assert not httpserver.log


@pytest.mark.parametrize("text", ["", " \n\t", "lone \ud800 surrogate"])
def test_a_text_without_meaning_is_refused_before_any_request(httpserver: HTTPServer, text: str) -> None:
    with pytest.raises(ValueError, match="text 1 "):
        endpoint(httpserver).embed(["fine", text], deadline_seconds=5)

    assert not httpserver.log


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_temporary_failure_is_retried(httpserver: HTTPServer, status: int) -> None:
    serve_in_turn(httpserver, Response(status=status))

    vectors = endpoint(httpserver).embed(["a"], deadline_seconds=5)

    assert vectors.shape == (1, WIDTH)
    assert len(httpserver.log) == 2


def test_a_lasting_failure_is_given_up_after_the_attempts_allowed(httpserver: HTTPServer) -> None:
    serve(httpserver, lambda _: Response("secret words of the server", status=500))

    with pytest.raises(ProviderUnavailable, match="answered 500") as caught:
        endpoint(httpserver, max_attempts=3).embed(["a"], deadline_seconds=5)

    assert len(httpserver.log) == 3
    assert "secret words" not in str(caught.value)


def test_retry_after_is_obeyed(httpserver: HTTPServer) -> None:
    serve_in_turn(httpserver, Response(status=429, headers={"Retry-After": "1"}))
    began = time.monotonic()

    endpoint(httpserver).embed(["a"], deadline_seconds=5)

    assert time.monotonic() - began >= 1


@pytest.mark.parametrize("deadline_seconds", [2, None])
def test_a_wait_beyond_the_deadline_or_patience_is_not_begun(
    httpserver: HTTPServer, deadline_seconds: float | None
) -> None:
    serve(httpserver, lambda _: Response(status=429, headers={"Retry-After": "60"}))
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable) as caught:
        endpoint(httpserver).embed(["a"], deadline_seconds=deadline_seconds)

    assert caught.value.retry_after_seconds == 60
    assert time.monotonic() - began < 2


def test_a_silent_server_is_abandoned_at_the_deadline(httpserver: HTTPServer, release: Event) -> None:
    asked: list[Request] = []

    def hang(request: Request) -> Response:
        asked.append(request)
        return Response(str(release.wait(30)))

    serve(httpserver, hang)
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable):
        endpoint(httpserver).embed(["a"], deadline_seconds=0.3)

    assert time.monotonic() - began < 4
    assert len(asked) == 1


def test_a_request_has_its_own_timeout_without_a_deadline(httpserver: HTTPServer, release: Event) -> None:
    serve(httpserver, lambda _: Response(str(release.wait(10))))

    with pytest.raises(ProviderUnavailable, match="in time"):
        endpoint(httpserver, timeout_seconds=0.2, max_attempts=1).embed(["a"], deadline_seconds=None)


def test_a_server_that_drips_its_reply_is_abandoned_at_the_deadline(httpserver: HTTPServer, release: Event) -> None:
    def drip() -> Iterator[bytes]:
        while not release.wait(0.05):
            yield b" "

    serve(httpserver, lambda _: Response(drip(), content_type="application/json"))
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable, match="in time"):
        endpoint(httpserver).embed(["a"], deadline_seconds=0.4)

    assert time.monotonic() - began < 4


def test_attempts_end_with_the_deadline(httpserver: HTTPServer) -> None:
    serve(httpserver, lambda _: Response(status=503))
    began = time.monotonic()

    with pytest.raises(ProviderUnavailable):
        endpoint(httpserver, max_attempts=1000, backoff_seconds=0.05).embed(["a"], deadline_seconds=0.5)

    assert time.monotonic() - began < 4


def test_a_server_that_is_not_there_is_unavailable() -> None:
    settings = OpenAIEndpoint(model="m", base_url="http://127.0.0.1:9/v1", backoff_seconds=0.01)

    with pytest.raises(ProviderUnavailable, match="connection"):
        OpenAIEmbeddings(settings).embed(["a"], deadline_seconds=5)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_final(httpserver: HTTPServer, status: int) -> None:
    serve(httpserver, lambda _: Response(status=status))

    with pytest.raises(ProviderRefused, match=str(status)) as caught:
        endpoint(httpserver).embed(["a"], deadline_seconds=5)

    assert caught.value.status == status
    assert len(httpserver.log) == 1


def test_a_key_or_text_that_the_server_echoes_is_nowhere_in_the_error(httpserver: HTTPServer) -> None:
    text = "a private text"
    echo = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY} for {text}", "code": "no_key"}})
    serve(httpserver, lambda _: Response(echo, status=401, content_type="application/json"))

    with pytest.raises(ProviderRefused) as caught:
        endpoint(httpserver).embed([text], deadline_seconds=5)

    logged = "".join(traceback.format_exception(caught.value))
    assert KEY not in logged
    assert text not in logged
    assert caught.value.__context__ is None


def test_the_key_is_not_shown_by_the_settings_that_hold_it() -> None:
    assert KEY not in repr(OpenAIEndpoint(model="m", api_key=KEY))


def reply_with(embedding: str) -> str:
    return '{"data": [{"index": 0, "embedding": [1, 1, 1, 1]}, {"index": 1, "embedding": ' + embedding + "}]}"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<html><body>Down for maintenance</body></html>", id="HTML"),
        pytest.param("", id="nothing"),
        pytest.param('"a string"', id="a string"),
        pytest.param('{"error": "no"}', id="no data"),
        pytest.param('{"data": null}', id="null data"),
        pytest.param('{"data": [{"index": 0, "embedding": [1, 1, 1, 1]}]}', id="too few vectors"),
        pytest.param(reply_with('[1, 1, 1, 1]}, {"index": 2, "embedding": [1, 1, 1, 1]'), id="too many vectors"),
        pytest.param(reply_with("[1, 1, 1, 1]").replace('"index": 1', '"index": 0'), id="an index twice"),
        pytest.param(reply_with("[1, 1, 1]"), id="one vector too narrow"),
        pytest.param(reply_with("[]"), id="an empty vector"),
        pytest.param(reply_with("[1, 1, 1, NaN]"), id="NaN"),
        pytest.param(reply_with("[1, 1, 1, -Infinity]"), id="infinity"),
        pytest.param(reply_with("[1, 1, 1, 1e400]"), id="beyond floats"),
        pytest.param(reply_with("[1e300, 1, 1, 1]"), id="too huge to square"),
        pytest.param(reply_with("[0, 0, 0, 0.0]"), id="zeros"),
        pytest.param(reply_with('[1, 1, 1, "1"]'), id="a number as a string"),
        pytest.param(reply_with("[1, 1, 1, null]"), id="null"),
        pytest.param(reply_with("[1, 1, 1, true]"), id="a boolean"),
        pytest.param(reply_with("[[1], 1, 1, 1]"), id="nested"),
        pytest.param(reply_with('"AACAPwAAgD8="'), id="base64"),
        pytest.param(" " * 1_000_000, id="far too much"),
        pytest.param("[" * 50_000, id="far too deep"),
    ],
)
def test_a_nonsensical_reply_is_refused(httpserver: HTTPServer, body: str) -> None:
    serve(httpserver, lambda _: Response(body, content_type="application/json"))

    with pytest.raises(ProviderReplyInvalid):
        endpoint(httpserver).embed(["a", "b"], deadline_seconds=5)

    assert len(httpserver.log) == 1


def test_a_reply_of_another_width_is_refused_and_both_are_named(httpserver: HTTPServer) -> None:
    serve(httpserver, answer_well)

    with pytest.raises(ProviderReplyInvalid, match=r"\[4\] wide, not 1536"):
        endpoint(httpserver, dimensions=1536).embed(["a"], deadline_seconds=5)


def test_a_broken_connection_or_encoding_is_a_provider_error(httpserver: HTTPServer) -> None:
    serve(httpserver, lambda _: Response(b"no gzip", headers={"Content-Encoding": "gzip"}))

    with pytest.raises(ProviderError):
        endpoint(httpserver).embed(["a"], deadline_seconds=5)


def test_the_provider_serves_again_after_a_failure(httpserver: HTTPServer) -> None:
    serve_in_turn(httpserver, Response("<html>"))
    provider = endpoint(httpserver)

    with pytest.raises(ProviderReplyInvalid):
        provider.embed(["a"], deadline_seconds=5)

    assert provider.embed(["a"], deadline_seconds=5).shape == (1, WIDTH)
