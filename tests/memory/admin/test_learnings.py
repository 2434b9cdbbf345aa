"""Learnings in the admin: corrected as memories are, and scored by the votes that are left."""

from typing import Any

import pytest
from django.test import Client

from memory.models import Account, AuditEntry, Learning, LearningVote, Vector
from memory.owner import Owner
from memory.scoring import wilson_lower_bound
from memory.services.learnings import vote_on_learning
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.episodes import NOW
from tests.memory.learnings import learn, team_of


def agent(account: Account, agent_id: str) -> Owner:
    return Owner(account_id=account.id, agent_id=agent_id)


@pytest.fixture
def learning(account: Account, owner: Owner) -> Learning:
    """Ana found it helpful, ben did not."""
    team = team_of(owner, agent(account, "ana"), agent(account, "ben"))
    insight = learn(owner, team.id, angle=0.1)
    vote_on_learning(agent(account, "ana"), insight.id, helpful=True, now=NOW)
    vote_on_learning(agent(account, "ben"), insight.id, helpful=False, now=NOW)
    return Learning.objects.get()


def vote_of(agent_id: str) -> LearningVote:
    return LearningVote.objects.get(agent_id=agent_id)


def save(client: Client, learning: Learning, **edits: Any) -> Any:
    """Open the page, edit, save, with the votes as they stand."""
    url = page_url("learning", learning.id)
    values = form_values(client.get(url)) | {"votes-TOTAL_FORMS": 2, "votes-INITIAL_FORMS": 2}
    for number, vote in enumerate(LearningVote.objects.order_by("agent_id")):
        values |= {f"votes-{number}-id": vote.id, f"votes-{number}-learning": learning.id}
    return client.post(url, values | edits, follow=True)


def counts() -> tuple[int, int, float]:
    row = Learning.objects.get()
    return row.helpful_count, row.unhelpful_count, row.score


def test_an_insight_is_corrected_and_waits_for_its_new_vector(staff: Client, learning: Learning) -> None:
    save(staff, learning, text="Look behind the door.")

    row = Learning.objects.get()
    assert (row.text, row.version, row.embed_after is not None) == ("Look behind the door.", 2, True)
    assert not Vector.objects.exists()
    assert counts() == (1, 1, learning.score)


def test_votes_counts_and_score_are_shown(staff: Client, learning: Learning) -> None:
    page, listed = shown(staff.get(page_url("learning", learning.id))), shown(staff.get(list_url("learning")))

    assert all(word in page for word in ("ana", "ben", "1 helpful, 1 not", "crew"))
    assert f"{learning.score:.3f}" in listed


def test_deleting_a_vote_on_the_page_updates_the_score(staff: Client, learning: Learning) -> None:
    save(staff, learning, **{"votes-1-DELETE": "on"})

    assert [vote.agent_id for vote in LearningVote.objects.all()] == ["ana"]
    assert counts() == (1, 0, wilson_lower_bound(1, 1))
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.actor, entry.operation, entry.memory_type) == ("staff:chief", "delete_vote", "semantic")


def test_votes_are_deleted_from_their_list(staff: Client, learning: Learning) -> None:
    choose(staff, list_url("learningvote"), "delete_selected", vote_of("ana").pk, post="yes")
    staff.post(page_url("learningvote", vote_of("ben").pk, "delete"), {"post": "yes"})

    assert not LearningVote.objects.exists()
    assert counts() == (0, 0, 0.0)


def test_a_vote_on_an_archived_learning_can_be_deleted(staff: Client, learning: Learning) -> None:
    choose(staff, list_url("learning"), "archive", learning.id)

    staff.post(page_url("learningvote", vote_of("ana").pk, "delete"), {"post": "yes"})

    assert counts()[:2] == (0, 1)


def test_votes_are_not_changed_or_added(staff: Client, learning: Learning) -> None:
    save(staff, learning, **{"votes-0-helpful": "", "votes-TOTAL_FORMS": 3, "votes-2-agent_id": "eve"})

    assert counts()[:2] == (1, 1)
    assert LearningVote.objects.count() == 2
    assert staff.post(page_url("learningvote", vote_of("ana").pk), {"helpful": ""}).status_code == 403


def test_votes_of_a_learning_are_found_by_its_id(staff: Client, learning: Learning) -> None:
    found = [
        staff.get(list_url("learningvote", q=words)).context["cl"].result_count for words in (learning.pk, "ana", "eve")
    ]

    assert found == [2, 1, 0]


def test_a_page_costs_as_many_queries_for_many_votes_as_for_few(
    staff: Client, account: Account, learning: Learning
) -> None:
    few = queries_of(staff, page_url("learning", learning.id))

    LearningVote.objects.bulk_create(
        LearningVote(account=account, learning=learning, agent_id=f"a{n}", helpful=True) for n in range(60)
    )

    assert queries_of(staff, page_url("learning", learning.id)) == few <= 12


def test_more_votes_than_a_form_takes_have_a_list_of_their_own(staff: Client, learning: Learning) -> None:
    Learning.objects.update(helpful_count=101)

    page = shown(staff.get(page_url("learning", learning.id)))

    assert "votes-TOTAL_FORMS" not in page
    assert "Votes on this learning" in page


def test_a_learning_is_deleted_with_its_votes(staff: Client, learning: Learning) -> None:
    staff.post(page_url("learning", learning.id, "delete"), {"post": "yes"})

    assert not Learning.objects.exists()
    assert not LearningVote.objects.exists()


def test_whatever_a_learning_says_is_shown_as_text(staff: Client, account: Account, owner: Owner) -> None:
    voter = agent(account, HOSTILE[:90])
    learning = learn(owner, team_of(owner, voter, name=HOSTILE[:90]).id, HOSTILE)
    vote_on_learning(voter, learning.id, helpful=True, now=NOW)

    for url in (list_url("learning"), list_url("learningvote"), page_url("learning", learning.id)):
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page


def test_the_view_permission_alone_does_not_allow_deleting_votes(newcomer: Client, learning: Learning) -> None:
    allow("newcomer", "view_learning", "view_learningvote")

    page = newcomer.get(page_url("learning", learning.id))

    assert "ana" in shown(page)
    assert newcomer.post(page_url("learning", learning.id), {"votes-1-DELETE": "on"}).status_code == 403
    assert newcomer.post(page_url("learningvote", vote_of("ana").pk, "delete"), {"post": "yes"}).status_code == 403
    assert counts()[:2] == (1, 1)
