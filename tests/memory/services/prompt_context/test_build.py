"""Tests for the memory node (A7) in process: its default query, and its statements and round trips."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import Unprocessable
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import ClientVector
from memory.services.prompt_context.build import build_prompt_context
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.tiers.working import WorkingMemory
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


def test_a_query_is_required_without_a_message_of_a_user(owner: Owner) -> None:
    say(owner, turn("the boiler", role="assistant"))

    for conversation_id in ("c1", "unknown"):
        with pytest.raises(Unprocessable):
            build_prompt_context(owner, request_for(conversation_id=conversation_id), now=NOW)


def test_a_context_takes_two_statements_and_two_round_trips(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    WorkingMemory(owner).set("c1", {"scratchpad": "call Ana"})
    store_summaries(owner, "the boiler")
    nearest_text(owner, query="the boiler")

    # orientation, candidates; working memory, the vector of the query
    with counted_commands() as commands, django_assert_num_queries(2):
        nearest_text(owner, query="the boiler")

    assert len(commands) == 2


def test_the_ledger_takes_one_round_trip_to_read_and_one_to_mark(owner: Owner) -> None:
    store_summaries(owner, "the boiler")
    build_prompt_context(owner, request_for(query="the boiler", mark=True, suppress=True), now=NOW)

    with counted_commands() as marking:
        build_prompt_context(owner, request_for(query="the boiler", mark=True), now=NOW)
    with counted_commands() as looking:
        build_prompt_context(owner, request_for(query="the boiler", suppress=True), now=NOW)

    assert (len(marking), len(looking)) == (3, 3)


def test_the_default_query_takes_one_more_statement_and_round_trip(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    say(owner, turn("the boiler"))
    store_summaries(owner, "the boiler")
    nearest_text(owner)

    # the conversation besides; its latest messages
    with counted_commands() as commands, django_assert_num_queries(3):
        nearest_text(owner)

    assert len(commands) == 3
