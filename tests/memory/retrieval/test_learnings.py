"""Search in learnings: by meaning and by words, within teams, with their votes."""

from dataclasses import replace
from uuid import UUID

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account
from memory.owner import Owner
from memory.retrieval.search import search_learnings
from memory.scoring import wilson_lower_bound
from memory.services.accounts.register import delete_team, remove_member
from memory.services.contexts.manage import archive_context
from memory.services.learnings import find_learnings, remove_learning, vote_on_learning
from tests.memory.episodes import NOW, query
from tests.memory.learnings import learn, team_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


@pytest.fixture
def crew(owner: Owner, colleague: Owner) -> UUID:
    return team_of(owner, colleague).id


def insights(owner: Owner, **asked: object) -> list[str]:
    return [hit.insight for hit in search_learnings(owner, query(**asked), now=NOW).hits]  # type: ignore[arg-type]


def test_the_nearest_come_first(owner: Owner, colleague: Owner, crew: UUID) -> None:
    learn(owner, crew, "far", angle=1.0)
    learn(owner, crew, "near", angle=0.1)

    assert insights(colleague) == ["near", "far"]
    assert insights(colleague, top_k=1) == ["near"]


def test_a_hit_has_its_team_and_its_votes(owner: Owner, colleague: Owner, crew: UUID) -> None:
    learning = learn(owner, crew, angle=0.1)
    vote_on_learning(colleague, learning.id, helpful=True, now=NOW)

    [hit] = search_learnings(owner, query(), now=NOW).hits

    assert (hit.id, hit.item_key, hit.agent_id) == (learning.id, f"learning:{learning.id}", "assistant")
    assert (hit.team_id, hit.helpful_count, hit.unhelpful_count) == (crew, 1, 0)
    assert hit.score == wilson_lower_bound(1, 1)


def test_learnings_without_vectors_are_found_by_their_words_best_first(owner: Owner, crew: UUID) -> None:
    learn(owner, crew, "The key is under the mat, and the mat is by the door.")
    learn(owner, crew, "The mat is brown.")
    learn(owner, crew, "Nothing of that kind.")

    found = search_learnings(owner, query("key under the mat"), now=NOW)

    assert [hit.insight for hit in found.hits] == [
        "The key is under the mat, and the mat is by the door.",
        "The mat is brown.",
    ]
    assert found.degraded == ["embedding_pending"]


def test_other_teams_and_accounts_find_nothing(owner: Owner, crew: UUID, stranger: Account) -> None:
    learn(owner, crew, angle=0.1)
    outsider = replace(owner, agent_id="outsider")
    team_of(outsider, name="others")

    assert insights(outsider) == insights(Owner(account_id=stranger.id)) == []
    assert insights(replace(owner, agent_id="")) == ["Look under the mat."]


def test_an_agent_that_left_the_team_finds_no_learnings(owner: Owner, colleague: Owner, crew: UUID) -> None:
    learn(owner, crew, angle=0.1)

    remove_member(owner, crew, agent_id=colleague.agent_id)

    assert (insights(owner), insights(colleague)) == (["Look under the mat."], [])


def test_a_dissolved_teams_learnings_are_found_by_the_account_without_a_team(owner: Owner, crew: UUID) -> None:
    learn(owner, crew, angle=0.1)

    delete_team(owner, crew)

    [hit] = search_learnings(replace(owner, agent_id=""), query(), now=NOW).hits
    assert (hit.team_id, insights(owner)) == (None, [])


def test_removed_and_archived_learnings_are_not_found(owner: Owner, crew: UUID) -> None:
    removed, archived = learn(owner, crew, "removed", angle=0.1), learn(owner, crew, "archived", angle=0.2)
    remove_learning(owner, removed.id, now=NOW)
    assert insights(owner) == ["archived"]

    archive_context(replace(owner, agent_id=""), archived.context_id, expected=None, now=NOW)  # type: ignore[arg-type]

    assert insights(owner) == []


def test_a_search_may_be_limited_to_one_team(owner: Owner, crew: UUID, embedding_server: object) -> None:
    other = team_of(owner, name="other").id
    learn(owner, crew, "mat of ours")
    learn(owner, other, "mat of others")

    found = find_learnings(owner, text="mat", top_k=10, own=None, team_id=other, now=NOW)

    assert [hit.insight for hit in found.hits] == ["mat of others"]


def test_a_search_is_one_statement(owner: Owner, crew: UUID, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    learn(owner, crew, angle=0.1)

    with django_assert_num_queries(1):
        search_learnings(owner, query(), now=NOW)
