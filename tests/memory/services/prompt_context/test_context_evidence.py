"""The evidence of a context (B2): results of all kinds with what was said around turns, behind the wall, in four
statements.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from ledger import store as ledger
from memory import conf
from memory.models import Account, Kind, Memory, Turn
from memory.owner import Owner
from memory.providers.deadlines import Deadline
from memory.retrieval.queries import LONGEST_QUERY, Scope
from memory.services.embedding.embed import embed_texts
from memory.services.prompt_context.build import Context, conclude_context, deliver, gather_context
from memory.services.prompt_context.layout import Material
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory_project.redis import Place
from tests.memory.audits import told_read
from tests.memory.context import request_for
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.facts import know
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

TALK = ("Good morning.", "The boiler is cold.", "It has no pressure.", "Ana repairs it.", "Not today.")
COLD, NO_PRESSURE = "The boiler is cold.", "It has no pressure."


@pytest.fixture
def turns(owner: Owner) -> Sequence[Turn]:
    """A conversation, a minute a turn; its second turn alone is found by words."""
    drafts = [turn(text, timestamp=NOW - timedelta(minutes=10 - at)) for at, text in enumerate(TALK)]
    return say(owner, *drafts, conversation_id="before").turns


def found(owner: Owner, query: str = "boiler", **asked: Any) -> Context:
    return gather_context(owner, request_for(query=query, **asked), now=NOW)


def texts(context: Context) -> list[str]:
    return [item.text for item in context.items]


@pytest.mark.usefixtures("turns")
def test_a_turn_comes_with_what_was_said_before_and_after_it(owner: Owner) -> None:
    context = found(owner, top_k=1)

    assert texts(context) == list(TALK[:3])
    assert [bool(item.ways) for item in context.items] == [False, True, False]
    assert "1. Conversation before, 2026-05-04 11:50 UTC\n> user: Good morning." in context.context


def test_hidden_neighbours_leave_a_gap(owner: Owner, turns: Sequence[Turn]) -> None:
    for text, hidden in ((TALK[0], {"quarantined": True}), (TALK[2], {"buried": True})):
        Memory.objects.filter(text=text).update(**hidden)

    assert texts(found(owner, top_k=1)) == [COLD]


def test_neighbours_of_another_user_or_channel_are_not_shown(owner: Owner, turns: Sequence[Turn]) -> None:
    Memory.objects.filter(id=turns[0].id).update(user_id="ben")
    Memory.objects.filter(id=turns[2].id).update(channel="elsewhere")
    ana = Owner(account_id=owner.account_id, agent_id=owner.agent_id, user_id="ana")

    assert texts(found(ana, top_k=1)) == [COLD]


@pytest.mark.usefixtures("turns")
def test_who_takes_no_part_sees_nothing(owner: Owner, stranger: Account) -> None:
    for other in (Owner(account_id=owner.account_id, agent_id="other"), Owner(account_id=stranger.id, agent_id="x")):
        assert found(other).context == ""


def test_filters_by_time_hold_for_neighbours(owner: Owner, turns: Sequence[Turn]) -> None:
    assert texts(found(owner, top_k=1, since=turns[1].event_time)) == [COLD, NO_PRESSURE]
    assert texts(found(owner, top_k=1, until=turns[2].event_time)) == list(TALK[:2])


def test_what_the_ledger_holds_is_no_neighbour(owner: Owner, turns: Sequence[Turn]) -> None:
    ledger.mark(Place(account_id=owner.account_id, conversation_id="c1"), f"turn:{turns[0].id}")

    assert texts(found(owner, top_k=1, suppress=True)) == [COLD, NO_PRESSURE]
    assert texts(found(owner, top_k=1)) == list(TALK[:3])


@pytest.mark.usefixtures("turns")
def test_who_asks_for_the_last_turns_alone_gets_none_before_them(owner: Owner) -> None:
    asked: dict[str, Any] = {"query": "today", "conversation_id": "before", "top_k": 1}

    assert texts(found(owner, **asked, scopes=[Scope.TURN])) == ["Not today."]
    assert texts(found(owner, **asked, scopes=[Scope.SESSION])) == ["Ana repairs it.", "Not today."]


def test_the_question_itself_is_no_evidence(owner: Owner) -> None:
    say(owner, turn("Where is the boiler?"))
    say(owner, turn("Where is the boiler?"), conversation_id="before")

    assert [item.conversation_id for item in found(owner, query="").items] == ["before"]


def test_the_question_itself_is_no_neighbour(owner: Owner) -> None:
    say(owner, turn("The boiler is cold."), turn("Who repairs the boiler?"))

    assert texts(found(owner, query="")) == ["The boiler is cold."]


def test_a_message_too_long_for_a_question_is_asked_by_its_beginning_and_no_evidence(owner: Owner) -> None:
    say(owner, turn("The boiler is cold."), turn("boiler " + "x" * 2 * LONGEST_QUERY))

    context = found(owner, query="")

    assert texts(context) == ["The boiler is cold."]
    assert len(context.asked.query.text) == LONGEST_QUERY


def test_memories_of_all_kinds_are_evidence(owner: Owner) -> None:
    know(owner, "The boiler is in the cellar.", now=NOW)
    say(owner, turn("The boiler hums."), conversation_id="before")
    store(owner, draft("The boiler was repaired.", conversation_id="before"))

    context = found(owner)

    assert texts(context)[0] == "The boiler was repaired."
    assert sorted(item.kind for item in context.items[1:]) == ["fact", "turn"]
    assert "Fact, confidence 1.00, current" in context.context


@pytest.mark.parametrize("is_embedded", [True, False], ids=["by meaning", "by words"])
def test_the_three_nearest_episodes_are_in_whatever_else_is_nearer(owner: Owner, is_embedded: bool) -> None:
    summaries = [f"boiler {number}" for number in range(4)]
    embedded = embed_texts(summaries) if is_embedded else NOTHING
    drafts = [EpisodeDraft(conversation_id="before", summary=summary) for summary in summaries]
    store_episodes(owner, drafts=drafts, embedded=embedded, now=NOW)
    say(owner, *(turn("boiler") for _ in range(150)), conversation_id="long")

    context = found(owner, top_k=1)

    assert [item.kind for item in context.items[:3]] == [Kind.EPISODE] * 3


def test_it_takes_four_statements_and_without_turns_three_at_most(
    owner: Owner,
    turns: Sequence[Turn],
    django_assert_num_queries: DjangoAssertNumQueries,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    know(owner, "The boiler is in the cellar.", now=NOW)
    found(owner)

    with django_assert_num_queries(4):
        found(owner)
    with django_assert_max_num_queries(3):
        found(owner, kinds=[Kind.FACT])


@pytest.mark.usefixtures("turns")
def test_neighbours_that_would_come_too_late_are_left_out(owner: Owner) -> None:
    late = gather_context(owner, request_for(query="boiler", deadline_ms=0), now=NOW)

    assert "neighbours_deadline" in late.degraded


def test_one_deadline_holds_from_the_first_look_to_the_last(owner: Owner) -> None:
    request = request_for(query="boiler", deadline_ms=60_000)
    past = replace(request, asked=replace(request.asked, deadline=Deadline(0.0)))

    degraded = gather_context(owner, past, now=NOW).degraded

    assert {"pinned_deadline", "neighbours_deadline"} <= set(degraded)


@pytest.mark.usefixtures("turns")
def test_what_was_found_at_the_last_moment_is_still_shown(owner: Owner) -> None:
    material = Material(fields={}, episodes=[], evidence=found(owner).bundle.results, neighbours=[])

    laid = deliver(owner, material, request_for(query="boiler", deadline_ms=0))

    assert (len(laid.items), laid.is_late) == (len(material.evidence), False)


def test_concluding_counts_the_reads_of_what_is_shown_and_writes_them_down(
    owner: Owner, turns: Sequence[Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")
    context = found(owner, top_k=1)

    conclude_context(owner, context, now=NOW)

    read = Memory.objects.filter(access_count=1, last_accessed=NOW)
    assert sorted(read.values_list("text", flat=True)) == sorted(TALK[:3])
    assert told_read().affected_ids == [str(item.id) for item in context.items]
