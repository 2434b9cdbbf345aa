"""The migrations of knowledge and recall over data of the previous version."""

from collections.abc import Iterator
from typing import Any

import pytest

from memory.models import Account, Conversation, Entity, Fact, Link, Strategy, Turn
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, upsert_entity
from memory.services.facts.learn import FactDraft, learn_fact
from tests.memory.episodes import NOW
from tests.memory.migrations import empty_database, migrate_forward, migrate_to
from tests.memory.procedures import learn

BEFORE = "0006_tier_walls"
"""The version before knowledge."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_redis"),
]


@pytest.fixture(autouse=True)
def _own_database(transactional_db: None) -> Iterator[None]:
    with empty_database():
        yield


def know(owner: Owner) -> tuple[bool, bool]:
    """Learn a fact and an entity, and return whether each of them is new."""
    nothing = embed_texts([])
    entity = upsert_entity(owner, EntityDraft(name="Ana", type="person"), embedded=nothing, now=NOW)
    fact = learn_fact(owner, FactDraft(claim="Ana sings", entity_ids=[entity.entity.id]), embedded=nothing, now=NOW)
    return fact.is_new, entity.is_new


SAID: tuple[tuple[str, str], ...] = (
    ("Restart it once.", "the house is cold"),
    ("Ask Zoë, 2 × 3 times.", " When\tnobody knows.\n"),
    ("Whenever.", "whenever"),
    ("Nothing fits it.", "  "),
)


def texts(owner: Owner) -> list[tuple[str, str, int]]:
    rows = Strategy.objects.filter(account_id=owner.account_id).order_by("id")
    return [(row.text, row.content_hash, row.token_count) for row in rows.only("text", "content_hash", "token_count")]


def owner_of(account: Any) -> Owner:
    return Owner(account_id=account.id, agent_id="assistant")


@pytest.mark.slow
def test_texts_of_strategies_gain_the_pattern() -> None:
    old = migrate_to("0010_recall_words")
    owner = owner_of(old.get_model("memory", "Account").objects.create(name="workshop"))
    for number, (description, pattern) in enumerate(SAID):
        old.get_model("memory", "Strategy").objects.create(
            account_id=owner.account_id,
            kind="strategy",
            identity=str(number),
            text=description,
            context_pattern=pattern,
            event_time=NOW,
        )

    migrate_forward()

    rows = Strategy.objects.order_by("id")
    assert [row.description for row in rows] == [description for description, _ in SAID]
    assert [row.embed_after is not None for row in rows] == [True, True, True, False]
    other = owner_of(Account.objects.create(name="as learned now"))
    for description, pattern in SAID[:3]:
        learn(other, description, context_pattern=pattern, angle=0.0)
    assert texts(owner)[:3] == texts(other)


def test_turns_survive_the_migrations_of_knowledge() -> None:
    old = migrate_to(BEFORE)
    owner = owner_of(old.get_model("memory", "Account").objects.create(name="workshop"))
    of_account = {"account_id": owner.account_id, "agent_id": owner.agent_id, "conversation_id": "c1"}
    log = old.get_model("memory", "Conversation").objects.create(**of_account, started_at=NOW, turn_count=3)
    child, *others = (
        old.get_model("memory", "Turn").objects.create(
            **of_account, kind="turn", identity=text, text=text, event_time=NOW, log=log, index=index, role="user"
        )
        for index, text in enumerate("abc")
    )
    # as staff could do before goals existed
    for target in others:
        old.get_model("memory", "Link").objects.create(
            account_id=owner.account_id, source_id=child.id, target_id=target.id, type="SUBGOAL_OF"
        )

    migrate_forward()

    turns: Any = Turn.objects.order_by("index")
    assert [(row.id, row.text, row.role, row.log_id) for row in turns] == [
        (row.id, row.text, "user", log.id) for row in (child, *others)
    ]
    assert sorted(Link.objects.values_list("type", flat=True)) == ["WAS_SUBGOAL_OF", "WAS_SUBGOAL_OF"]
    assert Conversation.objects.filter(extract_after__isnull=False, extracted_count=0).count() == 1
    assert (Fact.objects.count(), Entity.objects.count()) == (0, 0)
    assert know(owner) == (True, True)
