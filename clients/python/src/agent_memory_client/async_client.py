"""The asynchronous client."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from agent_memory_client import archives, methods, models, verbs
from agent_memory_client.archives import (
    DEFAULT_WAIT_SECONDS,
    PART_BYTES,
    ArchiveFile,
    ArchivePath,
    Waiting,
    check_digest,
)
from agent_memory_client.attempts import Attempts, replace_by_saved
from agent_memory_client.binding import awaited, awaited_pages, awaited_raw, awaited_raw_page
from agent_memory_client.calls import Call, Id, PageCall, PreparedRequest, Turns, to_line
from agent_memory_client.config import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT_SECONDS, Settings, read_settings
from agent_memory_client.errors import status_error
from agent_memory_client.pages import AsyncPages
from agent_memory_client.parsing import parse_answer, parse_page
from agent_memory_client.results import Page, RawResponse, Result

T = TypeVar("T")
R = TypeVar("R", bound=Result)


class AsyncSender:
    """Sends calls, with retries, and reads the answers."""

    def __init__(self, settings: Settings, http: httpx2.AsyncClient) -> None:
        self.settings = settings
        self._http = http

    async def send(self, call: Call[Any] | PageCall[Any]) -> httpx2.Response:
        """Return the last response to a call, of whatever status. Raises ServiceConnectionError if there was none."""
        attempts = Attempts(call, self.settings)
        while True:
            try:
                response = await self._http.send(attempts.build(self._http, stream_body(attempts.request)))
            except httpx2.TransportError as err:
                pause: float | None = attempts.pause_after_error(err)
            else:
                pause = attempts.pause_after(response)
            if pause is None:
                return response
            await asyncio.sleep(pause)

    async def save(self, call: Call[Any], path: ArchivePath, /) -> str:
        """Write the archive that a call answers to a file, and return its SHA-256."""
        attempts = Attempts(call, self.settings)
        while True:
            try:
                response = await self._http.send(attempts.build(self._http, None), stream=True)
                async with aclosing(response):
                    if response.is_success:
                        return await write_parts(response, path)
                    await response.aread()
            except httpx2.TransportError as err:
                pause: float | None = attempts.pause_after_error(err)
            else:
                pause = attempts.pause_after(response)
            if pause is None:
                raise status_error(response)
            await asyncio.sleep(pause)

    async def run(self, call: Call[T], /) -> T:
        """Return the result of a call."""
        return self._parse(call, await self.send(call))

    def pages(self, call: PageCall[R], /) -> AsyncPages[R]:
        """Return an iterator over the items of a list."""

        async def fetch(at: PageCall[R]) -> Page[R]:
            return parse_page(at, await self.send(at))

        return AsyncPages(call, fetch)

    async def send_raw(self, call: Call[T], /) -> RawResponse[T]:
        """Return the response to a call, also if it is no success."""
        return RawResponse(await self.send(call), lambda response: self._parse(call, response))

    async def send_raw_page(self, call: PageCall[R], /) -> RawResponse[Page[R]]:
        """Return the response with one page."""
        return RawResponse(await self.send(call), lambda response: parse_page(call, response))

    def _parse(self, call: Call[T], response: httpx2.Response) -> T:
        return parse_answer(call, response, self._save)

    async def _save(self, call: Call[Any], changed: Result) -> Result:
        response = await self.send(call)
        return replace_by_saved(changed, self._parse(call, response), response)


class AsyncRawClient(methods.AsyncRawMethods):
    """The methods of `AsyncClient`, returning responses."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender

    async def send_raw(self, call: Call[T], /) -> RawResponse[T]:
        """Return the response to a call."""
        return await self._sender.send_raw(call)

    async def send_raw_page(self, call: PageCall[R], /) -> RawResponse[Page[R]]:
        """Return the response with one page."""
        return await self._sender.send_raw_page(call)

    remember = awaited_raw(verbs.remember)
    infer = awaited_raw(verbs.infer)
    memories = awaited_raw_page(verbs.memories)
    forget = awaited_raw(verbs.forget)
    forget_all = awaited_raw(verbs.forget_all)
    recall = awaited_raw(verbs.recall)
    search = awaited_raw(verbs.search)
    context = awaited_raw(verbs.context)
    resume = awaited_raw(verbs.resume)
    add_turns = awaited_raw(verbs.add_turns)
    stream_turns = awaited_raw(verbs.stream_turns)
    turns = awaited_raw_page(verbs.turns)
    end = awaited_raw(verbs.end)
    learn = awaited_raw(verbs.learn)
    facts = awaited_raw_page(verbs.facts)
    add_goal = awaited_raw(verbs.add_goal)
    goals = awaited_raw_page(verbs.goals)
    complete = awaited_raw(verbs.complete)
    record_tool = awaited_raw(verbs.record_tool)
    create_import = awaited_raw(archives.create_import)


