"""An account that is exported and imported again is the same, byte for byte."""

import json
import zipfile
from io import BytesIO

import pytest

from memory.kinds import Kind
from memory.models import Account, Link, Memory
from memory.services.memories.links import REPLACES
from tests.embedding_server import EmbeddingServer
from tests.memory.transfers import count_rows, empty_account, export_bytes, fill_account, import_bytes

pytestmark = pytest.mark.django_db(transaction=True)


def read_manifest(archive: bytes) -> dict[str, int]:
    with zipfile.ZipFile(BytesIO(archive)) as opened:
        files = json.loads(opened.read("manifest.json"))["files"]
    return {name.removesuffix(".jsonl"): entry["rows"] for name, entry in files.items()}


def differences(first: bytes, second: bytes) -> list[str]:
    """Return the lines of two archives that are not in both."""
    found = []
    with zipfile.ZipFile(BytesIO(first)) as one, zipfile.ZipFile(BytesIO(second)) as other:
        for name in one.namelist():
            before, after = one.read(name).splitlines(), other.read(name).splitlines()
            found += [f"- {name} {line.decode()}" for line in before if line not in after]
            found += [f"+ {name} {line.decode()}" for line in after if line not in before]
    return found


@pytest.mark.slow
def test_an_account_is_the_same_after_export_and_import(
    account: Account, embedding_server: EmbeddingServer, empty_redis: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_account(account, monkeypatch)
    assert set(Memory.objects.filter(account_id=account.id).values_list("kind", flat=True)) == set(Kind)
    assert Link.objects.filter(account_id=account.id, type=REPLACES).exists()
    archive, counts = export_bytes(account.id, include_vectors=True), count_rows(account.id)
    empty_account(account)

    transfer = import_bytes(account.id, archive)

    assert [name for name, number in read_manifest(archive).items() if not number] == []
    again = export_bytes(account.id, include_vectors=True)
    assert not differences(archive, again), "\n".join(differences(archive, again)[:20])
    assert again == archive
    assert count_rows(account.id) == counts
    assert sum(transfer.existing.values()) == 0
