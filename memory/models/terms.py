"""Document frequencies of words, by account, for BM25. Changes are appended and read as their sum."""

from django.db import models

from memory.models.accounts import Account


class TermCount(models.Model):
    """A change by `docs`, which may be negative, of the number of memories that contain a term.

    A term is a lexeme with the prefix of its account. The rows of an account and term add up. The empty term counts the
    memories themselves and their `tokens`. Memories that are archived, quarantined or buried are not counted; expired
    ones are. Triggers append a row with each write, so that writers do not wait for one another. The job
    `recall_statistics` replaces the rows of a term by their sum.
    """

    # a trigger deletes the rows with their account: a foreign key would be checked for every row
    account = models.ForeignKey(Account, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    term = models.TextField()
    docs = models.IntegerField()
    tokens = models.BigIntegerField(default=0)

    class Meta:
        db_table = "memory_terms"
        indexes = [models.Index(fields=["account", "term"], include=["docs", "tokens"], name="term_count")]

    def __str__(self) -> str:
        return f"{self.docs:+d}"
