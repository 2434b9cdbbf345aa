"""Methods made of calls: one definition of an operation serves both clients and their raw responses."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from agent_memory_client.calls import Call, PageCall
from agent_memory_client.pages import AsyncPages, Pages
from agent_memory_client.results import Page, RawResponse, Result

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", bound=Result)


class Runs(Protocol):
    """An object that sends calls and waits for their answers."""

    def run(self, call: Call[T], /) -> T: ...

    def pages(self, call: PageCall[R], /) -> Pages[R]: ...


class AwaitableRuns(Protocol):
    """An object that sends calls; the answers are awaited."""

    async def run(self, call: Call[T], /) -> T: ...

    def pages(self, call: PageCall[R], /) -> AsyncPages[R]: ...


class RawRuns(Protocol):
    """An object that sends calls and returns whole responses."""

    def send_raw(self, call: Call[T], /) -> RawResponse[T]: ...

    def send_raw_page(self, call: PageCall[R], /) -> RawResponse[Page[R]]: ...


class AwaitableRawRuns(Protocol):
    """An object that sends calls; whole responses are awaited."""

    async def send_raw(self, call: Call[T], /) -> RawResponse[T]: ...

    async def send_raw_page(self, call: PageCall[R], /) -> RawResponse[Page[R]]: ...


def blocking(build: Callable[P, Call[T]]) -> Callable[Concatenate[Runs, P], T]:
    """Return the method of `Client` that sends what `build` returns."""

    @wraps(build)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self.run(build(*args, **kwargs))
        return result

    return method


def blocking_pages(build: Callable[P, PageCall[R]]) -> Callable[Concatenate[Runs, P], Pages[R]]:
    """Return the method of `Client` that iterates over what `build` lists."""

    @wraps(build)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Pages[R]:
        pages: Pages[R] = self.pages(build(*args, **kwargs))
        return pages

    return method


def awaited(build: Callable[P, Call[T]]) -> Callable[Concatenate[AwaitableRuns, P], Awaitable[T]]:
    """Return the method of `AsyncClient` that sends what `build` returns."""

    @wraps(build)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self.run(build(*args, **kwargs))
        return result

    return method


def awaited_pages(build: Callable[P, PageCall[R]]) -> Callable[Concatenate[AwaitableRuns, P], AsyncPages[R]]:
    """Return the method of `AsyncClient` that iterates over what `build` lists."""

    @wraps(build)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> AsyncPages[R]:
        pages: AsyncPages[R] = self.pages(build(*args, **kwargs))
        return pages

    return method


def raw(build: Callable[P, Call[T]]) -> Callable[Concatenate[RawRuns, P], RawResponse[T]]:
    """Return the method of `Client.with_raw_response`."""

    @wraps(build)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> RawResponse[T]:
        response: RawResponse[T] = self.send_raw(build(*args, **kwargs))
        return response

    return method


def raw_page(build: Callable[P, PageCall[R]]) -> Callable[Concatenate[RawRuns, P], RawResponse[Page[R]]]:
    """Return the method of `Client.with_raw_response` for one page."""

    @wraps(build)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> RawResponse[Page[R]]:
        response: RawResponse[Page[R]] = self.send_raw_page(build(*args, **kwargs))
        return response

    return method


def awaited_raw(build: Callable[P, Call[T]]) -> Callable[Concatenate[AwaitableRawRuns, P], Awaitable[RawResponse[T]]]:
    """Return the method of `AsyncClient.with_raw_response`."""

    @wraps(build)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> RawResponse[T]:
        response: RawResponse[T] = await self.send_raw(build(*args, **kwargs))
        return response

    return method


def awaited_raw_page(
    build: Callable[P, PageCall[R]],
) -> Callable[Concatenate[AwaitableRawRuns, P], Awaitable[RawResponse[Page[R]]]]:
    """Return the method of `AsyncClient.with_raw_response` for one page."""

    @wraps(build)
    async def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> RawResponse[Page[R]]:
        response: RawResponse[Page[R]] = await self.send_raw_page(build(*args, **kwargs))
        return response

    return method
