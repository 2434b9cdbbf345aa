"""Merging equivalent memories: what is combined, what keeps two apart, and how a merge is undone."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Account, AuditEntry, Fact, Learning, LearningVote, Link, Memory, StrategyUse, Vector
from memory.models.facts import FactVersion
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.services.accounts.register import add_member
from memory.services.contexts.manage import archive_context
from memory.services.custody.memories import erase_derived
from memory.services.duplicates.merge import undo_merge
from memory.services.facts.review import open_review
from memory.services.facts.supersede import retract_fact
from memory.services.learnings import vote_on_learning
from memory.services.memories.correct import delete_memories, mark_memories
from memory.services.memories.links import ABOUT, DERIVED_FROM, DUPLICATE_OF
from memory.services.strategies.learn import reinforce_strategy
from tests.memory import learnings, procedures
from tests.memory.contexts import context_of, entry, keep
from tests.memory.duplicates import FAR, NEAR, link_to, linked, live, merged, reload, run, set_columns
from tests.memory.duplicates import test_model as test_model
from tests.memory.entities import entity_of
from tests.memory.episodes import MODEL, NOTHING, NOW, direction
from tests.memory.facts import fact_draft, know, learn_claim, versions_of
from tests.memory.turns import say, turn
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("test_model")]

ONE, OTHER = "Ana lives in Berlin.", "Ana resides in Berlin."
LATER = NOW + timedelta(days=1)


@pytest.fixture
def staff(owner: Owner) -> Owner:
    return Owner(account_id=owner.account_id, actor="staff:chief")


@pytest.fixture
def two(owner: Owner) -> tuple[Fact, Fact]:
    """Return two facts; the older first one survives a merge."""
    return know(owner, ONE, angle=0.0), know(owner, OTHER, angle=NEAR)


def test_two_equivalent_memories_become_one(owner: Owner, two: tuple[Fact, Fact]) -> None:
    [report] = run()

    assert (report.examined, report.changed, report.failed) == (2, 1, 0)
    assert report.figures == {"fact_merged": 1, "links_made": 1}
    assert live() == [ONE]
    link = Link.objects.get(type=DUPLICATE_OF)
    assert (link.source_id, link.target_id) == (two[1].id, two[0].id)
    assert link.weight == pytest.approx(0.955, abs=0.001)
    entry = AuditEntry.objects.get(operation="deduplicate")
    assert (entry.actor, entry.affected_ids) == ("job:deduplicate", [str(two[0].id), str(two[1].id)])


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param(OTHER, {"angle": FAR}, id="less similar than that"),
        pytest.param("Ben lives in Berlin.", {"angle": 0.0}, id="another name"),
        pytest.param("Ana lives in Berlin, not in Bern.", {"angle": 0.0}, id="a negation"),
        pytest.param(OTHER, {"angle": 0.0, "temporal": "past"}, id="another time"),
        pytest.param(OTHER, {"angle": 0.0, "valid_to": LATER}, id="one that ends"),
    ],
)
def test_facts_that_are_not_equivalent_stay_two(owner: Owner, text: str, fields: dict[str, Any]) -> None:
    know(owner, ONE, angle=0.0)
    know(owner, text, **fields)

    assert merged() == 0


def test_memories_of_other_holders_stay_separate(owner: Owner, stranger: Account) -> None:
    others = [
        replace(owner, account_id=stranger.id),
        replace(owner, agent_id="planner"),
        replace(owner, user_id="ana"),
        replace(owner, user_id="bo"),
        replace(owner, channel="apollo"),
    ]
    for each in (owner, *others):
        know(each, ONE, angle=0.0)

    assert merged() == 0


def test_facts_of_one_user_are_merged_for_all_its_agents(owner: Owner) -> None:
    know(replace(owner, user_id="ana"), ONE, angle=0.0)
    know(replace(owner, user_id="ana", agent_id="planner"), OTHER, angle=NEAR)

    assert merged() == 1


def test_facts_about_other_entities_stay_two(owner: Owner, two: tuple[Fact, Fact]) -> None:
    link_to(owner, two[0], ABOUT, entity_of(owner, "Ana"))

    assert merged() == 0


def test_a_known_name_in_lower_case_keeps_facts_apart(owner: Owner) -> None:
    entity_of(owner, "Grey")
    know(owner, "Met grey at the Alster.", angle=0.0)
    know(owner, "Met gray at the Alster.", angle=0.0)

    assert merged() == 0


def test_evidence_reads_and_confidence_are_combined(owner: Owner) -> None:
    say(owner, turn("I live in Berlin"), turn("Still in Berlin"))
    turns = [row.id for row in Memory.objects.filter(kind="turn").order_by("id")]
    one = know(owner, ONE, angle=0.0, confidence=0.6, turn_ids=turns[:1])
    other = know(owner, OTHER, angle=NEAR, confidence=0.9, turn_ids=turns)
    set_columns(one, access_count=5, last_accessed=NOW, salience=0.4)
    set_columns(other, access_count=2, last_accessed=LATER, salience=0.7)

    [report] = run()

    # the one with more evidence stays
    kept, gone = reload(other), reload(one)
    assert (gone.archived, kept.archived) == (True, False)
    assert (kept.access_count, gone.access_count) == (7, 0)
    assert (kept.confidence, kept.salience, kept.last_accessed) == (0.9, 0.7, LATER)
    assert linked(kept) == {(DERIVED_FROM, turn_id) for turn_id in turns}
    assert report.figures == {"fact_merged": 1, "links_made": 1}


def test_a_greater_confidence_is_a_new_belief_until_the_merge_is_undone(
    owner: Owner, staff: Owner, two: tuple[Fact, Fact]
) -> None:
    set_columns(two[0], confidence=0.6, salience=0.3)
    set_columns(two[1], confidence=0.5, base_confidence=0.9, faded_confidence=0.5, salience=0.2, base_salience=0.8)
    set_columns(two[1], faded_salience=0.2)

    [report] = run()

    kept = reload(two[0])
    assert (kept.confidence, kept.salience, kept.base_salience, kept.faded_salience) == (0.9, 0.2, 0.8, 0.2)
    assert report.figures["fact_versions_made"] == 1
    undo_merge(staff, two[1].id, now=LATER)
    kept = reload(two[0])
    assert (kept.confidence, kept.salience) == (0.6, 0.3)
    assert [version.reason for version in versions_of(kept)] == [
        FactVersion.Reason.LEARNED,
        FactVersion.Reason.CONFIRMED,
        FactVersion.Reason.CORRECTED,
    ]


def test_a_fact_in_an_open_review_is_not_merged(owner: Owner, two: tuple[Fact, Fact]) -> None:
    open_review(owner, old=two[1], draft=fact_draft("Ana left."), similarity=None, embedded=NOTHING, now=NOW)

    assert merged() == 0


def test_learning_a_merged_fact_again_confirms_the_survivor(owner: Owner, two: tuple[Fact, Fact]) -> None:
    set_columns(two[0], confidence=0.6)
    set_columns(two[1], confidence=0.6)
    assert merged() == 1

    learned = learn_claim(owner, OTHER, confidence=0.8, now=LATER)

    assert (learned.fact.id, learned.is_new, learned.fact.confidence) == (two[0].id, False, 0.8)
    assert live() == [ONE]


def test_learning_a_merged_fact_again_restores_it_if_the_survivor_was_retracted(
    owner: Owner, two: tuple[Fact, Fact]
) -> None:
    assert merged() == 1
    retract_fact(owner, two[0].id, now=LATER)

    assert learn_claim(owner, OTHER, now=LATER).fact.id == two[1].id
    assert not Link.objects.filter(type=DUPLICATE_OF).exists()


def test_a_fact_that_lives_again_stays_when_its_former_survivor_is_erased(
    owner: Owner, staff: Owner, two: tuple[Fact, Fact]
) -> None:
    assert merged() == 1
    retract_fact(owner, two[0].id, now=LATER)
    learn_claim(owner, OTHER, now=LATER)
    mark_memories(staff, [two[1].id], mark="archive", now=LATER)

    erase_derived(owner, [two[0].id], now=LATER)

    assert list(Memory.objects.values_list("id", flat=True)) == [two[1].id]


def test_a_loser_cannot_be_unarchived_and_is_erased_with_the_survivor(
    owner: Owner, staff: Owner, two: tuple[Fact, Fact]
) -> None:
    assert merged() == 1

    assert mark_memories(staff, [two[1].id], mark="unarchive", now=LATER) == 0
    assert delete_memories(staff, [two[0].id], now=LATER) == 2

    assert not Memory.objects.exists()


def test_merged_strategies_add_up_their_uses(owner: Owner, staff: Owner) -> None:
    one, other = (
        procedures.learn(owner, text, task_type="repair", tool_sequence=["look"], success=True, angle=0.0)
        for text in ("Look beneath the mat.", "Look underneath the mat.")
    )
    procedures.learn(owner, "Look beneath the mat.", task_type="search", tool_sequence=["look"], angle=0.0)
    reinforce_strategy(owner, one.id, success=True, now=NOW)
    reinforce_strategy(owner, other.id, success=False, now=LATER)

    assert merged() == 1

    kept = reload(one)
    assert (kept.success_count, kept.failure_count, kept.last_used) == (3, 1, LATER)
    assert StrategyUse.objects.filter(strategy=one).count() == 4
    strategy = procedures.learn(owner, "Look underneath the mat.", task_type="repair", tool_sequence=["look"])
    assert strategy.id == one.id
    undo_merge(staff, other.id, now=LATER)
    counts = [(row.success_count, row.failure_count) for row in map(reload, (one, other))]
    assert counts == [(2, 0), (1, 1)]
    assert StrategyUse.objects.filter(strategy=other).count() == 2


def test_merged_learnings_add_up_their_votes(owner: Owner, staff: Owner) -> None:
    colleagues = [replace(owner, agent_id=name) for name in ("ben", "cy")]
    crew = learnings.team_of(owner, *colleagues)
    one = learnings.learn(owner, crew.id, "Look beneath the mat.", angle=0.0)
    other = learnings.learn(owner, crew.id, "Look underneath the mat.", angle=0.0)
    for voter, learning in ((colleagues[0], one), (colleagues[0], other), (colleagues[1], one)):
        vote_on_learning(voter, learning.id, helpful=True, now=NOW)
    vote_on_learning(replace(owner, agent_id="ben"), other.id, helpful=False, now=NOW)
    add_member(Owner(account_id=owner.account_id), crew.id, agent_id="di")
    vote_on_learning(replace(owner, agent_id="di"), other.id, helpful=False, now=NOW)

    assert merged() == 1

    assert votes_of(one) == (2, 1)
    undo_merge(staff, other.id, now=LATER)
    assert (votes_of(one), votes_of(other)) == ((2, 0), (0, 2))
    assert LearningVote.objects.count() == 4


def votes_of(learning: Learning) -> tuple[int, int]:
    row = reload(learning)
    return row.helpful_count, row.unhelpful_count


def test_equivalent_entries_without_a_key_become_one(owner: Owner, staff: Owner) -> None:
    notes, plans = context_of(owner), context_of(owner, "plans")
    [one, other] = keep(
        owner, notes, entry("The mat is red.", angle=0.0, importance=0.2), entry("The mat is red.", angle=0.0)
    )
    keep(owner, notes, entry("The mat is red.", angle=0.0, key="mat", value={"colour": "red"}))
    keep(owner, notes, entry("The mat is red.", angle=0.0, entry_type="decision"))
    keep(owner, plans, entry("The mat is red.", angle=0.0))

    set_columns(one, access_count=1)

    [report] = run()

    assert report.figures == {"context_entry_merged": 1, "links_made": 1, "access_log_lines": 1}
    assert reload(one).importance == 0.5
    undo_merge(staff, other.id, now=LATER)
    assert reload(one).importance == 0.2
    assert not reload(other).archived


def test_entries_of_archived_contexts_are_skipped(owner: Owner) -> None:
    notes = context_of(owner)
    keep(owner, notes, entry("The mat is red.", angle=0.0), entry("The mat is red.", angle=0.0))
    archive_context(owner, notes.id, expected=None, now=NOW)

    [report] = run()

    assert (report.changed, report.failed) == (0, 0)


def test_many_equivalent_memories_become_one_in_one_run(owner: Owner) -> None:
    keep(owner, context_of(owner), *[entry("The mat is red.", angle=0.0) for _ in range(30)])

    assert merged(size=7) == 29
    assert merged() == 0


def test_a_memory_that_is_embedded_again_is_examined_again(owner: Owner, two: tuple[Fact, Fact]) -> None:
    Vector.objects.update(created_at=NOW - timedelta(days=700))
    insert_vectors(owner.account_id, model=MODEL, vectors=[(two[0].id, direction(0))])

    dates = Vector.objects.order_by("created_at").values_list("memory_id", flat=True)
    assert list(dates) == [two[1].id, two[0].id]


@examples(10)
@given(counts=st.lists(st.integers(0, 1_000), min_size=2, max_size=6), size=st.integers(1, 7))
def test_reads_are_kept_in_any_order_of_merges(owner: Owner, counts: list[int], size: int) -> None:
    context = context_of(owner, f"notes {Memory.objects.count()}")
    rows = keep(owner, context, *[entry("The mat is red.", angle=0.1 * place) for place in range(len(counts))])
    for row, count in zip(rows, counts, strict=True):
        set_columns(row, access_count=count)

    first, second = merged(size=size), merged(size=size)

    in_context = Memory.objects.filter(context_id=context.id)
    assert sum(in_context.values_list("access_count", flat=True)) == sum(counts)
    assert in_context.filter(archived=True).count() == first
    assert second == 0


def test_paraphrases_with_similar_vectors_become_one(owner: Owner) -> None:
    know(owner, "Clara leads the design team.", angle=0.0)
    know(owner, "The design team is led by Clara.", angle=NEAR)
    know(owner, "The sales team leads Clara.", angle=NEAR)
    know(owner, "Clara leads the design team until June.", angle=NEAR)

    assert merged() == 1

    assert live()[0] == "Clara leads the design team."


def test_paraphrases_with_other_vectors_or_another_holder_stay_two(owner: Owner) -> None:
    know(owner, "Clara leads the design team.", angle=0.0)
    know(owner, "The design team is led by Clara.", angle=FAR)
    know(replace(owner, agent_id="planner"), "The design team is led by Clara.", angle=0.0)

    assert merged() == 0
