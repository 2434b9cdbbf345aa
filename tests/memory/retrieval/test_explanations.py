"""Explanations of a result: signals from which its score follows, and reasons in one order."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from memory.models import Kind, Memory
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Posture, TimeWindow
from memory.retrieval.ranking import FUSIONS, SIGNAL_PREFIX
from memory.retrieval.ranking.signals import SIGNALS
from memory.retrieval.scorers import SCORERS
from tests.memory.entities import entity_of
from tests.memory.episodes import NOW, draft, store
from tests.memory.facts import know
from tests.memory.goals import aim
from tests.memory.graphs import link
from tests.memory.procedures import learn
from tests.memory.recalls import BY_WORDS, found_by_words
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

FOUND = {"bm25", "similarity", "hops", "relevance", "content", "gist"}


@pytest.fixture
def story_owner(owner: Owner) -> Owner:
    """An owner with memories of many kinds about one subject, and a goal that some are linked to."""
    drafts = [turn("The boiler leaks.", role="user"), turn("The boiler is old.", role="assistant"), turn("Well then.")]
    stored = say(owner, *drafts, now=NOW - timedelta(days=3))
    store(owner, draft("They spoke of the boiler.", conversation_id="c2"))
    fact = know(owner, "The boiler is in the cellar.", confidence=0.7, turn_ids=[stored.turns[0].id])
    link(fact, aim(owner, "Mend the boiler."), "ABOUT")
    entity_of(owner, "boiler", type="thing", salience=0.9)
    learn(owner, "Empty the boiler first.")
    Memory.objects.filter(kind=Kind.STRATEGY).update(pinned=True, trust=0.4)
    return owner


def explain(owner: Owner, *further: str, techniques: tuple[str, ...] = BY_WORDS) -> list[Candidate]:
    return found_by_words(
        owner,
        "boiler leaks",
        techniques=(*techniques, *further),
        conversation_id="c1",
        posture=Posture.ACTIVE_TURN,
        windows=[TimeWindow(since=NOW - timedelta(days=4), until=NOW - timedelta(days=2))],
        speakers=["user"],
    )


def ranked_sum(candidate: Candidate) -> float:
    return sum(value for name, value in candidate.signals.items() if name.startswith(SIGNAL_PREFIX))


@pytest.mark.parametrize("fusion", [pytest.param(name, id=name) for name in FUSIONS])
@pytest.mark.parametrize(
    "techniques", [pytest.param(BY_WORDS, id="scorers"), pytest.param(("lexical", "pinned"), id="selectors, too")]
)
def test_a_score_is_its_relevance_times_all_factors_in_its_signals(
    story_owner: Owner, techniques: tuple[str, ...], fusion: str
) -> None:
    found = explain(story_owner, fusion, techniques=techniques)

    assert len(found) == 7
    assert found == sorted(found, key=lambda each: -each.score)
    for each in found:
        factors = [
            value for name, value in each.signals.items() if name not in FOUND and not name.startswith(SIGNAL_PREFIX)
        ]
        assert each.score == pytest.approx(each.signals["relevance"] * math.prod(factors), rel=1e-12)


def test_a_relevance_is_e_to_half_the_distance_from_the_best_sum_of_ranked_signals(story_owner: Owner) -> None:
    found = explain(story_owner)

    best = max(map(ranked_sum, found))
    assert max(each.signals["relevance"] for each in found) == 1
    for each in found:
        assert 2 * math.log(each.signals["relevance"]) == pytest.approx(ranked_sum(each) - best, abs=1e-9)
        assert {name.removeprefix(SIGNAL_PREFIX) for name in each.signals if name.startswith(SIGNAL_PREFIX)} <= set(
            SIGNALS
        )


@pytest.mark.parametrize("fusion", ["standardized", "rrf"])
def test_other_fusions_weigh_no_signals(story_owner: Owner, fusion: str) -> None:
    assert not any(name.startswith(SIGNAL_PREFIX) for each in explain(story_owner, fusion) for name in each.signals)


def test_every_scorer_that_applied_is_in_the_signals(story_owner: Owner) -> None:
    said = {name for each in explain(story_owner) for name in each.signals}

    # nothing is named, and the time asked about is over
    assert set(SCORERS) - said == {"relationship", "temporal_context"}


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in SCORERS])
def test_a_disabled_scorer_adds_no_signal(story_owner: Owner, name: str) -> None:
    assert not any(name in each.signals for each in explain(story_owner, f"-{name}"))


def test_reasons_have_a_fixed_order_and_quote_no_memory(story_owner: Owner) -> None:
    reasons = {(each.kind, each.text): each.reasons for each in explain(story_owner)}

    assert reasons[Kind.TURN, "The boiler leaks."] == [
        "shares words with the question",
        "of the time asked about",
        "said by whom the question asks about",
        "of this conversation",
    ]
    assert reasons[Kind.STRATEGY, "Empty the boiler first."] == [
        "shares words with the question",
        "pinned",
        "of the workspace",
    ]
    assert reasons[Kind.GOAL, "Mend the boiler."][-1] == "an open goal"
    assert reasons[Kind.FACT, "The boiler is in the cellar."][-2:] == [
        "linked to an open goal",
        "what was said supports it",
    ]


def test_repeating_a_question_gives_the_same_scores_and_reasons(story_owner: Owner) -> None:
    once, again = explain(story_owner), explain(story_owner)

    assert [(each.id, each.score, each.reasons) for each in once] == [
        (each.id, each.score, each.reasons) for each in again
    ]


def test_with_a_user_links_to_the_users_knowledge_are_a_reason(owner: Owner) -> None:
    own = know(replace(owner, user_id="ana"), "Ana has a boiler.")
    link(node := learn(owner, "Empty the boiler first."), own, "ABOUT")

    found = found_by_words(replace(owner, user_id="ana"), "boiler")

    (linked,) = [each for each in found if each.id == node.id]
    assert linked.signals["relationship"] == pytest.approx(1.075)
    assert "linked to what is known of the user" in linked.reasons
