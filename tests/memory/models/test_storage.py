"""Properties of the tables that Django's models do not declare, read from the catalogue."""

import pytest
from django.db import connection

from memory import conf
from memory.owner import Owner
from memory.retrieval.search import search_episodes
from tests.memory.episodes import NOW, draft, query, store

pytestmark = pytest.mark.django_db

DOCUMENTED_AUDIT_INDEXES = {
    "idx_audit_user": "(account_id, user_id, timestamp)",
    "idx_audit_session": "(account_id, session_id, timestamp)",
    "idx_audit_operation": "(account_id, operation, timestamp)",
    "idx_audit_memory_type": "(account_id, memory_type, timestamp)",
    "idx_audit_source_channel": "(account_id, source_channel, timestamp)",
}


def ask(statement: str) -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [tuple(row) for row in cursor.fetchall()]


def test_the_audit_log_is_partitioned_by_time_under_its_documented_indexes() -> None:
    (partitioned,) = ask("SELECT pg_get_partkeydef('memory_audit_log'::regclass)")
    listed = ask("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'memory_audit_log'")
    found = {row[0]: row[1] for row in listed}

    assert partitioned == ('RANGE ("timestamp")',)
    for name, columns in DOCUMENTED_AUDIT_INDEXES.items():
        assert found[name].replace('"', "").endswith(columns)


def test_every_composite_index_starts_with_the_account() -> None:
    ours = ask("""
        SELECT relation.relname || '.' || index.relname, attribute.attname
        FROM pg_index JOIN pg_class index ON index.oid = indexrelid JOIN pg_class relation ON relation.oid = indrelid
        JOIN pg_attribute attribute ON attribute.attrelid = indrelid AND attribute.attnum = indkey[0]
        WHERE indnkeyatts > 1
            AND relation.relname ~ '^(memor|agent|team|api_key|conversation|job|idempotent|episodic|injection|ledger)'
    """)

    # primary keys begin with the id, so that look-ups by id alone find it as well
    others = {name for name, column in ours if column != "account_id" and "_pkey" not in name}
    assert others == set()


def test_vectors_stay_out_of_toast() -> None:
    storage = ask("""
        SELECT attstorage::text FROM pg_attribute
        WHERE attname = 'vector' AND (attrelid = 'memory_vectors'::regclass
            OR attrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'memory_vectors'::regclass))
    """)

    assert storage == [("p",)] * (conf.VECTOR_PARTITIONS + 1)


def test_event_times_have_a_brin_index() -> None:
    (definition,) = ask("SELECT indexdef FROM pg_indexes WHERE indexname = 'memory_event_time'")

    assert "USING brin (event_time)" in definition[0]


@pytest.mark.parametrize(
    "text",
    [
        "found "
        + " ".join(
            f"{chr(0x10400 + a)}{chr(0x10400 + b)}-{chr(0x10400 + c)}"
            for a in range(40)
            for b in range(40)
            for c in range(12)
        ),
        "x" * 3000 + " found",
        "found " + "wörd " * 50_000,
        "quote ' and \\ backslash found",
        "🧨 found \u202e",
        "found",
    ],
    ids=["wide pairs", "long word", "long text", "quotes", "symbols", "plain"],
)
def test_any_text_has_an_index_of_words(owner: Owner, text: str) -> None:
    store(owner, draft(text))

    hits = search_episodes(owner, query("found", angle=None), now=NOW).hits

    assert [hit.summary for hit in hits] == [text]
