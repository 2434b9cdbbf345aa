"""The cost of models per account and day, and what an account may spend.

Background work of an account that has spent the tokens of its day waits until the next day (UTC). Nothing is lost.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, Q, Sum

from memory import conf
from memory.models import ModelUsage
from memory.models.statements import execute_statement
from memory.providers.language_models import Usage
from memory.services.account_walk import accounts_that_have
from memory_project.ids import uuid7

logger = logging.getLogger(__name__)

# one sum for each model, ordered by name so that all transactions lock rows in the same order
ADD_USAGE = """
INSERT INTO model_usage
    (id, account_id, day, use, model, calls, failed_calls, prompt_tokens, completion_tokens, cost)
SELECT (array_agg(id))[1], %(account_id)s, %(day)s, %(use)s, model, LEAST(sum(calls), %(max_calls)s),
    LEAST(sum(failed_calls), %(max_calls)s), sum(prompt_tokens), sum(completion_tokens),
    LEAST(sum(cost), %(max_cost)s)
FROM unnest(%(id)s::uuid[], %(model)s::text[], %(calls)s::bigint[], %(failed_calls)s::bigint[],
    %(prompt_tokens)s::bigint[], %(completion_tokens)s::bigint[], %(cost)s::numeric[])
    AS added (id, model, calls, failed_calls, prompt_tokens, completion_tokens, cost)
GROUP BY model ORDER BY model
ON CONFLICT (account_id, day, use, model) DO UPDATE SET
    calls = LEAST(model_usage.calls::bigint + EXCLUDED.calls, %(max_calls)s),
    failed_calls = LEAST(model_usage.failed_calls::bigint + EXCLUDED.failed_calls, %(max_calls)s),
    prompt_tokens = model_usage.prompt_tokens + EXCLUDED.prompt_tokens,
    completion_tokens = model_usage.completion_tokens + EXCLUDED.completion_tokens,
    cost = LEAST(model_usage.cost::numeric + EXCLUDED.cost, %(max_cost)s)
"""

USAGE_COLUMNS = ("model", "calls", "failed_calls", "prompt_tokens", "completion_tokens", "cost")
"""The columns of ADD_USAGE that each request fills."""

MAX_CALLS = 2**31 - 1
MAX_COST = Decimal("9999999999.99999999")
"""Limits of the columns: a sum beyond them stays there, so that the rest can still be stored."""


def record_usage(account_id: UUID, *, use: str, usages: Iterable[Usage], now: datetime) -> None:
    """Add the usage of requests, as a meter recorded it, to the account's day (UTC). One statement.

    Call it outside transactions that may roll back: a request that failed in the end has used its tokens too. Never
    call it from a meter itself, which runs between requests.
    """
    added = list(usages)
    if not added:
        return
    shared = {"account_id": account_id, "day": now.astimezone(UTC).date(), "use": use}
    most = {"max_calls": MAX_CALLS, "max_cost": MAX_COST}
    columns = {name: [getattr(usage, name) for usage in added] for name in USAGE_COLUMNS}
    execute_statement(ADD_USAGE, shared | most | columns | {"id": [uuid7() for _ in added]})


def keep_usage(account_id: UUID, *, use: str, usages: Sequence[Usage], now: datetime) -> None:
    """Record what a model cost, whatever becomes of its answer. An account that is gone has no usage."""
    try:
        with transaction.atomic():
            record_usage(account_id, use=use, usages=usages, now=now)
    except IntegrityError:
        logger.warning("usage of %s not recorded: account %s is gone", use, account_id)


class TokenBudget(StrEnum):
    """A limit on the tokens of an account's day. EMBEDDING is also the `use` of its usage; other uses are LANGUAGE."""

    EMBEDDING = "embedding"
    LANGUAGE = "language"

    @property
    def tokens_per_day(self) -> int:
        """The limit; 0 for none."""
        return conf.EMBEDDED_TOKENS_PER_DAY if self == TokenBudget.EMBEDDING else conf.MODEL_TOKENS_PER_DAY


def accounts_over_budget(budget: TokenBudget, *, now: datetime) -> list[UUID]:
    """Return the accounts that have spent their tokens of today (UTC)."""
    if not budget.tokens_per_day:
        return []
    is_embedding = Q(use=TokenBudget.EMBEDDING)
    of_today = ModelUsage.objects.filter(
        is_embedding if budget == TokenBudget.EMBEDDING else ~is_embedding,
        day=now.astimezone(UTC).date(),
    )
    tokens = of_today.order_by().values("account_id").annotate(tokens=Sum(F("prompt_tokens") + F("completion_tokens")))
    spent = accounts_that_have(tokens.filter(tokens__gte=budget.tokens_per_day))
    return list(spent.order_by("id").values_list("id", flat=True))