class AsyncClient(methods.AsyncMethods, AsyncSender):
    """An asynchronous client of the service for one agent and user. It belongs to one event loop.

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
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        settings = read_settings(
            base_url=base_url, api_key=api_key, agent_id=agent_id, user_id=user_id, max_retries=max_retries
        )
        self._owns_http = http_client is None
        super().__init__(settings, http_client or httpx2.AsyncClient(timeout=timeout))

    @property
    def with_raw_response(self) -> AsyncRawClient:
        """The same methods, which return responses with status and headers and raise nothing until `parse()`."""
        return AsyncRawClient(self)

    async def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    remember = awaited(verbs.remember)
    infer = awaited(verbs.infer)
    memories = awaited_pages(verbs.memories)
    forget = awaited(verbs.forget)
    forget_all = awaited(verbs.forget_all)
    recall = awaited(verbs.recall)
    search = awaited(verbs.search)
    context = awaited(verbs.context)
    resume = awaited(verbs.resume)
    add_turns = awaited(verbs.add_turns)
    stream_turns = awaited(verbs.stream_turns)
    turns = awaited_pages(verbs.turns)
    end = awaited(verbs.end)
    learn = awaited(verbs.learn)
    facts = awaited_pages(verbs.facts)
    add_goal = awaited(verbs.add_goal)
    goals = awaited_pages(verbs.goals)
    complete = awaited(verbs.complete)
    record_tool = awaited(verbs.record_tool)
    create_import = awaited(archives.create_import)

    async def export_archive(
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
        export = await self.run(call)
        waiting = Waiting(wait_seconds)
        while (pause := waiting.pause_after(export)) is not None:
            await asyncio.sleep(pause)
            export = await self.get_export(export.id)
        await self.download_export(export.id, path)
        return export

    async def download_export(self, export_id: Id, path: ArchivePath, /) -> None:
        """Write the archive of an export to a file. Raises ConflictError until the export is completed."""
        export = await self.get_export(export_id)
        check_digest(await self.save(archives.download_export(export_id), path), export)

    async def download_newest_export(self, path: ArchivePath, /, **scope: Any) -> None:
        """Write the newest archive of the account to a file. Options: agent_id, user_id, include_vectors."""
        await self.save(archives.download_newest_export(**scope), path)

    async def import_archive(
        self, path: ArchivePath, /, *, dry_run: bool = False, wait_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> models.ImportAnswer:
        """Import an archive from a file into the account, or with `dry_run` only check it, and return the import.

        Raises TransferFailedError, or ServiceTimeoutError if it takes longer than `wait_seconds`.
        """
        started = await self.create_import(path, dry_run=dry_run)
        waiting = Waiting(wait_seconds)
        while (pause := waiting.pause_after(started)) is not None:
            await asyncio.sleep(pause)
            started = await self.get_import(started.id)
        return started


async def encode_lines(turns: Turns) -> AsyncIterator[bytes]:
    """Yield turns, asynchronous or not, as lines."""
    if isinstance(turns, AsyncIterable):
        async for turn in turns:
            yield to_line(turn)
    else:
        for turn in turns:
            yield to_line(turn)


def stream_body(request: PreparedRequest) -> AsyncIterator[bytes] | None:
    """Return the body of a request that streams, made anew for each attempt."""
    if request.archive is not None:
        return read_parts(request.archive)
    return None if request.lines is None else encode_lines(request.lines)


async def read_parts(path: Path) -> AsyncIterator[bytes]:
    """Yield the content of a file in parts. Reading does not hold up the event loop."""
    file = await asyncio.to_thread(path.open, "rb")
    with file:
        while part := await asyncio.to_thread(file.read, PART_BYTES):
            yield part


async def write_parts(response: httpx2.Response, path: ArchivePath) -> str:
    """Write the body of a response to a file as it comes, and return its SHA-256."""
    with ArchiveFile(path) as file:
        async for part in response.aiter_bytes():
            await asyncio.to_thread(file.write, part)
    return file.digest
