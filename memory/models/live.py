"""Proxies of `Account` for admin pages of data in Redis, so that each page has a permission of its own."""

from memory.models.accounts import Account


class WorkingMemoryAccount(Account):
    """An account on the admin pages of its working memory."""

    class Meta:
        proxy = True
        verbose_name = "working memory"
        verbose_name_plural = "working memory"


class LedgerAccount(Account):
    """An account on the admin pages of its injection ledger."""

    class Meta:
        proxy = True
        verbose_name = "injection ledger"
        verbose_name_plural = "injection ledger"
