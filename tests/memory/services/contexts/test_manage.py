"""Tests of contexts: creating, changing, archiving and sharing them, with version checks."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from pytest_django import DjangoCaptureOnCommitCallbacks

from memory.errors import Conflict, Forbidden, NotFound, StaleVersion, Unprocessable
from memory.models import AccessControl, Account, Agent, AuditEntry, Level, PersistentContext, Team
from memory.owner import Owner
from memory.services.accounts.register import add_member, create_team
from memory.services.contexts.manage import (
    archive_context,
    change_context,
    ensure_own_context,
    find_context,
    grant_context,
    revoke_context,
    unarchive_context,
)
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.contexts import context_of
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


@pytest.fixture
def crew(owner: Owner) -> Team:
    team = create_team(owner, name="crew")
    add_member(owner, team.id, agent_id="assistant")
    return team


def reader_of(owner: Owner) -> Owner:
    return replace(owner, agent_id="reader")


def test_a_new_context_is_visible_to_its_agent_only(owner: Owner, context: PersistentContext) -> None:
    found = find_context(owner, context.id)

    assert (found.agent_id, found.scope, found.context_type, found.version) == ("assistant", "agent", "agent_memory", 1)
    assert (found.access_control, found.archived) == ({"read": [], "write": [], "public_read": False}, False)
    assert AuditEntry.objects.filter(operation="create", memory_type="context", affected_ids=[str(found.id)]).exists()


def test_the_first_context_creates_the_agent(
    owner: Owner, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        context_of(owner)

    assert Agent.objects.filter(agent_id="assistant").exists()


def test_an_agent_cannot_use_a_name_twice(owner: Owner, context: PersistentContext) -> None:
    with pytest.raises(Conflict):
        context_of(owner, context.name)

    assert context_of(reader_of(owner), context.name).name == context.name


def test_an_agent_and_a_team_may_use_the_same_name(owner: Owner, context: PersistentContext, crew: Team) -> None:
    context_of(owner, context.name, scope="team", team_id=crew.id)

    with pytest.raises(Conflict):
        context_of(owner, context.name, scope="team", team_id=crew.id)


@pytest.mark.parametrize("scope", ["agent", "account", "global", "team"])
def test_scope_team_requires_a_team_and_no_other_scope_allows_one(owner: Owner, crew: Team, scope: str) -> None:
    with pytest.raises(Unprocessable):
        context_of(owner, scope=scope, team_id=None if scope == "team" else crew.id)

    assert not PersistentContext.objects.exists()


def test_a_team_that_the_agent_is_not_in_is_refused(owner: Owner, crew: Team, stranger: Account) -> None:
    theirs = create_team(Owner(account_id=stranger.id), name="theirs")
    refusals = set()

    for acting, team_id in ((reader_of(owner), crew.id), (owner, uuid4()), (owner, theirs.id)):
        with pytest.raises(Unprocessable) as refused:
            context_of(acting, scope="team", team_id=team_id)
        refusals.add(str(refused.value))

    assert len(refusals) == 1


def test_a_change_makes_the_next_version(owner: Owner, context: PersistentContext) -> None:
    changes = {"name": "plans", "description": "of ours", "metadata": {"a": 1}}

    change_context(owner, context.id, changes=changes, expected=frozenset({1}), now=LATER)

    found = find_context(owner, context.id)
    assert {name: getattr(found, name) for name in changes} == changes
    assert (found.version, found.updated_at) == (2, LATER)


def test_a_context_cannot_take_an_existing_name(owner: Owner, context: PersistentContext) -> None:
    other = context_of(owner, "other")

    with pytest.raises(Conflict):
        change_context(owner, other.id, changes={"name": context.name}, expected=None, now=NOW)

    assert find_context(owner, other.id).version == 1


@pytest.mark.parametrize(
    "column", ["scope", "context_type", "agent_id", "team_id", "account_id", "archived", "version"]
)
def test_owner_and_type_cannot_be_changed(owner: Owner, context: PersistentContext, column: str) -> None:
    with pytest.raises(Unprocessable):
        change_context(owner, context.id, changes={column: "x"}, expected=None, now=NOW)


@pytest.mark.parametrize(
    "value", [None, [], {"read": "all"}, {"read": [1]}, {"everybody": True}, {"public_read": "yes"}, {"write": [""]}]
)
def test_an_invalid_access_control_is_refused(owner: Owner, context: PersistentContext, value: object) -> None:
    with pytest.raises(Unprocessable):
        change_context(owner, context.id, changes={"access_control": value}, expected=None, now=NOW)


def test_a_grant_gives_access_and_revoking_removes_it(owner: Owner, context: PersistentContext) -> None:
    reader = reader_of(owner)

    grant_context(owner, context.id, agent_id="reader", level=Level.READ, expected=None, now=NOW)
    assert find_context(reader, context.id).version == 2

    revoke_context(owner, context.id, agent_id="reader", expected=None, now=NOW)
    with pytest.raises(NotFound):
        find_context(reader, context.id)


def test_revoking_write_keeps_a_granted_read(owner: Owner, context: PersistentContext) -> None:
    for level in Level:
        grant_context(owner, context.id, agent_id="reader", level=level, expected=None, now=NOW)

    row = revoke_context(owner, context.id, agent_id="reader", level=Level.WRITE, expected=None, now=NOW)

    assert row.grants == AccessControl(read=["reader"])


def attempts(owner: Owner, context: PersistentContext, version: int) -> list[Callable[[], object]]:
    """All that only who manages a context may do."""
    expected = frozenset({version})
    return [
        lambda: change_context(owner, context.id, changes={"name": "x"}, expected=expected, now=NOW),
        lambda: archive_context(owner, context.id, expected=expected, now=NOW),
        lambda: unarchive_context(owner, context.id, expected=expected, now=NOW),
        lambda: grant_context(owner, context.id, agent_id="friend", level=Level.WRITE, expected=expected, now=NOW),
        lambda: revoke_context(owner, context.id, agent_id="friend", expected=expected, now=NOW),
    ]


def test_a_writer_cannot_manage(owner: Owner, crew: Team) -> None:
    add_member(owner, crew.id, agent_id="reader")
    context = context_of(owner, scope="team", team_id=crew.id, access_control=AccessControl(write=["reader"]))

    for attempt in attempts(reader_of(owner), context, 1):
        with pytest.raises(Forbidden):
            attempt()

    assert find_context(owner, context.id).version == 1


def test_an_agent_without_access_finds_nothing_to_manage(
    owner: Owner, context: PersistentContext, stranger: Account
) -> None:
    for other in (reader_of(owner), Owner(account_id=stranger.id), replace(owner, account_id=stranger.id)):
        for attempt in attempts(other, context, 1):
            with pytest.raises(NotFound):
                attempt()

    assert find_context(owner, context.id).version == 1


def test_a_change_of_nothing_keeps_the_version(owner: Owner, context: PersistentContext) -> None:
    changed = change_context(owner, context.id, changes={}, expected=None, now=LATER)

    assert changed.version == find_context(owner, context.id).version == 1


def test_a_stale_version_changes_nothing(owner: Owner, context: PersistentContext) -> None:
    for attempt in attempts(owner, context, 2):
        with pytest.raises(StaleVersion):
            attempt()

    found = find_context(owner, context.id)
    assert (found.version, found.archived, found.grants) == (1, False, AccessControl())


def test_an_owner_without_an_agent_manages_all_of_its_account(owner: Owner, context: PersistentContext) -> None:
    account = replace(owner, agent_id="")

    archive_context(account, context.id, expected=None, now=NOW)

    assert find_context(account, context.id).archived


def test_archiving_twice_is_archiving_once(owner: Owner, context: PersistentContext) -> None:
    versions = [archive_context(owner, context.id, expected=None, now=NOW).version for _again in range(2)]
    back = [unarchive_context(owner, context.id, expected=None, now=NOW).version for _again in range(2)]

    assert (versions, back) == ([2, 2], [3, 3])


@pytest.mark.parametrize(
    "changes", [{"name": "other"}, {"description": "x"}, {"metadata": {"a": 1}}, {"metadata": {}, "access_control": {}}]
)
def test_an_archived_context_is_not_changed(owner: Owner, context: PersistentContext, changes: dict[str, Any]) -> None:
    archive_context(owner, context.id, expected=None, now=NOW)
    before = PersistentContext.objects.values().get()

    with pytest.raises(Conflict):
        change_context(owner, context.id, changes=changes, expected=None, now=NOW)

    assert PersistentContext.objects.values().get() == before


def test_access_to_an_archived_context_may_change(owner: Owner, context: PersistentContext) -> None:
    archive_context(owner, context.id, expected=None, now=NOW)

    change_context(owner, context.id, changes={"access_control": {"read": ["ana"]}}, expected=None, now=NOW)
    grant_context(owner, context.id, agent_id="bob", level=Level.READ, expected=None, now=NOW)
    revoke_context(owner, context.id, agent_id="ana", expected=None, now=NOW)

    assert find_context(owner, context.id).grants == AccessControl(read=["bob"])


@pytest.mark.django_db(transaction=True)
def test_concurrent_grants_are_all_kept(owner: Owner, context: PersistentContext) -> None:
    together = Barrier(8)

    def let_in(number: int) -> None:
        together.wait(PATIENCE_SECONDS)
        try:
            agent_id = f"agent-{number}"
            grant_context(owner, context.id, agent_id=agent_id, level=Level.READ, expected=None, now=NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as agents:
        list(agents.map(let_in, range(8)))

    found = find_context(owner, context.id)
    assert (found.version, found.grants.read) == (9, [f"agent-{number}" for number in range(8)])


@pytest.mark.django_db(transaction=True)
def test_concurrent_calls_create_one_own_context(owner: Owner) -> None:
    together = Barrier(6)

    def ask(_agent: int) -> object:
        together.wait(PATIENCE_SECONDS)
        try:
            return ensure_own_context(owner, now=NOW).id
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as agents:
        found = set(agents.map(ask, range(6)))

    assert found == set(PersistentContext.objects.values_list("id", flat=True))
    assert len(found) == AuditEntry.objects.filter(operation="create").count() == 1


def test_each_agent_has_its_own_context(owner: Owner) -> None:
    mine, theirs = ensure_own_context(owner, now=NOW), ensure_own_context(reader_of(owner), now=NOW)

    assert (mine.id, mine.name, mine.context_type) != (theirs.id, "", "")
    with pytest.raises(NotFound):
        find_context(owner, theirs.id)
    with pytest.raises(Unprocessable):
        ensure_own_context(replace(owner, agent_id=""), now=NOW)
