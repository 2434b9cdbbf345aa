"""The visibility filter lets the same rows through as `visible_to`, for owners of all shapes and all kinds."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from memory.kinds import Audience, spec_of
from memory.models import Account, Kind, Memory, MemoryRow, Participant, PersistentContext, Vector
from memory.models.writer import insert_memories, insert_vectors
from memory.owner import Owner
from memory.retrieval.statements import Sql, owner_params, owner_shape
from memory.retrieval.visibility import visibility_filter
from tests.memory.contexts import context_of
from tests.memory.episodes import MODEL, NOW, direction
from tests.memory.rows import row_of

pytestmark = pytest.mark.django_db

AGENTS, USERS, CHANNELS = ("", "assistant", "colleague"), ("", "ana", "ben"), ("_global", "garden")
STATES: tuple[dict[str, Any], ...] = (
    *({"archived": True}, {"quarantined": True}, {"buried": True}),
    *({"expires_at": NOW}, {"expires_at": NOW + timedelta(days=1)}),
)
KIND_FILTERS = ((), (Kind.EPISODE,), (Kind.TURN, Kind.FACT), (Kind.LEARNING,), (Kind.CONTEXT_ENTRY, Kind.GOAL))


def fill(*accounts: Account, agents: tuple[str, ...] = AGENTS, users: tuple[str, ...] = USERS) -> None:
    """Store rows of all kinds for all agents and users, wherever kinds may live, each with a vector."""
    rows: list[MemoryRow] = []
    for each in accounts:
        places = list(places_in(each))
        for (kind, place), agent_id, user_id in product(places, agents, users):
            rows += row_states(each, kind=kind, agent_id=agent_id, user_id=user_id, **place)
    for kind in Kind:
        insert_memories([row for row in rows if row.kind == kind])
    for each in accounts:
        own = [(row.id, direction(0.0)) for row in rows if row.account_id == each.id]
        insert_vectors(each.id, model=MODEL, vectors=own)
    # by their ids: where statistics are of an empty table, a join of tables takes minutes
    Vector.objects.filter(memory_id__in=[row.id for row in rows if row.buried]).update(live=False)


def row_states(account: Account, kind: Kind, **fields: Any) -> list[MemoryRow]:
    """Return one in each channel, and one in another state by turns."""
    number = sum(map(ord, "".join(map(str, (kind, *fields.values())))))
    states = [*({"channel": channel} for channel in CHANNELS), STATES[number % len(STATES)]]
    return [row_of(kind, "x", account_id=account.id, **fields, **state) for state in states]


def places_in(account: Account) -> Iterator[tuple[Kind, dict[str, Any]]]:
    Participant.objects.create(account=account, agent_id="assistant", conversation_id="ours")
    Participant.objects.create(account=account, agent_id="colleague", conversation_id="theirs")
    contexts = list(make_contexts(account))
    for kind in Kind:
        if spec_of(kind).audience is Audience.CONTEXT_READERS:
            yield from ((kind, {"context_id": context.id}) for context in contexts)
        elif spec_of(kind).audience is Audience.PARTICIPANTS:
            yield from ((kind, {"conversation_id": name}) for name in ("ours", "theirs", "nobody's"))
        else:
            yield kind, {}


def make_contexts(account: Account) -> Iterator[PersistentContext]:
    """Create a context for each way to have access, or not."""
    colleague = Owner(account_id=account.id, agent_id="colleague")
    yield context_of(Owner(account_id=account.id, agent_id="assistant"), "own")
    yield context_of(colleague, "private")
    yield context_of(colleague, "open", scope="account")
    granted = context_of(colleague, "granted")
    PersistentContext.objects.filter(id=granted.id).update(
        access_control={"read": ["assistant"], "write": [], "public_read": False}
    )
    yield granted
    archived = context_of(Owner(account_id=account.id, agent_id="assistant"), "archived")
    PersistentContext.objects.filter(id=archived.id).update(archived=True)
    yield archived


def test_the_filter_lets_the_same_rows_through_as_visible_to(account: Account, stranger: Account) -> None:
    fill(account, stranger)

    for agent_id, user_id, channel in product(("", "assistant"), ("", "ana"), CHANNELS):
        owner = Owner(account_id=account.id, agent_id=agent_id, user_id=user_id, channel=channel)
        limited = [replace(owner, limited_to_user=True)] if agent_id and user_id else []
        for each, kinds in product((owner, *limited), KIND_FILTERS):
            expected = expected_ids(each, kinds)

            assert expected, (each, kinds)
            assert let_through(each, kinds, table="memories", column="id") == expected, (each, kinds)
            assert let_through(each, kinds, table="memory_vectors", column="memory_id") == expected, (each, kinds)


def expected_ids(owner: Owner, kinds: tuple[Kind, ...]) -> set[UUID]:
    """Return the ids that the owner sees: with a user, that user's and no user's; no archived contexts."""
    rows = Memory.objects.visible_to(owner, *kinds).in_channels(owner).recallable(NOW).filter(account=owner.account_id)
    if owner.user_id:
        rows = rows.filter(user_id__in=("", owner.user_id))
    return set(rows.exclude(context__archived=True).values_list("id", flat=True))


def let_through(owner: Owner, kinds: tuple[Kind, ...], *, table: str, column: str) -> set[UUID]:
    visible = visibility_filter(owner_shape(owner), tuple(sorted(kinds)))
    where = visible.rows if table == "memories" else visible.vectors
    ctes = f"WITH {visible.ctes.removesuffix(',')}" if visible.ctes else ""
    statement = Sql(text=f"{ctes} SELECT {column} FROM {table} WHERE {where}", parameters=visible.parameters).numbered()
    _columns, rows = statement.read(owner_params(owner, now=NOW))
    return {memory_id for (memory_id,) in rows}


def test_filters_with_different_marks_can_share_one_statement(account: Account, stranger: Account) -> None:
    fill(account, stranger, agents=("assistant", "colleague"), users=("",))
    owner = Owner(account_id=account.id, agent_id="assistant")
    turns, everything = (
        visibility_filter(owner_shape(owner), ("turn",)),
        visibility_filter(owner_shape(owner), (), mark="a"),
    )
    both = f"WITH {everything.ctes.removesuffix(',')} SELECT id FROM memories WHERE {turns.rows} AND {everything.rows}"
    statement = Sql(text=both, parameters={**everything.parameters, **turns.parameters}).numbered()

    _columns, rows = statement.read(owner_params(owner, now=NOW))

    assert {memory_id for (memory_id,) in rows} == expected_ids(owner, (Kind.TURN,))
