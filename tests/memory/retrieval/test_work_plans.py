"""PostgreSQL's plans of the reads of a resume and a replay, among records of many accounts: by indexes of their own."""

from typing import Any

import pytest
from django.db import connection

from memory.extraction.turn_slots import Action, Point, Rationale, Reasoning, Slots
from memory.models import Account
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval import replay, resume
from tests.memory.crowds import analyze, prefer_indexes
from tests.memory.episodes import NOW
from tests.memory.gatherings import Sent, explain, steps_of
from tests.memory.goals import aim
from tests.memory.records import add_record

pytestmark = pytest.mark.django_db

LARGE = frozenset({"turn_records", "memories"})
OTHERS, RECORDS = 8, 300
LINE = resume.ResumedLineage(conversations=["long"], allowed=ReasoningTier.STRUCTURED_RATIONALE)

# of every account a long conversation, each turn with what was done in it, the first ones long ago
WORK = """
WITH logs AS (
    INSERT INTO conversations (id, account_id, conversation_id, agent_id, user_id, channel, title, continues, metadata,
        outcome, started_at, archived, turn_count, summarized_count, buffer_from, summary_attempts, summary_error,
        extracted_count, extract_attempts, extract_error, record_count)
    SELECT gen_random_uuid(), id, 'long', 'assistant', '', '_global', '', '', '{}', '', %(now)s, false, 0, 0, 0, 0, '',
        0, 0, '', %(records)s FROM accounts RETURNING *
), taking_part AS (
    INSERT INTO conversation_participants (id, account_id, conversation_id, agent_id)
    SELECT gen_random_uuid(), account_id, 'long', 'assistant' FROM logs
), records AS (
    INSERT INTO turn_records (id, account_id, agent_id, user_id, channel, conversation_id, log_id, number, client_id,
        status, reasoning_tier, level, tokens, raw_tokens, event_time, metadata, version, compress_attempts,
        compress_error)
    SELECT gen_random_uuid(), account_id, 'assistant', '', '_global', 'long', id, number, '',
        CASE number WHEN 3 THEN 'open' ELSE 'succeeded' END, 'none', 0, 4, 4,
        %(now)s - (%(records)s - number) * interval '1 minute', '{}', 1, 0, ''
    FROM logs CROSS JOIN generate_series(0, %(records)s - 1) AS number RETURNING *
)
INSERT INTO memories (id, account_id, kind, identity, agent_id, user_id, channel, conversation_id, text, language,
    content_hash, token_count, salience, access_count, event_time, archived, quarantined, buried, pinned, source,
    trust, version, metadata, embed_attempts, embed_error, record_id, slot, level, data, tier, provenance)
SELECT gen_random_uuid(), account_id, 'turn_slot', id, 'assistant', '', '_global', 'long', 'Did ' || number, '', '',
    4, 0.5, 0, event_time, false, false, false, false, '', 1, 1, '{}', 0, '', id, 'action', 0, '{}', '', ''
FROM records
"""


@pytest.fixture
def work(owner: Owner) -> Owner:
    """An owner among others with long conversations."""
    Account.objects.bulk_create(Account(name=f"other-{number}") for number in range(OTHERS))
    with connection.cursor() as cursor:
        cursor.execute(WORK, {"now": NOW, "records": RECORDS})
    analyze()
    prefer_indexes()
    return owner


def blocked() -> Slots:
    rationale = Rationale(blockers=[Point(what="The ground is frozen.")])
    reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale)
    return Slots(reasoning=reasoning, action=Action(text="Looked around."))


def test_a_blocked_record_is_read_however_many_records_follow(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "MAX_RECORDS", 2)
    first = add_record(owner, "long", slots=blocked()).record
    for _ in range(4):
        add_record(owner, "long")

    slots = resume.read_resumed_slots(owner, LINE, [], now=NOW)

    assert {slot.number for slot in slots} == {0, 3, 4}
    assert slots[0].data["rationale"]["blockers"]
    assert slots[0].record_id == first.id


def read_whole(plan: dict[str, Any]) -> set[str]:
    """Return the large tables that are read in full, or of which more is read than an account has."""
    return {
        step["Relation Name"]
        for step in steps_of(plan)
        if step.get("Relation Name") in LARGE
        and (step["Node Type"] == "Seq Scan" or step["Actual Rows"] * step["Actual Loops"] > 2 * RECORDS)
    }


@pytest.mark.slow
def test_slots_of_a_packet_are_read_by_the_records_of_the_lineage(work: Owner) -> None:
    goal = aim(work)
    with Sent() as sent:
        slots = resume.read_resumed_slots(work, LINE, [goal.id], now=NOW)

    assert read_whole(explain(*sent.statements[0])["Plan"]) == set()
    texts = [slot.text for slot in slots]
    # and the one that is open, however long ago
    assert texts == ["Did 3", *(f"Did {number}" for number in range(RECORDS - resume.MAX_RECORDS, RECORDS))]


@pytest.mark.slow
def test_slots_of_a_replay_are_read_by_their_records(work: Owner) -> None:
    records = replay.read_replay_records(replay.visible_records(work), merged_too=True)
    with Sent() as sent:
        slots = replay.read_slots_of_records(records, max_tokens=100)

    [(statement, given)] = sent.statements
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}", given)
        [[explained]] = cursor.fetchall()
    assert read_whole(explained[0]["Plan"]) == set()
    assert {record.id for record in records} == slots.keys()
    assert len(slots) == replay.MAX_RECORDS
