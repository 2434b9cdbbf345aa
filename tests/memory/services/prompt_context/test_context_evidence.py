"""Tests for the evidence of a context (B2): results of all kinds with adjacent turns, tenant isolation, statements."""

import re
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
from memory.providers.connections import Deadline
from memory.retrieval.queries import MAX_QUERY_CHARACTERS, Scope
from memory.services.embedding.embed import embed_texts
from memory.services.prompt_context.build import (
    PromptContext,
    build_prompt_context,
    conclude_prompt_context,
    render_and_mark,
)
from memory.services.prompt_context.layout import ContextMaterial
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory_project.redis import ConversationRef
from tests.memory.audits import written_read
from tests.memory.context import request_for
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.facts import know
from tests.memory.goals import aim, finish
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

TALK = ("Good morning.", "The boiler is cold.", "It has no pressure.", "Ana repairs it.", "Not today.")
COLD, NO_PRESSURE = "The boiler is cold.", "It has no pressure."


@pytest.fixture
def turns(owner: Owner) -> Sequence[Turn]:
    """Store a conversation, a turn each minute; words find its second turn only."""
    drafts = [turn(text, timestamp=NOW - timedelta(minutes=10 - at)) for at, text in enumerate(TALK)]
    return say(owner, *drafts, conversation_id="before").turns


def build_context(owner: Owner, query: str = "boiler", **asked: Any) -> PromptContext:
    return build_prompt_context(owner, request_for(query=query, **asked), now=NOW)


def item_texts(context: PromptContext) -> list[str]:
    return [item.text for item in context.items]


@pytest.mark.usefixtures("turns")
def test_a_turn_is_shown_with_the_turns_next_to_it(owner: Owner) -> None:
    context = build_context(owner, top_k=1)

    assert item_texts(context) == list(TALK[:3])
    assert [bool(item.ways) for item in context.items] == [False, True, False]
    assert "1. Conversation before, 2026-05-04 11:50 UTC\n> user: Good morning." in context.context


def test_a_goal_is_shown_with_its_status(owner: Owner) -> None:
    aim(owner, "Bleed the boiler.")
    finish(owner, aim(owner, "Repair the boiler."))

    shown = build_context(owner).context

    assert set(re.findall(r"Goal, (\w+).*\n> (.*)", shown)) == {
        ("active", "Bleed the boiler."),
        ("completed", "Repair the boiler."),
    }


def test_hidden_neighbours_leave_a_gap(owner: Owner, turns: Sequence[Turn]) -> None:
    for text, hidden in ((TALK[0], {"quarantined": True}), (TALK[2], {"buried": True})):
        Memory.objects.filter(text=text).update(**hidden)

    assert item_texts(build_context(owner, top_k=1)) == [COLD]


def test_neighbours_of_another_user_or_channel_are_not_shown(owner: Owner, turns: Sequence[Turn]) -> None:
    Memory.objects.filter(id=turns[0].id).update(user_id="ben")
    Memory.objects.filter(id=turns[2].id).update(channel="elsewhere")
    ana = Owner(account_id=owner.account_id, agent_id=owner.agent_id, user_id="ana")

    assert item_texts(build_context(ana, top_k=1)) == [COLD]


@pytest.mark.usefixtures("turns")
def test_other_agents_and_accounts_see_nothing(owner: Owner, stranger: Account) -> None:
    for other in (Owner(account_id=owner.account_id, agent_id="other"), Owner(account_id=stranger.id, agent_id="x")):
        assert build_context(other).context == ""


def test_time_filters_apply_to_neighbours(owner: Owner, turns: Sequence[Turn]) -> None:
    assert item_texts(build_context(owner, top_k=1, since=turns[1].event_time)) == [COLD, NO_PRESSURE]
    assert item_texts(build_context(owner, top_k=1, until=turns[2].event_time)) == list(TALK[:2])


def test_injected_turns_are_no_neighbours(owner: Owner, turns: Sequence[Turn]) -> None:
    ledger.mark(ConversationRef(account_id=owner.account_id, conversation_id="c1"), f"turn:{turns[0].id}")

    assert item_texts(build_context(owner, top_k=1, suppress=True)) == [COLD, NO_PRESSURE]
    assert item_texts(build_context(owner, top_k=1)) == list(TALK[:3])


