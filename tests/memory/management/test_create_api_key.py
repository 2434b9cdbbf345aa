"""`create_api_key` and `bootstrap`: the first key is made on the command line."""

import json
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command

from memory.models import Account, Agent, ApiKey
from tests.api_client import ServiceClient

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_the_command_prints_the_key_alone_and_makes_the_account() -> None:
    secret = run("create_api_key", "--account", "workshop").removesuffix("\n")

    assert ServiceClient(secret).post("/agents", {"agent_id": "planner"}).status_code == 201
    assert Agent.objects.get().account == Account.objects.get(name="workshop")


def test_a_second_key_is_for_the_same_account() -> None:
    run("create_api_key", "--account", "workshop")
    run("create_api_key", "--account", "workshop")

    assert (Account.objects.count(), ApiKey.objects.count()) == (1, 2)


def test_a_read_only_key_of_an_agent_expires_in_a_week() -> None:
    run("create_api_key", "--account", "workshop", "--agent", "planner", "--read-only", "--expires", "7")

    key = ApiKey.objects.get()

    assert (key.agent_id, key.scopes) == ("planner", ["read"])
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).days in (6, 7)


def test_a_key_of_a_user_cannot_operate() -> None:
    run("create_api_key", "--account", "workshop", "--agent", "planner", "--user", "ana")

    key = ApiKey.objects.get()

    assert (key.agent_id, key.user_id, key.scopes) == ("planner", "ana", ["read", "write"])


def test_a_key_of_a_user_that_operates_is_refused() -> None:
    with pytest.raises(CommandError, match="omit --user or --operate"):
        run("create_api_key", "--account", "workshop", "--user", "ana", "--operate")

    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "scopes"),
    [
        ([], ["read", "write", "deep_replay"]),
        (["--operate"], ["read", "write", "operate", "deep_replay"]),
        (["--read-only"], ["read", "deep_replay"]),
    ],
    ids=["default", "all scopes", "read only"],
)
def test_a_key_may_replay_raw_traces_only_with_the_deep_replay_option(arguments: list[str], scopes: list[str]) -> None:
    run("create_api_key", "--account", "workshop", "--deep-replay", *arguments)

    assert ApiKey.objects.get().scopes == scopes


@pytest.mark.parametrize(
    "arguments",
    [
        ["--expires", "0"],
        ["--expires", "x"],
        ["--agent", "x" * 101],
        ["--agent", ""],
        ["--operate", "--read-only"],
    ],
)
def test_nonsense_is_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        run("create_api_key", "--account", "workshop", *arguments)

    assert not Account.objects.exists()


def test_a_first_start_makes_a_key_and_an_admin_once() -> None:
    first, second = json.loads(run("bootstrap")), json.loads(run("bootstrap"))

    assert ServiceClient(first["api_key"]).get("/agents").json()["results"][0]["agent_id"] == "assistant"
    assert authenticate(username=first["admin_user"], password=first["admin_password"]) is not None
    assert second == {"api_key": None, "admin_user": "admin", "admin_password": None}
