"""Archives that were altered, cut off, or made by a newer version are refused before anything is stored."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pytest

from memory.errors import Conflict, MemoryServiceError
from memory.models import Account, Memory, Transfer
from memory.owner import Owner
from memory.services.custody.subjects import request_subject
from memory.services.transfer.archive import check_elements
from memory.services.transfer.rules import ADDED_COLUMNS
from tests.memory.facts import know
from tests.memory.transfers import count_rows, export_bytes, import_bytes
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def archive(owner: Owner, empty_redis: None) -> bytes:
    say(replace(owner, user_id="ana"), turn("I like figs."), conversation_id="talk-1")
    know(replace(owner, user_id="ana"), "Likes figs.")
    return export_bytes(owner.account_id)


def rewritten(archive: bytes, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> bytes:
    """Return the archive with other files and another manifest, which fits the files unless `change` made it unfit."""
    with zipfile.ZipFile(BytesIO(archive)) as opened:
        files = {name: opened.read(name) for name in opened.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    change(files, manifest)
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as written:
        for name, data in files.items():
            written.writestr(name, data)
        written.writestr("manifest.json", json.dumps(manifest))
    return target.getvalue()


def newer(_files: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["version"] = 2


def without_links(files: dict[str, bytes], _manifest: dict[str, Any]) -> None:
    del files["memory_links.jsonl"]


def another_text(files: dict[str, bytes], _manifest: dict[str, Any]) -> None:
    files["memories.jsonl"] = files["memories.jsonl"].replace(b"figs", b"nuts")


def unknown_file(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
    files["secrets.jsonl"] = b""
    manifest["files"]["secrets.jsonl"] = manifest["files"]["memory_links.jsonl"]


def foreign_format(_files: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["format"] = "something"


def endless_version(_files: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["version"] = float("inf")


def list_of_files(_files: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["files"] = []


CHANGES = {
    endless_version: "it was altered",
    list_of_files: "it was altered",
    newer: "version 2",
    without_links: "lacks memory_links.jsonl",
    another_text: "memories.jsonl is not what the manifest says",
    unknown_file: "secrets.jsonl",
    foreign_format: "not of the format",
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_archive_with_other_contents_is_refused(archive: bytes, stranger: Account, change: Any) -> None:
    with pytest.raises(MemoryServiceError, match=CHANGES[change]):
        import_bytes(stranger.id, rewritten(archive, change))

    assert sum(count_rows(stranger.id).values()) == 0


def test_an_archive_with_an_altered_byte_is_refused_wherever_that_is(archive: bytes, stranger: Account) -> None:
    for place in range(0, len(archive), len(archive) // 40):
        altered = bytearray(archive)
        altered[place] ^= 0x55
        if contents(bytes(altered)) == contents(archive):
            continue  # a field of the zip that nothing reads
        with pytest.raises(MemoryServiceError):
            import_bytes(stranger.id, bytes(altered))

    assert sum(count_rows(stranger.id).values()) == 0


def contents(archive: bytes) -> list[tuple[str, bytes]]:
    """Return what the zip has; nothing if it cannot be read."""
    try:
        with zipfile.ZipFile(BytesIO(archive)) as opened:
            return [(name, opened.read(name)) for name in opened.namelist()]
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError, zlib.error):
        return []


def test_an_archive_that_was_cut_off_is_refused(archive: bytes, stranger: Account) -> None:
    for size in (0, 10, len(archive) // 2, len(archive) - 1):
        with pytest.raises(MemoryServiceError, match="zip"):
            import_bytes(stranger.id, archive[:size])

    assert sum(count_rows(stranger.id).values()) == 0


def test_rows_of_a_former_version_get_the_columns_that_were_added_since(
    archive: bytes, stranger: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_labels(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
        rows = [json.loads(line) for line in files["memories.jsonl"].splitlines()]
        lines = [json.dumps({name: value for name, value in row.items() if name != "label"}) for row in rows]
        files["memories.jsonl"] = "".join(f"{line}\n" for line in lines).encode()
        size, digest = len(files["memories.jsonl"]), hashlib.sha256(files["memories.jsonl"]).hexdigest()
        manifest["files"]["memories.jsonl"] |= {"bytes": size, "sha256": digest}

    former = rewritten(archive, without_labels)
    with pytest.raises(MemoryServiceError, match="'label' is missing"):
        import_bytes(stranger.id, former)

    monkeypatch.setitem(ADDED_COLUMNS, 2, {"memories": {"label": None}})
    import_bytes(stranger.id, former)

    assert set(Memory.objects.filter(account_id=stranger.id).values_list("text", flat=True)) == {
        "I like figs.",
        "Likes figs.",
    }


def test_rows_with_other_columns_values_and_references_are_named(archive: bytes, stranger: Account) -> None:
    def with_row(**changes: Any) -> bytes:
        def change(files: dict[str, bytes], manifest: dict[str, Any]) -> None:
            name = "memories.jsonl"
            first, *rest = files[name].splitlines(keepends=True)
            row = json.loads(first) | changes
            files[name] = json.dumps(row).encode() + b"\n" + b"".join(rest)
            manifest["files"][name] |= {
                "bytes": len(files[name]),
                "sha256": hashlib.sha256(files[name]).hexdigest(),
            }

        return rewritten(archive, change)

    nobody = "00000000-0000-7000-8000-000000000001"
    for changes, said in (
        ({"odd": 1}, "memories.jsonl, line 1: 'odd' is not known"),
        ({"salience": "high"}, "memories.jsonl, line 1: salience must be a number"),
        ({"created_at": "soon"}, "created_at must be a time"),
        ({"log_id": nobody}, "log_id leads to no row of conversations"),
        ({"merged_into_id": nobody}, "line 1: it refers to a row of memories that is not in the archive"),
    ):
        with pytest.raises(MemoryServiceError, match=said):
            import_bytes(stranger.id, with_row(**changes))

    assert sum(count_rows(stranger.id).values()) == 0


def test_an_archive_that_names_an_erased_user_is_refused(archive: bytes, owner: Owner) -> None:
    request_subject(owner, "ana", now=datetime.now(UTC))

    with pytest.raises(Conflict, match="erased"):
        import_bytes(owner.account_id, archive)


def test_a_dry_run_stores_nothing(archive: bytes, stranger: Account) -> None:
    transfer = import_bytes(stranger.id, archive, dry_run=True)

    assert (transfer.status, transfer.counts["memories"]) == ("completed", Memory.objects.count())
    assert sum(count_rows(stranger.id).values()) == 0
    assert Transfer.objects.in_account(stranger.id).count() == 1


KEY = {"key": "unknown:a", "expires_at": -1}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"type": "hash", "value": [["a", "b"], ["c", "d"]]}, ""),
        ({"type": "zset", "value": [["a", 1], ["b", 2.5]]}, ""),
        ({"type": "list", "value": ["a"]}, ""),
        ({"type": "string", "value": "a"}, ""),
        ({"type": "hash", "value": [1]}, "pairs"),
        ({"type": "hash", "value": [["a", 1]]}, "another type"),
        ({"type": "zset", "value": [["a", "b"]]}, "another type"),
        ({"type": "zset", "value": [[1, 1]]}, "no text"),
        ({"type": "set", "value": [["a", "b"]]}, "no text"),
        ({"type": "string", "value": "\ud800"}, "UTF-8"),
        ({"type": "set", "value": ["a"], "key": "skill:ledger:{talk}"}, "must be a hash"),
        ({"type": "list", "value": ["1"], "key": "working_memory:{talk}"}, "must be a hash"),
        ({"type": "hash", "value": [["a", "no json"]], "key": "working_memory:{talk}"}, "JSON"),
        ({"type": "hash", "value": [["a\0b", "[1]"]], "key": "working_memory:{talk}"}, ""),
        ({"type": "list", "value": ["1"], "key": "working:ana:_global:{talk}:thoughts"}, "JSON"),
        ({"type": "list", "value": ["{}"], "key": "working:ana:_global:{talk}:thoughts"}, ""),
        ({"type": "string", "value": "{}", "key": "working::_global:{talk}:context"}, "must be a zset"),
        ({"type": "string", "value": "x", "key": "working::_global:{talk}:context:plan\n:b"}, "JSON"),
        ({"type": "zset", "value": [["plan", 1]], "key": "agent:{a:b}:::memory"}, ""),
        ({"type": "hash", "value": [], "key": "agent:{a}:t%3A1::shared:b"}, "must be a zset"),
        ({"type": "string", "value": "{", "key": "agent:{a}:::shared:b:plan"}, "JSON"),
        ({"type": "string", "value": "no json", "key": "value:plan"}, ""),
        ({"type": "list", "value": ["a"], "key": "value:plan"}, "must be a string"),
    ],
    ids=str,
)
def test_values_of_redis_have_the_shape_of_their_type(line: dict[str, Any], problem: str) -> None:
    found = check_elements(KEY | line)

    assert problem in found
    assert bool(problem) == bool(found)


def test_a_zip_that_is_compressed_otherwise_is_refused_before_it_is_read(owner: Owner, archive: bytes) -> None:
    target = BytesIO()
    with zipfile.ZipFile(BytesIO(archive)) as opened, zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as written:
        for name in opened.namelist():
            written.writestr(name, opened.read(name))

    with pytest.raises(MemoryServiceError, match="compressed otherwise"):
        import_bytes(owner.account_id, target.getvalue())
