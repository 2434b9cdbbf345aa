"""Sets the times that the database's clock wrote to the simulated ones, so that ages are right.

Services take `now`; columns with a default of the database's do not. The month ends before it is simulated, so that
whatever bears a time from then on was written by the database's clock. Vectors keep theirs: they are compared with the
times at which jobs began, which the database's clock wrote, too.

Rows are as old as their day: at which hour of it a job got to them is chance, and what fades does so by their age.
"""

from datetime import datetime
from uuid import UUID

from django.db import connection

TABLES = ("memories", "conversations", "persistent_contexts", "memory_pools")
DATE = """
UPDATE {table} SET created_at = CASE WHEN created_at >= %(since)s THEN day ELSE created_at END,
    updated_at = CASE WHEN updated_at >= %(since)s THEN day ELSE date_trunc('day', updated_at, 'UTC') END
FROM (SELECT date_trunc('day', %(at)s, 'UTC') AS day) AS simulated
WHERE account_id = %(account_id)s AND (
    created_at >= %(since)s OR updated_at >= %(since)s OR updated_at <> date_trunc('day', updated_at, 'UTC')
)"""


def date_rows(account_id: UUID, *, since: datetime, at: datetime) -> None:
    """Move the times that the database's clock has set `since` then to the day of `at`, in all rows of the account."""
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(DATE.format(table=table), {"since": since, "at": at, "account_id": account_id})
