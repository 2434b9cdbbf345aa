"""The synchronous client."""

import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from agent_memory_client import methods, verbs
from agent_memory_client.attempts import Attempts, replace_by_saved
from agent_memory_client.binding import blocking, blocking_pages, raw, raw_page
from agent_memory_client.calls import Call, PageCall, Turns, to_line
from agent_memory_client.config import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT_SECONDS, Settings, read_settings
from agent_memory_client.pages import Pages
from agent_memory_client.parsing import parse_answer, parse_page
from agent_memory_client.results import Page, RawResponse, Result

T = TypeVar("T")
R = TypeVar("R", bound=Result)


class Sender:
    """Sends calls, with retries, and reads the answers."""

    def __init__(self, settings: Settings, http: httpx2.Client) -> None:
        self.settings = settings
        self._http = http

    def send(self, call: Call[Any] | PageCall[Any]) -> httpx2.Response:
        """Return the last response to a call, of whatever status. Raises ServiceConnectionError if there was none."""
        attempts = Attempts(call, self.settings)
        while True:
            lines = None if attempts.request.lines is None else encode_lines(attempts.request.lines)
            try:
                response = self._http.send(attempts.build(self._http, lines))
            except httpx2.TransportError as err:
                pause: float | None = attempts.pause_after_error(err)
            else:
                pause = attempts.pause_after(response)
            if pause is None:
                return response
            time.sleep(pause)

    def run(self, call: Call[T], /) -> T:
        """Return the result of a call."""
        return self._parse(call, self.send(call))

    def pages(self, call: PageCall[R], /) -> Pages[R]:
        """Return an iterator over the items of a list."""
        return Pages(call, lambda at: parse_page(at, self.send(at)))

    def send_raw(self, call: Call[T], /) -> RawResponse[T]:
        """Return the response to a call, also if it is no success."""
        return RawResponse(self.send(call), lambda response: self._parse(call, response))

    def send_raw_page(self, call: PageCall[R], /) -> RawResponse[Page[R]]:
        """Return the response with one page."""
        return RawResponse(self.send(call), lambda response: parse_page(call, response))

    def _parse(self, call: Call[T], response: httpx2.Response) -> T:
        return parse_answer(call, response, self._save)

    def _save(self, call: Call[Any], changed: Result) -> Result:
        response = self.send(call)
        return replace_by_saved(changed, self._parse(call, response), response)


class RawClient(methods.RawMethods):
    """The methods of `Client`, returning responses."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def send_raw(self, call: Call[T], /) -> RawResponse[T]:
        """Return the response to a call."""
        return self._sender.send_raw(call)

    def send_raw_page(self, call: PageCall[R], /) -> RawResponse[Page[R]]:
        """Return the response with one page."""
        return self._sender.send_raw_page(call)

    remember = raw(verbs.remember)
    infer = raw(verbs.infer)
    memories = raw_page(verbs.memories)
    forget = raw(verbs.forget)
    forget_all = raw(verbs.forget_all)
    recall = raw(verbs.recall)
    search = raw(verbs.search)
    context = raw(verbs.context)
    resume = raw(verbs.resume)
    add_turns = raw(verbs.add_turns)
    stream_turns = raw(verbs.stream_turns)
    turns = raw_page(verbs.turns)
    end = raw(verbs.end)
    learn = raw(verbs.learn)
    facts = raw_page(verbs.facts)
    add_goal = raw(verbs.add_goal)
    goals = raw_page(verbs.goals)
    complete = raw(verbs.complete)
    record_tool = raw(verbs.record_tool)


class Client(methods.Methods, Sender):
    """A client of the service for one agent and user. It is safe to share between threads.

    Arguments that are None come from the environment: AGENT_MEMORY_BASE_URL, AGENT_MEMORY_API_KEY,
    AGENT_MEMORY_AGENT_ID and AGENT_MEMORY_USER_ID. With `http_client`, its timeouts, proxies and transport are used,
    and `close` leaves it open.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        max_retries: int = DEFAULT_MAX_RETRIES,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        http_client: httpx2.Client | None = None,
    ) -> None:
        settings = read_settings(
            base_url=base_url, api_key=api_key, agent_id=agent_id, user_id=user_id, max_retries=max_retries
        )
        self._owns_http = http_client is None
        super().__init__(settings, http_client or httpx2.Client(timeout=timeout))

    @property
    def with_raw_response(self) -> RawClient:
        """The same methods, which return responses with status and headers and raise nothing until `parse()`."""
        return RawClient(self)

    def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    remember = blocking(verbs.remember)
    infer = blocking(verbs.infer)
    memories = blocking_pages(verbs.memories)
    forget = blocking(verbs.forget)
    forget_all = blocking(verbs.forget_all)
    recall = blocking(verbs.recall)
    search = blocking(verbs.search)
    context = blocking(verbs.context)
    resume = blocking(verbs.resume)
    add_turns = blocking(verbs.add_turns)
    stream_turns = blocking(verbs.stream_turns)
    turns = blocking_pages(verbs.turns)
    end = blocking(verbs.end)
    learn = blocking(verbs.learn)
    facts = blocking_pages(verbs.facts)
    add_goal = blocking(verbs.add_goal)
    goals = blocking_pages(verbs.goals)
    complete = blocking(verbs.complete)
    record_tool = blocking(verbs.record_tool)


def encode_lines(turns: Turns) -> Iterator[bytes]:
    """Return turns as lines. Raises TypeError for asynchronous ones."""
    if not isinstance(turns, Iterable):
        raise TypeError("Client streams iterables. AsyncClient also streams asynchronous ones.")
    return (to_line(turn) for turn in turns)
