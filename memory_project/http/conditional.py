"""Conditional requests (RFC 9110, section 13). A version is a strong ETag: a number in quotes, such as `"3"`.

Where a new row can take the public id of a deleted one, the ETag also identifies the row: `"3.89abcdef"`. A client that
knows only the number may send that; it then means this version of whichever row has the id.
"""

import re
from uuid import UUID

from memory_project.http.problems import Problem
from memory_project.ids import version_tag

Versions = frozenset[str] | None
"""The versions that a caller accepts, of any row or of one (`version_tag`). None accepts every version."""

TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
TAGS = re.compile(rf"\s*{TAG.pattern}\s*(,\s*{TAG.pattern}\s*)*")
ISSUED_TAG = re.compile(r"[1-9][0-9]{0,9}(\.[0-9a-f]{8})?")


def format_etag(version: int, row_id: UUID | None = None) -> str:
    return f'"{version_tag(version, row_id)}"'


def parse_if_match(header: str | None) -> Versions:
    """Return the versions that `If-Match` names; None without the header and for `*`, which accept any version.

    Weak tags, and tags that this service never issued, match nothing. Raises a 400 problem for a malformed header.
    """
    if header is None or header.strip() == "*":
        return None
    if not TAGS.fullmatch(header):
        detail = 'The If-Match header is malformed. Send * or ETags in double quotes, such as "3", with commas between.'
        raise Problem(400, "invalid_if_match", detail)
    named = [tag for weak, tag in TAG.findall(header) if not weak]
    return frozenset(tag for tag in named if ISSUED_TAG.fullmatch(tag))


def intersect_versions(first: Versions, second: Versions) -> Versions:
    """Return the versions that both accept. Where one of the two also names the row, the result names it."""
    if first is None or second is None:
        return second if first is None else first
    pairs = [(one, other) for one in first for other in second]
    return frozenset(max(pair, key=len) for pair in pairs if is_same_version(*pair))


def is_same_version(one: str, other: str) -> bool:
    """Return whether both tags can mean the same version."""
    return one == other or one == other.partition(".")[0] or one.partition(".")[0] == other


def matches_if_none_match(header: str | None, tag: str) -> bool:
    """Return whether `If-None-Match` names this tag, weak or strong."""
    if header is None:
        return False
    return header.strip() == "*" or tag in [f'"{name}"' for _, name in TAG.findall(header)]
