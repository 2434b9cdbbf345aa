"""Conditional requests (RFC 9110, 13): a version is a strong ETag, a number in quotes.

Where another row may come to have the public id of one that is gone, its tag says which row it is, too: `"3.89abcdef"`.
A client that knows the number alone may name that, and means the version of whichever row there is.
"""

import re
from uuid import UUID

from memory_project.http.problems import Problem
from memory_project.ids import version_tag

Versions = frozenset[str] | None
"""Which versions a caller is content with, of any row or of one (`version_tag`); None for any."""

TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
TAGS = re.compile(rf"\s*{TAG.pattern}\s*(,\s*{TAG.pattern}\s*)*")
GIVEN = re.compile(r"[1-9][0-9]{0,9}(\.[0-9a-f]{8})?")


def etag_of(version: int, row_id: UUID | None = None) -> str:
    return f'"{version_tag(version, row_id)}"'


def read_if_match(header: str | None) -> Versions:
    """The versions that `If-Match` names: None without the header or for `*`, for what there is anyhow.

    Weak tags, and tags that we never gave, match nothing. Raises a 400 problem for what is no list of tags.
    """
    if header is None or header.strip() == "*":
        return None
    if not TAGS.fullmatch(header):
        raise Problem(400, "invalid_if_match", 'If-Match takes ETags in quotes, such as "3", or *.')
    named = [tag for weak, tag in TAG.findall(header) if not weak]
    return frozenset(tag for tag in named if GIVEN.fullmatch(tag))


def narrow(first: Versions, second: Versions) -> Versions:
    """The versions that both are content with: where one names the row as well, that row's."""
    if first is None or second is None:
        return second if first is None else first
    pairs = [(one, other) for one in first for other in second]
    return frozenset(max(pair, key=len) for pair in pairs if is_same(*pair))


def is_same(one: str, other: str) -> bool:
    """Whether both may mean the same version."""
    return one == other or one == other.partition(".")[0] or one.partition(".")[0] == other


def is_known(header: str | None, tag: str) -> bool:
    """Whether `If-None-Match` names this tag, weakly or not."""
    if header is None:
        return False
    return header.strip() == "*" or tag in [f'"{name}"' for _, name in TAG.findall(header)]
