"""A language model on this machine, used through the real client. It answers well until a test changes that.

language_model_server.write = lambda request: {"summary": "They met."}
language_model_server.answer_next(failing(503), refusing())
language_model_server.hang()
"""

import json
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memory.providers.embeddings import choose_provider
from memory.providers.language_models import language_model

MODEL = "served-language-model"
PROMPT_TOKENS, COMPLETION_TOKENS = 1_200, 300
KEY = "test-key"

Asked = dict[str, Any]
Answer = Callable[[Asked], Response]


def complete(message: dict[str, Any], *, finish_reason: str = "stop", usage: Any = None) -> Response:
    """A chat completion with this message; `usage` None: the tokens above."""
    tokens = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}],
        "usage": tokens if usage is None else usage,
    }
    return Response(json.dumps(body), content_type="application/json")


def writing(content: object) -> Answer:
    """An answer with this content: a text as it is, all else as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    return lambda asked: complete({"content": text})


def telling_usage(content: object, usage: Any) -> Answer:
    return lambda asked: complete({"content": json.dumps(content)}, usage=usage)


def failing(status: int = 500, *, retry_after: str = "0", text: str = "out of order") -> Answer:
    """Answer with an error that allows a retry immediately, so that tests need not wait."""
    return lambda asked: Response(text, status=status, headers={"Retry-After": retry_after})


def replying(body: str | bytes) -> Answer:
    """Status 200 with this body, whatever it is."""
    return lambda asked: Response(body, content_type="application/json")


def answering_html() -> Answer:
    return lambda asked: Response("<html><body>Down for maintenance</body></html>", content_type="text/html")


def refusing(words: str = "I cannot help with that.") -> Answer:
    return lambda asked: complete({"content": None, "refusal": words})


def cut_off(content: str = '{"summary": "They') -> Answer:
    return lambda asked: complete({"content": content}, finish_reason="length")


def choosing_nothing() -> Answer:
    return replying(json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0}}))


def example_of(schema: dict[str, Any], name: str, definitions: dict[str, Any]) -> Any:
    """The simplest that is of the schema; texts say which field they are."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], name, definitions)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if schema["type"] == "object":
        return {field: example_of(inner, field, definitions) for field, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [example_of(schema["items"], name, definitions)]
    return {"string": f"a {name}", "integer": 1, "number": 0.5, "boolean": True, "null": None}[schema["type"]]


def write_example(asked: Asked) -> Any:
    """Return what the model writes by default: an example of the schema that the request asks for."""
    schema = asked["response_format"]["json_schema"]["schema"]
    return example_of(schema, "whole", schema.get("$defs", {}))


class LanguageModelServer:
    """`requests` are the bodies that it was asked with, in order; `write` makes what a well-behaved one answers."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.headers: list[dict[str, str]] = []
        self.write: Callable[[Asked], object] = write_example
        self.answer: Answer = self.answer_well
        self.released = Event()
        self._next: list[Answer] = []

    @property
    def materials(self) -> list[str]:
        """Return the material of each request: the first message that is not an instruction."""
        return [asked["messages"][1]["content"] for asked in self.requests]

    def answer_well(self, asked: Asked) -> Response:
        return writing(self.write(asked))(asked)

    def answer_next(self, *answers: Answer) -> None:
        """Give these answers to the next requests, then answer as before."""
        self._next += answers

    def fail(self, status: int = 500) -> None:
        self.answer = failing(status)

    def hang(self) -> None:
        """Do not answer until the test is over."""
        self.answer = lambda asked: Response(str(self.released.wait(30)))

    def dawdle(self, seconds: float) -> None:
        """Answer well, but late."""

        def answer_late(asked: Asked) -> Response:
            self.released.wait(seconds)
            return self.answer_well(asked)

        self.answer = answer_late

    def drip(self) -> None:
        """Send a byte now and then, until the test is over."""

        def bytes_of_nothing() -> Iterator[bytes]:
            while not self.released.wait(0.05):
                yield b" "

        self.answer = lambda asked: Response(bytes_of_nothing(), content_type="application/json")

    def recover(self) -> None:
        self.answer = self.answer_well

    def handle(self, request: Request) -> Response:
        asked = json.loads(request.data)
        self.requests.append(asked)
        self.headers.append(dict(request.headers))
        return (self._next.pop(0) if self._next else self.answer)(asked)


@pytest.fixture
def language_model_server(httpserver: HTTPServer, settings: Settings) -> Iterator[LanguageModelServer]:
    """The configured model for every use is a server at hand; the embedder stays what it was."""
    server = LanguageModelServer()
    httpserver.expect_request("/v1/chat/completions", method="POST").respond_with_handler(server.handle)
    settings.EMBEDDING_PROVIDER = settings.EMBEDDING_PROVIDER or choose_provider()
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = KEY, httpserver.url_for("/v1")
    settings.SUMMARY_MODEL = settings.EXTRACTION_MODEL = settings.COMPRESSION_MODEL = MODEL
    settings.LANGUAGE_MODEL_TIMEOUT_SECONDS = 5.0
    language_model.cache_clear()
    yield server
    server.released.set()
    language_model.cache_clear()
