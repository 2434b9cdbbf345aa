"""From responses to results, and from changed objects to the call that saves them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import httpx2

from agent_memory_client.calls import Call, PageCall
from agent_memory_client.errors import AgentMemoryError, status_error
from agent_memory_client.results import Page, Result, Save
from agent_memory_client.table import OPERATIONS

T = TypeVar("T")
R = TypeVar("R", bound=Result)
WHOSE = ("agent_id", "user_id", "channel")


def parse_answer(call: Call[T], response: httpx2.Response, send: Callable[[Call[Any], Result], Any]) -> T:
    """Return the result of a call. `send` writes an object that can be saved. Raises StatusError for no success."""
    if not response.is_success:
        raise status_error(response)
    if call.answer is None or not response.content:
        return cast(T, None)
    result = cast(type[Result], call.answer)(read_object(response))
    if call.operation.saved_by:
        result._bind(response.headers.get("ETag", ""), make_save(call, send))
    return cast(T, result)


def parse_page(call: PageCall[R], response: httpx2.Response) -> Page[R]:
    """Return the page that a call answered. Raises StatusError for no success."""
    if not response.is_success:
        raise status_error(response)
    return Page(read_object(response), call.item)


def read_object(response: httpx2.Response) -> dict[str, Any]:
    """Return the JSON object of an answer. Raises AgentMemoryError where something else answered, such as a portal."""
    try:
        answered = response.json()
    except ValueError:
        answered = None
    if not isinstance(answered, dict):
        kind = response.headers.get("Content-Type", "unknown")
        raise AgentMemoryError(
            f"{response.status_code} from {response.url.host} is no answer of the service (Content-Type: {kind}). "
            "Look at base_url, and at proxies on the way."
        )
    return answered


def make_save(call: Call[Any], send: Callable[[Call[Any], Result], Any]) -> Save:
    """Return what `save()` of the object does that this call answered."""
    operation = OPERATIONS[call.operation.saved_by]
    whose = {name: call.fields[name] for name in WHOSE if name in call.fields}

    def save(result: Result, changes: Mapping[str, Any]) -> Any:
        parameter = operation.path.rpartition("{")[2].rstrip("}")
        found = result[parameter] if parameter in result else result["id"]
        fields = {**whose, **changes}
        return send(Call(operation=operation, ids=(found,), fields=fields, answer=Result, etag=result.etag), result)

    return save
