"""Language models behind any endpoint that speaks OpenAI's protocol of chat completions."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic
from urllib.parse import urlsplit

from django.template.loader import render_to_string
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from memory.errors import ProviderRefused, ProviderReplyInvalid
from memory.providers.connections import Deadline, time_limit
from memory.providers.endpoints import Endpoint, StrictReply, ask_patiently, open_client, parse_reply, read_reply
from memory.providers.language_models.base import Meter, Question, Shape, Usage
from memory.providers.material import is_valid_unicode
from memory.providers.processes import PerProcess
from memory_project.tracing import span

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam

logger = logging.getLogger(__name__)

# a token is a few bytes, and up to six times that in JSON; the overhead is what stands around it
REPLY_BYTES_PER_TOKEN, REPLY_BYTES_OVERHEAD = 100, 200_000
REFUSALS_OF_THE_REQUEST = frozenset({400, 413, 422})
REFUSALS_OF_THE_FORMAT = frozenset({400, 422})
REFUSAL_HINT = (
    "the model has to take a request of this size (it was asked with response_format json_schema, then without)"
)
FORMATS = ("json_schema", "json_object", "text")
"""Values of response_format, strictest first. A model that refuses one is asked with the next."""
# the older name of the limit is refused by their newer models, the newer one by servers of one's own
HOSTS_OF_THE_NEWER_NAME = ("openai.com", "azure.com")
MILLION = 1_000_000
# no request has as many: a reply that reports more is not counted
MAX_TOKENS = 100_000_000
# bounds: some strict endpoints refuse them (OpenAI's of a text's, Azure's of any); they are checked here
BEYOND_STRICT = frozenset(
    {
        "default",
        *("minLength", "maxLength", "pattern", "format"),
        *("minItems", "maxItems", "uniqueItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)
# PostgreSQL keeps no NUL: an escaped one, behind an even number of backslashes
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
MAX_FAULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of an answer: its location and pydantic's name for it, such as `missing`, without any contents."""

    place: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """An answer that does not fit its shape."""

    answer: str
    faults: tuple[Fault, ...]

    @property
    def kinds(self) -> str:
        return ", ".join(sorted({fault.kind for fault in self.faults}))


def fit_answer(answer: str, shape: type[Shape]) -> Shape | Misfit:
    """Return the validated answer, or its faults. Types are strict; the shape decides about unknown fields."""
    if NUL.search(answer):
        return Misfit(answer=answer, faults=(Fault(place="a text", kind="nul_character"),))
    try:
        return shape.model_validate_json(answer, strict=True)
    except ValidationError as err:
        errors = err.errors(include_url=False, include_context=False, include_input=False)
    faults = tuple(Fault(place=location_in_shape(each), kind=each["type"]) for each in errors[:MAX_FAULTS])
    return Misfit(answer=answer, faults=faults)


def location_in_shape(error: ErrorDetails) -> str:
    """Return the location in the shape's own names: the name of an unknown field comes from the answer."""
    place = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
    return ".".join(map(str, place)) or "the whole"


