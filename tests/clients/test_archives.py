"""Archives through the Python clients over real HTTP, while a worker makes and stores them."""

import asyncio
import zipfile
from pathlib import Path

import pytest
from agent_memory_client import AsyncClient, Client, ConflictError, NotFoundError, TransferFailedError, models

from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.web_server import SharedServers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def url(shared_server: SharedServers) -> str:
    return f"http://127.0.0.1:{shared_server({}).port}"


@pytest.fixture
def stranger_key(stranger: Account) -> str:
    return issue_key(stranger, scopes=READ_WRITE_OPERATE).secret


def texts_in(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read("memories.jsonl").decode()


@pytest.mark.usefixtures("transfer_worker")
def test_an_account_is_exported_to_a_file_and_imported_into_another_one(
    url: str, api_key: str, stranger_key: str, tmp_path: Path
) -> None:
    path = tmp_path / "account.zip"
    with Client(url, api_key, agent_id="assistant", user_id="ana") as ours:
        ours.remember("Ana prefers window seats.")
        export = ours.export_archive(path)
        ours.download_newest_export(tmp_path / "newest.zip")

    with Client(url, stranger_key, agent_id="assistant", user_id="ana") as theirs:
        checked = theirs.import_archive(path, dry_run=True)
        assert list(theirs.memories()) == []
        imported = theirs.import_archive(path)
        assert [each.text for each in theirs.memories()] == ["Ana prefers window seats."]

    assert (export.agent_id, export.user_id, export.size_bytes) == ("", "", path.stat().st_size)
    assert path.read_bytes() == (tmp_path / "newest.zip").read_bytes()
    assert isinstance(imported, models.ImportAnswer)
    assert (checked.dry_run, imported.remaps) == (True, True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["account.zip", "newest.zip"]


@pytest.mark.usefixtures("transfer_worker")
def test_the_async_client_exports_a_user_and_imports_it(url: str, api_key: str, tmp_path: Path) -> None:
    path = tmp_path / "ben.zip"

    async def use() -> models.ImportAnswer:
        async with AsyncClient(url, api_key, agent_id="assistant", user_id="ana") as client:
            await client.remember("Ana prefers window seats.")
            await client.remember("Ben is allergic to nuts.", user_id="ben")
            await client.export_archive(path, user_id="ben")
            await client.download_newest_export(tmp_path / "newest.zip", user_id="ben")
            return await client.import_archive(path)

    imported = asyncio.run(use())

    assert "Ben is allergic" in texts_in(path)
    assert "window seats" not in texts_in(path)
    assert path.read_bytes() == (tmp_path / "newest.zip").read_bytes()
    assert imported.existing["memories"] == 1


@pytest.mark.usefixtures("transfer_worker")
def test_a_refused_archive_says_why(url: str, api_key: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "notes.zip", "w") as archive:
        archive.writestr("notes.txt", "Ana prefers window seats.")

    with Client(url, api_key) as client, pytest.raises(TransferFailedError) as refused:
        client.import_archive(tmp_path / "notes.zip")

    assert refused.value.transfer["status"] == "failed"
    assert refused.value.transfer["error"] in str(refused.value) != ""


def test_what_is_not_there_yet_leaves_the_file_as_it_was(url: str, api_key: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.zip"
    path.write_bytes(b"of yesterday")

    with Client(url, api_key) as client:
        export = client.create_export()
        with pytest.raises(ConflictError):
            client.download_export(export.id, path)
        with pytest.raises(NotFoundError):
            client.download_newest_export(path)

    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"of yesterday"]
