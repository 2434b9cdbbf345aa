"""Facts that clients stored without a beginning begin when they were said, as new ones do: at their `event_time`.

That is the time of storing unless the client gave another. Kept without a beginning are facts that were over by then,
and those whose beginning a correction took away. Each batch commits by itself. A migration that was stopped can run
again: what is done stays as it is. On the way back the beginnings stay, as beliefs that somebody may have read.
"""

import sys
from typing import Any
from uuid import UUID

from django.db import migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

FACTS_AT_A_TIME = 2_000

NEXT = """
SELECT id FROM memories WHERE account_id = %s AND kind = 'fact' AND id > %s ORDER BY id LIMIT %s
"""

# what is no longer believed stays as it was
BEGIN_WHEN_SAID = """
UPDATE memories m SET valid_from = m.event_time, valid_from_source = 'said', version = m.version + 1,
    belief_number = m.belief_number + (m.recorded_at IS NOT NULL)::int,
    recorded_at = CASE WHEN m.recorded_at IS NOT NULL THEN greatest(m.recorded_at, now()) END
WHERE m.account_id = %(account)s AND m.id = ANY(%(ids)s) AND m.kind = 'fact' AND m.valid_from IS NULL
    AND m.retracted_at IS NULL AND (m.valid_to IS NULL OR m.valid_to > m.event_time)
    AND NOT EXISTS (
        SELECT FROM fact_versions v
        WHERE v.account_id = m.account_id AND v.fact_id = m.id AND v.valid_from IS NOT NULL
    )
RETURNING m.id
"""

# the beginning is a new belief: what was believed before is never changed
END_BELIEFS = """
UPDATE fact_versions v SET retracted_at = m.recorded_at FROM memories m
WHERE m.account_id = %(account)s AND m.id = ANY(%(ids)s) AND m.recorded_at IS NOT NULL
    AND v.account_id = m.account_id AND v.fact_id = m.id AND v.retracted_at IS NULL
"""
BEGIN_BELIEFS = """
INSERT INTO fact_versions
    (id, account_id, fact_id, number, claim, confidence, temporal, valid_from, valid_to, recorded_at, reason, actor)
SELECT gen_random_uuid(), m.account_id, m.id, m.belief_number, v.claim, v.confidence, v.temporal, m.valid_from,
    v.valid_to, m.recorded_at, 'corrected', 'migration'
FROM memories m
JOIN fact_versions v ON v.account_id = m.account_id AND v.fact_id = m.id AND v.number = m.belief_number - 1
WHERE m.account_id = %(account)s AND m.id = ANY(%(ids)s) AND m.recorded_at IS NOT NULL
"""


def begin_when_said(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Date the facts of each account, `FACTS_AT_A_TIME` in a transaction, and print how far it is."""
    total = 0
    with editor.connection.cursor() as cursor:
        for account in apps.get_model("memory", "Account").objects.order_by("id").values_list("id", flat=True):
            after: Any = UUID(int=0)
            while True:
                cursor.execute(NEXT, [account, after, FACTS_AT_A_TIME])
                ids = [fact_id for (fact_id,) in cursor.fetchall()]
                if not ids:
                    break
                with transaction.atomic(using=editor.connection.alias):
                    date_facts(cursor, account, ids)
                after, total = ids[-1], total + len(ids)
                if total > FACTS_AT_A_TIME:
                    sys.stdout.write(f"\n    {total:,} facts looked at")


def date_facts(cursor: Any, account: UUID, ids: list[UUID]) -> None:
    cursor.execute(BEGIN_WHEN_SAID, {"account": account, "ids": ids})
    changed = {"account": account, "ids": [fact_id for (fact_id,) in cursor.fetchall()]}
    for statement in (END_BELIEFS, BEGIN_BELIEFS):
        cursor.execute(statement, changed)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory", "0059_audit_erasure_rights")]

    operations = [migrations.RunPython(begin_when_said, migrations.RunPython.noop)]
