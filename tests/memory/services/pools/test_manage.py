"""Tests of pools: creating, finding, sharing, changing and deleting them; own pools; concurrent requests."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.errors import Conflict, Forbidden, NotFound, StaleVersion, TooLarge, Unprocessable
from memory.models import AccessControl, Account, Agent, AuditEntry, Level, MemoryPool, WorkflowRun
from memory.models.accounts import TeamMember
from memory.owner import Owner
from memory.services.pools.data import read_data, write_data
from memory.services.pools.manage import (
    PoolDraft,
    change_pool,
    create_pool,
    delete_pool,
    ensure_own_pool,
    find_pool,
    grant_access,
    lock_pool,
    pool_statistics,
    revoke_access,
)
from tests.memory.pools import NOW, make_pool, make_team
from tests.memory.services.pools.moments import ANY, LATER

pytestmark = pytest.mark.django_db


@pytest.fixture
def colleague(account: Account) -> Owner:
    return Owner(account_id=account.id, agent_id="colleague")


@pytest.fixture
def whole_account(account: Account) -> Owner:
    return Owner(account_id=account.id)


def test_a_pool_is_made_with_its_data_and_its_figures(owner: Owner) -> None:
    pool = make_pool(owner, data={"plan": "ü", "steps": []})

    assert (pool.agent_id, pool.version, pool.entry_count, pool.size_bytes) == ("assistant", 1, 2, 24)
    assert read_data(owner, "board", now=NOW).data == {"plan": "ü", "steps": []}
    assert AuditEntry.objects.get(operation="create", memory_type="pool").affected_ids == [str(pool.id)]


def test_a_pool_without_an_id_gets_one(owner: Owner) -> None:
    pool = make_pool(owner, "")

    assert find_pool(owner, pool.pool_id, now=NOW).id == pool.id


def test_the_first_pool_creates_the_agent(
    owner: Owner, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        make_pool(owner)

    assert Agent.objects.get().agent_id == "assistant"


@pytest.mark.parametrize(
    ("pool_type", "scope"),
    [("shared", "account"), ("agent_private", "agent"), ("team_shared", "team"), ("task_scoped", "task")],
)
def test_a_pool_without_a_scope_gets_the_default_of_its_type(
    owner: Owner, account: Account, pool_type: str, scope: str
) -> None:
    team = make_team(account, agents=["assistant"])

    pool = make_pool(owner, pool_type=pool_type, team_id=team.id, task_id="task-1")

    assert (pool.scope, pool.team_id, pool.task_id) == (scope, team.id, "task-1")


@pytest.mark.parametrize(
    "fields",
    [
        {"pool_type": "blackboard"},
        {"pool_type": "nonsense"},
        {"scope": "nonsense"},
        {"scope": "team"},
        {"pool_type": "team_shared"},
        {"scope": "task"},
        {"team_id": uuid4()},
        {"expires_at": NOW},
        {"pool_id": "x" * 101},
        {"pool_id": "a\0"},
        {"data": []},
        {"data": {"a": "\0"}},
    ],
)
def test_an_invalid_pool_is_refused(owner: Owner, fields: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        create_pool(owner, PoolDraft(**fields), now=NOW)

    assert not MemoryPool.objects.exists()


def test_only_members_can_share_with_a_team(owner: Owner, whole_account: Owner, account: Account) -> None:
    team = make_team(account, agents=["colleague"])

    with pytest.raises(Unprocessable) as refused:
        make_pool(owner, team_id=team.id)
    with pytest.raises(Unprocessable, match=str(refused.value)):
        make_pool(owner, team_id=uuid4())

    assert make_pool(whole_account, scope="team", team_id=team.id).team_id == team.id


def test_a_team_of_another_account_is_refused(owner: Owner, stranger: Account) -> None:
    theirs = make_team(stranger, agents=["assistant"])

    with pytest.raises(Unprocessable):
        make_pool(owner, team_id=theirs.id)


def test_a_pool_with_data_over_the_limit_is_refused(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "POOL_LIMIT_BYTES", 1_024)

    with pytest.raises(TooLarge) as refused:
        make_pool(owner, data={"a": "x" * 1_024})

    assert refused.value.facts == {"stored": False, "size_bytes": 1_032, "limit_bytes": 1_024}
    assert not MemoryPool.objects.exists()


def test_an_id_is_unique_in_its_account(owner: Owner, colleague: Owner, stranger: Account) -> None:
    make_pool(owner, scope="agent")

    with pytest.raises(Conflict):
        make_pool(colleague)

    assert make_pool(Owner(account_id=stranger.id)).account_id == stranger.id


def test_an_expired_pool_is_replaced(owner: Owner, colleague: Owner) -> None:
    expired = make_pool(owner, data={"old": 1}, expires_at=LATER)

    made = create_pool(colleague, PoolDraft(pool_id="board"), now=LATER)

    assert (made.agent_id, made.version, made.size_bytes) == ("colleague", 1, 2)
    assert AuditEntry.objects.get(operation="delete").affected_ids == [str(expired.id)]


def test_a_pool_is_found_without_its_data(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    make_pool(owner, data={"a": 1})

    with django_assert_num_queries(1):
        pool = find_pool(owner, "board", now=NOW)

    assert pool.get_deferred_fields() == {"data"}


def test_an_expired_pool_is_not_found(owner: Owner) -> None:
    make_pool(owner, expires_at=LATER)
    attempts: list[Callable[[], object]] = [
        lambda: find_pool(owner, "board", now=LATER),
        lambda: lock_pool(owner, "board", now=LATER),
        lambda: change_pool(owner, "board", changes={"expires_at": None}, expected=None, now=LATER),
        lambda: delete_pool(owner, "board", expected=None, now=LATER),
        lambda: pool_statistics(owner, "board", now=LATER),
    ]

    for attempt in attempts:
        with pytest.raises(NotFound):
            attempt()


def test_a_reader_cannot_write_and_a_writer_cannot_manage(owner: Owner, colleague: Owner) -> None:
    make_pool(owner, scope="agent", access_control=AccessControl(read=["colleague"]))

    with pytest.raises(Forbidden):
        lock_pool(colleague, "board", now=NOW)
    grant_access(owner, "board", agent_id="colleague", level=Level.WRITE, **ANY)

    lock_pool(colleague, "board", now=NOW)
    for attempt in managing(colleague):
        with pytest.raises(Forbidden):
            attempt()


def test_a_pool_without_access_is_not_found(owner: Owner, colleague: Owner) -> None:
    make_pool(owner, scope="agent")

    for attempt in managing(colleague):
        with pytest.raises(NotFound):
            attempt()
    with pytest.raises(NotFound):
        lock_pool(colleague, "board", now=NOW)


def managing(owner: Owner) -> list[Callable[[], object]]:
    return [
        lambda: change_pool(owner, "board", changes={}, **ANY),
        lambda: grant_access(owner, "board", agent_id="colleague", level=Level.WRITE, **ANY),
        lambda: revoke_access(owner, "board", agent_id="assistant", **ANY),
        lambda: delete_pool(owner, "board", **ANY),
    ]


def test_each_change_raises_the_version_and_is_audited(owner: Owner) -> None:
    pool = make_pool(owner)

    change_pool(owner, "board", changes={"expires_at": LATER, "access_control": {"public_read": True}}, **ANY)
    grant_access(owner, "board", agent_id="colleague", level=Level.READ, **ANY)
    revoke_access(owner, "board", agent_id="colleague", **ANY)
    write_data(owner, "board", data={}, **ANY)

    pool.refresh_from_db()
    assert (pool.version, pool.expires_at, pool.grants.public_read, pool.updated_at) == (5, LATER, True, NOW)
    rows = AuditEntry.objects.filter(affected_ids=[str(pool.id)]).order_by("timestamp", "id")
    assert [row.operation for row in rows] == ["create", "update", "grant", "revoke", "update"]


def test_a_change_of_nothing_keeps_the_version_and_is_not_audited(owner: Owner) -> None:
    pool = make_pool(owner)

    change_pool(owner, "board", changes={}, **ANY)

    pool.refresh_from_db()
    assert pool.version == 1
    assert AuditEntry.objects.filter(affected_ids=[str(pool.id)]).count() == 1


def test_a_stale_change_is_refused_and_changes_nothing(owner: Owner) -> None:
    pool = make_pool(owner, data={"a": 1})
    stale: dict[str, Any] = {"expected": frozenset({2, 7}), "now": NOW}
    attempts: list[Callable[[], object]] = [
        lambda: change_pool(owner, "board", changes={"expires_at": LATER}, **stale),
        lambda: grant_access(owner, "board", agent_id="colleague", level=Level.READ, **stale),
        lambda: revoke_access(owner, "board", agent_id="colleague", **stale),
        lambda: write_data(owner, "board", data={}, **stale),
        lambda: delete_pool(owner, "board", **stale),
    ]
    before = MemoryPool.objects.filter(id=pool.id).values()[0]

    for attempt in attempts:
        with pytest.raises(StaleVersion):
            attempt()

    assert MemoryPool.objects.filter(id=pool.id).values()[0] == before


@pytest.mark.parametrize("changes", [{"scope": "global"}, {"expires_at": NOW}, {"access_control": {"read": "all"}}])
def test_other_columns_cannot_be_changed(owner: Owner, changes: dict[str, Any]) -> None:
    make_pool(owner)

    with pytest.raises(Unprocessable):
        change_pool(owner, "board", changes=changes, **ANY)

    assert find_pool(owner, "board", now=NOW).version == 1


def test_revoking_write_leaves_reading_and_revoking_all_nothing(owner: Owner, colleague: Owner) -> None:
    make_pool(owner, scope="agent", access_control=AccessControl(read=["colleague"], write=["colleague"]))

    revoke_access(owner, "board", agent_id="colleague", level=Level.WRITE, **ANY)
    assert find_pool(colleague, "board", now=NOW).grants.level_of("colleague") == Level.READ
    revoke_access(owner, "board", agent_id="colleague", **ANY)

    with pytest.raises(NotFound):
        find_pool(colleague, "board", now=NOW)


def test_the_account_manages_pools_of_every_agent(owner: Owner, whole_account: Owner) -> None:
    make_pool(owner, scope="agent")

    grant_access(whole_account, "board", agent_id="colleague", level=Level.READ, **ANY)
    delete_pool(whole_account, "board", **ANY)

    assert not MemoryPool.objects.exists()


def test_leaving_a_team_ends_access_to_its_pools(owner: Owner, colleague: Owner, account: Account) -> None:
    team = make_team(account, agents=["assistant", "colleague"])
    make_pool(owner, scope="team", team_id=team.id)
    write_data(colleague, "board", data={"a": 1}, **ANY)

    TeamMember.objects.filter(agent_id="colleague").delete()

    with pytest.raises(NotFound):
        read_data(colleague, "board", now=NOW)


def test_deleting_a_run_deletes_its_pools(owner: Owner, account: Account) -> None:
    run = WorkflowRun.objects.create(account=account, workflow_run_id="run", agents=["assistant"], started_at=NOW)
    MemoryPool.objects.create(account=account, pool_id="board", pool_type="shared_memory", workflow_run=run)
    write_data(owner, "board", data={"a": 1}, **ANY)

    run.delete()

    assert not MemoryPool.objects.exists()


def test_an_agent_has_one_pool_of_its_own(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    made = ensure_own_pool(owner, now=NOW)

    with django_assert_num_queries(1):
        found = ensure_own_pool(owner, now=LATER)

    assert found.id == made.id
    assert (made.is_own, made.scope, made.pool_type, made.agent_id) == (True, "agent", "agent_private", "assistant")


def test_an_own_pool_is_its_agents_and_does_not_expire(owner: Owner, colleague: Owner, whole_account: Owner) -> None:
    mine, theirs = ensure_own_pool(owner, now=NOW), ensure_own_pool(colleague, now=NOW)

    with pytest.raises(NotFound):
        read_data(colleague, mine.pool_id, now=NOW)
    with pytest.raises(Unprocessable):
        change_pool(owner, mine.pool_id, changes={"expires_at": LATER}, **ANY)
    with pytest.raises(Unprocessable):
        ensure_own_pool(whole_account, now=NOW)
    assert mine.id != theirs.id
