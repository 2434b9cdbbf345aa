"""The migrations of knowledge and recall, forward over data of the previous version, and back."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memory.models import Conversation, Entity, Fact, Link, Strategy, Turn
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.entities.learn import EntityDraft, upsert_entity
from memory.services.facts.learn import FactDraft, learn_fact
from tests.memory.episodes import NOW
from tests.memory.knowledge import say_sentences
from tests.memory.procedures import learn
from tests.memory.turns import say, turn

BEFORE = "0006_tier_walls"
"""The version before knowledge."""

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]


def migrate_forward() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes("memory"))


def migrate_to(name: str) -> Any:
    """Migrate to a migration and return its models."""
    executor = MigrationExecutor(connection)
    executor.migrate([("memory", name)])
    return MigrationExecutor(connection).loader.project_state([("memory", name)]).apps


@pytest.fixture(autouse=True)
def _come_back() -> Iterator[None]:
    yield
    migrate_forward()


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


def texts() -> list[tuple[str, str, int]]:
    rows = Strategy.objects.order_by("id")
    return [(row.text, row.content_hash, row.token_count) for row in rows.only("text", "content_hash", "token_count")]


@pytest.fixture
def turns(owner: Owner) -> Sequence[Turn]:
    """Store two conversations, knowledge and strategies, and return the turns of the second conversation."""
    say_sentences(owner, "I live in Lisbon.")
    turns = say(owner, turn("a"), turn("b"), turn("c"), conversation_id="c2").turns
    know(owner)
    for description, pattern in SAID:
        learn(owner, description, context_pattern=pattern, angle=0.0)
    return turns


@pytest.mark.slow
@pytest.mark.usefixtures("turns")
def test_texts_of_strategies_gain_the_pattern_and_lose_it_on_the_way_back() -> None:
    learned = texts()

    migrate_to("0010_recall_words")
    former = [text for text, _, _ in texts()]
    migrate_forward()

    rows = Strategy.objects.order_by("id")
    assert former == [description for description, _ in SAID] == [row.description for row in rows]
    assert texts() == learned
    assert [row.embed_after is not None for row in rows] == [True, True, True, False]


def test_turns_survive_the_migrations_of_knowledge_in_both_directions(owner: Owner, turns: Sequence[Turn]) -> None:
    child, parent, other = turns
    old = migrate_to(BEFORE)
    # as staff could do before goals existed
    for target in (parent, other):
        old.get_model("memory", "Link").objects.create(
            account_id=owner.account_id, source_id=child.id, target_id=target.id, type="SUBGOAL_OF"
        )
    migrate_forward()

    assert sorted(Link.objects.values_list("type", flat=True)) == ["WAS_SUBGOAL_OF", "WAS_SUBGOAL_OF"]
    queued = Conversation.objects.filter(extract_after__isnull=False, extracted_count=0)
    assert sorted(queued.values_list("conversation_id", flat=True)) == ["c1", "c2"]
    assert (Fact.objects.count(), Entity.objects.count()) == (0, 0)
    assert know(owner) == (True, True)
