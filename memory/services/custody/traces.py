"""Erasing the traces of memories: marks in ledgers, kept answers, texts of the audit log, histories of the admin.

Whoever deletes memories for good calls `write_waiting_reads` before the transaction, so that reads of them have entries
in the audit log, and `erase_traces` in it, while they still exist.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from ledger import store as ledger
from ledger.journal import flush_everything
from ledger.models import Injection
from memory.models import Conversation, IdempotentRequest
from memory.models.statements import execute_statement, fetch_rows
from memory.owner import Owner
from memory.services.audit import write_waiting_reads
from memory.services.custody.histories import erase_histories_of
from memory_project.batches import batched
from memory_project.redis import ConversationRef

LEDGER_KEYS = 1_000
"""Items that are looked for in the journal together."""

# the answers that contain one of few ids
FORGET_ANSWERS_OF_FEW = """
DELETE FROM idempotent_requests WHERE account_id = %(account_id)s AND EXISTS (
    SELECT FROM unnest(%(ids)s::text[]) AS each (id) WHERE strpos(body, each.id) > 0
)
"""
FEW_IDS = 8
"""Ids that are looked for in the answers one by one, which is faster than to read all ids that there are in them."""

# the answers that contain one of the ids; an array of texts, as they are written in JSON
FORGET_ANSWERS = """
DELETE FROM idempotent_requests WHERE account_id = %(account_id)s AND EXISTS (
    SELECT FROM regexp_matches(body, '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'g') AS found (ids)
    WHERE found.ids[1] = ANY(%(ids)s)
)
"""

# other members of the metadata may quote: what was asked for, values before and after, reasons
HAS_AUDITED_TEXTS = """
query_text <> '' OR error_message <> '' OR metadata - '{request_id,columns,payload_erased_at}'::text[] <> '{}'
"""
# only entries since the oldest of the memories, or of other rows, can be about them
FIND_AUDITED = f"""
SELECT id FROM memory_audit_log WHERE account_id = %(account_id)s AND timestamp >= (
    SELECT coalesce(%(since)s::timestamptz, min(created_at)) - interval '1 minute' FROM memories
    WHERE account_id = %(account_id)s AND id = ANY(%(ids)s::uuid[])
) AND affected_ids && %(ids)s::varchar[] AND ({HAS_AUDITED_TEXTS})
"""  # noqa: S608 (composed of constants alone)
FIND_AUDITED_IN_CONVERSATION = f"""
SELECT id FROM memory_audit_log WHERE account_id = %(account_id)s AND timestamp >= %(since)s
    AND conversation_id = %(conversation_id)s
    AND ({HAS_AUDITED_TEXTS})
"""  # noqa: S608 (composed of constants alone)
ERASE_AUDITED = "SELECT memory_erase_audit_payloads(%s, %s)"


def erase_traces(account_id: UUID, memory_ids: Collection[UUID]) -> Counter[str]:
    """Erase the kept answers, audited texts and histories about memories that still exist. Returns counts by name.

    In the caller's transaction.
    """
    return Counter(
        idempotent_requests=forget_answers(account_id, memory_ids),
        audit_payloads=erase_audited_texts(account_id, memory_ids),
        staff_history=erase_histories_of(memory_ids),
    )


def erase_traces_of_deleted(owner: Owner, memory_ids: Collection[UUID]) -> None:
    """Erase the traces of memories that the owner is deleting. Staff's own reasons stay in the histories.

    In the caller's transaction.
    """
    forget_answers(owner.account_id, memory_ids)
    erase_audited_texts(owner.account_id, memory_ids)
    if owner.changes is None:
        erase_histories_of(memory_ids)


def erase_traces_of_rows(owner: Owner, row_ids: Collection[UUID], *, quoted_in: Q, since: datetime) -> None:
    """Erase the traces of rows that are no memories, and that the owner is deleting. Staff's own reasons stay.

    `quoted_in` is the condition of kept answers that may quote them without their ids; `since` is when the oldest was
    created. In the caller's transaction.
    """
    IdempotentRequest.objects.filter(quoted_in, account_id=owner.account_id).delete()
    forget_answers(owner.account_id, row_ids)
    erase_audited_texts(owner.account_id, row_ids, since=since)
    if owner.changes is None:
        erase_histories_of(row_ids)


def evict_from_ledgers(owner: Owner, kinds: dict[UUID, str]) -> None:
    """Take the memories, given with their kinds, out of every ledger of the account. Raises RedisError.

    The journal keeps their ids alone, which then name nothing.
    """
    flush_everything()
    keys = [f"{kind}:{memory_id}" for memory_id, kind in kinds.items()]
    for some in batched(keys, LEDGER_KEYS):
        rows = Injection.objects.in_account(owner.account_id).filter(item_key__in=some)
        for conversation_id, key in set(rows.values_list("conversation_id", "item_key")):
            ledger.evict(ConversationRef(account_id=owner.account_id, conversation_id=conversation_id), key)


def forget_answers(account_id: UUID, memory_ids: Iterable[UUID]) -> int:
    """Delete kept answers that name one of the memories, and may quote it. The repeated request is done again then."""
    ids = [str(each) for each in memory_ids]
    statement = FORGET_ANSWERS_OF_FEW if len(ids) <= FEW_IDS else FORGET_ANSWERS
    return execute_statement(statement, {"account_id": account_id, "ids": ids})


def erase_audited_texts(account_id: UUID, row_ids: Iterable[UUID], *, since: datetime | None = None) -> int:
    """Erase the texts of audit entries about memories, or other rows, which exist `since` then. The entries stay."""
    named = {"account_id": account_id, "ids": [str(each) for each in row_ids], "since": since}
    return erase_payloads_of(account_id, [row[0] for row in fetch_rows(FIND_AUDITED, named)])


def erase_texts_audited_in(conversation: Conversation) -> int:
    """Erase the texts of audit entries of a conversation, such as what was asked in it. Raises RedisError."""
    write_waiting_reads(conversation.account_id)
    asked = {"account_id": conversation.account_id, "conversation_id": conversation.conversation_id}
    asked["since"] = conversation.created_at - timedelta(minutes=1)
    return erase_payloads_of(
        conversation.account_id, [row[0] for row in fetch_rows(FIND_AUDITED_IN_CONVERSATION, asked)]
    )


def erase_payloads_of(account_id: UUID, found: Collection[UUID]) -> int:
    """Erase the texts of these audit entries, and return their number."""
    if not found:
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ERASE_AUDITED, [account_id, list(found)])
        return int(cursor.fetchone()[0])
