"""Search in the log: by meaning, in a window of time, in the conversations in which an agent takes part."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import numpy as np
import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Kind, Memory
from memory.models.statements import Embedding
from memory.owner import Owner
from memory.retrieval.search import MemoryQuery, search_turns
from memory.services.embedding.embed import embed_texts
from memory.services.embedding.vector_index import Hnsw, drop_all_indexes
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import search_turns_by_text
from memory.services.turns import store_turns
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import NOW, query
from tests.memory.turns import say, turn
from tests.memory.vectors import INDEXED, MODEL, WIDTH, Clusters, build

pytestmark = pytest.mark.django_db

K = 10
LAST_HOUR = NOW - timedelta(hours=1)


def texts(owner: Owner, *, since: datetime | None = None, **asked: Any) -> list[str]:
    found = search_turns(owner, replace(query(**asked), since=since), now=NOW)
    return [hit.text for hit in found.hits]


def test_the_nearest_come_first_with_their_place_in_the_log(owner: Owner) -> None:
    say(owner, turn("far", angle=1.2), turn("near", role="assistant", angle=0.1), turn("between", angle=0.6))

    found = search_turns(owner, query(), now=NOW)

    assert [(hit.text, hit.index, hit.role) for hit in found.hits] == [
        ("near", 1, "assistant"),
        ("between", 2, "user"),
        ("far", 0, "user"),
    ]
    assert [hit.similarity for hit in found.hits] == pytest.approx([np.cos(0.1), np.cos(0.6), np.cos(1.2)], abs=2e-3)
    assert {(hit.conversation_id, hit.event_time) for hit in found.hits} == {("c1", NOW)}
    assert found.degraded == []


def test_turns_of_another_account_with_the_same_ids_are_not_found(owner: Owner, stranger: Account) -> None:
    say(owner, turn("mine", angle=0.5))
    say(replace(owner, account_id=stranger.id), turn("a stranger's", angle=0.1))

    assert texts(owner) == ["mine"]


def test_an_agent_finds_all_of_a_conversation_once_it_takes_part(owner: Owner) -> None:
    colleague = replace(owner, agent_id="colleague")
    say(colleague, turn("among others", angle=0.1), conversation_id="c2")
    say(owner, turn("mine", angle=0.2))

    before = texts(owner)
    say(owner, turn("joining", angle=0.3), conversation_id="c2")

    assert before == ["mine"]
    assert texts(owner) == ["among others", "mine", "joining"]


def test_an_owner_without_an_agent_searches_all_of_its_account(owner: Owner) -> None:
    say(owner, turn("one agent's", angle=0.1))
    say(replace(owner, agent_id="colleague"), turn("another's", angle=0.2), conversation_id="c2")

    assert texts(replace(owner, agent_id="")) == ["one agent's", "another's"]


def test_a_user_narrows_the_search(owner: Owner) -> None:
    say(replace(owner, user_id="ana"), turn("ana's", angle=0.3))
    say(replace(owner, user_id="ben"), turn("ben's", angle=0.1), conversation_id="c2")

    assert texts(replace(owner, user_id="ana")) == ["ana's"]


def test_reads_look_in_the_active_channel_and_in_the_global_one(owner: Owner) -> None:
    for channel, angle in (("roof", 0.1), ("_global", 0.2), ("garden", 0.3)):
        say(replace(owner, channel=channel), turn(channel, angle=angle), conversation_id=channel)

    assert texts(replace(owner, channel="garden")) == ["_global", "garden"]


def test_a_window_is_open_at_its_beginning_and_has_no_end(owner: Owner) -> None:
    moments = {"before": -1, "at its beginning": 0, "just within": 1, "ahead of the clock": 3_660}
    drafts = [turn(text, angle=0.1, timestamp=LAST_HOUR + timedelta(seconds=at)) for text, at in moments.items()]
    say(owner, *drafts)

    assert sorted(texts(owner, since=LAST_HOUR)) == ["ahead of the clock", "just within"]
    assert len(texts(owner)) == 4


def test_a_window_holds_for_words_too(owner: Owner) -> None:
    say(owner, turn("the boiler, long ago", timestamp=LAST_HOUR), turn("the boiler, now"))

    assert texts(owner, text="boiler", since=LAST_HOUR) == ["the boiler, now"]
    assert texts(owner, text="boiler", angle=None, since=LAST_HOUR) == ["the boiler, now"]


def test_pending_vectors_outside_the_window_do_not_degrade_the_answer(owner: Owner) -> None:
    say(owner, turn("pending", timestamp=LAST_HOUR), turn("with a vector", angle=0.1))

    found = search_turns(owner, replace(query("pending"), since=LAST_HOUR), now=NOW)

    assert ([hit.text for hit in found.hits], found.degraded) == (["with a vector"], [])


def test_a_pending_turn_is_found_by_its_words_and_the_answer_says_so(owner: Owner) -> None:
    say(owner, turn("with a vector", angle=0.1), turn("The boiler was repaired on Monday"))

    found = search_turns(owner, query("who repaired the boiler?"), now=NOW)

    assert [(hit.text, hit.similarity is None) for hit in found.hits] == [
        ("with a vector", False),
        ("The boiler was repaired on Monday", True),
    ]
    assert found.degraded == ["embedding_pending"]


@pytest.mark.parametrize(
    "hidden", [{"archived": True}, {"quarantined": True}, {"expires_at": NOW - timedelta(seconds=1)}], ids=str
)
def test_archived_quarantined_and_expired_turns_are_not_found(owner: Owner, hidden: dict[str, object]) -> None:
    say(owner, turn("gone", angle=0.1))

    Memory.objects.filter(kind=Kind.TURN).update(**hidden)

    assert texts(owner) == []
    assert texts(owner, text="gone", angle=None) == []


def test_a_search_is_one_statement(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    say(owner, turn("with a vector", angle=0.1), turn("pending"))

    with django_assert_num_queries(1):
        search_turns(owner, replace(query("pending"), since=LAST_HOUR), now=NOW)


def test_a_turn_stored_with_its_vector_is_found_by_meaning_immediately(
    owner: Owner, embedding_server: EmbeddingServer
) -> None:
    drafts = [turn("where is the key?"), turn("under the mat", role="assistant")]
    embedded = embed_texts([draft.message.text for draft in drafts])
    store_turns(owner, "c1", drafts=drafts, embedded=embedded, now=NOW)

    found = search_turns_by_text(owner, text="under the mat", top_k=1, time_window_hours=0.5, now=NOW)

    assert [(hit.index, hit.text) for hit in found.hits] == [(1, "under the mat")]
    assert found.hits[0].similarity == pytest.approx(1, abs=1e-3)
    assert found.degraded == []


def test_an_unavailable_embedder_is_reported(owner: Owner, embedding_server: EmbeddingServer) -> None:
    embedding_server.fail(status=400)
    say(owner, turn("the boiler was repaired"))

    found = search_turns_by_text(owner, text="boiler", top_k=3, now=NOW)

    assert ([hit.text for hit in found.hits], found.hits[0].similarity) == (["the boiler was repaired"], None)
    assert found.degraded == ["embedder_unavailable", "embedding_pending"]


@pytest.fixture
def no_index_left(transactional_db: None) -> Iterator[None]:
    """Drop indexes, which outlive the rows that the tests' database is emptied of."""
    yield
    drop_all_indexes(INDEXED)


