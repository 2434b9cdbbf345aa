"""Extracted facts without a beginning begin when they were said, in the first of the turns that are their evidence.

Each batch commits by itself. A migration that was stopped can run again: what is done stays as it is.
"""

import sys
from typing import Any
from uuid import UUID

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

FACTS_AT_A_TIME = 2_000

NEXT = """
SELECT id FROM memories WHERE account_id = %s AND kind = 'fact' AND id > %s ORDER BY id LIMIT %s
"""

BEGIN_WHEN_SAID = """
WITH said AS (
    SELECT f.account_id, f.id, least(f.event_time, min(t.event_time)) AS at
    FROM memories f
    LEFT JOIN memory_links l ON l.account_id = f.account_id AND l.source_id = f.id AND l.type = 'DERIVED_FROM'
    LEFT JOIN memories t ON t.account_id = l.account_id AND t.id = l.target_id AND t.kind = 'turn'
    WHERE f.account_id = %(account)s AND f.id = ANY(%(ids)s) AND f.source = 'extraction' AND f.valid_from IS NULL
    GROUP BY f.account_id, f.id
), changed AS (
    UPDATE memories m SET valid_from = said.at, valid_from_source = 'said' FROM said
    WHERE m.account_id = said.account_id AND m.id = said.id AND (m.valid_to IS NULL OR m.valid_to > said.at)
    RETURNING m.account_id, m.id, said.at
)
UPDATE fact_versions v SET valid_from = changed.at FROM changed
WHERE v.account_id = changed.account_id AND v.fact_id = changed.id AND v.valid_from IS NULL
    AND (v.valid_to IS NULL OR v.valid_to > changed.at)
"""

# what superseded another fact without saying since when got the time when it was said
NAME_SOURCES = """
UPDATE memories SET valid_from_source =
    CASE WHEN source = 'extraction' AND valid_from = event_time THEN 'said' ELSE 'stated' END
WHERE account_id = %(account)s AND id = ANY(%(ids)s) AND valid_from IS NOT NULL AND valid_from_source IS NULL
"""

UNDO = """
UPDATE memories SET valid_from = NULL
WHERE account_id = %(account)s AND id = ANY(%(ids)s) AND valid_from_source = 'said'
"""


def each_batch(apps: StateApps, editor: BaseDatabaseSchemaEditor, *statements: str) -> None:
    """Run the statements for the facts of each account, `FACTS_AT_A_TIME` of them, and print how far it is."""
    total = 0
    with editor.connection.cursor() as cursor:
        for account in apps.get_model("memory", "Account").objects.order_by("id").values_list("id", flat=True):
            after: Any = UUID(int=0)
            while True:
                cursor.execute(NEXT, [account, after, FACTS_AT_A_TIME])
                ids = [fact_id for (fact_id,) in cursor.fetchall()]
                if not ids:
                    break
                for statement in statements:
                    cursor.execute(statement, {"account": account, "ids": ids})
                after, total = ids[-1], total + len(ids)
                if total > FACTS_AT_A_TIME:
                    sys.stdout.write(f"\n    {total:,} facts looked at")


def begin_when_said(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    each_batch(apps, editor, BEGIN_WHEN_SAID, NAME_SOURCES)


def forget_when_said(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Make the facts undated again. Their former versions keep the beginnings: they are not told apart from others."""
    each_batch(apps, editor, UNDO)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("memory", "0027_fact_attributes")]

    operations = [migrations.RunPython(begin_when_said, forget_when_said)]
