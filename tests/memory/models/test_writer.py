"""The bulk writer: arrays in a statement keep the values of their columns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.db import DataError, connection, transaction

from memory.models import Account, Kind, Memory, Turn, Vector
from memory.models.memory import make_row
from memory.models.statements import execute_statement, fetch_rows
from memory.models.writer import MIN_ROWS_TO_PLAN_ONCE, insert_vectors
from memory.owner import Owner
from tests.memory.episodes import MODEL, direction, draft, store
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db


def test_a_text_too_long_for_its_column_is_refused_and_not_cut(owner: Owner) -> None:
    with pytest.raises(DataError):
        say(owner, turn("hello"), turn("hello", source="x" * 51))


@pytest.mark.parametrize("text", ["{a,b}", '"', "\\", "NULL", "'", "{}", ",", "a\nb", "\U0001f600"], ids=ascii)
def test_texts_in_an_array_are_stored_unchanged(owner: Owner, text: str) -> None:
    say(owner, turn(text, client_id=text), turn("hello", metadata={text: [text, None, 1.5, {}]}))

    rows = Turn.objects.order_by("index")
    first, second = rows
    assert (first.text, second.metadata) == (text, {text: [text, None, 1.5, {}]})


def test_columns_with_nulls_are_stored(owner: Owner) -> None:
    contents: list[Any] = ["hello", [{"type": "text", "text": "hello"}]]

    say(owner, *map(turn, contents))

    rows = Turn.objects.order_by("index")
    assert [(row.content, row.payload is None) for row in rows] == [(contents[0], True), (contents[1], False)]


def test_members_of_enumerations_may_be_mixed_with_texts(owner: Owner) -> None:
    say(owner, turn("hello", source="agent"), turn("hello", source=Kind.TURN))

    rows = Turn.objects.order_by("index")
    assert list(rows.values_list("source", flat=True)) == ["agent", "turn"]


@pytest.mark.parametrize("hidden", ["archived", "quarantined", "buried"])
def test_the_vector_of_a_hidden_memory_is_not_live(owner: Owner, hidden: str) -> None:
    [episode] = store(owner, draft("hidden"))
    Memory.objects.filter(id=episode.id).update(**{hidden: True})

    insert_vectors(owner.account_id, model=MODEL, vectors=[(episode.id, direction(0))])

    assert Vector.objects.get().live is False


def test_vectors_of_different_widths_are_stored_by_one_statement(owner: Owner) -> None:
    first, second = store(owner, draft("one"), draft("two"))
    vectors = [(first.id, np.array([0.5, -1.0], dtype=np.float32)), (second.id, np.array([1, 0, 2], dtype=np.float32))]

    assert insert_vectors(owner.account_id, model="another", vectors=vectors) == 2

    stored = Vector.objects.filter(model="another").order_by("width")
    assert [(each.memory_id, each.vector) for each in stored] == [
        (first.id, [0.5, -1.0]),
        (second.id, [1.0, 0.0, 2.0]),
    ]


def test_vectors_of_an_account_that_statistics_do_not_know_are_looked_up_one_by_one(
    owner: Owner, stranger: Account
) -> None:
    say(replace(owner, account_id=stranger.id), *(turn(f"number {number}") for number in range(300)))
    execute_statement("ANALYZE memories")
    said = say(owner, *(turn(f"number {number}") for number in range(300))).new

    before = memories_read_by_index()
    insert_vectors(owner.account_id, model=MODEL, vectors=[(each.id, direction(0)) for each in said])

    # not all memories of the account for each of them
    assert memories_read_by_index() - before <= 10 * len(said)


def memories_read_by_index() -> int:
    [(count,)] = fetch_rows("SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'memories'")
    return int(count)


def test_a_plan_of_the_bulk_insert_ends_with_its_transaction(owner: Owner) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        say(owner, *(turn(f"number {number}") for number in range(MIN_ROWS_TO_PLAN_ONCE)))
        cursor.execute("SHOW plan_cache_mode")
        within = cursor.fetchone()[0]

    assert within == "auto"


def test_numbers_that_are_equal_but_spelled_differently_stay_so(owner: Owner) -> None:
    say(owner, turn("one", metadata={"a": 1}), turn("two", metadata={"a": 1.5}), turn("three", metadata={"a": True}))

    stored = Turn.objects.order_by("index").values_list("metadata", flat=True)
    assert [repr(each["a"]) for each in stored] == ["1", "1.5", "True"]


def test_rows_made_at_once_have_the_columns_that_django_gives_them() -> None:
    values = {"text": "hello", "index": 3, "role": "user", "kind": Kind.TURN}

    made, other, by_django = make_row(Turn, values), make_row(Turn, values), Turn(**values)

    columns = [
        field.attname for field in Turn._meta.concrete_fields if field.attname not in ("id", "created_at", "updated_at")
    ]
    assert [getattr(made, name) for name in columns] == [getattr(by_django, name) for name in columns]
    assert made.id != other.id
    assert made.metadata is not other.metadata