@pytest.fixture
def crowd(no_index_left: None, account: Account) -> Account:
    """3,000 turns of three agents' conversations, one a minute; every tenth conversation is with the user `ana`."""
    vectors = Clusters().draw(3_000)
    for number, batch in enumerate(np.split(vectors, 60)):
        user_id = "ana" if number % 10 == 0 else ""
        owner = Owner(account_id=account.id, agent_id=f"agent-{number % 3}", user_id=user_id)
        drafts = [turn_at(vector, number * 50 + place) for place, vector in enumerate(batch)]
        say(owner, *drafts, conversation_id=f"c{number}")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories, memory_vectors, conversation_participants")
    return account


def turn_at(vector: Embedding, minutes_ago: int) -> Any:
    own = ClientVector(model=MODEL, vector=vector)
    return replace(turn("text", timestamp=NOW - timedelta(minutes=minutes_ago)), own=own)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_filtered_index_search_finds_as_many_turns_as_an_exact_one(crowd: Account) -> None:
    build(Hnsw())
    questions = Clusters().draw(5)

    for user_id, minutes in product(("", "ana"), (None, 1_000, 30)):
        owner = Owner(account_id=crowd.id, agent_id="agent-0", user_id=user_id)
        since = None if minutes is None else NOW - timedelta(minutes=minutes)
        shared = 0
        for vector in questions:
            asked = MemoryQuery(text="", top_k=K, model=MODEL, width=WIDTH, vector=vector, since=since)
            exact = search_turns(owner, replace(asked, exact_rows=1_000_000), now=NOW).hits
            found = search_turns(owner, replace(asked, exact_rows=20), now=NOW).hits

            assert len(found) == len(exact) == K, (user_id, minutes)
            shared += len({hit.id for hit in found} & {hit.id for hit in exact})
        assert shared >= (K - 1) * len(questions), (user_id, minutes)
