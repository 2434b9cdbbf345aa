"""The Python client has every operation of the service, and its generated files are those of this service."""

from pathlib import Path

import agent_memory_client
import pytest
from agent_memory_client import AsyncClient, Client, methods
from agent_memory_client.async_client import AsyncRawClient
from agent_memory_client.client import RawClient
from agent_memory_client.generate import Generator

from tests.openapi import METHODS, read_document

TO_FILES = {"download_export", "download_newest_export"}
"""Operations that write their answer to a file, and return no response."""
PACKAGE = Path(agent_memory_client.__file__).parent


@pytest.mark.parametrize("client", [Client, AsyncClient, RawClient, AsyncRawClient])
def test_every_operation_has_a_method(client: type) -> None:
    described = [each for methods in read_document()["paths"].values() for each in methods.items()]
    ids = {operation["operationId"] for method, operation in described if method in METHODS}

    missing = TO_FILES if client in (RawClient, AsyncRawClient) else set()
    assert ids - set(dir(client)) == missing


@pytest.mark.parametrize("name", ["models.py", "arguments.py", "table.py", "operations.py", "methods.py"])
def test_a_generated_file_is_up_to_date(name: str) -> None:
    assert (PACKAGE / name).read_text() == Generator(read_document()).files()[name], "Run: make client"


def test_both_clients_and_their_raw_responses_have_the_same_names() -> None:
    blocking, awaited, raw, awaited_raw = (
        {name for name in dir(client) if not name.startswith("_")}
        for client in (Client, AsyncClient, RawClient, AsyncRawClient)
    )

    assert (blocking, raw) == (awaited, awaited_raw)
    archives = {*TO_FILES, "export_archive", "import_archive"}
    assert blocking - raw - archives == {"close", "pages", "run", "save", "send", "with_raw_response"}


def test_verbs_replace_no_generated_method() -> None:
    verbs = {name for name in vars(Client) if not name.startswith("_")}

    assert verbs & {name for name in vars(methods.Methods) if not name.startswith("_")} == set()
