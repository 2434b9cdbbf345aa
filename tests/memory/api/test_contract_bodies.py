"""Bodies: the ones that are refused, of which nothing is stored."""

import json
from time import perf_counter
from uuid import uuid4

import pytest
from django.conf import LazySettings
from rest_framework.exceptions import ParseError

from memory.models import Agent
from memory_project.http.parsers import parse_json
from tests.api_client import ServiceClient
from tests.hostile import HOSTILE_BODIES, HOSTILE_IDS, HostileBody
from tests.openapi import operations

PROBLEM_MEMBERS = {"type", "title", "status", "detail", "code", "request_id"}


@pytest.mark.parametrize("hostile", HOSTILE_BODIES, ids=lambda hostile: hostile.name)
def test_a_hostile_body_is_refused_and_changes_nothing(api: ServiceClient, hostile: HostileBody) -> None:
    refused = api.generic("POST", "/agents", hostile.body, hostile.content_type)

    assert refused.status_code == hostile.status
    assert refused["Content-Type"] == "application/problem+json"
    assert set(refused.json()) >= PROBLEM_MEMBERS
    assert not Agent.objects.exists()


@pytest.mark.parametrize("body", [b"{agent_id: planner}", b'{"no_such_field": 1}'], ids=["not JSON", "unknown field"])
def test_every_route_reads_its_body_with_the_strict_parser(api: ServiceClient, body: bytes) -> None:
    for operation in operations():
        if operation.body is None:
            continue
        path = operation.path.format(**{name: 1 if name == "number" else uuid4() for name in operation.parameters})

        refused = api.generic(operation.method.upper(), path, body, "application/json")

        assert refused.status_code == 400, (operation, refused.content)


@pytest.mark.parametrize("agent_id", HOSTILE_IDS, ids=repr)
def test_an_invalid_agent_id_is_refused(api: ServiceClient, agent_id: object) -> None:
    refused = api.post("/agents", json.dumps({"agent_id": agent_id}), content_type="application/json")

    assert refused.status_code == 400
    assert not Agent.objects.exists()


def test_every_unknown_field_is_named_with_the_allowed_fields(api: ServiceClient) -> None:
    refused = api.post("/agents", {"agent_id": "planner", "colour": "red", "descripton": "Plans."})

    assert refused.json()["errors"] == {
        "colour": ['"colour" is not a field here. Allowed: agent_id, description.'],
        "descripton": ['"descripton" is not a field here. Did you mean "description"?'],
    }


@pytest.mark.parametrize(
    "text", [r'{"x": "\\u0000"}', r'{"x": "\ud83d\ude00"}', '{"x": 1e300}', '{"x": [' + "[],[{}]," * 99 + "1]}"]
)
def test_unusual_but_valid_json_is_accepted(text: str) -> None:
    assert parse_json(text.encode()) == json.loads(text)


def test_a_body_with_too_many_members_is_refused_before_anything_is_made_of_it() -> None:
    members = ",".join(f'"k{number}":0' for number in range(500_000))

    with pytest.raises(ParseError, match="more than 100000 members"):
        parse_json(b"{%b}" % members.encode())
    assert parse_json(json.dumps({"text": "a:" * 200_000}).encode()) == {"text": "a:" * 200_000}


@pytest.mark.parametrize("element", [b"[]", b"{}", b"[[]]"])
def test_a_body_of_many_small_lists_is_refused_before_anything_is_made_of_it(element: bytes) -> None:
    body = b'{"a":[' + b",".join([element] * 2_000_000) + b"]}"

    begun = perf_counter()
    with pytest.raises(ParseError, match="more than 100000 members"):
        parse_json(body)
    assert perf_counter() - begun < 1


def test_a_body_with_too_many_elements_is_refused() -> None:
    with pytest.raises(ParseError, match="more than 1000000 elements"):
        parse_json(b"[" + b"0," * 1_000_001 + b"0]")
    assert len(parse_json(b"[" + b"0," * 819_199 + b"0]")) == 819_200
    assert parse_json(json.dumps({"text": "a, [b]" * 1_000_001}).encode())


def test_a_body_without_a_content_type_is_refused(api: ServiceClient) -> None:
    assert api.generic("POST", "/agents", b'{"agent_id": "planner"}', "").status_code == 415


def test_a_body_over_the_limit_is_refused_unread(api: ServiceClient, settings: LazySettings) -> None:
    # whoever tried to read this body would fail: nothing of it is there
    refused = api.generic("POST", "/agents", b"", "application/json", CONTENT_LENGTH="1000000000000")

    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
    assert refused.json()["limit_bytes"] == settings.BODY_LIMIT_BYTES


def test_a_body_of_exactly_the_maximum_size_is_accepted(api: ServiceClient, settings: LazySettings) -> None:
    settings.BODY_LIMIT_BYTES = 1_000
    body = json.dumps({"agent_id": "planner", "description": ""})

    assert api.generic("POST", "/agents", body.ljust(1_000), "application/json").status_code == 201


def test_the_response_is_json_whatever_the_accept_header_says(api: ServiceClient) -> None:
    answer = api.get("/agents", headers={"accept": "text/html"})

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
