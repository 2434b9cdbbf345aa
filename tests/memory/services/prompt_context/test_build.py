"""Tests for the memory node (A7) in process: its default query, and its statements and round trips."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from ledger import store as ledger
from memory.models import Conversation
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import ClientVector
from memory.services.prompt_context.build import build_prompt_context, conclude_prompt_context
from memory.services.prompt_context.layout import NOTICE
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef
from tests.embedding_server import MODEL, vector_of
from tests.memory.context import request_for
from tests.memory.episodes import NOW
from tests.memory.turns import say, turn
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


def store_summaries(owner: Owner, *summaries: str) -> None:
    drafts = [EpisodeDraft(conversation_id="before", summary=summary) for summary in summaries]
    store_episodes(owner, drafts=drafts, embedded=embed_texts(summaries), now=NOW)


def nearest_text(owner: Owner, **asked: Any) -> str:
    found = build_prompt_context(owner, request_for(**asked), now=NOW)
    return found.items[0].text


def test_the_query_defaults_to_the_users_latest_message(owner: Owner) -> None:
    store_summaries(owner, "the boiler", "the roof")
    say(owner, turn("the boiler"), turn("the roof"), turn("the boiler", role="assistant"))

    assert nearest_text(owner) == "the roof"
    assert nearest_text(owner, query="the boiler") == "the boiler"


def test_the_clients_vector_replaces_a_query(owner: Owner) -> None:
    store_summaries(owner, "the boiler", "the roof")

    assert nearest_text(owner, own=ClientVector(model=MODEL, vector=vector_of("the boiler"))) == "the boiler"


def test_without_a_query_and_a_message_of_a_user_the_context_is_working_memory_and_the_ledger(owner: Owner) -> None:
    say(owner, turn("the boiler", role="assistant"))
    store_summaries(owner, "the boiler")
    WorkingMemory(owner).set("c1", {"scratchpad": "call Ana"})
    ledger.mark(ConversationRef(account_id=owner.account_id, conversation_id="c1"), "skill:plumbing")

    known = build_prompt_context(owner, request_for(conversation_id="c1"), now=NOW)
    unknown = build_prompt_context(owner, request_for(conversation_id="unknown"), now=NOW)
    conclude_prompt_context(owner, known, now=NOW)

    assert known.context.splitlines() == [
        NOTICE,
        "",
        "[Working Memory]",
        "Scratchpad: call Ana",
        "",
        "[Injection Ledger -- Shown Already]",
        "- skill:plumbing",
    ]
    assert (known.items, unknown.context, unknown.tokens) == ([], "", 0)


def test_a_failing_summary_degrades_the_context(owner: Owner) -> None:
    say(owner, turn("the boiler"))
    Conversation.objects.update(summary_error="provider_refused")

    contexts = [
        build_prompt_context(owner, request_for(conversation_id="c1", query=query), now=NOW) for query in ("", "roof")
    ]

    assert ["summary_failing" in context.degraded for context in contexts] == [True, True]


def test_the_fields_of_working_memory_can_be_chosen(owner: Owner) -> None:
    WorkingMemory(owner).set("c1", {"scratchpad": "call Ana", "plan": "dig", "step": 2})
    request = replace(request_for(conversation_id="c1"), working_fields=["step", "plan", "missing"])

    context = build_prompt_context(owner, request, now=NOW)

    assert context.context.splitlines()[2:5] == ["[Working Memory]", "plan: dig", "step: 2"]


def test_a_context_takes_three_statements_and_two_round_trips(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    WorkingMemory(owner).set("c1", {"scratchpad": "call Ana"})
    store_summaries(owner, "the boiler")
    nearest_text(owner, query="the boiler")

    # the conversation, orientation, candidates; working memory, the vector of the query
    with counted_commands() as commands, django_assert_num_queries(3):
        nearest_text(owner, query="the boiler")

    assert len(commands) == 2


def test_the_ledger_takes_one_round_trip_to_read_and_one_to_mark(owner: Owner) -> None:
    store_summaries(owner, "the boiler")
    build_prompt_context(owner, request_for(query="the boiler", mark=True, suppress=True), now=NOW)

    with counted_commands() as marking:
        build_prompt_context(owner, request_for(query="the boiler", mark=True), now=NOW)
    with counted_commands() as looking:
        build_prompt_context(owner, request_for(query="the boiler", suppress=True), now=NOW)

    # with nothing left to show, one more recall asks whether the ledger holds the answer
    assert (len(marking), len(looking)) == (3, 4)


def test_the_default_query_takes_one_more_round_trip(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    say(owner, turn("the boiler"))
    store_summaries(owner, "the boiler")
    nearest_text(owner)

    # the latest messages of the conversation besides
    with counted_commands() as commands, django_assert_num_queries(3):
        nearest_text(owner)

    assert len(commands) == 3
