"""Vectors of passages: made with the vector of the whole text, stored and replaced with it."""

from dataclasses import replace

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import Vector
from memory.owner import Owner
from memory.providers.passages import split_passages
from memory.services.embedding.embed import embed_texts
from memory.services.embedding.queue import embed_pending
from memory.services.memories.store import ClientVector, TextUpdate, update_texts
from memory.services.summaries.store import EpisodeDraft, store_episodes
from tests.embedding_server import MODEL, EmbeddingServer, vector_of
from tests.memory.episodes import NOW, draft, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]
LONG = "The boiler was repaired by a man who came in the rain. " * 40
PASSAGES = [LONG[start:end] for start, end in split_passages(LONG)]


def stored_ranges() -> list[tuple[int, int | None, int | None]]:
    rows = Vector.objects.order_by("memory_id", "passage")
    return list(rows.values_list("passage", "passage_start", "passage_end"))


def test_a_long_text_is_embedded_by_passages_in_one_request(embedding_server: EmbeddingServer) -> None:
    embedded = embed_texts([LONG, "short"])

    assert embedding_server.texts == list(dict.fromkeys([*PASSAGES, "short"]))
    made = embedded.passages[LONG]
    assert [LONG[each.start : each.end] for each in made] == PASSAGES
    np.testing.assert_allclose(made[-1].vector, vector_of(PASSAGES[-1]), atol=1e-6)
    mean = sum(len(passage) * vector_of(passage) for passage in PASSAGES)
    np.testing.assert_allclose(embedded.vectors[LONG], mean / np.linalg.norm(mean), atol=1e-5)
    assert set(embedded.passages) == {LONG}


def test_passages_are_stored_with_the_vector_of_the_whole_text(owner: Owner) -> None:
    drafts = [EpisodeDraft(conversation_id="c1", summary=LONG), EpisodeDraft(conversation_id="c1", summary="short")]

    store_episodes(owner, drafts=drafts, embedded=embed_texts([LONG, "short"]), now=NOW)

    passages = [(number, *span) for number, span in enumerate(split_passages(LONG), start=1)]
    assert stored_ranges() == [(0, None, None), *passages, (0, None, None)]


def count_statements(owner: Owner, text: str) -> int:
    embedded = embed_texts([text])
    with CaptureQueriesContext(connection) as captured:
        store_episodes(owner, drafts=[EpisodeDraft(conversation_id="", summary=text)], embedded=embedded, now=NOW)
    return len(captured)


def test_passages_take_two_statements(owner: Owner) -> None:
    alone = replace(owner, agent_id="scout")
    for each in (owner, alone):
        count_statements(each, "first")

    assert count_statements(owner, LONG) == count_statements(alone, "The boiler was repaired.") + 2


def test_the_queue_embeds_passages(owner: Owner) -> None:
    store(owner, draft(LONG), draft("short"))

    assert embed_pending(now=NOW, limit=10).stored == 2

    assert [number for number, *_ in stored_ranges()] == [0, *range(1, len(PASSAGES) + 1), 0]


def test_a_vector_of_the_client_stays_whole(owner: Owner) -> None:
    own = ClientVector(model=MODEL, vector=vector_of("anything"))
    embedded = embed_texts([LONG])

    store_episodes(
        owner, drafts=[EpisodeDraft(conversation_id="c1", summary=LONG, own=own)], embedded=embedded, now=NOW
    )

    assert Vector.objects.values_list("passage", "is_given").get() == (0, True)


def test_a_new_text_has_its_own_passages_only(owner: Owner) -> None:
    embedded = embed_texts([LONG, "short"])
    [row] = store_episodes(owner, drafts=[EpisodeDraft(conversation_id="c1", summary=LONG)], embedded=embedded, now=NOW)

    update_texts(owner, [TextUpdate(row=row, text="short")], embedded=embedded, now=NOW)

    assert stored_ranges() == [(0, None, None)]
