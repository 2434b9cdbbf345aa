"""The memory node (A7) in process: what it asks about where no query is given, and what it costs."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import Unprocessable
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import OwnVector
from memory.services.prompt_context.build import gather_context
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.tiers.working import WorkingMemory
from tests.embedding_server import MODEL, vector_of
from tests.memory.context import request_for
from tests.memory.episodes import NOW
from tests.memory.turns import say, turn
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


def remember(owner: Owner, *summaries: str) -> None:
    drafts = [EpisodeDraft(conversation_id="before", summary=summary) for summary in summaries]
    store_episodes(owner, drafts=drafts, embedded=embed_texts(summaries), now=NOW)


def nearest(owner: Owner, **asked: Any) -> str:
    found = gather_context(owner, request_for(**asked), now=NOW)
    return found.items[0].text


def test_without_a_query_the_latest_message_of_the_user_is_meant(owner: Owner) -> None:
    remember(owner, "the boiler", "the roof")
    say(owner, turn("the boiler"), turn("the roof"), turn("the boiler", role="assistant"))

    assert nearest(owner) == "the roof"
    assert nearest(owner, query="the boiler") == "the boiler"


def test_a_vector_of_ones_own_is_question_enough(owner: Owner) -> None:
    remember(owner, "the boiler", "the roof")

    assert nearest(owner, own=OwnVector(model=MODEL, vector=vector_of("the boiler"))) == "the boiler"


def test_where_no_user_has_said_anything_a_query_is_needed(owner: Owner) -> None:
    say(owner, turn("the boiler", role="assistant"))

    for conversation_id in ("c1", "unknown"):
        with pytest.raises(Unprocessable):
            gather_context(owner, request_for(conversation_id=conversation_id), now=NOW)


def test_it_costs_two_queries_and_two_round_trips(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    WorkingMemory(owner).set("c1", {"scratchpad": "call Ana"})
    remember(owner, "the boiler")
    nearest(owner, query="the boiler")

    # orientation, candidates; working memory, the vector of the query
    with counted_commands() as commands, django_assert_num_queries(2):
        nearest(owner, query="the boiler")

    assert len(commands) == 2


def test_the_ledger_costs_a_round_trip_to_look_and_one_to_mark(owner: Owner) -> None:
    remember(owner, "the boiler")
    gather_context(owner, request_for(query="the boiler", mark=True, suppress=True), now=NOW)

    with counted_commands() as marking:
        gather_context(owner, request_for(query="the boiler", mark=True), now=NOW)
    with counted_commands() as looking:
        gather_context(owner, request_for(query="the boiler", suppress=True), now=NOW)

    assert (len(marking), len(looking)) == (3, 3)


def test_to_look_for_the_query_costs_a_query_and_a_round_trip_more(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    say(owner, turn("the boiler"))
    remember(owner, "the boiler")
    nearest(owner)

    # the conversation besides; its latest messages
    with counted_commands() as commands, django_assert_num_queries(3):
        nearest(owner)

    assert len(commands) == 3
