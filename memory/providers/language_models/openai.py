"""Language models behind any endpoint that speaks OpenAI's protocol of chat completions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import ClassVar, Generic
from urllib.parse import urlsplit

import openai
from django.template.loader import render_to_string
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from memory.errors import ProviderRefused, ProviderReplyInvalid
from memory.providers.connections import time_limit
from memory.providers.deadlines import Deadline
from memory.providers.endpoints import Endpoint, ask_patiently, open_client, read_reply
from memory.providers.language_models.base import Meter, Question, Shape, Usage
from memory.providers.language_models.replies import ChatReply, Tokens, answer_text, count_tokens, parse_reply
from memory.providers.language_models.shapes import Misfit, fit_answer, strict_schema
from memory.providers.processes import PerProcess
from memory_project.tracing import span

# a token is a few bytes, and up to six times that in JSON; the rest is room for what stands around it
REPLY_BYTES_PER_TOKEN, REPLY_BYTES_BESIDE = 100, 200_000
REFUSALS_OF_THE_REQUEST = frozenset({400, 413, 422})
REFUSAL_HINT = "the model has to take response_format json_schema, and a request of this size"
# the older name of the limit is refused by their newer models, the newer one by servers of one's own
HOSTS_OF_THE_NEWER_NAME = ("openai.com", "azure.com")
MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEndpoint(Endpoint):
    what: ClassVar[str] = "language model endpoint"

    thinking_tokens: int = 0
    """What the model may think before it answers: endpoints count it against the same limit."""
    prompt_price: Decimal = Decimal(0)
    """Of a million tokens."""
    completion_price: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking(Generic[Shape]):
    """A question on its way."""

    question: Question
    shape: type[Shape]
    meter: Meter
    deadline: Deadline


class ChatModel:
    """Asks for structured output, retries under one deadline, and believes only what it validated; thread-safe.

    An endpoint that refuses `response_format` is not asked for less: a model that only may answer in the shape is
    worth less than an error that says so. One that ignores it learns the shape from the complaint.
    """

    def __init__(self, endpoint: ChatEndpoint) -> None:
        self.model = endpoint.model
        self._endpoint = endpoint
        self._client = PerProcess(partial(open_client, endpoint))

    def ask(self, question: Question, shape: type[Shape], *, meter: Meter, deadline_seconds: float) -> Shape:
        refuse_unsendable(question)
        asking = Asking(question=question, shape=shape, meter=meter, deadline=Deadline.after(deadline_seconds))
        messages = open_dialogue(question)
        answer = self._ask_patiently(asking, messages)
        if isinstance(answer, Misfit):
            answer = self._ask_patiently(asking, [*messages, *complain(answer, shape)])
        if isinstance(answer, Misfit):
            raise ProviderReplyInvalid(f"twice the answer was not of the shape asked for ({answer.kinds})")
        return answer

    def _ask_patiently(self, asking: Asking[Shape], messages: Sequence[ChatCompletionMessageParam]) -> Shape | Misfit:
        try:
            return ask_patiently(
                lambda: self._ask_metered(asking, messages), endpoint=self._endpoint, deadline=asking.deadline
            )
        except ProviderRefused as err:
            if err.status not in REFUSALS_OF_THE_REQUEST:
                raise
            raise ProviderRefused(f"{err}: {REFUSAL_HINT}", status=err.status) from err

    def _ask_metered(self, asking: Asking[Shape], messages: Sequence[ChatCompletionMessageParam]) -> Shape | Misfit:
        # before the meter runs: past the deadline nothing is asked
        seconds = asking.deadline.remaining_seconds(at_most=self._endpoint.timeout_seconds)
        reply: ChatReply | None = None
        answer: Shape | Misfit | None = None
        try:
            reply = parse_reply(self._exchange(asking, messages, seconds))
            answer = fit_answer(answer_text(reply), asking.shape)
        finally:
            has_failed = answer is None or isinstance(answer, Misfit)
            asking.meter(self._price(count_tokens(reply) if reply else Tokens(), has_failed=has_failed))
        return answer

    def _exchange(self, asking: Asking[Shape], messages: Sequence[ChatCompletionMessageParam], seconds: float) -> bytes:
        limit = asking.question.max_tokens + self._endpoint.thinking_tokens
        takes_newer_name = knows_newer_name(self._endpoint.base_url)
        with (
            span("chat", model=self.model),
            time_limit(seconds),
            self._client.get().chat.completions.with_streaming_response.create(
                model=self.model,
                messages=messages,
                response_format={
                    "type": "json_schema",
                    "json_schema": {
                        "name": asking.shape.__name__,
                        "strict": True,
                        "schema": strict_schema(asking.shape),
                    },
                },
                max_completion_tokens=limit if takes_newer_name else openai.omit,
                max_tokens=openai.omit if takes_newer_name else limit,
                timeout=seconds,
            ) as response,
        ):
            most_bytes = REPLY_BYTES_BESIDE + REPLY_BYTES_PER_TOKEN * limit
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


def knows_newer_name(base_url: str) -> bool:
    """Return whether the endpoint calls its limit of tokens `max_completion_tokens` instead of `max_tokens`."""
    host = urlsplit(base_url).hostname or "openai.com"
    return any(host == name or host.endswith(f".{name}") for name in HOSTS_OF_THE_NEWER_NAME)


def refuse_unsendable(question: Question) -> None:
    try:
        question.instructions.encode()
        question.material.encode()
    except UnicodeEncodeError:
        pass
    else:
        return
    # outside the handler, or the original, which holds the text, would be its context
    raise ValueError("the question holds a lone surrogate: it is no valid Unicode")


def open_dialogue(question: Question) -> list[ChatCompletionMessageParam]:
    return [
        {"role": "system", "content": question.instructions},
        {"role": "user", "content": question.material},
    ]


def complain(misfit: Misfit, shape: type[BaseModel]) -> list[ChatCompletionMessageParam]:
    """Return the messages that repeat the answer and say what is wrong with it, with the whole schema, bounds included.

    Endpoints refuse to receive an empty answer.
    """
    schema = json.dumps(shape.model_json_schema())
    complaint = render_to_string("prompts/mend_answer.txt", {"faults": misfit.faults, "schema": schema})
    answered: list[ChatCompletionMessageParam] = (
        [{"role": "assistant", "content": misfit.answer}] if misfit.answer.strip() else []
    )
    return [*answered, {"role": "user", "content": complaint}]
