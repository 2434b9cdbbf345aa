"""Archives: found in their zip, cut into entries wherever they are read, bounded, and never a crash."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.archives import ArchiveEntry, DamagedArchive, Room, bounded_chunks, read_archive, split_array
from memory.extraction.imported import BadLine, Item, NothingSaid
from tests.memory.extraction.archived import stream_of, zipped

OBJECTS = st.lists(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(st.none() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner), max_leaves=5),
        max_size=3,
    ),
    max_size=5,
)


def note(entry: ArchiveEntry) -> NothingSaid:
    """A reader that says which entries it was given."""
    return NothingSaid(number=int(entry.value["n"]))


def read(content: bytes, **limits: int) -> list[Item]:
    return list(read_archive(stream_of(content), note, **limits))


def listed(*numbers: int) -> bytes:
    return json.dumps([{"n": number} for number in numbers]).encode()


def noted(*numbers: int) -> list[Item]:
    return [NothingSaid(number=number) for number in numbers]


@given(OBJECTS, st.integers(1, 7), st.sampled_from([None, 2]), st.booleans())
def test_a_list_is_split_into_its_elements_wherever_chunks_end(
    objects: list[Any], size: int, indent: int | None, ensure_ascii: bool
) -> None:
    document = json.dumps(objects, indent=indent, ensure_ascii=ensure_ascii).encode()
    chunks = [document[start : start + size] for start in range(0, len(document), size)]

    assert [json.loads(element) for element in split_array(chunks, max_bytes=10_000)] == objects


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"[", b"]", b'{"a":', b"}", b'"', b"\\", b","])))
def test_any_bytes_are_split_into_bounded_elements_or_refused(chunks: list[bytes]) -> None:
    try:
        elements = list(split_array(chunks, max_bytes=10))
    except DamagedArchive:
        return

    assert all(0 < len(element) <= 11 for element in elements)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b"", "the file is no JSON list of conversations"),
        (b"oops", "the file is no JSON list of conversations"),
        (b'{"a": [1]}', "the file is no JSON list of conversations"),
        (b'[{"a": 1}', "the file ends in the middle of its list"),
        (b'[{"a": "', "the file ends in the middle of its list"),
        (b"[}", "the file goes on after its list"),
        (b"[] []", "the file goes on after its list"),
        (b"[] oops", "the file goes on after its list"),
    ],
)
def test_a_document_that_is_not_a_complete_list_is_refused(document: bytes, expected: str) -> None:
    with pytest.raises(DamagedArchive, match=expected):
        list(split_array([document], max_bytes=100))


def test_splitting_a_list_keeps_elements_that_are_not_objects() -> None:
    assert list(split_array([b'[1, {"a": 2}, "b", null]'], max_bytes=100)) == [b"1", b'{"a": 2}', b'"b", null']


def test_a_byte_order_mark_is_skipped() -> None:
    assert read(b"\xef\xbb\xbf" + listed(1)) == noted(1)


def test_an_entry_over_the_limit_is_bad_and_the_next_one_is_read() -> None:
    document = json.dumps([{"n": 1, "text": "x" * 500}, {"n": 2}]).encode()

    assert read(document, max_entry_bytes=100) == [BadLine(number=1, reason="is longer than 100 bytes"), *noted(2)]


def test_entries_before_the_damage_are_kept() -> None:
    expected = "the file ends in the middle of its list"

    assert read(listed(1, 2)[:-5]) == [*noted(1), BadLine(number=2, reason=expected)]


@pytest.mark.parametrize("name", ["conversations.json", "data-2026-01-01/conversations.json"])
def test_conversations_are_found_in_a_zip(name: str) -> None:
    assert read(zipped({"user.json": b"{}", name: listed(1, 2), "chat.html": b"<html>"})) == noted(1, 2)


def test_a_zip_in_several_files_is_read_in_the_order_of_their_names() -> None:
    files = {"conversations-001.json": listed(3), "conversations-000.json": listed(1, 2)}

    assert read(zipped(files)) == noted(1, 2, 3)


def test_a_zip_without_conversations_is_bad() -> None:
    expected = "there is no conversations.json in the archive"

    assert read(zipped({"user.json": b"{}"})) == [BadLine(number=1, reason=expected)]


def test_unpacking_a_zip_bomb_stops_at_the_limit() -> None:
    bomb = zipped({"conversations.json": b"[" + b" " * 5_000_000 + b"]"})

    (bad,) = read(bomb, max_bytes=2_000_000)

    assert len(bomb) < 10_000
    assert isinstance(bad, BadLine)
    assert bad.reason == "the archive unpacks to more than 2000000 bytes; the rest was not read"


def test_the_size_limit_applies_to_all_files_together() -> None:
    files = {f"conversations-{number}.json": listed(number) + b" " * 600 for number in (1, 2)}

    assert [type(item) for item in read(zipped(files), max_bytes=1_000)] == [NothingSaid, BadLine]


def test_the_total_size_of_chunks_is_limited() -> None:
    chunks = bounded_chunks(stream_of(b"x" * 100), Room(99))

    with pytest.raises(DamagedArchive):
        list(chunks)


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_damaged_zip_is_a_bad_line_and_no_crash(place: int, change: int) -> None:
    archive = bytearray(zipped({"conversations.json": listed(*range(20))}))
    archive[place % len(archive)] ^= change

    items = read(bytes(archive))

    assert all(isinstance(item, NothingSaid | BadLine) for item in items)


def test_a_zip_that_was_cut_short_is_a_bad_line() -> None:
    (bad,) = read(zipped({"conversations.json": listed(*range(100))})[:-30])

    assert isinstance(bad, BadLine)
    assert bad.reason == "the archive is damaged (BadZipFile)"


def test_a_zip_in_a_pipe_is_refused_with_advice(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, zipped({"conversations.json": listed(1)}))
    os.close(writing)

    with os.fdopen(reading, "rb") as pipe:
        (bad,) = read_archive(pipe, note)

    assert isinstance(bad, BadLine)
    assert bad.reason.startswith("a .zip cannot be read from a pipe")
