"""Versions of a context entry: their list, and two of them side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Func, IntegerField
from django.http import QueryDict

from memory.admin.base import read_number
from memory.admin.diffs import TextDiff, compare_texts
from memory.admin.text import MAX_JSON_CHARACTERS, indent_json, mark_invisible
from memory.models import ContextEntry, ContextEntryVersion
from memory.services.contexts.entries import entry_versions

PAGE_VERSIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """A version without its content, of which only the size is known."""

    number: int
    editor: str
    created_at: datetime
    restored_from: int | None
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPage:
    """A page of versions, newest first. The next page begins before the number `before`; None on the last page."""

    versions: Sequence[VersionRow]
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionComparison:
    """Two versions and their differences. `value` is None if the values of both only repeat their contents."""

    old: ContextEntryVersion
    new: ContextEntryVersion
    content: TextDiff
    value: TextDiff | None

    @property
    def is_same(self) -> bool:
        return self.content.is_same and (self.value is None or self.value.is_same)


def list_versions(entry: ContextEntry, *, before: int | None) -> VersionPage:
    """Return the newest versions, or those before a number, in one query that reads no contents."""
    # the length of a long text that is stored out of line is known without reading it
    size = Func("content", function="octet_length", output_field=IntegerField())
    rows: Any = entry_versions(entry).defer("content", "value").annotate(size_bytes=size).order_by("-number")
    if before is not None:
        rows = rows.filter(number__lt=before)
    found = list(rows[: PAGE_VERSIONS + 1])
    versions = [
        VersionRow(
            number=version.number,
            editor=mark_invisible(version.editor),
            created_at=version.created_at,
            restored_from=version.restored_from,
            size_bytes=version.size_bytes,
        )
        for version in found[:PAGE_VERSIONS]
    ]
    return VersionPage(versions=versions, before=versions[-1].number if len(found) > PAGE_VERSIONS else None)


def choose_pair(entry: ContextEntry, asked: QueryDict) -> tuple[ContextEntryVersion, ContextEntryVersion] | None:
    """Return the two versions that were asked for, the older one first, or None if there is only one.

    The default for `right` is the latest version, and for `left` the one before `right`.
    """
    rows = entry_versions(entry).order_by("-number")
    left, right = (read_number(asked.get(name, "")) for name in ("left", "right"))
    new = rows.filter(number=right).first() if right is not None else None
    new = new or rows.first()
    if new is None:
        return None
    old = rows.filter(number=left).first() if left not in (None, new.number) else None
    # no version precedes the first one
    old = old or rows.filter(number__lt=new.number).first() or rows.filter(number__gt=new.number).last()
    if old is None:
        return None
    return (old, new) if old.number < new.number else (new, old)


def compare_versions(old: ContextEntryVersion, new: ContextEntryVersion) -> VersionComparison:
    content = compare_texts(old.content, new.content)
    if not any(has_own_value(version.value, version.content) for version in (old, new)):
        return VersionComparison(old=old, new=new, content=content, value=None)
    values = (
        "" if version.value is None else indent_json(version.value, characters=MAX_JSON_CHARACTERS)
        for version in (old, new)
    )
    return VersionComparison(old=old, new=new, content=content, value=compare_texts(*values))


def has_own_value(value: Any, content: str) -> bool:
    """Return whether a value differs from the content. The value under a key often repeats it."""
    return value is not None and value != content
