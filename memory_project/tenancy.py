"""Tenant isolation for tables that are looked up by key: their querysets start at `in_account`.

Memories, whose visibility depends on more than the account, start at `visible_to(owner)` instead.
"""

from typing import Self, TypeVar
from uuid import UUID

from django.db import models

M = TypeVar("M", bound=models.Model)


class AccountQuerySet(models.QuerySet[M]):
    """Rows that belong to an account."""

    def in_account(self, account_id: UUID) -> Self:
        return self.filter(account_id=account_id)
