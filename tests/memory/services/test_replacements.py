"""Links from turns to the turns that they replace, made as soon as both have vectors."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest

from memory.models import Kind, Link, Turn
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.retrieval.lookups import read_adjacent_turns
from memory.retrieval.queries import Query
from memory.scoring import SURE_REPLACEMENT
from memory.services import replacements
from memory.services.embedding.embed import embed_texts
from memory.services.embedding.queue import embed_pending
from memory.services.memories.correct import correct_memory
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, recall
from memory.services.replacements import find_nearest_statements
from memory.services.turns import store_turns
from tests.memory.episodes import NOTHING, NOW
from tests.memory.turns import turn

BEFORE, NOW_TRUE = "Our standup is at half past nine.", "The standup was moved to ten o'clock."
pytestmark = pytest.mark.django_db


def store_statement(
    owner: Owner, text: str, *, days_ago: float, conversation_id: str, is_embedded: bool = True
) -> Turn:
    draft = turn(text, timestamp=NOW - timedelta(days=days_ago))
    embedded = embed_texts([text]) if is_embedded else NOTHING
    return store_turns(owner, conversation_id, drafts=[draft], embedded=embedded, now=NOW).turns[0]


def links() -> dict[tuple[str, str], float]:
    rows = Link.objects.filter(type="REPLACES").select_related("source", "target")
    return {(row.source.text, row.target.text): row.weight for row in rows}


def test_a_later_turn_is_linked_to_the_turn_that_it_replaces(owner: Owner) -> None:
    store_statement(owner, BEFORE, days_ago=6, conversation_id="mon")
    store_statement(owner, NOW_TRUE, days_ago=1, conversation_id="sat")

    assert list(links()) == [(NOW_TRUE, BEFORE)]
    assert links()[NOW_TRUE, BEFORE] >= SURE_REPLACEMENT


def test_turns_about_different_things_are_not_linked_however_little_was_said(owner: Owner) -> None:
    store_statement(owner, "Paula baked two loaves of rye bread.", days_ago=6, conversation_id="mon")
    store_statement(owner, NOW_TRUE, days_ago=1, conversation_id="sat")

    assert links() == {}


def test_the_direction_follows_the_time_of_the_turns_and_not_the_order_of_storing(owner: Owner) -> None:
    store_statement(owner, NOW_TRUE, days_ago=1, conversation_id="sat")
    store_statement(owner, BEFORE, days_ago=6, conversation_id="mon")

    assert list(links()) == [(NOW_TRUE, BEFORE)]


@pytest.mark.parametrize("texts", [("Hello there", "Hi there"), ("Where does Ana live?", "Where does Ana live now?")])
def test_turns_that_state_nothing_are_embedded_without_links(owner: Owner, texts: tuple[str, str]) -> None:
    for text in texts:
        store_statement(owner, text, days_ago=1, conversation_id="greetings", is_embedded=False)

    embed_pending(now=NOW + timedelta(minutes=1), limit=10)

    assert not Turn.objects.filter(embed_after__isnull=False).exists()
    assert links() == {}


def test_turns_that_are_embedded_later_are_linked_by_the_job(owner: Owner) -> None:
    store_statement(owner, BEFORE, days_ago=6, conversation_id="mon", is_embedded=False)
    store_statement(owner, NOW_TRUE, days_ago=1, conversation_id="sat", is_embedded=False)
    assert links() == {}

    embed_pending(now=NOW + timedelta(minutes=1), limit=10)

    assert list(links()) == [(NOW_TRUE, BEFORE)]


@pytest.mark.parametrize("other", [{"agent_id": "scout"}, {"user_id": "zoe"}, {"channel": "garden"}])
def test_turns_of_other_agents_users_and_channels_are_not_compared(owner: Owner, other: dict[str, str]) -> None:
    stranger = replace(owner, **other)  # type: ignore[arg-type]
    store_statement(stranger, BEFORE, days_ago=6, conversation_id="mon")
    store_statement(owner, NOW_TRUE, days_ago=1, conversation_id="sat")

    assert links() == {}


def test_a_corrected_turn_loses_the_links_of_its_former_text(owner: Owner) -> None:
    store_statement(owner, BEFORE, days_ago=6, conversation_id="mon")
    newer = store_statement(owner, NOW_TRUE, days_ago=1, conversation_id="sat")

    changes = {"text": "Can you book us a table for lunch?"}
    correct_memory(owner, newer.id, changes=changes, version=newer.version, now=NOW)
    embed_pending(now=NOW + timedelta(minutes=1), limit=10)

    assert links() == {}


def test_recall_answers_with_the_later_statement_and_marks_the_earlier_one(owner: Owner) -> None:
    older = store_statement(owner, BEFORE, days_ago=6, conversation_id="mon")
    newer = store_statement(owner, NOW_TRUE, days_ago=1, conversation_id="sat")

    results = recall(owner, RecallRequest(query=Query(text="When is our standup?")), now=NOW).results

    assert [(each.id, each.superseded_by) for each in results] == [(newer.id, None), (older.id, newer.id)]


def test_a_replaced_turn_next_to_a_found_one_says_what_replaced_it(owner: Owner) -> None:
    texts = [BEFORE, "Paula baked two loaves of rye bread."]
    drafts = [turn(text, timestamp=NOW - timedelta(days=6)) for text in texts]
    older, _bread = store_turns(owner, "mon", drafts=drafts, embedded=embed_texts(texts), now=NOW).turns
    newer = store_statement(owner, NOW_TRUE, days_ago=1, conversation_id="sat")
    bread = recall(owner, RecallRequest(query=Query(text="rye bread", top_k=1)), now=NOW).results

    now, then = (
        read_adjacent_turns(owner, bread, Query(text="", as_of=as_of), now=NOW)
        for as_of in (None, NOW - timedelta(days=3))
    )

    assert [(each.id, each.superseded_by, each.superseded_at) for each in now] == [
        (older.id, newer.id, newer.event_time)
    ]
    assert [(each.id, each.superseded_by) for each in then] == [(older.id, None)]


def test_few_statements_are_compared_with_the_same_ones_as_many(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(3).normal(size=(120, 8)).astype(np.float32)
    model = embedding_provider().model
    own = [ClientVector(model=model, vector=vector / np.linalg.norm(vector)) for vector in numbers]
    drafts = [replace(turn(f"The pump of field {number} leaks."), own=each) for number, each in enumerate(own)]
    told = [
        turn.id
        for place, who in enumerate((owner, replace(owner, agent_id="another")))
        for turn in store_turns(
            who, f"c{place}", drafts=drafts[60 * place : 60 * place + 60], embedded=NOTHING, now=NOW
        ).turns
    ]

    def nearest(ids: Sequence[UUID]) -> set[tuple[bytes, bytes, int, int, int]]:
        memories, found = find_nearest_statements(owner.account_id, ids, kind=Kind.TURN, model=model)
        return {(memories[place], memories[near], *rest) for place, near, *rest in found.tolist()}

    few = [nearest([told[7], told[70]]), nearest([told[59]])]
    monkeypatch.setattr(replacements, "MAX_FEW", 0)

    assert few == [nearest([told[7], told[70]]), nearest([told[59]])]
    assert [len({memory for memory, *_rest in each}) for each in few] == [2, 1]
