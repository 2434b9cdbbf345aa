"""The OpenAPI document and its page."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.test import Client
from drf_spectacular import validation
from jsonschema_rs import Draft202012Validator

from memory.api.openapi_enums import ENUMS
from memory.api.openapi_fields import FIELDS
from tests.api_client import ServiceClient
from tests.openapi import operations, read_document

BY_ID_OUTSIDE_THE_PATH = {
    *("GET /api/v1/graph", "POST /api/v1/resume", "POST /api/v1/replay", "GET /api/v1/erasures/preview"),
    *("POST /api/v1/turn-records", "GET /api/v1/export"),
}


def test_the_openapi_document_is_valid_and_generated_without_warnings(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    specification = json.loads((Path(validation.__file__).parent / "openapi_3_1_schema.json").read_text())

    call_command("spectacular", "--fail-on-warn", "--format", "openapi-json", "--file", str(file))

    errors = Draft202012Validator(specification).iter_errors(json.loads(file.read_text()))
    assert [error.message for error in errors] == []


def test_the_openapi_document_is_yaml_unless_json_is_requested() -> None:
    as_yaml, as_json = Client().get("/api/schema"), Client().get("/api/schema?format=json")

    assert as_yaml.content.startswith(b"openapi: 3.1.0")
    assert as_json.json()["openapi"] == "3.1.0"
    assert Client().get("/api/schema?format=xml").status_code == 400


def test_every_field_called_archived_is_a_boolean() -> None:
    document = read_document()
    fields = [schema.get("properties", {}).get("archived") for schema in document["components"]["schemas"].values()]
    filters = [
        parameter["schema"]
        for path in document["paths"].values()
        for operation in path.values()
        for parameter in operation["parameters"]
        if parameter["name"] in ("archived", "include_archived")
    ]

    assert {schema["type"] for schema in [*filter(None, fields), *filters]} == {"boolean"}
    assert len(filters) == 4


def test_an_unchanged_openapi_document_is_not_sent_again() -> None:
    tag = Client().get("/api/schema?format=json")["ETag"]

    answer = Client().get("/api/schema?format=json", headers={"if-none-match": tag})

    assert (answer.status_code, answer.content) == (304, b"")


def test_every_operation_has_examples_that_fit_its_schemas() -> None:
    document = read_document()
    contents = [
        (operation, media_type)
        for operation in operations()
        for content in contents_of(document["paths"][operation.path][operation.method])
        for media_type in content.values()
        # of an archive, there is no example
        if media_type["schema"].get("format") != "binary"
    ]

    for operation, media_type in contents:
        schema = {**media_type["schema"], "components": document["components"]}
        validator = Draft202012Validator(schema, validate_formats=True)
        errors = [error.message for error in validator.iter_errors(media_type["example"])]
        assert errors == [], operation
    assert len(contents) > 200


def test_every_path_parameter_has_an_example_that_fits() -> None:
    examples = [
        (operation, parameter["schema"], parameter["example"])
        for operation in operations()
        for parameter in read_document()["paths"][operation.path][operation.method]["parameters"]
        if parameter["in"] == "path"
    ]

    assert len(examples) > 100
    for operation, schema, example in examples:
        assert Draft202012Validator(schema, validate_formats=True).is_valid(example), operation
        assert example not in ("text", "string", "value"), operation


def test_no_example_has_a_text_that_stands_for_any_other() -> None:
    examples = [
        (operation, value)
        for operation in operations()
        for content in contents_of(read_document()["paths"][operation.path][operation.method])
        for media_type in content.values()
        for value in texts_of(media_type.get("example"))
    ]

    assert [str(operation) for operation, value in examples if value in ("text", "string", "value")] == []


def texts_of(example: Any) -> Iterator[str]:
    """Yield all texts of an example, however deep."""
    if isinstance(example, str):
        yield example
    parts = example.values() if isinstance(example, dict) else example if isinstance(example, list) else ()
    for part in parts:
        yield from texts_of(part)


def contents_of(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the contents of the body and of the answers of success."""
    yield described.get("requestBody", {}).get("content", {})
    yield from (answer.get("content", {}) for status, answer in described["responses"].items() if status[0] == "2")


def test_every_example_is_accepted_by_the_serializer_of_its_body(api: ServiceClient) -> None:
    for operation in operations():
        described = read_document()["paths"][operation.path][operation.method]
        if operation.body is None or operation.path.endswith("/jobs/{name}/run"):
            continue
        path = operation.path.format(**{name: 1 if name == "number" else uuid4() for name in operation.parameters})

        answer = getattr(api, operation.method)(
            path, described["requestBody"]["content"]["application/json"]["example"]
        )

        # what an example names need not exist
        assert answer.status_code != 400, (operation, answer.content)


