"""Digests of conversation segments, in the fields of the documented episode.

Offline, a digest quotes the sentences that TextRank ranks first, and lists what rules find. With a language model it is
the model's answer, validated against a schema.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, takewhile
from typing import Annotated, Protocol

from pydantic import BaseModel, Field, StringConstraints

from memory.errors import ProviderReplyInvalid
from memory.providers.language_models import LanguageModel, Meter, Question, language_model
from memory.providers.material import encode_line
from memory.providers.summaries import ExtractiveSummarizer, Message, entities_mentioned, key_decisions
from memory.tokens import estimate_tokens

MAX_ITEMS = 30
"""Items that each list of a digest keeps."""

SPOKEN_ROLES = frozenset({"user", "assistant"})
"""Roles that speak in a conversation. The others configure it, or are results of tools."""

MAX_SUMMARY_CHARACTERS = 40_000
MAX_TIMES_TOO_LONG = 4
"""A summary with more than this many times its allowed tokens is refused."""
MAX_ITEM_CHARACTERS = 500
MAX_ANSWERED_ITEMS = 200
WORDS_PER_TOKEN = 0.7
TOKENS_FOR_LISTS = 3_000

Item = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_ITEM_CHARACTERS)]
Items = Annotated[list[Item], Field(max_length=MAX_ANSWERED_ITEMS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The digest of a conversation up to some turn. `source` is "extractive" or the name of a model."""

    summary: str
    key_decisions: tuple[str, ...]
    entities_mentioned: tuple[str, ...]
    tools_called: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptSegment:
    """A segment to digest: its messages in order, the digest of everything before, and the tools that were called."""

    messages: Sequence[Message]
    previous: Digest | None
    tools: Sequence[str]


class Digester(Protocol):
    """Digests segments. Each new digest includes the previous one, so that it covers the conversation so far."""

    @property
    def is_remote(self) -> bool:
        """Return True if it waits for another machine, so that digesting several segments at once saves time."""

    def digest(self, segment: TranscriptSegment, *, max_tokens: int, meter: Meter, deadline_seconds: float) -> Digest:
        """Digest a segment. Raises ProviderError."""


def summary_digester() -> Digester:
    """Return the language model's digester if one is configured for summaries, else the offline one.

    If the model fails, the offline digester does not replace it.
    """
    model = language_model("summary")
    return ExtractiveDigester() if model is None else ModelDigester(model)


class ExtractiveDigester:
    """Digests by quoting, and by rules for decisions, names and tools. Quotes machines only if nobody spoke."""

    is_remote = False

    def digest(self, segment: TranscriptSegment, *, max_tokens: int, meter: Meter, deadline_seconds: float) -> Digest:
        """Quote the best lines of the previous summary, then the best new sentences. Raises nothing."""
        previous = segment.previous or NOTHING_BEFORE
        spoken = spoken_messages(segment)
        return Digest(
            summary=quote_both(list(previous_lines(previous, spoken)), spoken, max_tokens=max_tokens),
            key_decisions=latest_items(previous.key_decisions, key_decisions(spoken, limit=MAX_ITEMS)),
            entities_mentioned=latest_items(previous.entities_mentioned, entities_mentioned(spoken, limit=MAX_ITEMS)),
            tools_called=latest_items(previous.tools_called, segment.tools),
            source=ExtractiveSummarizer.source,
        )


def quote_both(before: Sequence[Message], spoken: Sequence[Message], *, max_tokens: int) -> str:
    """Quote old and new lines; old lines get half of the tokens, and what the new sentences leave.

    If old and new lines were ranked together, the old ones would win every time, and the summary of a long conversation
    would never get beyond its beginning.
    """
    summarizer = ExtractiveSummarizer()
    if not before:
        return summarizer.summarize(spoken, max_tokens=max_tokens).text
    new = summarizer.summarize(spoken, max_tokens=max(1, max_tokens // 2)).text
    old = summarizer.summarize(before, max_tokens=max(1, max_tokens - estimate_tokens(f"{new}\n"))).text
    return "\n".join(part for part in (old, new) if part)


NOTHING_BEFORE = Digest(summary="", key_decisions=(), entities_mentioned=(), tools_called=(), source="")


def spoken_messages(segment: TranscriptSegment) -> Sequence[Message]:
    """Return the spoken messages without the texts of tool calls; all messages if nobody said anything."""
    calls = tuple(f"{tool}(" for tool in segment.tools)
    spoken = []
    for message in segment.messages:
        lines = [line for line in message.content.split("\n") if not line.startswith(calls)]
        if message.role in SPOKEN_ROLES and any(map(str.strip, lines)):
            spoken.append(replace(message, content="\n".join(lines)))
    return spoken or segment.messages


def previous_lines(previous: Digest, spoken: Iterable[Message]) -> Iterator[Message]:
    """Return a message for each line of a summary, with the speaker that the line names, if any."""
    speakers = {*SPOKEN_ROLES, *previous.entities_mentioned, *(message.speaker for message in spoken)}
    for line in previous.summary.splitlines():
        speaker, _, text = line.partition(": ")
        is_quote = bool(text) and speaker in speakers
        yield Message(role=speaker, content=text) if is_quote else Message(role="", content=line)


def latest_items(before: Iterable[str], found: Iterable[str]) -> tuple[str, ...]:
    """Return the last MAX_ITEMS of both lists in order, each item once, at its last position."""
    items: dict[str, str] = {}
    for item in (*before, *found):
        key = " ".join(item.split()).casefold()
        items.pop(key, None)
        items[key] = item
    return tuple(items.values())[-MAX_ITEMS:]


class DigestAnswer(BaseModel):
    """The digest of a conversation."""

    summary: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_SUMMARY_CHARACTERS)]
    key_decisions: Items
    entities_mentioned: Items
    tools_called: Items


