"""Slots of structured turns in recall: found by slot, with their record, and no deeper than the account allows."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import Unprocessable
from memory.extraction.turn_slots import Action, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, Kind, TurnSlot, WorkEpisode
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper
from memory.retrieval.candidates import Candidate
from memory.retrieval.graph import walk_graph
from memory.retrieval.queries import Query, Scope
from memory.services.recall.recall import RecallRequest, recall
from memory.services.records.record import RecordedTurn
from tests.memory.episodes import MODEL, NOW, direction
from tests.memory.goals import aim
from tests.memory.graphs import store_node
from tests.memory.recalls import BY_WORDS, found_by_words
from tests.memory.records import add_record
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

RATIONALE = Rationale(
    decisions=[Point(what="siphon the boiler")], rejected=[Point(what="hammer the boiler", why="it is of glass")]
)
TIERS = [pytest.param(tier, id=tier.value) for tier in ReasoningTier]
SLOTS = [pytest.param(slot, id=slot) for slot in TurnSlot.Slot.values]


def boiler_slots(tier: ReasoningTier = ReasoningTier.STRUCTURED_RATIONALE) -> Slots:
    reasoning = {
        ReasoningTier.NONE: Reasoning(tier=tier),
        ReasoningTier.DECISION_SUMMARY: Reasoning(tier=tier, summary="boiler: siphon it"),
    }.get(tier, Reasoning(tier=tier, rationale=RATIONALE))
    return Slots(
        observation=Observation(text="The boiler drips."),
        reasoning=reasoning,
        action=Action(text="Emptied the boiler."),
        outcome=Outcome(status="succeeded", text="The boiler is dry."),
    )


@pytest.fixture
def recorded(owner: Owner) -> RecordedTurn:
    """A structured turn about the boiler, and a message."""
    say(owner, turn("What about the boiler?"))
    return add_record(owner, "c1", slots=boiler_slots())


def allow(owner: Owner, tier: ReasoningTier) -> None:
    Account.objects.filter(id=owner.account_id).update(reasoning_tier=tier.value)


def slots_of(found: list[Candidate]) -> set[str]:
    return {each.slot for each in found if each.kind == Kind.TURN_SLOT}


@pytest.mark.parametrize("slot", SLOTS)
def test_slots_are_found_by_slot(owner: Owner, recorded: RecordedTurn, slot: str) -> None:
    [found] = found_by_words(owner, "boiler", slots=[slot])

    assert (found.kind, found.slot, found.record_id) == (Kind.TURN_SLOT, slot, recorded.record.id)


def test_several_slots_are_found_and_nothing_else(owner: Owner, recorded: RecordedTurn) -> None:
    found = found_by_words(owner, "boiler", slots=["action", "outcome"], kinds=[Kind.TURN, Kind.TURN_SLOT])

    assert {each.slot for each in found} == {"action", "outcome"}


def test_slots_are_found_by_meaning_as_well(owner: Owner, recorded: RecordedTurn) -> None:
    insert_vectors(owner.account_id, model=MODEL, vectors=[(slot.id, direction(0)) for slot in recorded.slots])
    asked: dict[str, Any] = {"model": MODEL, "vector": direction(0.1), "slots": ["outcome"]}

    found = found_by_words(owner, "anything", techniques=("vector", "-duplicates"), **asked)

    assert [each.text for each in found] == ["The boiler is dry."]


def test_without_slots_all_kinds_are_found_and_slots_say_which_they_are(owner: Owner, recorded: RecordedTurn) -> None:
    found = found_by_words(owner, "boiler")

    assert slots_of(found) == set(TurnSlot.Slot.values)
    assert [(each.slot, each.record_id) for each in found if each.kind == Kind.TURN] == [("", None)]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"kinds": [Kind.FACT]}, id="kinds without slots"),
        pytest.param({"scopes": [Scope.PROFILE]}, id="a scope without slots"),
    ],
)
def test_slots_are_refused_with_kinds_or_scopes_without_slots(owner: Owner, fields: dict[str, Any]) -> None:
    query = Query(text="boiler", slots=["outcome"], **fields)

    with pytest.raises(Unprocessable):
        recall(replace(owner, user_id="ana"), RecallRequest(query=query), now=NOW)


@pytest.mark.parametrize("allowed", TIERS)
@pytest.mark.parametrize("stored", TIERS[:-1])
def test_no_reasoning_of_a_deeper_tier_than_the_account_allows_now_is_found(
    owner: Owner, stored: ReasoningTier, allowed: ReasoningTier
) -> None:
    record = add_record(owner, "c1", slots=boiler_slots(stored))
    insert_vectors(owner.account_id, model=MODEL, vectors=[(slot.id, direction(0)) for slot in record.slots])
    allow(owner, allowed)
    is_told = stored != ReasoningTier.NONE and not is_deeper(stored, allowed)

    found = found_by_words(owner, "boiler hammer siphon", techniques=(*BY_WORDS, "vector"), **at(0.1))

    assert slots_of(found) == {"observation", "action", "outcome", *(["reasoning"] if is_told else [])}


def at(angle: float) -> dict[str, Any]:
    return {"model": MODEL, "vector": direction(angle)}


@pytest.mark.parametrize("allowed", TIERS)
@pytest.mark.parametrize("tier", TIERS[:-1])
def test_a_work_episode_is_found_if_the_account_allows_its_tier(
    owner: Owner, tier: ReasoningTier, allowed: ReasoningTier
) -> None:
    record = add_record(owner, "c1").record
    episode = WorkEpisode(kind=Kind.WORK_EPISODE, text="boiler work", log=record.log, tier=tier.value)
    episode.first_number, episode.last_number, episode.conversation_id = 0, 0, "c1"
    store_node(owner, episode)
    allow(owner, allowed)

    assert bool(found_by_words(owner, "boiler")) == (not is_deeper(tier, allowed))


def test_a_reasoning_slot_is_found_once_its_tier_is_allowed(owner: Owner, recorded: RecordedTurn) -> None:
    for tier, is_found in ((ReasoningTier.NONE, False), (ReasoningTier.RAW_TRACE, True)):
        allow(owner, tier)

        assert bool(found_by_words(owner, "siphon", slots=["reasoning"])) == is_found


def test_the_reasoning_tier_of_another_account_has_no_effect(
    owner: Owner, stranger: Account, recorded: RecordedTurn
) -> None:
    Account.objects.filter(id=stranger.id).update(reasoning_tier=ReasoningTier.NONE.value)

    assert found_by_words(owner, "siphon", slots=["reasoning"])


def test_a_pinned_reasoning_is_found_only_if_its_tier_is_allowed(owner: Owner, recorded: RecordedTurn) -> None:
    TurnSlot.objects.filter(record_id=recorded.record.id).update(pinned=True)
    allow(owner, ReasoningTier.NONE)

    assert slots_of(found_by_words(owner, "something else")) == {"observation", "action", "outcome"}


@pytest.mark.parametrize("allowed", TIERS)
def test_a_walk_over_links_shows_no_reasoning_that_is_not_allowed(owner: Owner, allowed: ReasoningTier) -> None:
    goal = aim(owner, "Mend it.")
    add_record(owner, "c1", slots=boiler_slots(), goal_id=goal.id)
    allow(owner, allowed)

    labels = {node.label for node in walk_graph(owner, [goal.id], depth=1, now=NOW).nodes}

    is_told = allowed in (ReasoningTier.STRUCTURED_RATIONALE, ReasoningTier.RAW_TRACE)
    assert any("hammer" in label for label in labels) == is_told
    assert "The boiler is dry." in labels


def test_archived_levels_of_a_slot_are_not_found(owner: Owner, recorded: RecordedTurn) -> None:
    TurnSlot.objects.filter(record_id=recorded.record.id, slot="outcome").update(archived=True)

    assert slots_of(found_by_words(owner, "boiler")) == {"observation", "reasoning", "action"}


def test_a_recall_of_slots_takes_two_statements(
    owner: Owner, recorded: RecordedTurn, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    found_by_words(owner, "boiler", conversation_id="c1", slots=["outcome"])

    with django_assert_num_queries(2):
        assert found_by_words(owner, "boiler", conversation_id="c1", slots=["outcome"])


def test_slots_of_an_open_goal_are_boosted(owner: Owner) -> None:
    goal = aim(owner, "Mend the heating.")
    add_record(owner, "c1", slots=boiler_slots(), goal_id=goal.id)
    add_record(owner, "c1", slots=boiler_slots())

    of_goal, other = found_by_words(owner, "dry", slots=["outcome"])

    assert "linked to an open goal" in of_goal.reasons
    assert (of_goal.signals["active_work"] > 1, "active_work" in other.signals) == (True, False)
