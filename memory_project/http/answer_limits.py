"""Answers of at most ANSWER_LIMIT_BYTES, whatever was asked for.

A page ends early, with `next`. In any other answer, the longest lists of objects lose their last elements, and the
member `cut` says how many each has lost. The first result of a page, and what is in no list, is always answered.
"""

from typing import Any

from django.conf import settings
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from memory_project.http.pagination import CursorPagination

CUT = "cut"
ROOM_BYTES = 4_096
"""What the links of a page and the member `cut` may add to an answer."""


def limit_answer(response: Any, paginator: CursorPagination | None) -> None:
    """Cut a rendered answer that is longer than the limit. Costs others the length of a text."""
    if not isinstance(response, Response) or not isinstance(response.data, dict):
        return
    excess = len(response.render().content) - settings.ANSWER_LIMIT_BYTES
    if excess <= 0:
        return
    excess += ROOM_BYTES
    if paginator is not None and hasattr(paginator, "page"):
        shorten_page(response, paginator, excess)
    else:
        shorten_lists(response.data, excess)
    response.content = JSONRenderer().render(response.data)


def shorten_page(response: Response, paginator: CursorPagination, excess: int) -> None:
    results = list(response.data["results"])
    while excess > 0 and len(results) > 1:
        excess -= measure(results.pop(0 if paginator.backwards else -1))
    response.data = paginator.describe_page(paginator.end_early(results))


def shorten_lists(answer: dict[str, Any], excess: int) -> None:
    """Cut the longest list first, as far as it goes, then the next one."""
    sizes = {name: sum(map(measure, value)) for name, value in answer.items() if is_list_of_objects(value)}
    cut: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        kept = list(answer[name])
        while excess > 0 and kept:
            excess -= measure(kept.pop())
        if len(kept) < len(answer[name]):
            cut[name] = len(answer[name]) - len(kept)
            answer[name] = kept
    if cut:
        answer[CUT] = cut


def is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def measure(element: Any) -> int:
    """Return the bytes of an element and the comma before it."""
    return len(JSONRenderer().render(element)) + 1
