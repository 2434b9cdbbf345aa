"""How many memories of an account hold a word, for BM25: changes are appended, and read as their sum."""

from django.db import models

from memory.models.accounts import Account


class TermCount(models.Model):
    """A change of how many memories hold a term (a lexeme behind its account's prefix), by +`docs` or -`docs`.

    Rows of one account and term add up. The empty term counts the memories themselves, and their `tokens`. Counted is
    what is neither archived, quarantined nor buried, expired or not. Triggers append a row with each write, so that no
    two writers wait for each other; the job `recall_statistics` folds rows of one term into one.
    """

    # a trigger deletes them with their account: a key would be checked once a term
    account = models.ForeignKey(Account, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    term = models.TextField()
    docs = models.IntegerField()
    tokens = models.BigIntegerField(default=0)

    class Meta:
        db_table = "memory_terms"
        indexes = [models.Index(fields=["account", "term"], include=["docs", "tokens"], name="term_count")]

    def __str__(self) -> str:
        return f"{self.docs:+d}"
