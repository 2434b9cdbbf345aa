"""Isolation of pools over HTTP, from both sides: agents, teams and accounts, reads and writes."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.models import Account, MemoryPool, Team, WorkflowRun
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory.services.pools.manage import ensure_own_pool
from tests.api_client import ServiceClient
from tests.memory.pools import NOW, make_team

pytestmark = pytest.mark.django_db

As = Callable[[str], ServiceClient]

Request = tuple[str, str, dict[str, Any] | None]

READS: list[Request] = [("get", "", None), ("get", "/data", None), ("get", "/statistics", None)]
WRITES: list[Request] = [("put", "/data", {"data": {"b": 1}}), ("patch", "/data", {"data": {"b": 1}})]
MANAGES: list[Request] = [
    ("patch", "", {"expires_at": None}),
    ("post", "/grant", {"agent_id": "dan", "level": "write"}),
    ("post", "/revoke", {"agent_id": "ada"}),
    ("delete", "", None),
]
LEVELS = ("nothing", "reads", "writes", "manages")
REFUSED = {"reads": READS, "writes": WRITES, "manages": MANAGES}
ALLOWED = {"reads": READS, "writes": WRITES, "manages": MANAGES[:1]}
"""Operations by level, without those that change access or end the pool."""


@pytest.fixture
def as_agent(account: Account) -> As:
    """Return the client of a key that is bound to this agent of the account."""

    def client(agent_id: str) -> ServiceClient:
        return ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id=agent_id).secret)

    return client


@pytest.fixture
def crew(account: Account) -> Team:
    return make_team(account, "crew", agents=["ada", "bob"])


@pytest.fixture
def dock(account: Account) -> Team:
    return make_team(account, "dock", agents=["cyd"])


def make(client: ServiceClient, pool_id: str = "board", **fields: Any) -> None:
    made = client.post("/pools", {"pool_id": pool_id, "data": {"secret": 1}} | fields)
    assert made.status_code == 201, made.content


def send(client: ServiceClient, pool_id: str, request: Request) -> Any:
    method, below, body = request
    return getattr(client, method)(f"/pools/{pool_id}{below}", body, HTTP_X_REQUEST_ID="same")


def assert_may(client: ServiceClient, level: str, pool_id: str = "board") -> None:
    """Assert that the client may do everything up to this level and nothing beyond, and lists a pool that it reads."""
    reached = LEVELS.index(level)
    for allowed in LEVELS[1 : reached + 1]:
        assert {send(client, pool_id, request).status_code for request in ALLOWED[allowed]} == {200}
    before = stored(pool_id)
    for refused in LEVELS[reached + 1 :]:
        assert_refused(client, pool_id, REFUSED[refused], status=403 if reached else 404)
    assert stored(pool_id) == before
    assert (pool_id in listed(client)) == (reached > 0)


def assert_refused(client: ServiceClient, pool_id: str, requests: list[Request], *, status: int) -> None:
    """Assert that a hidden pool is answered like one that does not exist, byte for byte."""
    for request in requests:
        answer = send(client, pool_id, request)
        assert (answer.status_code, b"secret" in answer.content) == (status, False)
        if status == 404:
            assert answer.content == send(client, "no such pool", request).content


def stored(pool_id: str) -> dict[str, Any]:
    """Return everything that a write changes."""
    columns = ("data", "version", "access_control", "expires_at", "write_count", "updated_at")
    return dict(MemoryPool.objects.values(*columns).get(pool_id=pool_id))


def listed(client: ServiceClient) -> list[str]:
    return [pool["pool_id"] for pool in client.get("/pools").json()["results"]]


# agent against agent


def test_a_pool_of_agent_scope_is_accessible_only_to_its_agent(as_agent: As, api: ServiceClient) -> None:
    make(as_agent("ada"), "adas", scope="agent")
    make(as_agent("bob"), "bobs", pool_type="agent_private")

    for agent, own, others in (("ada", "adas", "bobs"), ("bob", "bobs", "adas")):
        assert_may(as_agent(agent), "manages", own)
        assert_may(as_agent(agent), "nothing", others)
    assert_may(api, "manages", "adas")


def test_a_pool_of_account_scope_is_read_by_all_and_written_by_its_owner(as_agent: As) -> None:
    make(as_agent("ada"))

    assert_may(as_agent("ada"), "manages")
    assert_may(as_agent("bob"), "reads")


def test_public_read_lets_other_agents_read_a_private_pool_but_not_write(as_agent: As) -> None:
    make(as_agent("ada"), scope="agent", access_control={"public_read": True})

    assert_may(as_agent("bob"), "reads")


def test_an_agents_own_pool_is_inaccessible_to_other_agents(as_agent: As, account: Account) -> None:
    pool = ensure_own_pool(Owner(account_id=account.id, agent_id="ada"), now=NOW)

    assert_may(as_agent("ada"), "manages", pool.pool_id)
    assert_may(as_agent("bob"), "nothing", pool.pool_id)


def test_a_bound_key_cannot_act_as_another_agent(as_agent: As) -> None:
    make(as_agent("ada"), scope="agent")
    bob = as_agent("bob")

    answers = [
        bob.get("/pools/board?agent_id=ada"),
        bob.get("/pools/board/data?agent_id=ada"),
        bob.get("/pools?agent_id=ada"),
        bob.put("/pools/board/data", {"data": {}, "agent_id": "ada"}),
        bob.patch("/pools/board", {"expires_at": None, "agent_id": "ada"}),
        bob.delete("/pools/board?agent_id=ada"),
        bob.post("/pools", {"agent_id": "ada"}),
    ]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "wrong_agent")] * 7


def test_an_unbound_key_that_names_an_agent_has_the_access_of_that_agent(api: ServiceClient, as_agent: As) -> None:
    make(as_agent("ada"), scope="agent")

    assert api.get("/pools/board?agent_id=ada").status_code == 200
    assert api.get("/pools/board?agent_id=bob").status_code == 404
    assert api.put("/pools/board/data", {"data": {}, "agent_id": "bob"}).status_code == 404
    assert api.get("/pools?agent_id=bob").json()["results"] == []


def test_a_pool_id_that_another_agent_uses_is_refused_without_details(api: ServiceClient, as_agent: As) -> None:
    make(as_agent("ada"), scope="agent")

    refused = [as_agent("bob").post("/pools", {"pool_id": "board"}), api.post("/pools", {"pool_id": "board"})]

    assert [answer.status_code for answer in refused] == [404, 409]
    assert all(b"ada" not in answer.content for answer in refused)


# read grants against write grants, and revoking them


def test_a_grant_gives_read_or_write_access(as_agent: As) -> None:
    ada = as_agent("ada")
    make(ada, scope="agent", access_control={"read": ["bob"], "write": ["cyd"]})

    assert_may(as_agent("bob"), "reads")
    assert_may(as_agent("cyd"), "writes")
    assert_may(as_agent("dan"), "nothing")


@pytest.mark.parametrize(("level", "left"), [("write", "reads"), ("read", "nothing"), (None, "nothing")])
def test_revoking_a_grant_restores_the_former_access(as_agent: As, level: str | None, left: str) -> None:
    ada, bob = as_agent("ada"), as_agent("bob")
    make(ada, scope="agent", access_control={"read": ["bob", "cyd"]})
    ada.post("/pools/board/grant", {"agent_id": "bob", "level": "write"})
    assert_may(bob, "writes")

    ada.post("/pools/board/revoke", {"agent_id": "bob"} | ({"level": level} if level else {}))

    assert_may(bob, left)
    assert_may(as_agent("cyd"), "reads")


def test_replacing_access_control_removes_agents_that_it_does_not_name(as_agent: As) -> None:
    ada = as_agent("ada")
    make(ada, scope="agent", access_control={"write": ["bob"]})

    ada.patch("/pools/board", {"access_control": {"read": ["cyd"]}})

    assert_may(as_agent("bob"), "nothing")
    assert_may(as_agent("cyd"), "reads")


def test_a_writer_cannot_grant_access_to_itself_or_others(as_agent: As) -> None:
    make(as_agent("ada"), scope="agent", access_control={"write": ["bob"]})
    bob = as_agent("bob")

    answers = [bob.post("/pools/board/grant", {"agent_id": agent, "level": "write"}) for agent in ("bob", "cyd")]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert_may(as_agent("cyd"), "nothing")


# team against team


def test_a_teams_pool_is_read_and_written_by_its_members(as_agent: As, crew: Team, dock: Team) -> None:
    make(as_agent("ada"), "deck", scope="team", team=str(crew.id))
    make(as_agent("cyd"), "quay", pool_type="team_shared", team=str(dock.id))

    assert_may(as_agent("ada"), "manages", "deck")
    assert_may(as_agent("bob"), "writes", "deck")
    assert_may(as_agent("cyd"), "nothing", "deck")
    assert_may(as_agent("bob"), "nothing", "quay")


def test_a_pool_of_task_scope_is_accessible_to_its_team_and_to_granted_agents(as_agent: As, crew: Team) -> None:
    grants = {"access_control": {"read": ["cyd"]}}
    make(as_agent("ada"), "alone", scope="task", task_id="t1")
    make(as_agent("ada"), "together", scope="task", task_id="t1", team=str(crew.id), **grants)

    assert_may(as_agent("bob"), "nothing", "alone")
    assert_may(as_agent("bob"), "writes", "together")
    assert_may(as_agent("cyd"), "reads", "together")
    assert_may(as_agent("dan"), "nothing", "together")


def test_an_agent_cannot_share_a_pool_with_a_team_of_which_it_is_not_a_member(
    as_agent: As, crew: Team, stranger: Account
) -> None:
    elsewhere = make_team(stranger, agents=["cyd"])

    answers = [
        as_agent("cyd").post("/pools", {"scope": "team", "team": str(team_id)}, HTTP_X_REQUEST_ID="same")
        for team_id in (crew.id, elsewhere.id, "01a1fd07-cec8-7891-a8ed-f2aa55649e7c")
    ]

    assert {(answer.status_code, answer.content) for answer in answers} == {(422, answers[0].content)}
    assert not MemoryPool.objects.exists()


def test_an_agent_gains_access_by_joining_a_team_and_loses_it_by_leaving(
    as_agent: As, api: ServiceClient, crew: Team
) -> None:
    make(as_agent("ada"), scope="team", team=str(crew.id))
    assert_may(as_agent("bob"), "writes")

    api.delete(f"/teams/{crew.id}/members/bob")
    api.post(f"/teams/{crew.id}/members", {"agent_id": "dan"})

    assert_may(as_agent("bob"), "nothing")
    assert_may(as_agent("dan"), "writes")


def test_an_agent_cannot_join_a_team_by_itself(as_agent: As, crew: Team) -> None:
    make(as_agent("ada"), scope="team", team=str(crew.id))
    dan = as_agent("dan")

    assert dan.post(f"/teams/{crew.id}/members", {"agent_id": "dan"}).status_code == 403

    assert_may(dan, "nothing")


def test_a_dissolved_team_gives_no_access(as_agent: As, api: ServiceClient, crew: Team) -> None:
    make(as_agent("ada"), scope="team", team=str(crew.id), access_control={"read": ["cyd"]})

    api.delete(f"/teams/{crew.id}")

    assert_may(as_agent("bob"), "nothing")
    assert_may(as_agent("cyd"), "reads")
    assert_may(as_agent("ada"), "manages")


def test_only_the_agents_of_a_workflow_run_can_access_its_pool(as_agent: As, account: Account) -> None:
    run = WorkflowRun.objects.create(
        account=account, workflow_run_id="run", agent_id="ada", agents=["bob"], started_at=NOW
    )
    MemoryPool.objects.create(
        account=account, pool_id="board", pool_type="shared_memory", scope="task", task_id="t1", workflow_run=run
    )

    assert_may(as_agent("ada"), "writes")
    assert_may(as_agent("bob"), "writes")
    assert_may(as_agent("cyd"), "nothing")


# account against account


@pytest.mark.parametrize("scope", ["global", "account", "agent"])
def test_no_pool_is_accessible_to_another_account(
    as_agent: As, stranger: Account, stranger_api: ServiceClient, scope: str
) -> None:
    make(as_agent("ada"), scope=scope, access_control={"write": ["ada"], "public_read": True})
    namesake = ServiceClient(issue_key(stranger, scopes=READ_WRITE_OPERATE, agent_id="ada").secret)

    assert_may(namesake, "nothing")
    assert_may(stranger_api, "nothing")


def test_pools_with_the_same_id_in_two_accounts_are_separate(as_agent: As, stranger_api: ServiceClient) -> None:
    make(as_agent("ada"))
    stranger_api.post("/pools", {"pool_id": "board", "data": {"theirs": 1}})

    stranger_api.put("/pools/board/data", {"data": {"changed": 1}})

    assert as_agent("ada").get("/pools/board/data").json()["data"] == {"secret": 1}
    assert stranger_api.get("/pools/board/data").json()["data"] == {"changed": 1}


# over is over


def test_an_expired_pool_is_not_found_even_by_its_owner(as_agent: As, api: ServiceClient) -> None:
    ada = as_agent("ada")
    make(ada, expires_at=(timezone.now() + timedelta(days=1)).isoformat())
    MemoryPool.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert_may(ada, "nothing")
    assert_may(api, "nothing")

    make(as_agent("bob"))
    assert_may(as_agent("bob"), "manages")


def test_a_read_only_key_cannot_change_a_pool(account: Account, as_agent: As) -> None:
    make(as_agent("ada"))
    reader = ServiceClient(issue_key(account, scopes=("read",), agent_id="ada").secret)

    answers = [send(reader, "board", request) for request in (*WRITES, *MANAGES)]

    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(403, "missing_scope")}
    assert {send(reader, "board", request).status_code for request in READS} == {200}
