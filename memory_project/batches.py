"""Items in batches, as `itertools.batched` of Python 3.12 gives them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of `size`; the last one may be shorter."""
    following = iter(items)
    while batch := list(islice(following, size)):
        yield batch
