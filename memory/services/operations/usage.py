"""What language models cost an account, by day."""

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from memory.providers.language_models import Usage
from memory_project.ids import uuid7

ADD = """
INSERT INTO model_usage
    (id, account_id, day, use, model, calls, failed_calls, prompt_tokens, completion_tokens, cost)
SELECT id, %s, %s, %s, model, calls, failed_calls, prompt_tokens, completion_tokens, cost
FROM unnest(%s::uuid[], %s::text[], %s::int[], %s::int[], %s::bigint[], %s::bigint[], %s::numeric[])
    AS added (id, model, calls, failed_calls, prompt_tokens, completion_tokens, cost)
ON CONFLICT (account_id, day, use, model) DO UPDATE SET
    calls = LEAST(model_usage.calls::bigint + EXCLUDED.calls, %s),
    failed_calls = LEAST(model_usage.failed_calls::bigint + EXCLUDED.failed_calls, %s),
    prompt_tokens = model_usage.prompt_tokens + EXCLUDED.prompt_tokens,
    completion_tokens = model_usage.completion_tokens + EXCLUDED.completion_tokens,
    cost = LEAST(model_usage.cost::numeric + EXCLUDED.cost, %s)
"""

MOST_CALLS = 2**31 - 1
MOST_COST = Decimal("9999999999.99999999")
"""What the columns hold: a sum beyond stays there, and keeps nothing else from being stored."""


def record_usage(account_id: UUID, *, use: str, usages: Iterable[Usage], now: datetime) -> None:
    """Add what requests came to, as a meter was told of them, to the account's day (UTC); one statement.

    Call it outside of what a failure rolls back: a question that failed in the end has cost its tokens too. Never from
    a meter itself, which runs between requests.
    """
    sums = sum_by_model(usages)
    if not sums:
        return
    columns: list[list[Any]] = [
        [uuid7() for _ in sums],
        [usage.model for usage in sums],
        [usage.calls for usage in sums],
        [usage.failed_calls for usage in sums],
        [usage.prompt_tokens for usage in sums],
        [usage.completion_tokens for usage in sums],
        [usage.cost for usage in sums],
    ]
    most: list[Any] = [MOST_CALLS, MOST_CALLS, MOST_COST]
    with connection.cursor() as cursor:
        cursor.execute(ADD, [account_id, now.astimezone(UTC).date(), use, *columns, *most])


def sum_by_model(usages: Iterable[Usage]) -> list[Usage]:
    """One for each model, by name: rows are locked in the same order by everybody."""
    by_model: dict[str, list[Usage]] = {}
    for usage in usages:
        by_model.setdefault(usage.model, []).append(usage)
    return [sum_usages(model, by_model[model]) for model in sorted(by_model)]


def sum_usages(model: str, usages: Iterable[Usage]) -> Usage:
    told = list(usages)
    return Usage(
        model=model,
        calls=min(sum(usage.calls for usage in told), MOST_CALLS),
        failed_calls=min(sum(usage.failed_calls for usage in told), MOST_CALLS),
        prompt_tokens=sum(usage.prompt_tokens for usage in told),
        completion_tokens=sum(usage.completion_tokens for usage in told),
        cost=min(sum((usage.cost for usage in told), Decimal(0)), MOST_COST),
    )
