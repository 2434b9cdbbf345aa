"""The OpenAPI document and its page."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from tests.openapi import operations, read_document

READS_BY_ID_OUTSIDE_THE_PATH = {"/api/v1/graph", "/api/v1/resume", "/api/v1/replay"}


def test_the_openapi_document_is_valid_and_generated_without_warnings(tmp_path: Path) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema.yaml"))


@pytest.mark.slow
def test_the_openapi_document_is_yaml_unless_json_is_requested() -> None:
    as_yaml, as_json = Client().get("/api/schema"), Client().get("/api/schema?format=json")

    assert as_yaml.content.startswith(b"openapi: 3.1.0")
    assert as_json.json()["openapi"] == "3.1.0"
    assert Client().get("/api/schema?format=xml").status_code == 400


def test_every_operation_declares_its_security_and_its_error_responses() -> None:
    document = read_document()

    for operation in operations():
        described: dict[str, Any] = document["paths"][operation.path][operation.method]
        assert described["security"] == [{"apiKey": []}], operation
        assert {"400", "401", "403", "429", "503"} <= set(described["responses"]), operation
        names_ids = bool(operation.parameters) or operation.path in READS_BY_ID_OUTSIDE_THE_PATH
        assert ("404" in described["responses"]) is names_ids, operation


def test_every_post_and_nothing_else_declares_an_idempotency_key() -> None:
    document = read_document()

    for operation in operations():
        names = {given["name"] for given in document["paths"][operation.path][operation.method]["parameters"]}
        assert ("Idempotency-Key" in names) is (operation.method == "post"), operation


def test_every_operation_has_a_unique_id_of_verb_and_object_and_a_summary() -> None:
    document = read_document()
    described = [document["paths"][operation.path][operation.method] for operation in operations()]
    ids = [each["operationId"] for each in described]

    assert len(set(ids)) == len(ids)
    assert [name for name in ids if not re.fullmatch(r"recall|replay|resume|[a-z]+(_[a-z]+)+", name)] == []
    assert {"create_fact", "end_conversation", "list_context_entries", "add_turns", "get_pool_data"} <= set(ids)
    assert [each["operationId"] for each in described if not 0 < len(each["summary"]) <= 120] == []


def test_a_sub_path_is_described_as_what_it_is_for() -> None:
    paths = read_document()["paths"]

    assert set(paths["/api/v1/agents/{agent_id}/working-memory/persist"]) == {"post"}
    assert set(paths["/api/v1/episodic/search"]) == {"post"}


def test_the_openapi_document_forbids_unknown_fields() -> None:
    assert read_document()["components"]["schemas"]["NewAgentRequest"]["additionalProperties"] is False


@pytest.mark.django_db  # closing an answer closes old connections
def test_the_docs_page_loads_only_local_files_and_has_no_inline_code() -> None:
    html = Client().get("/api/docs").content.decode()
    sources = re.findall(r'(?:src|href)="([^"]*)"', html)

    assert len(sources) == 5
    assert all(source.startswith("/") for source in sources)
    assert all(is_served(source.replace("&amp;", "&")) for source in sources)
    assert not re.search(r"<style|style=|<script>|\son\w+=", html)


def is_served(path: str) -> bool:
    # closed, since files are streamed
    with closing(Client().get(path)) as answer:
        return bool(answer.status_code == 200)


@pytest.mark.parametrize("path", ["/api/docs", "/api/docs?script="])
def test_the_content_security_policy_of_the_docs_page_allows_only_our_own_sources(path: str) -> None:
    answer = Client().get(path)

    assert answer["Content-Security-Policy"].startswith("default-src 'self'")
    assert b"https://" not in answer.content
