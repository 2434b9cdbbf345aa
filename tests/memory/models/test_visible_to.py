"""Visibility: isolation of accounts, rows private to an agent, rows of contexts, and knowledge of users."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pytest

from memory.kinds import Audience, kinds_seen_by, spec_of
from memory.models import (
    AccessControl,
    Account,
    Kind,
    Memory,
    Participant,
    PersistentContext,
    Team,
    TeamMember,
    Vector,
)
from memory.models.writer import insert_memories, insert_vectors
from memory.owner import Owner
from tests.memory.episodes import MODEL, direction
from tests.memory.rows import row_of

pytestmark = pytest.mark.django_db

AGENTS = ("", "assistant", "colleague")
USERS = ("", "ana", "ben")
CONVERSATIONS = ("", "shared", "elsewhere")
KINDS = (Kind.EPISODE, Kind.TURN, Kind.FACT)
IN_CONTEXTS = kinds_seen_by(Audience.CONTEXT_READERS)
TAKES_PART = {("assistant", "shared"), ("colleague", "shared"), ("colleague", "elsewhere")}


@dataclass(frozen=True, slots=True)
class Row:
    account: str
    kind: Kind
    agent_id: str
    user_id: str
    conversation_id: str


ROWS = [
    Row(account, kind, agent, user, conversation)
    for account in ("workshop", "strangers")
    for kind, agent, user, conversation in product(KINDS, AGENTS, USERS, CONVERSATIONS)
]


def is_visible(row: Row, *, account: str, agent_id: str, user_id: str) -> bool:
    """Return whether the owner sees the row, by the documented rule."""
    if row.account != account:
        return False
    knowledge = spec_of(row.kind).audience is Audience.KNOWLEDGE
    if not agent_id:
        return not (knowledge and user_id) or row.user_id in ("", user_id)
    if knowledge and row.user_id == "":
        return row.agent_id in ("", agent_id)
    if knowledge and user_id:
        return row.user_id == user_id
    if spec_of(row.kind).audience is Audience.PARTICIPANTS:
        return (agent_id, row.conversation_id) in TAKES_PART
    return row.agent_id == agent_id


@pytest.fixture
def accounts(account: Account, stranger: Account) -> dict[str, Account]:
    return {"workshop": account, "strangers": stranger}


@pytest.fixture
def stored(accounts: dict[str, Account]) -> dict[str, Row]:
    """Store a memory for every combination, in both accounts, and return them by text."""
    for account, (agent, conversation) in product(accounts.values(), TAKES_PART):
        Participant.objects.create(account=account, agent_id=agent, conversation_id=conversation)
    # an agent of the same name in another account takes part in a conversation of the same id
    Participant.objects.create(account=accounts["strangers"], agent_id="assistant", conversation_id="elsewhere")
    rows = {str(number): row for number, row in enumerate(ROWS)}
    memories = [
        row_of(
            row.kind,
            text,
            account_id=accounts[row.account].id,
            agent_id=row.agent_id,
            user_id=row.user_id,
            conversation_id=row.conversation_id,
        )
        for text, row in rows.items()
    ]
    for kind in KINDS:
        insert_memories([memory for memory in memories if memory.kind == kind])
    for account in accounts.values():
        own = [(memory.id, direction(0)) for memory in memories if memory.account_id == account.id]
        insert_vectors(account.id, model=MODEL, vectors=own)
    return rows


@pytest.mark.parametrize(("agent_id", "user_id"), list(product(AGENTS, USERS)))
def test_an_owner_sees_exactly_the_rows_of_the_rule(
    stored: dict[str, Row], accounts: dict[str, Account], agent_id: str, user_id: str
) -> None:
    owner = Owner(account_id=accounts["workshop"].id, agent_id=agent_id, user_id=user_id)

    memories = set(Memory.objects.visible_to(owner).values_list("text", flat=True))
    vectors = set(Vector.objects.visible_to(owner).values_list("memory__text", flat=True))

    wanted = {
        text for text, row in stored.items() if is_visible(row, account="workshop", agent_id=agent_id, user_id=user_id)
    }
    assert memories == vectors == wanted
    for kind in KINDS:
        of_kind = set(Memory.objects.visible_to(owner, kind).values_list("text", flat=True))
        assert of_kind == {text for text in wanted if stored[text].kind == kind}


@pytest.mark.parametrize("user_id", ["ana", "ben"])
def test_an_owner_limited_to_its_user_sees_nothing_of_other_users(
    stored: dict[str, Row], accounts: dict[str, Account], user_id: str
) -> None:
    owner = Owner(account_id=accounts["workshop"].id, agent_id="assistant", user_id=user_id)
    allowed = {text for text, row in stored.items() if row.user_id == user_id or is_unowned_knowledge(row)}

    seen = set(Memory.objects.visible_to(owner).values_list("text", flat=True))
    limited = set(Memory.objects.visible_to(replace(owner, limited_to_user=True)).values_list("text", flat=True))

    assert limited == seen & allowed < seen
    assert {stored[text].kind for text in limited} == set(KINDS)


def is_unowned_knowledge(row: Row) -> bool:
    return row.user_id == "" and spec_of(row.kind).audience is Audience.KNOWLEDGE


CONTEXTS: dict[str, dict[str, Any]] = {
    "own": {"agent_id": "assistant"},
    "another's": {"agent_id": "colleague"},
    "the account's": {"agent_id": ""},
    "archived": {"agent_id": "assistant", "archived": True},
    "open to all": {"agent_id": "colleague", "scope": "account"},
    "global": {"agent_id": "colleague", "scope": "global"},
    "readable": {"agent_id": "colleague", "access_control": AccessControl(read=["assistant"]).model_dump()},
    "writable": {"agent_id": "", "access_control": AccessControl(write=["assistant"]).model_dump()},
    "public": {"agent_id": "colleague", "access_control": AccessControl(public_read=True).model_dump()},
}
"""Further ones belong to two teams. `assistant` is in the first; `colleague` made both and is in neither any more."""


@pytest.fixture
def contexts(accounts: dict[str, Account]) -> list[PersistentContext]:
    """Create the contexts in both accounts, each with a memory of each kind that lives in contexts, and its vector."""
    made = []
    for account in accounts.values():
        ours, theirs = (Team.objects.create(account=account, name=name) for name in ("ours", "theirs"))
        TeamMember.objects.create(account=account, team=ours, agent_id="assistant")
        of_teams = {team.name: {"agent_id": "colleague", "scope": "team", "team": team} for team in (ours, theirs)}
        for name, columns in (CONTEXTS | of_teams).items():
            made.append(PersistentContext.objects.create(account=account, name=name, **columns))
    for context, kind in product(made, sorted(IN_CONTEXTS)):
        text = f"{kind} in {context.id}"
        row = row_of(kind, text, account_id=context.account_id, context=context)
        insert_memories([row])
        insert_vectors(context.account_id, model=MODEL, vectors=[(row.id, direction(0))])
    return made


@pytest.mark.parametrize(("agent_id", "user_id"), list(product(AGENTS, USERS)))
def test_memories_of_a_context_are_seen_by_agents_that_may_read_the_context(
    contexts: list[PersistentContext], accounts: dict[str, Account], agent_id: str, user_id: str
) -> None:
    owner = Owner(account_id=accounts["workshop"].id, agent_id=agent_id, user_id=user_id)
    teams = TeamMember.objects.filter(account=owner.account_id, agent_id=agent_id).values_list("team_id", flat=True)

    readable = [
        context.id
        for context in contexts
        if context.account_id == owner.account_id and context.accessible_by(agent_id, team_ids=set(teams))
    ]

    for kinds in ([], [Kind.CONTEXT_ENTRY], [Kind.LEARNING], [Kind.LEARNING, Kind.FACT]):
        wanted = {f"{kind} in {context_id}" for kind in set(kinds or Kind) & IN_CONTEXTS for context_id in readable}
        assert set(Memory.objects.visible_to(owner, *kinds).values_list("text", flat=True)) == wanted
        assert set(Vector.objects.visible_to(owner, *kinds).values_list("memory__text", flat=True)) == wanted
    assert len(readable) == {"": 11, "assistant": 8, "colleague": 5}[agent_id]