def tighten(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as strict endpoints accept it: no additional fields, all of them required, and no bounds.

    So are all schemas in it; `properties` and `$defs` hold schemas by arbitrary names.
    """
    strict = {key: value for key, value in schema.items() if key not in BEYOND_STRICT}
    for key in ("properties", "$defs"):
        if key in strict:
            strict[key] = {name: tighten(inner) for name, inner in strict[key].items()}
    if "items" in strict:
        strict["items"] = tighten(strict["items"])
    if "anyOf" in strict:
        strict["anyOf"] = [tighten(inner) for inner in strict["anyOf"]]
    if strict.get("type") == "object":
        strict |= {"additionalProperties": False, "required": list(strict.get("properties", {}))}
    return strict


class ReplyMessage(StrictReply):
    content: str | None = None
    refusal: str | None = None


class Choice(StrictReply):
    message: ReplyMessage
    finish_reason: str | None = None


class ChatReply(StrictReply):
    """A reply. `usage` is not validated, since a malformed count does not make the answer worse."""

    choices: list[Choice]
    usage: Any = None


class Tokens(StrictReply):
    prompt_tokens: int = Field(default=0, ge=0, le=MAX_TOKENS)
    completion_tokens: int = Field(default=0, ge=0, le=MAX_TOKENS)


def count_tokens(reply: ChatReply) -> Tokens:
    """Return the counted tokens; None if the endpoint reports none, or nonsense."""
    try:
        return Tokens.model_validate(reply.usage)
    except ValidationError:
        return Tokens()


def answer_text(reply: ChatReply) -> str:
    """Return the text of the answer, possibly empty. Raises ProviderReplyInvalid if asking again would not help."""
    if not reply.choices:
        raise ProviderReplyInvalid("the reply holds no choices")
    choice = reply.choices[0]
    if choice.finish_reason == "length":
        raise ProviderReplyInvalid(
            "the answer was cut off at its limit of tokens; LANGUAGE_MODEL_THINKING_TOKENS makes room for a model "
            "that thinks before it answers"
        )
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ProviderReplyInvalid("the model, or its content filter, declined to answer")
    return choice.message.content or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEndpoint(Endpoint):
    what: ClassVar[str] = "language model endpoint"

    thinking_tokens: int = 0
    """Tokens for thinking before the answer, which endpoints count against the same limit."""
    prompt_price: Decimal = Decimal(0)
    """Price of a million tokens."""
    completion_price: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking(Generic[Shape]):
    """A question with the shape of its answer, its meter and its deadline."""

    question: Question
    shape: type[Shape]
    meter: Meter
    deadline: Deadline


class ChatModel:
    """Requests structured output, with retries under one deadline, and validates each answer. Thread-safe.

    A model that refuses the schema is asked with `json_object`, then for plain text, with the schema in the
    instructions; this process remembers which it takes. One that ignores it learns the shape from the complaint.
    """

    def __init__(self, endpoint: ChatEndpoint) -> None:
        # rather than within the deadline of the first question
        import_module("openai")
        self.model = endpoint.model
        self._endpoint = endpoint
        self._client = PerProcess(partial(open_client, endpoint))
        self._strictest = 0
        """Position in FORMATS of the strictest one that the model takes, as far as known."""

    def ask(self, question: Question, shape: type[Shape], *, meter: Meter, deadline_seconds: float) -> Shape:
        if not (is_valid_unicode(question.instructions) and is_valid_unicode(question.material)):
            raise ValueError("the question holds a lone surrogate: it is no valid Unicode")
        asking = Asking(question=question, shape=shape, meter=meter, deadline=Deadline.after(deadline_seconds))
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": question.instructions},
            {"role": "user", "content": question.material},
        ]
        answer = self._ask_patiently(asking, messages)
        if isinstance(answer, Misfit):
            answer = self._ask_patiently(asking, [*messages, *complain(answer, shape)])
        if isinstance(answer, Misfit):
            raise ProviderReplyInvalid(f"twice the answer was not of the shape asked for ({answer.kinds})")
        return answer

    def _ask_patiently(self, asking: Asking[Shape], messages: "Sequence[ChatCompletionMessageParam]") -> Shape | Misfit:
        refusal: ProviderRefused | None = None
        for position in range(self._strictest, len(FORMATS)):
            try:
                answer = self._ask_in_format(asking, messages, FORMATS[position])
            except ProviderRefused as err:
                if err.status not in REFUSALS_OF_THE_REQUEST:
                    raise
                refusal = refusal or err
                if err.status not in REFUSALS_OF_THE_FORMAT:
                    break
                continue
            if position > self._strictest:
                logger.warning("model %s refuses %s, and is asked with %s", self.model, FORMATS[0], FORMATS[position])
                self._strictest = position
            return answer
        assert refusal is not None  # noqa: S101 - no format is left only after a refusal
        raise ProviderRefused(f"{refusal}: {REFUSAL_HINT}", status=refusal.status) from refusal

    def _ask_in_format(
        self, asking: Asking[Shape], messages: "Sequence[ChatCompletionMessageParam]", response_format: str
    ) -> Shape | Misfit:
        sent = messages_in_format(messages, asking.shape, response_format)
        return ask_patiently(
            lambda: self._ask_metered(asking, sent, response_format), endpoint=self._endpoint, deadline=asking.deadline
        )

    def _ask_metered(
        self, asking: Asking[Shape], messages: "Sequence[ChatCompletionMessageParam]", response_format: str
    ) -> Shape | Misfit:
        # before the meter runs: past the deadline nothing is asked
        seconds = asking.deadline.remaining_seconds(at_most=self._endpoint.timeout_seconds)
        reply: ChatReply | None = None
        answer: Shape | Misfit | None = None
        try:
            body = self._exchange(asking, messages, response_format, seconds)
            reply = parse_reply(ChatReply.model_validate_json, body, what="a chat completion")
            text = answer_text(reply)
            answer = fit_answer(text if response_format == FORMATS[0] else json_within(text), asking.shape)
        finally:
            has_failed = answer is None or isinstance(answer, Misfit)
            asking.meter(self._price(count_tokens(reply) if reply else Tokens(), has_failed=has_failed))
        return answer

    def _exchange(
        self,
        asking: Asking[Shape],
        messages: "Sequence[ChatCompletionMessageParam]",
        response_format: str,
        seconds: float,
    ) -> bytes:
        limit = asking.question.max_tokens + self._endpoint.thinking_tokens
        limit_name = "max_completion_tokens" if knows_newer_name(self._endpoint.base_url) else "max_tokens"
        chosen: dict[str, Any] = {limit_name: limit, **format_parameter(asking.shape, response_format)}
        with (
            span("chat", model=self.model),
            time_limit(seconds),
            self._client.get().chat.completions.with_streaming_response.create(
                model=self.model,
                messages=messages,
                timeout=seconds,
                **chosen,
            ) as response,
        ):
            most_bytes = REPLY_BYTES_OVERHEAD + REPLY_BYTES_PER_TOKEN * limit
            return read_reply(response.iter_bytes(), most_bytes=most_bytes)

    def _price(self, tokens: Tokens, *, has_failed: bool) -> Usage:
        cost = (
            tokens.prompt_tokens * self._endpoint.prompt_price
            + tokens.completion_tokens * self._endpoint.completion_price
        ) / MILLION
        return Usage(
            model=self.model,
            failed_calls=int(has_failed),
            prompt_tokens=tokens.prompt_tokens,
            completion_tokens=tokens.completion_tokens,
            cost=cost,
        )


def format_parameter(shape: type[BaseModel], response_format: str) -> dict[str, Any]:
    """Return the parameter `response_format` of a request, by its name; none for plain text."""
    if response_format == "text":
        return {}
    if response_format == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": shape.__name__, "strict": True, "schema": tighten(shape.model_json_schema())}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def messages_in_format(
    messages: "Sequence[ChatCompletionMessageParam]", shape: type[BaseModel], response_format: str
) -> "Sequence[ChatCompletionMessageParam]":
    """Return the messages, with the schema in the instructions where the request does not carry it."""
    if response_format == FORMATS[0]:
        return messages
    instructions, *others = messages
    values = {"instructions": instructions["content"], "schema": json.dumps(shape.model_json_schema())}
    return [{"role": "system", "content": render_to_string("prompts/answer_format.txt", values)}, *others]


def json_within(text: str) -> str:
    """Return the JSON object in an answer with words or a code fence around it; the text itself if it has none."""
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if 0 <= first < last else text


def knows_newer_name(base_url: str) -> bool:
    """Return True if the endpoint calls its limit of tokens `max_completion_tokens` instead of `max_tokens`."""
    host = urlsplit(base_url).hostname or "openai.com"
    return any(host == name or host.endswith(f".{name}") for name in HOSTS_OF_THE_NEWER_NAME)


def complain(misfit: Misfit, shape: type[BaseModel]) -> "list[ChatCompletionMessageParam]":
    """Return the messages that repeat the answer and say what is wrong with it, with the whole schema, bounds included.

    Endpoints refuse to receive an empty answer.
    """
    schema = json.dumps(shape.model_json_schema())
    complaint = render_to_string("prompts/mend_answer.txt", {"faults": misfit.faults, "schema": schema})
    answered: list[ChatCompletionMessageParam] = (
        [{"role": "assistant", "content": misfit.answer}] if misfit.answer.strip() else []
    )
    return [*answered, {"role": "user", "content": complaint}]
