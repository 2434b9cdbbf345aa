"""Operations, calls of them, and the requests that calls become. Nothing here sends anything."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID, uuid4

from agent_memory_client.config import Settings
from agent_memory_client.results import Result

T_co = TypeVar("T_co", covariant=True)
R_co = TypeVar("R_co", bound=Result, covariant=True)
Id = str | int | UUID
Turn = Mapping[str, Any]
Turns = Iterable[Turn] | AsyncIterable[Turn]
NDJSON = "application/x-ndjson"
ZIP = "application/zip"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the service, from its OpenAPI document.

    `query` names its query parameters if it has a body as well, `owner` those of `agent_id` and `user_id` that it
    takes, `saved_by` the operation that writes what it answers.
    """

    name: str
    method: str
    path: str
    query: tuple[str, ...] = ()
    has_body: bool = False
    owner: tuple[str, ...] = ()
    has_key: bool = False
    saved_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T_co]):
    """An operation with its arguments. `answer` is the type of its answer, None if there is nothing in it."""

    operation: Operation
    ids: tuple[Id, ...]
    fields: Mapping[str, Any]
    answer: type[T_co] | None
    turns: Turns | None = None
    archive: Path | None = None
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCall(Generic[R_co]):
    """An operation that answers pages of `item`."""

    operation: Operation
    ids: tuple[Id, ...]
    fields: Mapping[str, Any]
    item: type[R_co]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """A request, the same at each attempt. Its body is `content`, the lines of a stream, or a file."""

    method: str
    path: str
    params: Sequence[tuple[str, str]]
    headers: Mapping[str, str]
    content: bytes | None
    lines: Turns | None
    archive: Path | None
    is_repeatable: bool
    timeout: float | None


def prepare(call: Call[Any] | PageCall[Any], settings: Settings) -> PreparedRequest:
    """Return the request of a call: defaults filled in, ids encoded, with a new Idempotency-Key where one is taken.

    `idempotency_key` and `timeout` among the fields are of the call, and are not sent as fields.
    """
    operation = call.operation
    turns, archive = (call.turns, call.archive) if isinstance(call, Call) else (None, None)
    fields = add_owner(call, settings)
    key, timeout = fields.pop("idempotency_key", None), fields.pop("timeout", None)
    in_query = {name: value for name, value in fields.items() if turns is not None or is_in_query(operation, name)}
    body = {name: value for name, value in fields.items() if name not in in_query}
    headers = {}
    if isinstance(call, Call) and call.etag:
        headers["If-Match"] = call.etag
    if turns is not None:
        headers["Content-Type"] = NDJSON
    elif archive is not None:
        headers["Content-Type"] = ZIP
    elif operation.has_body:
        headers["Content-Type"] = "application/json"
    # an iterator is used up by the first attempt
    is_repeatable = turns is None or not isinstance(turns, Iterator | AsyncIterator)
    if key or (operation.has_key and is_repeatable):
        headers["Idempotency-Key"] = str(key or uuid4())
    return PreparedRequest(
        method=operation.method,
        path=fill_path(operation.path, call.ids),
        params=list(format_params(in_query)),
        headers=headers,
        content=to_json(body) if operation.has_body and turns is None and archive is None else None,
        lines=turns,
        archive=archive,
        is_repeatable=is_repeatable,
        timeout=timeout,
    )


def add_owner(call: Call[Any] | PageCall[Any], settings: Settings) -> dict[str, Any]:
    """Return the fields of a call with the client's own agent and user, where it takes them and none are given.

    None means: do not send any. An id in the path is not repeated.
    """
    fields = dict(call.fields)
    for name in call.operation.owner:
        default = getattr(settings, name)
        if fields.get(name, default) in (None, ""):
            fields.pop(name, None)
        elif name not in fields and f"{{{name}}}" not in call.operation.path:
            fields[name] = default
    return fields


def is_in_query(operation: Operation, name: str) -> bool:
    """Return True for parameters of the query. Without a body all are, so that the service can refuse unknown ones."""
    return name in operation.query or not operation.has_body


def fill_path(template: str, ids: Sequence[Id]) -> str:
    """Replace the parameters of a path by these ids, percent-encoded. Raises ValueError for an impossible id."""
    given = iter(ids)
    return "/".join(encode_id(part, next(given)) if part[:1] == "{" else part for part in template.split("/"))


def encode_id(parameter: str, given: Id) -> str:
    """Encode the id for a parameter of a path.

    The former path of keyed values takes any other text, and would delete the value of that key.
    """
    if parameter == "{memory_id}" and not is_uuid(given):
        raise ValueError(
            f"{given!r} is not the id of a memory, which is a UUID. Keyed values have operations of their own."
        )
    return encode_segment(given)


def is_uuid(given: Id) -> bool:
    try:
        UUID(str(given))
    except ValueError:
        return False
    return True


def encode_segment(given: Id) -> str:
    """Encode an id as one segment of a path."""
    if given == "":
        raise ValueError("An id must not be empty.")
    segment = quote(str(given), safe="")
    # else they would be taken for steps of the path
    return segment.replace(".", "%2E") if segment in {".", ".."} else segment


def format_params(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the query parameters: lists as commas, flags as JSON, nothing for None."""
    for name, value in fields.items():
        if value is None:
            continue
        if isinstance(value, list | tuple | set | frozenset):
            yield name, ",".join(str(each) for each in value)
        else:
            yield name, format_value(value)


def format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def to_json(value: Any) -> bytes:
    """Serialize to JSON. Times become ISO 8601, other objects their text."""
    return json.dumps(value, default=serialize, ensure_ascii=False, separators=(",", ":")).encode()


def serialize(value: Any) -> Any:
    """Return what stands for an object in JSON. Raises TypeError for what has no form there."""
    if isinstance(value, Result):
        return value.to_dict()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON.")


def to_line(turn: Turn) -> bytes:
    """Return a turn as a line of NDJSON."""
    return to_json(turn) + b"\n"
