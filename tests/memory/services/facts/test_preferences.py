"""Preferences that were learned from facts: withdrawn where these end or are corrected."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memory.models import Fact, FactReview, UserProfile
from memory.owner import Owner
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.review import decide_review, open_review
from memory.services.facts.supersede import correct_fact, replace_wrong_fact, retract_fact, supersede_fact
from memory.services.profiles import ProfileChanges, learn_preferences, write_profile
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import day, fact_draft, know

pytestmark = pytest.mark.django_db

SUSHI, RAMEN = "The user loves sushi", "The user loves ramen"


@pytest.fixture
def of_ana(owner: Owner) -> Owner:
    return replace(owner, user_id="ana")


def learn(owner: Owner, topic: str, fact: Fact) -> None:
    provenance = {"fact_id": str(fact.id), "turn_ids": [], "at": NOW.isoformat()}
    learn_preferences(owner, "ana", {topic: "likes"}, provenance=provenance, now=NOW)


def supersede(owner: Owner, fact: Fact) -> None:
    supersede_fact(owner, fact.id, fact_draft(RAMEN), embedded=NOTHING, now=day(1))


def replace_wrong(owner: Owner, fact: Fact) -> None:
    replace_wrong_fact(owner, fact.id, fact_draft(RAMEN), embedded=NOTHING, now=day(1))


def correct(owner: Owner, fact: Fact, **changes: Any) -> None:
    changed = changes or {"claim": RAMEN}
    correct_fact(owner, fact.id, changes=changed, embedded=NOTHING, now=day(1))


def retract(owner: Owner, fact: Fact) -> None:
    retract_fact(owner, fact.id, now=day(1))


def accept(owner: Owner, fact: Fact) -> None:
    review = open_review(owner, old=fact, draft=fact_draft(RAMEN), similarity=None, embedded=NOTHING, now=day(1))
    decide_review(owner, review.id, decision=FactReview.Status.ACCEPTED_NEW, now=day(1))


@pytest.mark.parametrize("end", [supersede, replace_wrong, correct, retract, accept])
def test_a_preference_goes_with_its_fact_alone(of_ana: Owner, end: Callable[[Owner, Fact], None]) -> None:
    fact, other = know(of_ana, SUSHI), know(of_ana, "The user loves tea")
    learn(of_ana, "sushi", fact)
    learn(of_ana, "tea", other)
    write_profile(of_ana, "ana", ProfileChanges(preferences={"seat": "window"}), now=NOW)

    end(of_ana, fact)

    assert UserProfile.objects.get().preferences == {"tea": "likes", "seat": "window"}


@pytest.mark.parametrize("end", [supersede, replace_wrong, correct, retract, accept])
def test_a_preference_of_the_copy_goes_as_well(of_ana: Owner, end: Callable[[Owner, Fact], None]) -> None:
    atlas = replace(of_ana, channel="atlas")
    fact = know(atlas, SUSHI)
    learn(of_ana, "sushi", globalize_fact(atlas, fact.id, reason="", embedded=NOTHING, now=NOW))

    end(atlas, fact)

    assert UserProfile.objects.get().preferences == {}


@pytest.mark.parametrize(
    ("changes", "preferences"),
    [
        ({"confidence": 0.5}, {"sushi": "likes"}),
        ({"valid_to": day(0.5)}, {}),
        ({"valid_to": day(9)}, {"sushi": "likes"}),
    ],
)
def test_a_correction_withdraws_a_preference_if_the_fact_is_over(
    of_ana: Owner, changes: dict[str, Any], preferences: dict[str, str]
) -> None:
    fact = know(of_ana, SUSHI)
    learn(of_ana, "sushi", fact)

    correct(of_ana, fact, **changes)

    assert UserProfile.objects.get().preferences == preferences
