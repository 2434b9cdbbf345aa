"""Learnings: published to a team, voted on by its members, visible and removable for permitted agents."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import cast
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import Account, AuditEntry, Learning, LearningVote, Level, PersistentContext, Team
from memory.owner import Owner
from memory.scoring import wilson_lower_bound
from memory.services.accounts.register import add_member, delete_team, remove_member
from memory.services.contexts.manage import archive_context, grant_context
from memory.services.learnings import (
    find_learning,
    find_learnings,
    remove_learning,
    visible_learnings,
    vote_on_learning,
)
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection
from tests.memory.episodes import NOW
from tests.memory.learnings import learn, team_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


@pytest.fixture
def outsider(owner: Owner) -> Owner:
    """Return an agent of another team in the same account."""
    outsider = replace(owner, agent_id="outsider")
    team_of(outsider, name="others")
    return outsider


@pytest.fixture
def whole_account(owner: Owner) -> Owner:
    return replace(owner, agent_id="")


@pytest.fixture
def crew(owner: Owner, colleague: Owner) -> Team:
    return team_of(owner, colleague)


def insights(owner: Owner) -> list[str]:
    return [learning.text for learning in visible_learnings(owner, now=NOW).order_by("id")]


def test_a_learning_is_visible_to_its_team_only(
    owner: Owner, colleague: Owner, outsider: Owner, whole_account: Owner, crew: Team, stranger: Account
) -> None:
    learn(owner, crew.id)

    assert insights(colleague) == insights(owner) == insights(whole_account) == ["Look under the mat."]
    assert insights(outsider) == insights(Owner(account_id=stranger.id)) == []


def test_teams_do_not_see_each_others_learnings(owner: Owner, outsider: Owner, crew: Team) -> None:
    learn(owner, crew.id, "ours")
    learn(outsider, Team.objects.get(name="others").id, "theirs")

    assert (insights(owner), insights(outsider)) == (["ours"], ["theirs"])


def test_all_learnings_of_a_team_are_in_one_context(owner: Owner, colleague: Owner, crew: Team) -> None:
    first, second = learn(owner, crew.id), learn(colleague, crew.id)

    context = PersistentContext.objects.get()
    assert first.context_id == second.context_id == context.id
    assert (context.agent_id, context.team, context.scope) == ("", crew, "team")
    assert (context.name, context.context_type) == ("learnings", "shared_context")


def test_only_members_may_publish_to_a_team(outsider: Owner, crew: Team, stranger: Account) -> None:
    for other, team_id in (
        (outsider, crew.id),
        (outsider, uuid4()),
        (Owner(account_id=stranger.id), crew.id),
    ):
        with pytest.raises(Unprocessable, match="there is no such team, or the agent is not in it"):
            learn(other, team_id)

    assert not PersistentContext.objects.exists()


def test_only_members_may_publish_to_a_team_with_learnings(owner: Owner, outsider: Owner, crew: Team) -> None:
    learn(owner, crew.id)

    with pytest.raises(Unprocessable):
        learn(outsider, crew.id)


def test_the_account_may_publish_to_any_team(owner: Owner, whole_account: Owner, crew: Team) -> None:
    learn(whole_account, crew.id)

    assert insights(owner) == ["Look under the mat."]


def test_an_agent_that_leaves_a_team_no_longer_sees_its_learnings(
    owner: Owner, colleague: Owner, whole_account: Owner, crew: Team
) -> None:
    learning = learn(owner, crew.id)

    remove_member(whole_account, crew.id, agent_id=owner.agent_id)

    assert (insights(owner), insights(colleague)) == ([], ["Look under the mat."])
    for act in (find_learning, remove_learning):
        with pytest.raises(NotFound):
            act(owner, learning.id, now=NOW)


def test_an_agent_that_joins_a_team_sees_earlier_learnings(owner: Owner, outsider: Owner, crew: Team) -> None:
    learn(owner, crew.id)

    add_member(owner, crew.id, agent_id=outsider.agent_id)

    assert insights(outsider) == ["Look under the mat."]


def test_learnings_of_a_dissolved_team_are_visible_to_the_account_only(
    owner: Owner, colleague: Owner, whole_account: Owner, crew: Team
) -> None:
    learn(owner, crew.id)

    delete_team(whole_account, crew.id)

    assert insights(owner) == insights(colleague) == []
    assert insights(whole_account) == ["Look under the mat."]


def test_votes_are_counted_and_scored(owner: Owner, colleague: Owner, whole_account: Owner, crew: Team) -> None:
    learning = learn(whole_account, crew.id)

    vote_on_learning(owner, learning.id, helpful=True, now=NOW)
    voted = vote_on_learning(colleague, learning.id, helpful=False, now=NOW)

    assert (voted.helpful_count, voted.unhelpful_count, voted.score) == (1, 1, wilson_lower_bound(1, 2))
    stored = Learning.objects.get()
    assert (stored.helpful_count, stored.unhelpful_count, stored.score) == (1, 1, wilson_lower_bound(1, 2))


def test_voting_again_changes_the_vote(owner: Owner, colleague: Owner, crew: Team) -> None:
    learning = learn(owner, crew.id)

    for helpful in (True, True, False):
        voted = vote_on_learning(colleague, learning.id, helpful=helpful, now=NOW)

    assert (voted.helpful_count, voted.unhelpful_count, voted.score) == (0, 1, 0.0)
    assert LearningVote.objects.get().helpful is False


def test_an_agent_cannot_vote_on_its_own_insight(owner: Owner, crew: Team) -> None:
    learning = learn(owner, crew.id)

    with pytest.raises(Unprocessable):
        vote_on_learning(owner, learning.id, helpful=True, now=NOW)

    assert not LearningVote.objects.exists()


def test_a_vote_needs_an_agent(owner: Owner, whole_account: Owner, crew: Team) -> None:
    learning = learn(owner, crew.id)

    with pytest.raises(Unprocessable):
        vote_on_learning(whole_account, learning.id, helpful=True, now=NOW)


def test_an_agent_that_may_only_read_cannot_vote(
    owner: Owner, outsider: Owner, whole_account: Owner, crew: Team
) -> None:
    learning = learn(owner, crew.id)
    with pytest.raises(NotFound):
        vote_on_learning(outsider, learning.id, helpful=True, now=NOW)
    context_id, reader = cast("UUID", learning.context_id), outsider.agent_id

    grant_context(whole_account, context_id, agent_id=reader, level=Level.READ, expected=None, now=NOW)

    assert insights(outsider) == ["Look under the mat."]
    with pytest.raises(Forbidden):
        vote_on_learning(outsider, learning.id, helpful=True, now=NOW)


def test_the_publisher_may_remove_a_learning(owner: Owner, colleague: Owner, crew: Team) -> None:
    learning = learn(owner, crew.id)
    with pytest.raises(Forbidden):
        remove_learning(colleague, learning.id, now=NOW)

    remove_learning(owner, learning.id, now=NOW)

    assert insights(colleague) == []
    with pytest.raises(NotFound):
        vote_on_learning(colleague, learning.id, helpful=True, now=NOW)


def test_the_account_may_remove_any_learning(owner: Owner, whole_account: Owner, crew: Team) -> None:
    learning = learn(owner, crew.id)

    remove_learning(whole_account, learning.id, now=NOW)

    assert insights(whole_account) == []


def test_learnings_of_an_archived_context_are_read_only_and_not_found(
    owner: Owner, colleague: Owner, whole_account: Owner, crew: Team
) -> None:
    learning = learn(owner, crew.id, angle=0.0)

    archive_context(whole_account, learning.context_id, expected=None, now=NOW)  # type: ignore[arg-type]

    assert insights(colleague) == ["Look under the mat."]
    for write in (
        lambda: learn(owner, crew.id, "another"),
        lambda: vote_on_learning(colleague, learning.id, helpful=True, now=NOW),
        lambda: remove_learning(owner, learning.id, now=NOW),
    ):
        with pytest.raises(Conflict):
            write()


def test_the_audit_log_records_operations_and_no_insights(owner: Owner, colleague: Owner, crew: Team) -> None:
    learning = learn(owner, crew.id)
    vote_on_learning(colleague, learning.id, helpful=True, now=NOW)
    remove_learning(owner, learning.id, now=NOW)

    entries = AuditEntry.objects.filter(affected_ids=[str(learning.id)]).order_by("id")

    assert list(entries.values_list("operation", "memory_type", "agent_id")) == [
        ("store", "semantic", "assistant"),
        ("vote", "semantic", "colleague"),
        ("archive", "semantic", "assistant"),
    ]
    assert not any("mat" in str(entry.__dict__) for entry in AuditEntry.objects.all())


def test_publishing_and_voting_cost_as_many_queries_as_stated(
    owner: Owner, colleague: Owner, crew: Team, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    learning = learn(owner, crew.id)

    with django_assert_num_queries(8):
        learn(owner, crew.id, "another", angle=0.0)
    with django_assert_num_queries(9):
        vote_on_learning(colleague, learning.id, helpful=True, now=NOW)


@pytest.mark.django_db(transaction=True)
def test_concurrent_first_publishers_share_one_context(
    owner: Owner, colleague: Owner, crew: Team, start_concurrently: Start
) -> None:
    with transaction.atomic():
        learn(owner, crew.id, "mine")
        other = start_concurrently(lambda: learn(colleague, crew.id, "yours"))

    other.result(PATIENCE_SECONDS)
    assert insights(owner) == ["mine", "yours"]
    assert PersistentContext.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_publishing_to_a_team_that_is_being_dissolved_is_refused(
    owner: Owner, whole_account: Owner, crew: Team, start_concurrently: Start
) -> None:
    with transaction.atomic():
        delete_team(whole_account, crew.id)
        publishing: Future[object] = start_concurrently(lambda: learn(owner, crew.id))

    with pytest.raises(Unprocessable):
        publishing.result(PATIENCE_SECONDS)


@pytest.mark.django_db(transaction=True)
def test_votes_at_the_same_time_are_all_counted(owner: Owner) -> None:
    voters = [replace(owner, agent_id=f"voter {number}") for number in range(8)]
    learning = learn(owner, team_of(owner, *voters).id)

    def vote(voter: Owner) -> Learning:
        helpful = voter is not voters[0]
        return over_own_connection(lambda: vote_on_learning(voter, learning.id, helpful=helpful, now=NOW))

    with ThreadPoolExecutor(len(voters)) as pool:
        list(pool.map(vote, voters))

    counted = Learning.objects.get()
    assert (counted.helpful_count, counted.unhelpful_count) == (7, 1)
    assert counted.score == wilson_lower_bound(7, 8)


def test_a_search_in_a_team_without_learnings_finds_none_of_others(
    owner: Owner, crew: Team, embedding_server: object
) -> None:
    learn(owner, crew.id)
    idle = team_of(owner, name="idle")

    for team_id in (idle.id, uuid4()):
        found = find_learnings(owner, text="mat", top_k=5, own=None, team_id=team_id, now=NOW)
        assert found.hits == []
