"""`manage.py vector_index`: a valid index replaces the old one, an invalid one is dropped, errors give the reason."""

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from pytest_django import Settings

from memory.errors import Unprocessable
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.services.embedding import vector_index
from memory.services.embedding.vector_index import (
    BUILD_LOCK_ID,
    Hnsw,
    IndexedVectors,
    IvfFlat,
    RunningBuild,
    create_statement,
    drop_all_indexes,
    find_index_names,
    find_partitions,
    find_parts,
    replace_index,
)
from memory.services.memories.store import ClientVector
from memory.services.summaries.store import EpisodeDraft, store_episodes
from tests.memory.episodes import NOW
from tests.memory.vectors import INDEXED, MODEL, NOTHING, WIDTH, Clusters, fill


@pytest.fixture
def tiny(settings: Settings) -> Iterator[None]:
    settings.EMBEDDING_PROVIDER, settings.MEMORY_ALLOW_TINY_EMBEDDINGS = "tiny", True
    embedding_provider.cache_clear()
    yield
    embedding_provider.cache_clear()


@pytest.fixture
def few(transactional_db: None, tiny: None, owner: Owner) -> Iterator[Owner]:
    """An owner of 120 episodes."""
    fill(owner, Clusters().draw(120))
    yield owner
    drop_all_indexes(INDEXED)


def run(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("vector_index", f"--model={MODEL}", "--json", *arguments, stdout=out)
    figures: dict[str, Any] = json.loads(out.getvalue())
    return figures


def test_a_new_index_replaces_the_former_one(few: Owner) -> None:
    former = run("--method=hnsw")
    latter = run("--method=ivfflat", "--lists=2")

    assert latter["dropped"] == [former["name"]]
    assert find_index_names(INDEXED, valid=True) == [latter["name"]]
    assert (latter["rows"], latter["width"], latter["method"]) == (120, WIDTH, "ivfflat")


@pytest.mark.slow
@pytest.mark.parametrize("m", [4, 16, 48])
def test_a_graph_has_room_in_memory_while_it_is_built(few: Owner, monkeypatch: pytest.MonkeyPatch, m: int) -> None:
    """Otherwise PostgreSQL sends a notice and builds several times as slowly."""
    fill(few, Clusters().draw(4_000))
    monkeypatch.setattr(vector_index, "MIN_BUILD_MEMORY_KB", 64)
    notices: list[str] = []

    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        replace_index(INDEXED, Hnsw(m=m, ef_construction=2 * m), RunningBuild())

    assert notices == []


def test_an_invalid_index_of_a_killed_build_is_dropped(few: Owner) -> None:
    left = f"{INDEXED.name_prefix}hnsw_left"
    with connection.cursor() as cursor:
        for partition in find_partitions():
            cursor.execute(create_statement(left, partition, INDEXED, Hnsw()).as_string(cursor.connection))
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [f"{left}_p00"])

    built = run("--method=hnsw")

    assert built["dropped"] == [left]
    assert find_index_names(INDEXED, valid=False) == []


def test_parts_of_a_build_that_was_killed_between_partitions_are_dropped(few: Owner) -> None:
    former, left = run("--method=hnsw")["name"], f"{INDEXED.name_prefix}hnsw_left"
    first, *_others = find_partitions()
    with connection.cursor() as cursor:
        cursor.execute(create_statement(left, first, INDEXED, Hnsw()).as_string(cursor.connection))
    assert find_index_names(INDEXED, valid=True) == [former]

    built = run("--method=hnsw")

    assert built["dropped"] == [left, former]
    assert find_parts([left, former]) == []


def test_an_index_has_a_part_on_each_partition_and_lists_where_the_rows_are(few: Owner) -> None:
    name = run("--method=ivfflat", "--lists=2")["name"]

    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename, indexdef FROM pg_indexes WHERE indexname = ANY (%s)", [find_parts([name])])
        parts = dict(cursor.fetchall())
    assert sorted(parts) == find_partitions()
    [own] = find_partitions(few.account_id)
    assert [table for table, definition in parts.items() if "lists='2'" in definition] == [own]


def test_the_index_of_another_model_is_left_alone(few: Owner) -> None:
    other = IndexedVectors(model="other", width=WIDTH)
    kept = run("--method=hnsw")
    call_command("vector_index", "--method=hnsw", stdout=io.StringIO())

    assert find_index_names(INDEXED, valid=True) == [kept["name"]]
    assert find_index_names(other, valid=True) == []
    call_command("vector_index", "--drop", stdout=io.StringIO())


def test_an_index_is_dropped_on_demand(few: Owner) -> None:
    built = run("--method=hnsw")

    assert run("--drop")["dropped"] == [built["name"]]
    assert run("--drop")["dropped"] == []


def test_ivfflat_is_refused_with_too_few_vectors(few: Owner) -> None:
    with pytest.raises(CommandError, match=r"100 lists need at least 5,000 vectors .* there are 120"):
        run("--method=ivfflat")

    assert find_index_names(INDEXED, valid=True) == []


def test_a_simultaneous_second_build_is_refused_with_a_message(few: Owner) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [BUILD_LOCK_ID])
        try:
            with pytest.raises(CommandError, match="being built or dropped already"):
                run("--method=hnsw")
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [BUILD_LOCK_ID])


def test_a_model_without_vectors_is_refused(few: Owner) -> None:
    with pytest.raises(CommandError, match="No vector is of nobody's"):
        call_command("vector_index", "--method=hnsw", "--model=nobody's")


def test_vectors_of_two_widths_require_the_width_option(few: Owner) -> None:
    own = ClientVector(model=MODEL, vector=np.ones(3, dtype=np.float32))
    draft = EpisodeDraft(conversation_id="", summary="narrow", own=own)
    store_episodes(few, drafts=[draft], embedded=NOTHING, now=NOW)

    with pytest.raises(CommandError, match="have 3, 64 dimensions: choose by --width"):
        run("--method=hnsw")
    assert run("--method=hnsw", "--width=64")["rows"] == 120


@pytest.mark.parametrize(
    "arguments",
    [{"m": 1}, {"m": 101, "ef_construction": 1000}, {"m": 16, "ef_construction": 31}, {"ef_construction": 1001}],
)
def test_graphs_that_pgvector_would_refuse_are_refused_beforehand(arguments: dict[str, int]) -> None:
    with pytest.raises(Unprocessable):
        Hnsw(**arguments)


@pytest.mark.parametrize("lists", [0, 32_769])
def test_an_invalid_number_of_ivfflat_lists_is_refused(lists: int) -> None:
    with pytest.raises(Unprocessable):
        IvfFlat(lists=lists)
