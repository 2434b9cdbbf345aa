"""The synchronous client."""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from agent_memory_client import archives, methods, models, verbs
from agent_memory_client.archives import (
    DEFAULT_WAIT_SECONDS,
    ArchiveFile,
    ArchivePath,
    Waiting,
    check_digest,
    read_parts,
)
from agent_memory_client.attempts import Attempts, replace_by_saved
from agent_memory_client.binding import blocking, blocking_pages, raw, raw_page
from agent_memory_client.calls import Call, Id, PageCall, PreparedRequest, Turns, to_line
from agent_memory_client.config import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT_SECONDS, Settings, read_settings
from agent_memory_client.errors import status_error
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
            try:
                response = self._http.send(attempts.build(self._http, stream_body(attempts.request)))
            except httpx2.TransportError as err:
                pause: float | None = attempts.pause_after_error(err)
            else:
                pause = attempts.pause_after(response)
            if pause is None:
                return response
            time.sleep(pause)

    def save(self, call: Call[Any], path: ArchivePath, /) -> str:
        """Write the archive that a call answers to a file, and return its SHA-256."""
        attempts = Attempts(call, self.settings)
        while True:
            try:
                response = self._http.send(attempts.build(self._http, None), stream=True)
                with closing(response):
                    if response.is_success:
                        return write_parts(response, path)
                    response.read()
            except httpx2.TransportError as err:
                pause: float | None = attempts.pause_after_error(err)
            else:
                pause = attempts.pause_after(response)
            if pause is None:
                raise status_error(response)
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
    create_import = raw(archives.create_import)


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
    create_import = blocking(archives.create_import)

    def export_archive(
        self,
        path: ArchivePath,
        /,
        *,
        agent_id: str = "",
        user_id: str = "",
        include_vectors: bool = False,
        wait_seconds: float = DEFAULT_WAIT_SECONDS,
    ) -> models.ExportAnswer:
        """Export the account, or what belongs to an agent or a user of it, to a file, and return the export.

        Raises TransferFailedError, or ServiceTimeoutError if it takes longer than `wait_seconds`.
        """
        call = archives.create_export(agent_id=agent_id, user_id=user_id, include_vectors=include_vectors)
        export = self.run(call)
        waiting = Waiting(wait_seconds)
        while (pause := waiting.pause_after(export)) is not None:
            time.sleep(pause)
            export = self.get_export(export.id)
        self.download_export(export.id, path)
        return export

    def download_export(self, export_id: Id, path: ArchivePath, /) -> None:
        """Write the archive of an export to a file. Raises ConflictError until the export is completed."""
        export = self.get_export(export_id)
        check_digest(self.save(archives.download_export(export_id), path), export)

    def download_newest_export(self, path: ArchivePath, /, **scope: Any) -> None:
        """Write the newest archive of the account to a file. Options: agent_id, user_id, include_vectors."""
        self.save(archives.download_newest_export(**scope), path)

    def import_archive(
        self, path: ArchivePath, /, *, dry_run: bool = False, wait_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> models.ImportAnswer:
        """Import an archive from a file into the account, or with `dry_run` only check it, and return the import.

        Raises TransferFailedError, or ServiceTimeoutError if it takes longer than `wait_seconds`.
        """
        started = self.create_import(path, dry_run=dry_run)
        waiting = Waiting(wait_seconds)
        while (pause := waiting.pause_after(started)) is not None:
            time.sleep(pause)
            started = self.get_import(started.id)
        return started


def encode_lines(turns: Turns) -> Iterator[bytes]:
    """Return turns as lines. Raises TypeError for asynchronous ones."""
    if not isinstance(turns, Iterable):
        raise TypeError("Client streams iterables. AsyncClient also streams asynchronous ones.")
    return (to_line(turn) for turn in turns)


def stream_body(request: PreparedRequest) -> Iterator[bytes] | None:
    """Return the body of a request that streams, made anew for each attempt."""
    if request.archive is not None:
        return read_parts(request.archive)
    return None if request.lines is None else encode_lines(request.lines)


def write_parts(response: httpx2.Response, path: ArchivePath) -> str:
    """Write the body of a response to a file as it comes, and return its SHA-256."""
    with ArchiveFile(path) as file:
        for part in response.iter_bytes():
            file.write(part)
    return file.digest
