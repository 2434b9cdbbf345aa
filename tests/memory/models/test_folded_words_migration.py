"""The migration that folds accents and pairs characters: words of both forms are found while it runs, and one after."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from tests.memory.episodes import NOW
from tests.memory.migrations import StoppedError, connected_to, fetch, migrate_to, new_database, stopping_at
from tests.memory.words import COUNT_WORDS, RECOUNT, SUMS, read_rows

migration: Any = import_module("memory.migrations.0032_folded_words")

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

FORMER, NEW = "0031_passages", "0032_folded_words"
TEXTS = ("le café du coin", "a plain text", "水泵坏了", "펌프를 수리했다", "naïve and gone")
QUESTIONS = ("café", "plain", "水", "펌프를")


@pytest.fixture(scope="module")
def _former(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Make a database of the former version with the texts for two accounts, and return its name."""
    with django_db_blocker.unblock(), new_database("former") as name:
        with connected_to(name):
            old = migrate_to(FORMER)
            for account_name in ("first", "second"):
                store_goals(old, old.get_model("memory", "Account").objects.create(name=account_name))
            with connection.cursor() as cursor:
                cursor.execute(COUNT_WORDS)
        yield name


def store_goals(old: Any, account: Any) -> None:
    for number, text in enumerate(TEXTS):
        old.get_model("memory", "Goal").objects.create(
            account_id=account.id,
            kind="goal",
            identity=str(number),
            text=text,
            event_time=NOW,
            archived="gone" in text,
            language="english",
        )


@pytest.fixture(autouse=True)
def _own_database(_former: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(migration, "ROWS_AT_A_TIME", 2)
    with new_database("migrated", template=_former) as name, connected_to(name):
        yield


def found_by(question: str) -> int:
    [(number,)] = fetch(f"""SELECT count(*) FROM memories WHERE lexemes @@ (
        SELECT string_agg(quote_literal(term), ' | ')::tsquery
        FROM unnest(tsvector_to_array(memory_lexemes(account_id, 'english', '{question}'))) AS term)""")
    return int(number)


def test_stored_words_and_their_counts_change_and_nothing_else() -> None:
    unchanged = "SELECT id, text, created_at, version, xmin::text FROM memories WHERE text = 'a plain text' ORDER BY id"
    before = fetch(unchanged)

    migrate_to(NEW)

    assert fetch(unchanged) == before
    assert [found_by(question) for question in (*QUESTIONS, "CAFE", "naive", "수리")] == [2] * 7
    assert read_rows(RECOUNT) == read_rows(SUMS)
    assert fetch("SELECT proname FROM pg_proc WHERE proname LIKE 'memory_%_lexemes'") == []


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_words_of_both_forms_are_found_meanwhile_and_it_goes_on(batch: int) -> None:
    with pytest.raises(StoppedError), stopping_at(batch, "WITH former AS MATERIALIZED"):
        migrate_to(NEW)
    assert [found_by(question) for question in QUESTIONS] == [2] * 4

    migrate_to(NEW)

    assert [found_by(question) for question in (*QUESTIONS, "CAFE")] == [2] * 5
    assert read_rows(RECOUNT) == read_rows(SUMS)


def test_it_goes_back() -> None:
    words = "SELECT id, lexemes::text FROM memories ORDER BY id"
    before = fetch(words)
    migrate_to(NEW)
    assert fetch(words) != before

    migrate_to(FORMER)

    assert fetch(words) == before
    assert read_rows(RECOUNT) == read_rows(SUMS)
    assert fetch("SELECT FROM pg_proc WHERE proname IN ('memory_folded', 'memory_wide_words')") == []