def test_every_operation_is_described_beyond_its_summary() -> None:
    described = {
        str(operation): read_document()["paths"][operation.path][operation.method]["description"]
        for operation in operations()
    }

    assert [name for name, text in described.items() if not text.partition("Requires the scope")[0].strip()] == []


def test_operations_are_grouped_by_task_in_described_groups() -> None:
    document = read_document()
    used = {tag for path in document["paths"].values() for each in path.values() for tag in each["tags"]}

    assert used == {tag["name"] for tag in document["tags"]}
    assert all(tag["description"] for tag in document["tags"])
    assert document["tags"][0]["name"] == "Remember and recall"
    assert document["servers"][0]["url"] == "/"


def test_the_meaning_of_choices_is_documented_for_all_of_them() -> None:
    schemas = read_document()["components"]["schemas"]

    assert {name: set(meanings) for name, meanings in ENUMS.items()} == {
        name: set(schemas[name]["enum"]) for name in ENUMS
    }
    enums = {name: each.get("description", "") for name, each in schemas.items() if "enum" in each}
    # drf-spectacular writes labels as "* `value` - Label"
    assert [name for name, meaning in enums.items() if not meaning or "` - " in meaning] == []


def test_no_description_is_one_of_a_class_for_readers_of_the_code() -> None:
    schemas = read_document()["components"]["schemas"]

    internal = re.compile(r"\bBase of\b|self\.|StrictSerializer|clients set|row\b.*attribute")
    assert [name for name, each in schemas.items() if internal.search(each.get("description", ""))] == []


def test_every_parameter_and_every_common_field_is_described() -> None:
    document = read_document()
    described = [each for methods in document["paths"].values() for each in methods.values()]
    schemas = document["components"]["schemas"].values()
    fields = [pair for schema in schemas for pair in schema.get("properties", {}).items()]

    assert all(each["description"] for operation in described for each in operation.get("parameters", ()))
    assert all(field["description"] for name, field in fields if name in FIELDS and "$ref" not in str(field))


def test_each_link_of_a_page_has_a_description_of_its_own() -> None:
    links = read_document()["components"]["schemas"]["PaginatedFactAnswerList"]["properties"]

    assert {name: links[name]["description"] for name in ("next", "previous")} == {
        "next": "Address of the next page. Null: this is the last one.",
        "previous": "Address of the page before. Null: this is the first one.",
    }


def test_the_flag_of_a_filter_is_a_boolean() -> None:
    parameters = read_document()["paths"]["/api/v1/contexts"]["get"]["parameters"]

    assert next(each for each in parameters if each["name"] == "archived")["schema"] == {"type": "boolean"}


def test_every_operation_declares_its_security_and_its_error_responses() -> None:
    document = read_document()

    for operation in operations():
        described: dict[str, Any] = document["paths"][operation.path][operation.method]
        assert described["security"] == [{"apiKey": []}], operation
        assert {"400", "401", "403", "429", "503"} <= set(described["responses"]), operation
        names_ids = bool(operation.parameters) or str(operation) in BY_ID_OUTSIDE_THE_PATH
        assert ("404" in described["responses"]) is names_ids, operation


def test_every_write_and_nothing_else_declares_an_idempotency_key() -> None:
    document = read_document()

    for operation in operations():
        names = {given["name"] for given in document["paths"][operation.path][operation.method]["parameters"]}
        # what is imported twice is there once
        is_expected = operation.method != "get" and str(operation) != "POST /api/v1/imports"
        assert ("Idempotency-Key" in names) is is_expected, operation


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

    assert len(sources) == 7
    assert all(source.startswith("/") for source in sources)
    assert all(is_served(source.replace("&amp;", "&")) for source in sources)
    assert not re.search(r"<style|style=|<script>|\son\w+=", html)


@pytest.mark.django_db
def test_the_docs_page_opens_on_a_quickstart_with_the_address_of_the_service() -> None:
    html = Client().get("/api/docs").content.decode()

    assert "BASE=http://testserver/api/v1" in html
    assert html.index("Quickstart") < html.index('id="swagger-ui"')


def is_served(path: str) -> bool:
    # closed, since files are streamed
    with closing(Client().get(path)) as answer:
        return bool(answer.status_code == 200)


def test_the_content_security_policy_of_the_docs_page_allows_only_our_own_sources() -> None:
    answer = Client().get("/api/docs")

    assert answer["Content-Security-Policy"].startswith("default-src 'self'")
    assert b"https://" not in answer.content