class ModelDigester:
    """Digests by a language model. Tools in its answer count only if they are known or occur in the material."""

    is_remote = True

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def digest(self, segment: TranscriptSegment, *, max_tokens: int, meter: Meter, deadline_seconds: float) -> Digest:
        """Digest by one request. The messages must fit (`how_many_fit`, `cut_message`). Raises ProviderError."""
        question = ask_for_digest(segment, max_tokens=max_tokens)
        answer = self._model.ask(question, DigestAnswer, meter=meter, deadline_seconds=deadline_seconds)
        if estimate_tokens(answer.summary) > MAX_TIMES_TOO_LONG * max_tokens:
            raise ProviderReplyInvalid(f"the summary has more than {MAX_TIMES_TOO_LONG} times {max_tokens} tokens")
        before = segment.previous.tools_called if segment.previous else ()
        texts = [message.content for message in segment.messages]
        named = [
            tool
            for tool in answer.tools_called
            if any(re.search(rf"(?<!\w){re.escape(tool)}(?!\w)", text) for text in texts)
        ]
        return Digest(
            summary=answer.summary,
            key_decisions=latest_items((), answer.key_decisions),
            entities_mentioned=latest_items((), answer.entities_mentioned),
            tools_called=latest_items((*before, *segment.tools), named),
            source=self._model.model,
        )


def ask_for_digest(segment: TranscriptSegment, *, max_tokens: int) -> Question:
    previous = "" if segment.previous is None else format_digest(segment.previous)
    material = {"previous": previous, "messages": [format_message(message) for message in segment.messages]}
    limits = {"words": int(max_tokens * WORDS_PER_TOKEN), "items": MAX_ITEMS}
    return Question.of_use("summary", limits, material, max_tokens=2 * max_tokens + TOKENS_FOR_LISTS)


def format_digest(digest: Digest) -> str:
    """Format a digest as a line of the prompt."""
    fields = asdict(digest)
    del fields["source"]
    return encode_line(fields)


def format_message(message: Message) -> str:
    """Format a message as a line of the prompt."""
    when = {} if message.timestamp is None else {"time": message.timestamp.isoformat(timespec="minutes")}
    name = {"name": message.name} if message.name.strip() else {}
    return encode_line({"role": message.role, **name, **when, "text": message.content})


def how_many_fit(messages: Sequence[Message], *, max_tokens: int) -> int:
    """Return how many of the first messages fit into one request: at least one if there is any."""
    sizes = accumulate(estimate_tokens(format_message(message)) for message in messages)
    fitting = sum(1 for _ in takewhile(lambda size: size <= max_tokens, sizes))
    return max(fitting, min(1, len(messages)))


def room_for_messages(previous: Digest | None, *, max_tokens: int) -> int:
    """Return how many of a request's tokens are left for messages: always at least half."""
    taken = 0 if previous is None else estimate_tokens(format_digest(previous))
    return max(max_tokens - taken, max_tokens // 2)


def cut_message(message: Message, *, max_tokens: int) -> Iterator[Message]:
    """Return the message in pieces that fit into one request, cut at spaces where possible."""
    length = len(message.content)
    if length <= 1 or estimate_tokens(format_message(message)) <= max_tokens:
        yield message
        return
    middle = length // 2
    cut = message.content.rfind(" ", middle // 2, middle) + 1 or middle
    for half in (message.content[:cut], message.content[cut:]):
        yield from cut_message(replace(message, content=half), max_tokens=max_tokens)
