"""The nearest vectors of small owners: exact, whatever the filter, and no other owner's."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db.models import F

from memory.models import Account, Kind, Memory, Participant, Vector
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.queries import Mode, Query, Scope
from memory.retrieval.retrievers.vector import index_expression, index_name, is_unsupported, min_sample_hits
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, recall
from tests.memory.crowds import analyze, crowd
from tests.memory.episodes import NOW
from tests.memory.nested_vectors import (
    MODEL,
    PLAIN_MODEL,
    Memorized,
    Nested,
    Shelf,
    fill_shelf,
    find_nearest,
    gather_nearest,
    share_found,
    tables_read_through,
)

QUESTIONS = 5
Wanted = Callable[[Memorized], bool]
FILTERS: Mapping[str, tuple[dict[str, Any], Wanted]] = {
    "all": ({}, lambda _memory: True),
    "kind, 1 %": ({"kinds": (Kind.GOAL,)}, lambda memory: memory.kind == "goal"),
    "kind, 10 %": ({"kinds": (Kind.EPISODE,)}, lambda memory: memory.kind == "episode"),
    "since, 10 %": (
        {"since": NOW - timedelta(minutes=29)},
        lambda memory: memory.event_time >= NOW - timedelta(minutes=29),
    ),
    "conversation, 1 %": (
        {"conversation_id": "assistant-7", "scopes": (Scope.SESSION,)},
        lambda memory: memory.conversation_id == "assistant-7",
    ),
}


@pytest.fixture
def shelf(owner: Owner) -> Shelf:
    """300 memories of 512 dimensions, and as many of another agent in the account."""
    fill_shelf(replace(owner, agent_id="neighbour"), Nested(512, seed=1).draw(300))
    return fill_shelf(owner, Nested(512).draw(300))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("rows", [10, 300])
@pytest.mark.parametrize("width", [384, 512])
@pytest.mark.django_db
def test_small_owners_find_the_nearest_memories_in_every_mode(owner: Owner, width: int, rows: int, mode: Mode) -> None:
    shelf = fill_shelf(owner, Nested(width).draw(rows))
    shares = [
        share_found(find_nearest(owner, question, mode=mode), shelf.nearest(question))
        for question in Nested(width, seed=9).draw(QUESTIONS)
    ]

    assert np.mean(shares) >= (0.9 if mode is Mode.BROAD else 0.98)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.django_db
def test_a_filtered_search_finds_the_nearest_of_the_matching_memories(shelf: Shelf, name: str) -> None:
    asked, is_wanted = FILTERS[name]
    [question] = Nested(512, seed=9).draw(1)

    assert set(find_nearest(shelf.owner, question, **asked)) == shelf.nearest(question, is_wanted)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.django_db
def test_ties_are_broken_independently_of_the_order_of_rows(owner: Owner, mode: Mode) -> None:
    [question] = Nested(512, seed=9).draw(1)
    fill_shelf(owner, np.repeat(question[np.newaxis], 300, axis=0))
    found = {each.id for each in gather_nearest(owner, question, mode=mode).candidates}

    Vector.objects.filter(memory_id__in=found).update(user_id=F("user_id"))

    assert 0 < len(found) < 300
    assert {each.id for each in gather_nearest(owner, question, mode=mode).candidates} == found


@pytest.mark.django_db
def test_a_user_sees_the_nearest_of_its_own_episodes_and_knowledge(shelf: Shelf) -> None:
    [question] = Nested(512, seed=9).draw(1)
    found = find_nearest(replace(shelf.owner, user_id="bo"), question, kinds=(Kind.EPISODE, Kind.ENTITY))

    assert set(found) == shelf.nearest(question, lambda each: each.user_id == "bo" and each.kind != "turn")


@pytest.mark.django_db
def test_vectors_of_other_accounts_and_other_agents_are_not_found(shelf: Shelf, stranger: Account) -> None:
    [question] = Nested(512, seed=9).draw(1)
    nearer = np.repeat(question[np.newaxis], 20, axis=0)
    fill_shelf(Owner(account_id=stranger.id, agent_id=shelf.owner.agent_id), nearer)

    assert set(find_nearest(shelf.owner, question)) == shelf.nearest(question)


@pytest.mark.django_db
def test_an_agent_finds_turns_of_others_once_it_participates(shelf: Shelf) -> None:
    [question] = Nested(512, seed=9).draw(1)
    neighbour = replace(shelf.owner, agent_id="neighbour")
    [best, *_others] = find_nearest(neighbour, question, kinds=(Kind.TURN,))
    before = gather_nearest(shelf.owner, question).candidates
    told_in = Memory.objects.get(id=best).conversation_id
    Participant.objects.create(account_id=neighbour.account_id, agent_id="assistant", conversation_id=told_in)

    after = gather_nearest(shelf.owner, question).candidates

    assert best not in {each.id for each in before}
    assert best in {each.id for each in after}


@pytest.mark.django_db
def test_models_and_widths_never_mix(shelf: Shelf) -> None:
    [question] = Nested(512, seed=9).draw(1)
    fill_shelf(replace(shelf.owner, agent_id="third"), np.array([question]), model=PLAIN_MODEL)
    [narrow] = Nested(384, seed=9).draw(1)

    assert len(gather_nearest(Owner(account_id=shelf.owner.account_id), question, model=PLAIN_MODEL).candidates) == 1
    assert gather_nearest(shelf.owner, narrow).candidates == []


@pytest.mark.django_db
def test_memories_waiting_for_a_vector_are_not_found_and_take_no_place(shelf: Shelf) -> None:
    [question] = Nested(512, seed=9).draw(1)
    waiting = shelf.nearest(question)
    Vector.objects.filter(memory_id__in=waiting).delete()
    Memory.objects.filter(id__in=waiting).update(embed_after=NOW)

    found = find_nearest(shelf.owner, question)

    assert set(found) == shelf.nearest(question, lambda memory: memory.id not in waiting)


@pytest.mark.django_db
def test_a_buried_memory_that_gets_its_vector_later_is_not_found(shelf: Shelf) -> None:
    [question] = Nested(512, seed=9).draw(1)
    buried = shelf.nearest(question)
    Vector.objects.filter(memory_id__in=buried).delete()
    Memory.objects.filter(id__in=buried).update(buried=True)

    insert_vectors(shelf.owner.account_id, model=MODEL, vectors=[(each, question) for each in sorted(buried)])

    assert not buried & set(find_nearest(shelf.owner, question))


@pytest.mark.parametrize(
    ("model", "mode", "degraded"),
    [
        (MODEL, Mode.BROAD, []),
        (MODEL, Mode.DEFAULT, []),
        (PLAIN_MODEL, Mode.BROAD, ["mode_not_supported"]),
        (PLAIN_MODEL, Mode.DEFAULT, ["mode_not_supported"]),
        (PLAIN_MODEL, Mode.DEEP, []),
        # nobody asked for prefixes
        (PLAIN_MODEL, None, []),
    ],
)
@pytest.mark.django_db
def test_unsupported_prefixes_are_reported_as_degraded(
    owner: Owner, model: str, mode: Mode | None, degraded: list[str]
) -> None:
    [question] = Nested(512, seed=9).draw(1)
    fill_shelf(owner, Nested(512).draw(10), model=model)
    own = ClientVector(model=model, vector=question)
    request = RecallRequest(query=Query(text="", mode=mode), techniques=["vector", "-duplicates"], own=own)

    bundle = recall(owner, request, now=NOW)

    assert (len(bundle.results), bundle.degraded) == (10, degraded)


@pytest.mark.django_db
def test_similarity_is_computed_from_the_whole_vector(shelf: Shelf) -> None:
    [question] = Nested(512, seed=9).draw(1)
    similarity_of = dict(zip([each.id for each in shelf.memories], shelf.vectors @ question, strict=True))

    candidates = gather_nearest(shelf.owner, question, mode=Mode.BROAD).candidates

    assert [each.similarity for each in candidates] == pytest.approx(
        [similarity_of[each.id] for each in candidates], abs=2e-3
    )


@pytest.mark.slow
@pytest.mark.django_db
def test_searching_a_small_owner_of_a_large_account_reads_no_whole_table(account: Account, owner: Owner) -> None:
    crowd(account, rows=20_000)
    fill_shelf(owner, Nested(384).draw(10))
    analyze()

    assert not {"memories", "memory_vectors"} & tables_read_through(owner, Nested(384, seed=9).draw(1)[0])


def test_an_index_covers_the_prefix_only_for_long_nested_vectors() -> None:
    assert index_expression(1536, is_nested=True) == "(subvector(vector, 1, 256)::halfvec(256))"
    assert index_expression(1536, is_nested=False) == "(vector::halfvec(1536))"
    assert index_expression(128, is_nested=True) == "(vector::halfvec(128))"


def test_index_names_differ_by_account_model_width_and_nesting(owner: Owner, stranger: Account) -> None:
    names = {
        index_name(account_id, model=model, width=width, is_nested=is_nested)
        for account_id in (owner.account_id, stranger.id)
        for model in ("one", "two")
        for width in (384, 512)
        for is_nested in (True, False)
    }

    assert len(names) == 16
    assert max(map(len, names)) <= 63


@pytest.mark.parametrize(("indexed_rows", "seen"), [(2_500, 200), (5_000, 100), (25_000, 20), (1_000_000, 4)])
def test_an_index_serves_owners_that_see_enough_of_its_rows(indexed_rows: int, seen: int) -> None:
    assert min_sample_hits(indexed_rows) == seen


def supported_modes(*, is_nested: bool, **fields: Any) -> list[Mode]:
    analysis = QueryAnalysis(**fields)
    return [mode for mode in Mode if not is_unsupported(Query(text="", mode=mode, is_nested=is_nested), analysis)]


def test_only_deep_mode_needs_no_model_with_nested_vectors() -> None:
    assert supported_modes(is_nested=False) == [Mode.DEEP]
    assert supported_modes(is_nested=True) == list(Mode)


def test_exact_search_compares_passages_by_whole_vectors() -> None:
    assert supported_modes(is_nested=True, has_passages=True) == [Mode.DEEP]
    assert supported_modes(is_nested=True, has_passages=True, indexed_rows=10) == list(Mode)
