"""Selecting words depend on the account: a small agent of a large one, or a filter, loses neither results nor time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.models import Account
from memory.owner import Owner
from memory.retrieval.retrievers.lexical import MAX_MATCHES
from tests.memory.crowds import analyze, crowd, prefer_indexes
from tests.memory.episodes import NOW, draft, store
from tests.memory.gatherings import Sent, explain, steps_of
from tests.memory.words import count_terms, found_by_search, found_by_words, texts_by_words

pytestmark = pytest.mark.django_db


def make_common(owner: Owner, *terms: str) -> None:
    """Make the account hold these words so often that they do not select."""
    count_terms(owner.account_id, dict.fromkeys(terms, MAX_MATCHES), docs=100_000, tokens=400_000)


def test_a_small_agent_finds_by_words_that_are_common_elsewhere(owner: Owner) -> None:
    make_common(owner, "pump", "roof")
    store(replace(owner, agent_id="another"), draft("weir"))
    store(owner, draft("the pump"), draft("the roof and the pump"), draft("nothing"))

    assert texts_by_words(owner, "weir roof pump") == ["the roof and the pump", "the pump"]
    assert list(found_by_search(owner, "weir roof pump")) == list(found_by_words(owner, "weir roof pump"))


def test_a_narrow_filter_finds_by_words_that_are_common_elsewhere(account: Account) -> None:
    owner = Owner(account_id=account.id)
    make_common(owner, "pump")
    store(owner, draft("weir"), now=NOW - timedelta(days=2))
    store(owner, draft("the pump"))

    assert texts_by_words(owner, "weir pump", since=NOW - timedelta(days=1)) == ["the pump"]
    assert texts_by_words(owner, "weir pump") == ["weir"]


def test_a_small_agent_finds_texts_with_rare_or_common_words(owner: Owner) -> None:
    make_common(owner, "pump")
    store(owner, draft("weir"), draft("weir pump"), draft("pump"))

    assert texts_by_words(owner, "weir pump") == ["weir pump", "weir", "pump"]


@pytest.mark.slow
def test_words_are_looked_for_by_indexes_and_common_ones_by_the_agents_rows(account: Account) -> None:
    agent = crowd(account, rows=6_000)[3]
    make_common(agent, "word1")
    analyze()
    prefer_indexes()
    with Sent() as sent:
        found = found_by_words(agent, "word3500 word1")

    plan = explain(*sent.statements[-1])

    steps = [step for step in steps_of(plan["Plan"]) if step["Actual Loops"]]
    assert len(found) == 30
    assert "memories" not in {step["Relation Name"] for step in steps if step["Node Type"] == "Seq Scan"}
    by_words = [step for step in steps if step.get("Index Name") == "memory_lexemes_gin"]
    assert sum(step["Actual Rows"] * step["Actual Loops"] for step in by_words) < 10
    assert "memory_agent" in {step.get("Index Name") for step in steps}
