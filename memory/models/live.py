"""Accounts as the doors to what lives in Redis: proxies, so that staff need a permission of their own for each."""

from memory.models.accounts import Account


class WorkingMemoryAccount(Account):
    """An account, for those who may look at its working memory."""

    class Meta:
        proxy = True
        verbose_name = "working memory"
        verbose_name_plural = "working memory"


class LedgerAccount(Account):
    """An account, for those who may look at its injection ledger."""

    class Meta:
        proxy = True
        verbose_name = "injection ledger"
        verbose_name_plural = "injection ledger"
