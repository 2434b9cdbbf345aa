"""Changing facts: superseding, replacing, correcting, retracting and globalizing them, by permitted owners."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, Forbidden, NotFound, StaleVersion, Unprocessable
from memory.models import Account, AuditEntry, Fact, Link, Vector
from memory.owner import Owner
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.store import find_fact, read_fact_history
from memory.services.facts.supersede import correct_fact, reject_fact, replace_wrong_fact, retract_fact, supersede_fact
from tests.memory.entities import entity_of
from tests.memory.episodes import MODEL, NOTHING, NOW, direction
from tests.memory.facts import CLAIM, claims, day, fact_draft, know, learn_claim, reread, versions_of
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

MUNICH = "Ana lives in Munich."


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


@pytest.fixture
def of_ana(owner: Owner) -> Owner:
    return replace(owner, user_id="ana")


def supersede(owner: Owner, fact: Fact, claim: str = MUNICH, *, days: float = 1, **fields: Any) -> Fact:
    return supersede_fact(owner, fact.id, fact_draft(claim, **fields), embedded=NOTHING, now=day(days))


def correct(owner: Owner, fact: Fact, *, days: float = 1, expected: Any = None, **changes: Any) -> Fact:
    return correct_fact(owner, fact.id, changes=changes, embedded=NOTHING, expected=expected, now=day(days))


def promote(owner: Owner, fact: Fact) -> Fact:
    return globalize_fact(owner, fact.id, reason="everybody asks", embedded=NOTHING, now=day(1))


CHANGES: dict[str, Callable[[Owner, Fact], Fact]] = {
    "supersede": lambda owner, fact: supersede(owner, fact),
    "replace": lambda owner, fact: replace_wrong_fact(owner, fact.id, fact_draft(MUNICH), embedded=NOTHING, now=day(1)),
    "correct": lambda owner, fact: correct(owner, fact, claim=MUNICH),
    "retract": lambda owner, fact: retract_fact(owner, fact.id, now=day(1)),
    "reject": lambda owner, fact: reject_fact(owner, fact.id, now=day(1)),
    "promote": promote,
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def test_a_superseded_fact_ends_where_the_new_one_begins_and_is_kept(owner: Owner) -> None:
    old = know(owner)

    new = supersede(owner, old, valid_from=day(-2))

    assert (claims(owner, now=day(1)), claims(owner, now=day(1), as_of=day(-3))) == ([MUNICH], [CLAIM])
    assert (reread(owner, old).status, reread(owner, old).valid_to) == ("superseded", day(-2))
    assert claims(owner, as_of=day(0), known_at=day(0.5)) == [CLAIM]
    assert [(version.valid_to, version.reason) for version in versions_of(old)] == [
        (None, "learned"),
        (day(-2), "superseded"),
    ]
    assert Link.objects.get(type="SUPERSEDES", source_id=new.id, target_id=old.id).properties == {}


def test_a_successor_starts_now_unless_it_has_a_start(owner: Owner) -> None:
    old = know(owner)

    new = supersede(owner, old)

    assert new.valid_from == reread(owner, old).valid_to == day(1)


def test_a_fact_that_a_planned_one_supersedes_is_true_until_then(owner: Owner) -> None:
    supersede(owner, know(owner), valid_from=day(9))

    assert (claims(owner, now=day(8)), claims(owner, now=day(9))) == ([CLAIM], [MUNICH])


def test_a_fact_that_would_end_before_it_began_never_held(owner: Owner) -> None:
    old = know(owner, valid_from=day(-2))

    supersede(owner, old, valid_from=day(-2))

    gone = reread(owner, old)
    assert (gone.status, gone.retracted_at, gone.valid_to) == ("superseded", day(1), None)
    assert claims(owner, as_of=day(-2), now=day(2)) == [MUNICH]
    assert claims(owner, as_of=day(-2), known_at=day(0.5), now=day(2)) == [CLAIM]


def test_a_fact_that_is_over_already_keeps_its_end(owner: Owner) -> None:
    old = know(owner, valid_to=day(-5))

    supersede(owner, old)

    assert (reread(owner, old).valid_to, len(versions_of(old))) == (day(-5), 1)


def test_a_superseded_fact_keeps_its_vector(owner: Owner) -> None:
    old = know(owner, angle=0.0)

    supersede(owner, old)

    assert Vector.objects.filter(memory_id=old.id).exists()


def test_a_superseded_claim_may_be_learned_again(owner: Owner) -> None:
    old = know(owner)
    supersede(owner, old, valid_from=day(-9))

    again = learn_claim(owner, valid_from=day(3), now=day(3))

    assert (again.is_new, again.fact.id != old.id) == (True, True)
    assert claims(owner, now=day(3)) == [MUNICH, CLAIM]


def test_the_successor_may_be_known_already(owner: Owner) -> None:
    old, known = know(owner), know(owner, MUNICH)

    new = supersede(owner, old)

    assert new.id == known.id
    assert claims(owner, now=day(1)) == [MUNICH]


def test_a_successor_is_about_the_same_entities_unless_it_names_some(owner: Owner) -> None:
    ana, berlin = entity_of(owner, "Ana"), entity_of(owner, "Berlin", type="place")
    source = say(owner, turn("I moved to Munich.")).turns[0]
    old = know(owner, entity_ids=[ana.id])

    new = supersede(owner, old, turn_ids=[source.id])
    newest = supersede(owner, new, "Berlin is quiet.", days=2, entity_ids=[berlin.id])

    history = read_fact_history(new)
    assert (history.entities, history.turns) == ([ana.id], [source.id])
    assert (history.supersedes, history.superseded_by) == ([old.id], [newest.id])
    assert read_fact_history(newest).entities == [berlin.id]


def test_a_successor_is_of_the_same_holder_and_channel(owner: Owner, of_ana: Owner) -> None:
    old = know(replace(of_ana, channel="atlas"))

    new = supersede(replace(owner, agent_id=""), old)

    assert (new.user_id, new.agent_id, new.channel) == ("ana", "assistant", "atlas")


def test_an_invalid_successor_changes_nothing(owner: Owner) -> None:
    old = know(owner)

    ended = {"valid_from": day(1), "valid_to": day(1)}
    for wrong in (ended, {"entity_ids": [uuid4()]}, {"turn_ids": [uuid4()]}, {"confidence": 2.0}):
        with pytest.raises(Unprocessable):
            supersede(owner, old, **wrong)

    assert (reread(owner, old).status, len(versions_of(old))) == ("active", 1)


def test_a_wrong_fact_is_replaced_from_its_start(owner: Owner) -> None:
    old = know(owner, valid_from=day(-9))

    new = CHANGES["replace"](owner, old)

    assert new.valid_from == day(-9)
    assert (claims(owner, as_of=day(-8), now=day(1)), reread(owner, old).retracted_at) == ([MUNICH], day(1))
    assert claims(owner, as_of=day(-8), known_at=day(0), now=day(1)) == [CLAIM]
    assert Link.objects.get(type="SUPERSEDES").properties == {"reason": "correction"}


def test_a_correction_is_the_next_belief_of_the_same_fact(owner: Owner) -> None:
    fact = know(owner, confidence=0.5, angle=0.0)

    corrected = correct(owner, fact, claim=MUNICH, confidence=0.9, valid_from=day(-3), temporal="past")

    assert corrected.id == fact.id
    again = reread(owner, fact)
    values = (again.text, again.confidence, again.valid_from, again.temporal, again.belief_number, again.recorded_at)
    assert values == (MUNICH, 0.9, day(-3), "past", 2, day(1))
    first, second = versions_of(fact)
    assert (first.claim, first.retracted_at, second.claim, second.reason) == (CLAIM, day(1), MUNICH, "corrected")
    assert not Vector.objects.exists()


def test_reads_with_known_at_return_former_beliefs(owner: Owner) -> None:
    fact = know(owner, confidence=0.5)
    correct(owner, fact, claim=MUNICH, confidence=0.9)

    assert claims(owner, known_at=NOW) == [CLAIM]
    assert claims(owner, known_at=NOW, min_confidence=0.8) == []
    assert claims(owner, known_at=day(1), min_confidence=0.8) == claims(owner) == [MUNICH]


def test_a_corrected_claim_has_the_vector_that_came_with_it(owner: Owner) -> None:
    fact = know(owner, angle=0.0)
    own = fact_draft(angle=1.0).own

    correct_fact(owner, fact.id, changes={"claim": MUNICH}, embedded=NOTHING, own=own, now=day(1))

    stored = Vector.objects.get(memory_id=fact.id, model=MODEL)
    assert list(stored.vector) == pytest.approx(list(direction(1.0)), abs=1e-3)


def test_a_correction_to_equal_values_changes_nothing(owner: Owner) -> None:
    fact = know(owner, confidence=0.5)

    same = correct(owner, fact, claim=CLAIM, confidence=0.5, valid_to=None)

    assert (same.version, len(versions_of(fact))) == (1, 1)


def test_a_superseded_fact_is_corrected_as_long_as_it_is_believed(owner: Owner) -> None:
    old = know(owner)
    supersede(owner, old, valid_from=day(-2))

    correct(owner, old, days=2, claim="Ana lived in Bern.")

    assert claims(owner, as_of=day(-3), now=day(2)) == ["Ana lived in Bern."]
    assert learn_claim(owner, "Ana lived in Bern.").is_new


def test_a_superseded_fact_keeps_an_end_which_may_be_corrected(owner: Owner) -> None:
    old, other = know(owner), know(owner, "Ana likes tea.", valid_to=day(-1))
    supersede(owner, old, valid_from=day(-2))

    with pytest.raises(Conflict, match="reject or retract the fact that replaced it"):
        correct(owner, old, days=2, valid_to=None)

    assert correct(owner, old, days=2, valid_to=day(-3)).valid_to == day(-3)
    assert correct(owner, other, days=2, valid_to=None).valid_to is None


def test_a_fact_ends_before_it_was_said_only_if_its_beginning_is_corrected_too(owner: Owner) -> None:
    fact = know(owner, event_time=day(-1))

    with pytest.raises(Unprocessable, match="set valid_from to null"):
        correct(owner, fact, valid_to=day(-9))

    assert reread(owner, fact).valid_from == day(-1)
    assert correct(owner, fact, valid_to=day(-9), valid_from=None).valid_from is None
    assert correct(owner, fact, valid_from=day(-20)).valid_to == day(-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"claim": " "},
        {"confidence": 1.2},
        {"temporal": "soon"},
        {"valid_to": day(-9)},
        {"status": "active"},
    ],
    ids=str,
)
def test_an_invalid_correction_is_refused(owner: Owner, wrong: dict[str, Any]) -> None:
    fact = know(owner, valid_from=day(-8))

    with pytest.raises(Unprocessable):
        correct(owner, fact, **wrong)

    assert len(versions_of(fact)) == 1


def test_a_correction_to_the_claim_of_another_fact_is_refused(owner: Owner) -> None:
    fact, _other = know(owner), know(owner, MUNICH)

    with pytest.raises(Conflict, match="another fact"):
        correct(owner, fact, claim="ana lives in munich")

    assert reread(owner, fact).text == CLAIM


def test_a_corrected_fact_is_known_by_its_new_claim_only(owner: Owner) -> None:
    correct(owner, know(owner), claim=MUNICH)

    assert (learn_claim(owner, MUNICH).is_new, learn_claim(owner).is_new) == (False, True)


def test_a_retracted_fact_is_not_believed_and_may_be_learned_again(owner: Owner) -> None:
    fact = know(owner)

    retract_fact(owner, fact.id, now=day(1))

    assert (claims(owner, now=day(1)), claims(owner, known_at=NOW)) == ([], [CLAIM])
    assert (reread(owner, fact).status, learn_claim(owner).is_new) == ("retracted", True)


@each_change
@pytest.mark.parametrize("status", ["retracted", "rejected", "superseded"])
def test_a_fact_that_is_not_active_is_not_changed(
    owner: Owner, change: Callable[[Owner, Fact], Fact], status: str
) -> None:
    fact = know(owner, valid_from=day(0))
    ends = {"retracted": "retract", "rejected": "reject", "superseded": "replace"}
    CHANGES[ends[status]](owner, fact)

    with pytest.raises(Conflict):
        change(owner, fact)

    assert reread(owner, fact).status == status


@each_change
def test_facts_of_others_are_not_found_for_a_change(
    owner: Owner, colleague: Owner, stranger: Account, change: Callable[[Owner, Fact], Fact]
) -> None:
    fact = know(replace(owner, channel="atlas"))

    for other in (colleague, Owner(account_id=stranger.id)):
        with pytest.raises(NotFound):
            change(other, fact)

    assert reread(owner, fact).version == 1


@each_change
def test_an_owner_that_may_only_read_a_fact_cannot_change_it(
    owner: Owner, change: Callable[[Owner, Fact], Fact]
) -> None:
    fact = know(replace(owner, agent_id="", channel="atlas"))
    reader = replace(owner, user_id="ana")
    assert find_fact(reader, fact.id).text == CLAIM

    with pytest.raises(Forbidden):
        change(reader, fact)

    assert reread(owner, fact).version == 1


@each_change
def test_any_agent_of_the_user_may_change_the_users_facts(
    of_ana: Owner, colleague: Owner, change: Callable[[Owner, Fact], Fact]
) -> None:
    fact = know(replace(of_ana, channel="atlas"))

    assert change(replace(colleague, user_id="ana"), fact).user_id == "ana"


@each_change
def test_the_account_may_change_any_fact(owner: Owner, change: Callable[[Owner, Fact], Fact]) -> None:
    changed = change(replace(owner, agent_id=""), know(replace(owner, channel="atlas")))

    assert changed.agent_id == "assistant"


def test_a_change_of_another_version_is_refused(owner: Owner) -> None:
    fact = know(owner)

    for expected in (frozenset({"2"}), 2):
        with pytest.raises(StaleVersion):
            correct(owner, fact, expected=expected, claim=MUNICH)
        with pytest.raises(StaleVersion):
            retract_fact(owner, fact.id, expected=expected, now=NOW)

    assert correct(owner, fact, expected=1, claim=MUNICH).text == MUNICH


def test_times_of_belief_never_go_backwards(owner: Owner) -> None:
    fact = know(owner)

    correct(owner, fact, days=-3, claim=MUNICH)
    retract_fact(owner, fact.id, now=day(-5))

    assert [(version.recorded_at, version.retracted_at) for version in versions_of(fact)] == [(NOW, NOW)] * 2


def test_the_audit_log_records_actor_operation_and_facts(owner: Owner) -> None:
    fact = know(owner)
    correct(owner, fact, confidence=0.5)
    new = supersede(owner, fact)
    retract_fact(owner, new.id, now=day(2))

    entries = AuditEntry.objects.exclude(operation="store").order_by("id")
    assert list(entries.values_list("operation", "affected_ids")) == [
        ("correct", [str(fact.id)]),
        ("supersede", [str(new.id), str(fact.id)]),
        ("retract", [str(new.id), str(fact.id)]),
    ]


def test_changes_cost_as_many_queries_as_stated(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first, second, third = (know(owner, f"number {number}") for number in range(3))

    with django_assert_num_queries(20):  # two of each are the savepoint's
        supersede(owner, first)
    with django_assert_num_queries(15):
        correct(owner, second, claim="another")
    with django_assert_num_queries(11):
        retract_fact(owner, third.id, now=NOW)