@pytest.mark.usefixtures("turns")
def test_the_turn_scope_excludes_earlier_neighbours(owner: Owner) -> None:
    asked: dict[str, Any] = {"query": "today", "conversation_id": "before", "top_k": 1}

    assert item_texts(build_context(owner, **asked, scopes=[Scope.TURN])) == ["Not today."]
    assert item_texts(build_context(owner, **asked, scopes=[Scope.SESSION])) == ["Ana repairs it.", "Not today."]


def test_the_question_itself_is_no_evidence(owner: Owner) -> None:
    say(owner, turn("Where is the boiler?"))
    say(owner, turn("Where is the boiler?"), conversation_id="before")

    assert build_context(owner, query="").items == []


def test_the_question_itself_is_no_neighbour(owner: Owner) -> None:
    say(owner, turn("The boiler is cold."), turn("Who repairs the boiler?"))

    assert item_texts(build_context(owner, query="")) == ["The boiler is cold."]


def test_a_too_long_message_is_truncated_to_a_query_and_is_no_evidence(owner: Owner) -> None:
    say(owner, turn("The boiler is cold."), turn("boiler " + "x" * 2 * MAX_QUERY_CHARACTERS))

    context = build_context(owner, query="")

    assert item_texts(context) == ["The boiler is cold."]
    assert len(context.recall_request.query.text) == MAX_QUERY_CHARACTERS


def test_memories_of_all_kinds_are_evidence(owner: Owner) -> None:
    know(owner, "The boiler is in the cellar.", now=NOW)
    say(owner, turn("The boiler hums."), conversation_id="before")
    store(owner, draft("The boiler was repaired.", conversation_id="before"))

    context = build_context(owner)

    assert item_texts(context)[0] == "The boiler was repaired."
    assert sorted(item.kind for item in context.items[1:]) == ["fact", "turn"]
    assert "Fact, confidence 1.00, current" in context.context


@pytest.mark.parametrize("is_embedded", [True, False], ids=["by meaning", "by words"])
def test_the_three_nearest_episodes_are_always_shown(owner: Owner, is_embedded: bool) -> None:
    summaries = [f"boiler {number}" for number in range(4)]
    embedded = embed_texts(summaries) if is_embedded else NOTHING
    drafts = [EpisodeDraft(conversation_id="before", summary=summary) for summary in summaries]
    store_episodes(owner, drafts=drafts, embedded=embedded, now=NOW)
    say(owner, *(turn("boiler") for _ in range(150)), conversation_id="long")

    context = build_context(owner, top_k=1)

    assert [item.kind for item in context.items[:3]] == [Kind.EPISODE] * 3


def test_a_context_takes_five_statements_or_four_without_turns(
    owner: Owner,
    turns: Sequence[Turn],
    django_assert_num_queries: DjangoAssertNumQueries,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    know(owner, "The boiler is in the cellar.", now=NOW)
    build_context(owner)

    with django_assert_num_queries(5):
        build_context(owner)
    with django_assert_max_num_queries(4):
        build_context(owner, kinds=[Kind.FACT])


@pytest.mark.usefixtures("turns")
def test_neighbours_are_left_out_after_the_deadline(owner: Owner) -> None:
    late = build_prompt_context(owner, request_for(query="boiler", deadline_ms=0), now=NOW)

    assert "neighbours_deadline" in late.degraded


def test_one_deadline_applies_to_all_steps(owner: Owner) -> None:
    request = request_for(query="boiler", deadline_ms=60_000)
    past = replace(request, recall_request=replace(request.recall_request, deadline=Deadline(0.0)))

    degraded = build_prompt_context(owner, past, now=NOW).degraded

    assert {"pinned_deadline", "neighbours_deadline"} <= set(degraded)


@pytest.mark.usefixtures("turns")
def test_results_found_at_the_deadline_are_still_shown(owner: Owner) -> None:
    material = ContextMaterial(fields={}, episodes=[], evidence=build_context(owner).bundle.results, neighbours=[])

    rendered = render_and_mark(owner, material, request_for(query="boiler", deadline_ms=0))

    assert (len(rendered.items), rendered.is_late) == (len(material.evidence), False)


def test_concluding_counts_and_logs_the_reads_of_the_items(
    owner: Owner, turns: Sequence[Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")
    context = build_context(owner, top_k=1)

    conclude_prompt_context(owner, context, now=NOW)

    read = Memory.objects.filter(access_count=1, last_accessed=NOW)
    assert sorted(read.values_list("text", flat=True)) == sorted(TALK[:3])
    assert written_read().affected_ids == [str(item.id) for item in context.items]
