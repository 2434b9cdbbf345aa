"""Trust of what is derived: no more than that of the least trusted source, however it was derived."""

from dataclasses import replace
from uuid import UUID

import pytest

from memory.models import Entity, EpisodicMemory, Fact, Memory, Strategy, WorkEpisode
from memory.owner import Owner
from memory.services.conversations.end import end_conversation
from memory.services.facts.globalize import globalize_fact
from memory.services.memories.correct import correct_memory
from tests.memory.artifacts import kept
from tests.memory.compressed import compress
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import day, know
from tests.memory.goals import aim
from tests.memory.knowledge import extract_all, say_sentences
from tests.memory.procedures import invoke
from tests.memory.records import add_record
from tests.memory.services.strategies.test_patterns import look, work
from tests.memory.summaries import summarize
from tests.memory.turns import say, talk, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


def distrust(memory_id: UUID, trust: float = 0.3) -> None:
    Memory.objects.filter(id=memory_id).update(trust=trust)


def trust_of(memory_id: UUID) -> float:
    return float(Memory.objects.values_list("trust", flat=True).get(id=memory_id))


def test_a_fact_is_trusted_as_its_least_trusted_turn(owner: Owner) -> None:
    good, bad = (say(owner, turn(text)).turns[0].id for text in ("I live in Berlin.", "She lives in Berlin."))
    distrust(bad)

    fact = know(owner, turn_ids=[good, bad])

    assert trust_of(fact.id) == 0.3


def test_an_extracted_fact_and_its_new_entities_are_trusted_as_the_turn(owner: Owner) -> None:
    [said] = say_sentences(owner, "I live in Lisbon.").turns
    distrust(said.id)

    extract_all(NOW)

    assert set(Fact.objects.values_list("trust", flat=True)) == {0.3}
    assert set(Entity.objects.values_list("trust", flat=True)) == {0.3}


def test_a_globalized_fact_is_trusted_as_its_original(owner: Owner) -> None:
    atlas = replace(owner, user_id="ana", channel="atlas")
    fact = know(atlas)
    distrust(fact.id)

    copy = globalize_fact(atlas, fact.id, reason="everybody asks", embedded=NOTHING, now=day(1))

    assert trust_of(copy.id) == 0.3


def test_a_summary_is_trusted_as_its_least_trusted_turn(owner: Owner) -> None:
    turns = talk(owner, 50).turns
    distrust(turns[7].id)

    summarize()

    assert set(EpisodicMemory.objects.values_list("trust", flat=True)) == {0.3}


def test_a_strategy_is_trusted_as_the_conversation_that_it_was_learned_from(owner: Owner) -> None:
    work(owner)
    distrust(Memory.objects.get(kind="turn").id)

    look()

    assert list(Strategy.objects.values_list("trust", flat=True)) == [0.3]


def test_a_strategy_from_failures_is_trusted_as_their_conversations(owner: Owner) -> None:
    distrust(say(owner, turn("Deploy it.")).turns[0].id)
    for _ in range(3):
        invoke(owner, "deploy", success=False, error_message="permission denied")
    end_conversation(owner, "c1", outcome="", now=NOW)

    look()

    assert list(Strategy.objects.values_list("trust", flat=True)) == [0.3]


def test_an_artifact_is_trusted_as_what_it_was_made_of(owner: Owner) -> None:
    source = kept(owner, "source")
    distrust(source.id)

    assert trust_of(kept(owner, "copy", derived_from=[source.id]).id) == 0.3


def test_a_work_episode_is_trusted_as_its_slots(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.conf.COMPRESS_KEEP_RECORDS", 0)
    goal = aim(owner)
    for _ in range(3):
        add_record(owner, goal_id=goal.pk)
    slot = Memory.objects.filter(kind="turn_slot").order_by("id")[0]
    distrust(slot.id)

    for _ in range(4):
        compress()

    found = WorkEpisode.objects.values_list("trust", flat=True)
    assert min(found, default=0.3) == 0.3
    assert min(Memory.objects.filter(kind="turn_slot").values_list("trust", flat=True)) == 0.3


def test_a_correction_of_trust_is_passed_on_and_taken_back(owner: Owner) -> None:
    atlas = replace(owner, user_id="ana", channel="atlas")
    source = say(atlas, turn("I live in Berlin.")).turns[0]
    fact = know(atlas, turn_ids=[source.id])
    copy = globalize_fact(atlas, fact.id, reason="everybody asks", embedded=NOTHING, now=day(1))

    correct_memory(atlas, source.id, changes={"trust": 0.2}, version=source.version, now=NOW)
    lowered = trust_of(fact.id), trust_of(copy.id)
    correct_memory(atlas, source.id, changes={"trust": 0.9}, version=source.version + 1, now=NOW)

    assert lowered == (0.2, 0.2)
    assert (trust_of(fact.id), trust_of(copy.id)) == (0.9, 0.9)


def test_a_lower_trust_of_its_own_stays(owner: Owner) -> None:
    source = say(owner, turn("I live in Berlin.")).turns[0]
    fact = know(owner, turn_ids=[source.id])
    distrust(fact.id, 0.1)

    distrust(source.id, 0.5)

    assert trust_of(fact.id) == 0.1


def test_a_distrusted_turn_lowers_the_summary_that_was_made_of_it(owner: Owner) -> None:
    turns = talk(owner, 50).turns
    summarize()

    distrust(turns[3].id)

    assert set(EpisodicMemory.objects.values_list("trust", flat=True)) == {0.3}
