"""Copies of facts in `_global`: ended and corrected with their originals, unless something else supports them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from memory.errors import Conflict
from memory.models import AuditEntry, Fact, FactReview
from memory.owner import Owner
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.review import decide_review, open_review
from memory.services.facts.supersede import correct_fact, replace_wrong_fact, retract_fact, supersede_fact
from memory.services.memories.correct import mark_memories
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, claims, day, fact_draft, know, reread, versions_of
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

MUNICH = "Ana lives in Munich."


@pytest.fixture
def atlas(owner: Owner) -> Owner:
    return replace(owner, channel="atlas")


def globalize(owner: Owner, fact: Fact) -> Fact:
    return globalize_fact(owner, fact.id, reason="", embedded=NOTHING, now=day(1))


def correct(owner: Owner, fact: Fact, **changes: Any) -> Fact:
    return correct_fact(owner, fact.id, changes=changes or {"claim": MUNICH}, embedded=NOTHING, now=day(2))


def accept(owner: Owner, fact: Fact) -> None:
    draft = fact_draft(MUNICH)
    review = open_review(owner, old=fact, draft=draft, similarity=None, embedded=NOTHING, now=day(2))
    staff = replace(owner, agent_id="")
    decide_review(staff, review.id, decision=FactReview.Status.ACCEPTED_NEW, now=day(2))


CHANGES: dict[str, Callable[[Owner, Fact], Any]] = {
    "supersede": lambda owner, fact: supersede_fact(owner, fact.id, fact_draft(MUNICH), embedded=NOTHING, now=day(2)),
    "replace": lambda owner, fact: replace_wrong_fact(owner, fact.id, fact_draft(MUNICH), embedded=NOTHING, now=day(2)),
    "correct": correct,
    "retract": lambda owner, fact: retract_fact(owner, fact.id, now=day(2)),
    "accept": accept,
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@each_change
def test_a_copy_follows_its_original(owner: Owner, atlas: Owner, change: Callable[[Owner, Fact], Any]) -> None:
    fact = know(atlas)
    copy = globalize(atlas, fact)

    change(atlas, fact)

    assert CLAIM not in claims(owner, now=day(3))
    ended, changed = reread(owner, copy), reread(atlas, fact)
    assert (ended.status, ended.text, ended.valid_to) == (changed.status, changed.text, changed.valid_to)


@pytest.mark.parametrize("change", ["supersede", "replace", "correct"])
def test_what_comes_in_the_place_of_a_globalized_fact_is_known_in_every_channel(
    owner: Owner, atlas: Owner, change: str
) -> None:
    fact = know(atlas)
    globalize(atlas, fact)

    CHANGES[change](atlas, fact)

    assert claims(owner, now=day(3)) == [MUNICH]
    assert set(claims(atlas, now=day(3))) == {MUNICH}


@pytest.mark.parametrize("change", ["supersede", "replace"])
def test_what_comes_in_the_place_of_a_fact_whose_copy_is_in_quarantine_stays_in_the_project(
    owner: Owner, atlas: Owner, change: str
) -> None:
    fact = know(atlas)
    copy = globalize(atlas, fact)
    mark_memories(owner, [copy.id], mark="quarantine", now=day(1))

    successor = CHANGES[change](atlas, fact)

    assert successor.channel == "atlas"
    assert claims(owner, now=day(3)) == []
    assert claims(atlas, now=day(3)) == [MUNICH]


@each_change
def test_a_copy_stays_while_another_project_says_the_same(
    owner: Owner, atlas: Owner, change: Callable[[Owner, Fact], Any]
) -> None:
    rust = replace(owner, channel="rust")
    fact, other = know(atlas), know(rust)
    assert globalize(atlas, fact).id == globalize(rust, other).id

    change(atlas, fact)
    assert claims(owner, now=day(3)) == [CLAIM]

    change(rust, other)
    assert CLAIM not in claims(owner, now=day(3))


@each_change
def test_a_fact_that_was_learned_in_global_itself_stays(
    owner: Owner, atlas: Owner, change: Callable[[Owner, Fact], Any]
) -> None:
    know(owner)
    fact = know(atlas)
    globalize(atlas, fact)

    change(atlas, fact)

    assert claims(owner, now=day(3)) == [CLAIM]


def test_a_copy_stays_that_a_turn_of_no_project_supports(owner: Owner, atlas: Owner) -> None:
    said, again = (say(owner, turn("I live in Berlin."), conversation_id=each).turns[0].id for each in ("c1", "c2"))
    fact = know(atlas, turn_ids=[said])
    globalize(atlas, fact)
    know(owner, turn_ids=[again])

    retract_fact(atlas, fact.id, now=day(2))

    assert claims(owner, now=day(3)) == [CLAIM]


def test_a_copy_that_was_corrected_by_itself_stays(owner: Owner, atlas: Owner) -> None:
    fact = know(atlas)
    correct(owner, globalize(atlas, fact))

    retract_fact(atlas, fact.id, now=day(2))

    assert claims(owner, now=day(3)) == [MUNICH]


def test_a_correction_is_a_version_of_the_copy_and_audited_once(owner: Owner, atlas: Owner) -> None:
    fact = know(atlas)
    copy = globalize(atlas, fact)

    correct(atlas, fact, claim=MUNICH, valid_to=day(9))

    assert [(each.claim, each.valid_to, each.reason) for each in versions_of(copy)] == [
        (CLAIM, None, "promoted"),
        (MUNICH, day(9), "corrected"),
    ]
    assert AuditEntry.objects.get(operation="correct").affected_ids == [str(fact.id), str(copy.id)]


def test_a_review_that_ends_a_copy_names_it_in_the_audit_log(owner: Owner, atlas: Owner) -> None:
    fact = know(atlas)
    copy = globalize(atlas, fact)

    accept(atlas, fact)

    new = Fact.objects.get(text=MUNICH)
    assert AuditEntry.objects.get(operation="review").affected_ids == [str(new.id), str(fact.id), str(copy.id)]


def test_a_copy_is_retracted_where_global_knows_the_correction(owner: Owner, atlas: Owner) -> None:
    known, fact = know(owner, MUNICH), know(atlas)
    copy = globalize(atlas, fact)

    correct(atlas, fact)

    assert [reread(owner, each).status for each in (known, copy, fact)] == ["active", "retracted", "active"]
    assert claims(owner, now=day(3)) == [MUNICH]


@pytest.mark.django_db(transaction=True)
def test_two_projects_that_retract_a_fact_at_once_leave_no_copy(
    owner: Owner, atlas: Owner, start_concurrently: Start
) -> None:
    rust = replace(owner, channel="rust")
    fact, other = know(atlas), know(rust)
    copy = globalize(atlas, fact)
    globalize(rust, other)

    with transaction.atomic():
        retract_fact(atlas, fact.id, now=day(2))
        second = start_concurrently(lambda: retract_fact(rust, other.id, now=day(2)))

    second.result(PATIENCE_SECONDS)
    assert reread(owner, copy).status == "retracted"


@pytest.mark.django_db(transaction=True)
def test_a_fact_that_is_globalized_while_it_is_retracted_is_a_conflict(
    owner: Owner, atlas: Owner, start_concurrently: Start
) -> None:
    fact = know(atlas)

    with transaction.atomic():
        globalize(atlas, fact)
        second = start_concurrently(lambda: retract_fact(atlas, fact.id, now=day(2)))

    with pytest.raises(Conflict, match="try again"):
        second.result(PATIENCE_SECONDS)
    assert claims(owner, now=NOW) == [CLAIM]
