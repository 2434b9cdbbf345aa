"""Conditional requests (RFC 9110, 13): a version is a strong ETag, a number in quotes."""

import re

from memory_project.http.problems import Problem

Versions = frozenset[int] | None
"""Which versions a caller is content with; None for any."""

TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
TAGS = re.compile(rf"\s*{TAG.pattern}\s*(,\s*{TAG.pattern}\s*)*")
NUMBER = re.compile(r"[1-9][0-9]{0,9}")


def etag_of(version: int) -> str:
    return f'"{version}"'


def read_if_match(header: str | None) -> Versions:
    """The versions that `If-Match` names: None without the header or for `*`, for what there is anyhow.

    Weak tags, and tags that we never gave, match nothing. Raises a 400 problem for what is no list of tags.
    """
    if header is None or header.strip() == "*":
        return None
    if not TAGS.fullmatch(header):
        raise Problem(400, "invalid_if_match", 'If-Match takes ETags in quotes, such as "3", or *.')
    named = [tag for weak, tag in TAG.findall(header) if not weak]
    return frozenset(int(tag) for tag in named if NUMBER.fullmatch(tag))


def is_known(header: str | None, tag: str) -> bool:
    """Whether `If-None-Match` names this tag, weakly or not."""
    if header is None:
        return False
    return header.strip() == "*" or tag in [f'"{name}"' for _, name in TAG.findall(header)]
