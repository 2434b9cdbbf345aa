"""Iterators over pages. The first page is asked for when iteration begins."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from agent_memory_client.calls import PageCall
from agent_memory_client.results import Page, Result

R = TypeVar("R", bound=Result)


class Pages(Generic[R]):
    """All items of a list, page after page. `pages()` yields the pages themselves."""

    def __init__(self, call: PageCall[R], fetch: Callable[[PageCall[R]], Page[R]]) -> None:
        self._call = call
        self._fetch = fetch

    def __iter__(self) -> Iterator[R]:
        for page in self.pages():
            yield from page.results

    def pages(self) -> Iterator[Page[R]]:
        """Yield pages until the last one."""
        call = self._call
        while True:
            page = self._fetch(call)
            yield page
            if not page.next:
                return
            call = at_cursor(call, page.next)


class AsyncPages(Generic[R]):
    """All items of a list, page after page, for `async for`. `pages()` yields the pages themselves."""

    def __init__(self, call: PageCall[R], fetch: Callable[[PageCall[R]], Awaitable[Page[R]]]) -> None:
        self._call = call
        self._fetch = fetch

    async def __aiter__(self) -> AsyncIterator[R]:
        async for page in self.pages():
            for each in page.results:
                yield each

    async def pages(self) -> AsyncIterator[Page[R]]:
        """Yield pages until the last one."""
        call = self._call
        while True:
            page = await self._fetch(call)
            yield page
            if not page.next:
                return
            call = at_cursor(call, page.next)


def at_cursor(call: PageCall[R], cursor: str) -> PageCall[R]:
    return replace(call, fields={**call.fields, "cursor": cursor})
