"""The language of an account: setting it, and re-indexing what was stored in another language.

A memory keeps the language that it was indexed in. Rows are re-indexed batch by batch while others read and write:
until all are done, a search may miss a word in the remaining rows. The work may be killed at any point and run again,
because rows in the account's language are skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.audit import record_audit
from memory.errors import NotFound, Unprocessable
from memory.models import Account, Memory
from memory.models.accounts import LANGUAGES
from memory.owner import Owner

BATCH_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexedBatch:
    """The number of memories re-indexed in one batch, and the id of its last one."""

    rows: int
    last: UUID


def set_language(owner: Owner, language: str) -> bool:
    """Set the language that new texts and questions are analysed in. Return False if the account has it already.

    Stored texts are left to `reindex_texts`. Raises Unprocessable for an unknown language, NotFound.
    """
    check_language(language)
    with transaction.atomic():
        account = Account.objects.select_for_update(no_key=True).filter(id=owner.account_id).first()
        if account is None:
            raise NotFound("no such account")
        if account.language == language:
            return False
        metadata = {"language": language, "was": account.language}
        account.language = language
        account.save(update_fields=["language"])
        record_audit(owner, operation="update", memory_type="account", affected_ids=[account.id], metadata=metadata)
    return True


def check_language(language: str) -> None:
    """Raise Unprocessable for an unknown language."""
    if language not in LANGUAGES:
        raise Unprocessable(f"{language!r} is not a known language: use one of {', '.join(LANGUAGES)}")


def count_other_languages(owner: Owner, language: str) -> int:
    """Return the number of memories that were indexed in another language."""
    return memories_in_other_languages(owner, language).count()


def reindex_texts(owner: Owner, language: str, *, size: int = BATCH_ROWS) -> Iterator[ReindexedBatch]:
    """Index in this language all memories that were indexed in another, in the order of their ids. Commits each batch.

    Writers wait for one batch at most. A text stored while the language changes may still get the former one behind the
    last batch: run it again to find such rows.
    """
    last = UUID(int=0)
    while read := reindex_batch(owner, language, after=last, size=size):
        yield read
        last = read.last


def reindex_batch(owner: Owner, language: str, *, after: UUID, size: int) -> ReindexedBatch | None:
    with transaction.atomic():
        # in the order that all transactions lock memories in
        following = (
            memories_in_other_languages(owner, language)
            .filter(id__gt=after)
            .order_by("id")
            .select_for_update(no_key=True)
        )
        ids = list(following.values_list("id", flat=True)[:size])
        if not ids:
            return None
        # a trigger recomputes the words and their counts
        Memory.objects.filter(id__in=ids).update(language=language)
    return ReindexedBatch(rows=len(ids), last=ids[-1])


def memories_in_other_languages(owner: Owner, language: str) -> QuerySet[Memory]:
    return Memory.objects.filter(account_id=owner.account_id).exclude(language=language)
