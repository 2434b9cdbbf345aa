"""The language of an account: what its texts and questions are read in, and reading anew what was stored in another.

A memory keeps the language that it was read in, so rows are read anew a batch at a time, beside those who write and
ask: until all are, a word may be missed in rows that are still to come. Killed anywhere, nothing is half done: what is
in the account's language already is passed over.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.audit import record
from memory.errors import NotFound, Unprocessable
from memory.models import Account, Memory
from memory.models.accounts import LANGUAGES
from memory.owner import Owner

BATCH_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """Memories read anew in one batch; `last` is the id of its last one."""

    rows: int
    last: UUID


def set_language(owner: Owner, language: str) -> bool:
    """Have what is stored and asked from now on read in this language; False where it is the account's already.

    What is stored already is for `read_anew`. Raises Unprocessable for a language that there is not, NotFound.
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
        record(owner, operation="update", memory_type="account", affected_ids=[account.id], metadata=metadata)
    return True


def check_language(language: str) -> None:
    """Raises Unprocessable."""
    if language not in LANGUAGES:
        raise Unprocessable(f"there is no language {language!r}: there are {', '.join(LANGUAGES)}")


def count_in_others(owner: Owner, language: str) -> int:
    """How many memories were read in another language."""
    return in_others(owner, language).count()


def read_anew(owner: Owner, language: str, *, size: int = BATCH_ROWS) -> Iterator[Reread]:
    """Read in this language what was read in another, in the order of ids; each batch is committed with its step.

    Who writes meanwhile waits for a batch at most. What is being stored while the language changes may come in the
    former one still, behind the last batch: another round finds it.
    """
    last = UUID(int=0)
    while read := read_batch(owner, language, after=last, size=size):
        yield read
        last = read.last


def read_batch(owner: Owner, language: str, *, after: UUID, size: int) -> Reread | None:
    with transaction.atomic():
        # locked in the order of everybody who locks memories
        following = in_others(owner, language).filter(id__gt=after).order_by("id").select_for_update(no_key=True)
        ids = list(following.values_list("id", flat=True)[:size])
        if not ids:
            return None
        # the database makes the words again, and counts them
        Memory.objects.filter(id__in=ids).update(language=language)
    return Reread(rows=len(ids), last=ids[-1])


def in_others(owner: Owner, language: str) -> QuerySet[Memory]:
    return Memory.objects.filter(account_id=owner.account_id).exclude(language=language)
