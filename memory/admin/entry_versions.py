"""The versions of an entry: which there are, and two of them beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Func, IntegerField
from django.http import QueryDict

from memory.admin.diffs import Diff, compare
from memory.admin.documents import MOST_CHARACTERS
from memory.admin.text import mark_invisible
from memory.admin.transcripts import over_lines
from memory.models import ContextEntry, ContextEntryVersion
from memory.services.contexts.entries import entry_versions

PAGE_VERSIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion:
    """A version, without what it says; `size_bytes` of it."""

    number: int
    editor: str
    created_at: datetime
    restored_from: int | None
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionList:
    """Newest first. `before`: where the next page begins; None on the last."""

    versions: Sequence[ListedVersion]
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two versions, and what differs; `value` is None where both say no more than their contents."""

    old: ContextEntryVersion
    new: ContextEntryVersion
    content: Diff
    value: Diff | None

    @property
    def is_same(self) -> bool:
        return self.content.is_same and (self.value is None or self.value.is_same)


def list_versions(entry: ContextEntry, *, before: int | None) -> VersionList:
    """A page of them, from the newest or from those before a number. One query, which reads no contents."""
    # of a long text kept apart, its length is known without reading it
    size = Func("content", function="octet_length", output_field=IntegerField())
    rows = entry_versions(entry).defer("content", "value").annotate(size_bytes=size).order_by("-number")
    if before is not None:
        rows = rows.filter(number__lt=before)
    found = list(rows[: PAGE_VERSIONS + 1])
    listed = [list_version(row) for row in found[:PAGE_VERSIONS]]
    return VersionList(versions=listed, before=listed[-1].number if len(found) > PAGE_VERSIONS else None)


def list_version(version: Any) -> ListedVersion:
    return ListedVersion(
        number=version.number,
        editor=mark_invisible(version.editor),
        created_at=version.created_at,
        restored_from=version.restored_from,
        size_bytes=version.size_bytes,
    )


def choose_pair(entry: ContextEntry, asked: QueryDict) -> tuple[ContextEntryVersion, ContextEntryVersion] | None:
    """Those that were asked for, the older first; else the latest, or `right`, and the one before.

    None where there is only one.
    """
    rows = entry_versions(entry).order_by("-number")
    left, right = read_number(asked, "left"), read_number(asked, "right")
    new = rows.filter(number=right).first() if right is not None else None
    new = new or rows.first()
    if new is None:
        return None
    old = rows.filter(number=left).first() if left not in (None, new.number) else None
    # the first has none before it
    old = old or rows.filter(number__lt=new.number).first() or rows.filter(number__gt=new.number).last()
    if old is None:
        return None
    return (old, new) if old.number < new.number else (new, old)


def compare_versions(old: ContextEntryVersion, new: ContextEntryVersion) -> Compared:
    has_value = any(says_more(version) for version in (old, new))
    values = [show_value(version.value) for version in (old, new)]
    return Compared(
        old=old, new=new, content=compare(old.content, new.content), value=compare(*values) if has_value else None
    )


def says_more(version: ContextEntryVersion | ContextEntry) -> bool:
    """Whether its value is something else than its content, which the value under a key often is."""
    content = version.text if isinstance(version, ContextEntry) else version.content
    return bool(version.value is not None and version.value != content)


def show_value(value: Any) -> str:
    return "" if value is None else over_lines(value, characters=MOST_CHARACTERS)


def read_number(asked: QueryDict, name: str) -> int | None:
    """A number that was sent; None where there is none, and for nonsense."""
    text = asked.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
