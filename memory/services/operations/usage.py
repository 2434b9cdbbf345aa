"""The cost of language models per account and day."""

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from memory.providers.language_models import Usage
from memory_project.ids import uuid7

ADD_USAGE = """
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

MAX_CALLS = 2**31 - 1
MAX_COST = Decimal("9999999999.99999999")
"""Limits of the columns: a sum beyond them stays there, so that the rest can still be stored."""


def record_usage(account_id: UUID, *, use: str, usages: Iterable[Usage], now: datetime) -> None:
    """Add the usage of requests, as a meter recorded it, to the account's day (UTC). One statement.

    Call it outside transactions that may roll back: a request that failed in the end has used its tokens too. Never
    call it from a meter itself, which runs between requests.
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
    most: list[Any] = [MAX_CALLS, MAX_CALLS, MAX_COST]
    with connection.cursor() as cursor:
        cursor.execute(ADD_USAGE, [account_id, now.astimezone(UTC).date(), use, *columns, *most])


def sum_by_model(usages: Iterable[Usage]) -> list[Usage]:
    """Return one sum for each model, ordered by name so that all transactions lock rows in the same order."""
    by_model: dict[str, list[Usage]] = {}
    for usage in usages:
        by_model.setdefault(usage.model, []).append(usage)
    return [
        Usage(
            model=model,
            calls=min(sum(usage.calls for usage in group), MAX_CALLS),
            failed_calls=min(sum(usage.failed_calls for usage in group), MAX_CALLS),
            prompt_tokens=sum(usage.prompt_tokens for usage in group),
            completion_tokens=sum(usage.completion_tokens for usage in group),
            cost=min(sum((usage.cost for usage in group), Decimal(0)), MAX_COST),
        )
        for model, group in sorted(by_model.items())
    ]
