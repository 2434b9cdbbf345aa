"""The paths of the API, to name the nearest one to a client that asks for another."""

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from typing import Any

from django.conf import settings
from django.urls import get_resolver

from memory_project.http.paths import API_PREFIX

CURRENT_PREFIX = f"{API_PREFIX}v1/"
VERSIONED_PREFIX = re.compile(rf"^{API_PREFIX}(?:v\d+(?:/|$))?")
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
MAX_COMPARED_CHARACTERS = 200
MIN_SIMILARITY, MIN_NOUN_SIMILARITY = 0.6, 0.7
MEANT_BY = {
    "search": "/api/v1/memories/search",
    "remember": "/api/v1/memories",
    "add": "/api/v1/memories",
    "store": "/api/v1/memories",
    "messages": "/api/v1/conversations/{conversation_id}/turns",
    "users": "/api/v1/profiles/{user_id}",
    "sessions": "/api/v1/conversations/{conversation_id}",
    "threads": "/api/v1/conversations/{conversation_id}",
    "health": "/health/ready",
}
"""Paths for the words that newcomers try first, below the prefix or without it."""


def describe_unknown_route(path: str) -> str:
    """Return a sentence that says that there is no such path, with the nearest one."""
    shown = path[:MAX_COMPARED_CHARACTERS]
    near = find_nearest_route(shown)
    if near is None:
        return f"There is no path {shown}. `/api/docs` lists all of them."
    form = " Ids that the service makes are UUIDs in lower case." if fill_parameters(near, shown) == shown else ""
    return f"There is no path {shown}. Did you mean {near}?{form} `/api/docs` lists all of them."


def find_nearest_route(path: str) -> str | None:
    """Return the path template that is most similar to the path, or None if none is similar."""
    word, *below = path.removeprefix(CURRENT_PREFIX).strip("/").split("/")
    if word in MEANT_BY and (not below or "{" in MEANT_BY[word]):
        return MEANT_BY[word]
    if not path.startswith(API_PREFIX):
        path = CURRENT_PREFIX + path.lstrip("/").removeprefix("v1/")
    templates = [each for each in api_routes(settings.ROOT_URLCONF) if is_same_resource(each, path)]
    # of templates that are alike then, the first one stays
    filled = {fill_parameters(template, path): template for template in reversed(templates)}
    nearest = get_close_matches(path, filled, n=1, cutoff=MIN_SIMILARITY)
    return filled[nearest[0]] if nearest else None


def is_same_resource(template: str, path: str) -> bool:
    """Return whether the nouns after the prefix are alike: an id that fits says nothing about a path."""
    noun, given = (VERSIONED_PREFIX.sub("", each).partition("/")[0] for each in (template, path))
    return SequenceMatcher(a=noun, b=given, autojunk=False).ratio() > MIN_NOUN_SIMILARITY


def fill_parameters(template: str, path: str) -> str:
    """Return the template with its parameters replaced by the segments of the path at their places."""
    given = path.split("/")
    segments = template.split("/")
    return "/".join(
        given[place] if segment.startswith("{") and place < len(given) else segment
        for place, segment in enumerate(segments)
    )


@cache
def api_routes(urlconf: str) -> list[str]:
    """Return the path templates below the API's prefix, such as `/api/v1/facts/{fact_id}`."""
    return [route for route in walk_routes(get_resolver(urlconf).url_patterns, "/") if route.startswith(API_PREFIX)]


def walk_routes(patterns: Iterable[Any], prefix: str) -> Iterator[str]:
    for pattern in patterns:
        route = prefix + PARAMETER.sub(r"{\1}", str(pattern.pattern))
        if hasattr(pattern, "url_patterns"):
            yield from walk_routes(pattern.url_patterns, route)
        else:
            yield route
