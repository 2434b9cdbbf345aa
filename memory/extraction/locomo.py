"""The layout of LoCoMo: long conversations of two people, in sessions."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import from_json

from memory.extraction.imported import (
    MAX_ID_CHARACTERS,
    BadLine,
    Id,
    ImportedConversation,
    ImportedMessage,
    Lenient,
    Strict,
    Text,
    read_chat_message,
    reason_of,
    refuse_blank,
)

_SESSION_KEY = re.compile(r"session_([1-9][0-9]{0,4})")


def _parse_session_time(value: object) -> datetime:
    """Parse a time of LoCoMo, such as "1:56 pm on 8 May, 2023". It names no zone and is taken as UTC."""
    if not isinstance(value, str):
        raise ValueError("is missing or not a text")
    try:
        return datetime.strptime(value, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError as err:
        raise ValueError('is no time like "1:56 pm on 8 May, 2023"') from err


class _Turn(Lenient):
    speaker: Id
    text: Text
    blip_caption: Text | None = None
    dia_id: object = None

    @property
    def content(self) -> str:
        """The text, followed by the caption of a shared picture."""
        shared = f"[shares {self.blip_caption}]" if self.blip_caption else ""
        return f"{self.text} {shared}".strip()

    @model_validator(mode="after")
    def says_something(self) -> Self:
        refuse_blank(self.content)
        return self


class _Session(Strict):
    id: Id
    turns: Annotated[list[_Turn], Field(min_length=1)]
    date_time: Annotated[datetime, BeforeValidator(_parse_session_time)]


class _Sample(Lenient):
    sample_id: Id
    conversation: dict[str, object]


def read_locomo(document: bytes | str) -> Iterator[ImportedConversation | BadLine]:
    """Read a JSON list of LoCoMo samples. Each sample becomes an agent, and each `session_N` of it a conversation.

    The conversation's id is `{sample_id}-{N}`, and sessions come in the order of N. Each turn gets the time of its
    session, the name of its speaker, and its `dia_id` as client id, by which evidence names it. A caption becomes
    `[shares …]`. Both speakers are people, so both have the role "user". The number of a BadLine is the position of the
    sample, from 1. The whole document is in memory at once.
    """
    try:
        raw = document.encode() if isinstance(document, str) else document
        samples = from_json(raw, allow_inf_nan=False)
    except ValueError:
        samples = None
    if not isinstance(samples, list):
        yield BadLine(number=1, reason="the file is no JSON list of samples")
        return
    for number, value in enumerate(samples, start=1):
        try:
            sample = _Sample.model_validate(value)
        except ValidationError as err:
            yield BadLine(number=number, reason=reason_of(err))
        else:
            yield from _read_sessions(number, sample)


def _read_sessions(number: int, sample: _Sample) -> Iterator[ImportedConversation | BadLine]:
    matches = filter(None, map(_SESSION_KEY.fullmatch, sample.conversation))
    for session_number in sorted(int(match[1]) for match in matches):
        key = f"session_{session_number}"
        fields = {
            "id": f"{sample.sample_id}-{session_number}",
            "turns": sample.conversation[key],
            "date_time": sample.conversation.get(f"{key}_date_time"),
        }
        try:
            session = _Session.model_validate(fields)
            yield _imported_session(number, sample.sample_id, session)
        except ValueError as err:
            yield BadLine(number=number, reason=f"{key}: {reason_of(err)}")


def _imported_session(number: int, sample_id: str, session: _Session) -> ImportedConversation:
    messages = [
        ImportedMessage(
            message=read_chat_message(
                {"role": "user", "name": turn.speaker, "content": turn.content}, place=f"turns[{position}]"
            ),
            timestamp=session.date_time,
            client_id=client_id,
        )
        for position, (turn, client_id) in enumerate(zip(session.turns, _client_ids(session.turns), strict=True))
    ]
    return ImportedConversation(
        number=number,
        size_bytes=sum(len(turn.content) for turn in session.turns),
        conversation_id=session.id,
        agent_id=sample_id,
        messages=tuple(messages),
    )


def _client_ids(turns: Sequence[_Turn]) -> list[str]:
    """Return the `dia_id` of each turn; empty if it is missing, is no valid id, or repeats an earlier one."""
    ids: list[str] = []
    for turn in turns:
        client_id = turn.dia_id if isinstance(turn.dia_id, str) and "\x00" not in turn.dia_id else ""
        ids.append(client_id if len(client_id) <= MAX_ID_CHARACTERS and client_id not in ids else "")
    return ids
