"""The steps of an erasure, in order. Each does one batch and says where the next begins; done twice, it finds nothing.

What the steps look for is read afresh in each batch, so an erasure that was killed anywhere goes on with the same step.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, models, transaction
from django.db.models import F, Q, QuerySet

from ledger.journal import flush_journal
from ledger.models import Injection
from memory.models import Conversation, Erasure, IdempotentRequest, Kind, Memory, PersistentContext, TurnRecord
from memory.models.memory import visible_rows
from memory.models.statements import fetch_rows
from memory.models.table import MemoryTable
from memory.models.writer import clear_record_references
from memory.owner import Owner
from memory.services.audit import write_reads
from memory.services.contexts.manage import delete_context
from memory.services.custody.conversations import LEASES, RELEASED, erase_conversation
from memory.services.custody.histories import erase_histories_of, erase_naming_histories
from memory.services.custody.marks import sign_receipt
from memory.services.custody.memories import erase_derived
from memory.services.custody.naming import ERASED, Naming
from memory.services.custody.redis_keys import erase_from_keys, erase_refused_reads
from memory.services.custody.sealed import SEALED, mask_sealed_rows
from memory.services.custody.stores import (
    WHOLE_IF_NAMED,
    Model,
    StoreRule,
    find_named,
    has_user,
    memory_field,
    rule_of,
    tables,
    text_fields,
)
from memory.services.recall.term_statistics import fold_terms
from memory.services.transfer.transfers import delete_archives

FIRST_ID = UUID(int=0)
CONVERSATIONS_A_BATCH = 5
MEMORIES_A_BATCH = 500
SCANNED_ROWS = 5_000
STREAM_LINES = 1_000
TERMS_A_BATCH = 5_000
AUDIT_ENTRIES_A_BATCH = 1_000

# the bound of the timestamp alone leaves out partitions
NEXT_AUDITED = """
SELECT timestamp, id, ({condition}) FROM memory_audit_log
WHERE account_id = %(account_id)s AND timestamp >= %(since)s AND (timestamp, id) > (%(since)s, %(after)s)
ORDER BY timestamp, id LIMIT %(scan)s
"""
NAMES_USER = """
user_id = %(user_id)s OR conversation_id = ANY(%(conversations)s) OR session_id = ANY(%(conversations)s)
OR concat_ws(E'\\n', '', query_text, error_message, session_id, conversation_id, affected_ids::text,
    metadata::text, '') ~ %(pattern)s
"""
ERASE_AUDITED = "SELECT memory_erase_audit_names(%s, %s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The user or the memories of a filter that are to be erased. `conversations` are those erased so far."""

    owner: Owner
    user_id: str = ""
    channel: str = ""
    before: datetime | None = None
    conversations: Sequence[str] = ()

    @property
    def naming(self) -> Naming:
        return Naming(self.user_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """The result of a batch. `cursor` is where the step goes on, empty at its end.

    `leased_until` is the time by which the summaries and extraction that it cancelled have ended.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    cursor: str = ""
    conversations: Sequence[str] = ()
    leased_until: datetime | None = None


Step = Callable[[Selection, str, datetime], StepReport]


def conversations_of(selection: Selection) -> QuerySet[Conversation]:
    """Return the conversations of the user, and those whose id names it."""
    rows = Conversation.objects.filter(account_id=selection.owner.account_id)
    naming = selection.naming
    named = Q(conversation_id__regex=naming.pattern) if naming.is_telling else Q(conversation_id=naming.user_id)
    return rows.filter(Q(user_id=selection.user_id) | named)


def block_conversations(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Refuse writes to the user's conversations, and cancel summaries and extraction of them."""
    rows = conversations_of(selection).filter(erasing=False).order_by("id")
    with transaction.atomic():
        # waits for those who are storing turns or knowledge, and is waited for
        found = list(rows.select_for_update(no_key=True).values_list("id", *LEASES)[:MEMORIES_A_BATCH])
        ids = [each[0] for each in found]
        Conversation.objects.filter(account_id=selection.owner.account_id, id__in=ids).update(**RELEASED)
    leases = [lease for each in found for lease in each[1:] if lease]
    return StepReport(cursor=str(ids[-1]) if ids else "", leased_until=max(leases, default=None))


def erase_conversations(selection: Selection, cursor: str, now: datetime) -> StepReport:
    names = conversations_of(selection).filter(erasing=True).order_by("id").values_list("conversation_id", flat=True)
    counts: Counter[str] = Counter()
    done = list(names[:CONVERSATIONS_A_BATCH])
    for name in done:
        counts += erase_conversation(selection.owner, name, now=now)
    return StepReport(counts=counts, cursor=f"{done[-1]}"[:200] if done else "", conversations=done)


def erase_own_memories(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Erase the memories that the user has left: knowledge, and turns in conversations of others."""
    rows = Memory.objects.filter(account_id=selection.owner.account_id, user_id=selection.user_id)
    ids = list(rows.order_by("id").values_list("id", flat=True)[:MEMORIES_A_BATCH])
    return StepReport(counts=erase_derived(selection.owner, ids, now=now), cursor=str(ids[-1]) if ids else "")


def erase_naming_memories(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Erase the memories of others that name the user."""
    after, account_id = UUID(cursor) if cursor else FIRST_ID, selection.owner.account_id
    ids, last = find_named(MemoryTable, account_id, selection.naming, after=after, scan=SCANNED_ROWS)
    return StepReport(counts=erase_derived(selection.owner, ids, now=now), cursor=str(last or ""))


def erase_rows(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Erase the user's rows of the next table, or apply its rule to rows of others. The cursor is table and row."""
    names = [
        name for name, model in sorted(tables().items()) if rule_of(model) not in (StoreRule.KEEP, StoreRule.OWN_STEP)
    ]
    name, _, place = cursor.partition(":")
    name, after = name or names[0], UUID(place) if place else FIRST_ID
    model = tables()[name]
    erased = delete_own_rows(model, selection) if not place else 0
    found, last = apply_rule(model, selection, after=after, now=now)
    rest = [each for each in names if each > name]
    following = f"{name}:{last}" if last else (f"{rest[0]}:" if rest else "")
    return StepReport(counts=Counter({name: erased}) + found, cursor=following)


def delete_own_rows(model: Model, selection: Selection) -> int:
    """Delete the rows of a table that belong to the user."""
    if not has_user(model) or model is Conversation:
        return 0
    rows = model._default_manager.filter(account_id=selection.owner.account_id, user_id=selection.user_id)
    ids = list(rows.values_list("id", flat=True))
    with transaction.atomic():
        if model is TurnRecord:
            clear_record_references(selection.owner.account_id, ids)
        return delete_rows(model, selection.owner.account_id, ids)


def delete_rows(model: Model, account_id: UUID, ids: Sequence[UUID]) -> int:
    erase_histories_of(ids)
    # the database deletes what goes with them
    rows: Any = model._default_manager.filter(account_id=account_id, id__in=ids)
    return int(rows._raw_delete(rows.db) or 0)


def apply_rule(model: Model, selection: Selection, *, after: UUID, now: datetime) -> tuple[Counter[str], UUID | None]:
    """Apply the rule of a table to those of its next rows that name the user."""
    account_id, naming, rule = selection.owner.account_id, selection.naming, rule_of(model)
    table, parent = model._meta.db_table, memory_field(model)
    column = f"{parent}_id" if rule is StoreRule.MEMORY else "id"
    ids, last = find_named(model, account_id, naming, after=after, scan=SCANNED_ROWS, column=column)
    if not ids:
        return Counter(), last
    if rule is StoreRule.MEMORY:
        return erase_derived(selection.owner, set(ids), now=now), last
    if rule is StoreRule.DELETE:
        return Counter({table: delete_rows(model, account_id, ids)}), last
    rows = model._default_manager.filter(account_id=account_id, id__in=ids).order_by("id")
    with transaction.atomic():
        for row in rows.select_for_update():
            mask_row(row, selection)
    return Counter({table: len(ids)}), last


def mask_row(row: models.Model, selection: Selection) -> None:
    """Remove what names the user from a row; a pool, run or context that is named after the user goes as a whole."""
    naming, table = selection.naming, row._meta.db_table
    if table in WHOLE_IF_NAMED and naming.is_in(getattr(row, WHOLE_IF_NAMED[table])):
        if isinstance(row, PersistentContext):
            delete_context(selection.owner, row.id)
        else:
            delete_rows(type(row), selection.owner.account_id, [row.pk])
        return
    changes: dict[str, Any] = {}
    for each in text_fields(type(row)):
        before = getattr(row, each.name)
        after = naming.without(before)
        if after != before:
            # some texts are unique
            is_line = isinstance(each, models.CharField) and not isinstance(each, models.TextField)
            changes[each.name] = f"{ERASED} {row.pk}" if is_line and after == ERASED else after
    if "version" in {each.name for each in row._meta.concrete_fields}:
        changes["version"] = F("version") + 1
    type(row)._default_manager.filter(account_id=selection.owner.account_id, pk=row.pk).update(**changes)


def erase_sealed(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Remove what names the user from encrypted values of others. The cursor is table and row."""
    names = sorted(SEALED)
    name, _, place = (cursor or f"{names[0]}:").partition(":")
    after = UUID(place) if place else FIRST_ID
    with transaction.atomic():
        changed, last = mask_sealed_rows(name, selection.owner.account_id, selection.naming, after=after)
    rest = [each for each in names if each > name]
    following = f"{name}:{last}" if last else (f"{rest[0]}:" if rest else "")
    return StepReport(counts=Counter({name: changed}), cursor=following)


def erase_redis(selection: Selection, cursor: str, now: datetime) -> StepReport:
    account_id, naming = selection.owner.account_id, selection.naming
    erased, following = erase_from_keys(account_id, naming, cursor=int(cursor or 0))
    if not following:
        erased += erase_refused_reads(account_id, naming)
    return StepReport(counts=Counter(redis=erased), cursor=str(following or ""))


def flush_ledger_changes(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Turn waiting changes of ledgers into rows. Counts nothing: the next steps erase them."""
    return StepReport(cursor=flush_journal(STREAM_LINES, after=cursor, account_id=selection.owner.account_id).cursor)


def flush_audited_reads(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Turn waiting reads into entries of the audit log. Counts nothing: the next steps erase them."""
    return StepReport(cursor=write_reads(STREAM_LINES, after=cursor, account_id=selection.owner.account_id).cursor)


def erase_marks(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Delete what the ledger's journal has of the user's conversations."""
    rows = Injection.objects.in_account(selection.owner.account_id)
    marks = rows.filter(conversation_id__in=selection.conversations)
    return StepReport(counts=Counter(injections=marks.delete()[0]))


def erase_answers(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Delete kept answers to requests about the user's conversations."""
    rows = IdempotentRequest.objects.filter(account_id=selection.owner.account_id)
    about = rows.filter(conversation_id__in=selection.conversations)
    return StepReport(counts=Counter(idempotent_requests=about.delete()[0]))


def erase_audit(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Remove the user and the ids of its conversations from the next entries of the audit log, with their texts."""
    asked = {"user_id": selection.user_id, "pattern": selection.naming.pattern}
    return erase_next_audited(selection, cursor, NAMES_USER, asked | {"conversations": list(selection.conversations)})


def erase_next_audited(selection: Selection, cursor: str, condition: str, asked: Mapping[str, Any]) -> StepReport:
    """Erase the texts and names of those next entries of the account's audit log that meet a condition.

    The cursor is the time and id of an entry, so that each is read once.
    """
    account_id = selection.owner.account_id
    since, _, after = cursor.partition(" ")
    place = {"since": since or "-infinity", "after": after or FIRST_ID, "scan": AUDIT_ENTRIES_A_BATCH}
    page = fetch_rows(NEXT_AUDITED.format(condition=condition), {**asked, **place, "account_id": account_id})
    ids = [entry_id for _at, entry_id, is_met in page if is_met]
    if ids:
        with transaction.atomic(), connection.cursor() as statements:
            statements.execute(ERASE_AUDITED, [account_id, ids])
    following = f"{page[-1][0].isoformat()} {page[-1][1]}" if len(page) == AUDIT_ENTRIES_A_BATCH else ""
    return StepReport(counts=Counter(memory_audit_log=len(ids)), cursor=following)


def erase_histories(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Erase what the history of the admin says of the user."""
    account_id, after = selection.owner.account_id, int(cursor or 0)
    done = erase_naming_histories(account_id, selection.naming, selection.conversations, after=after)
    return StepReport(counts=Counter(staff_history=len(done.ids)), cursor=str(done.after or ""))


def erase_reasons(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Remove the reasons of other erasures that name the user; their receipts are signed again."""
    naming, account_id = selection.naming, selection.owner.account_id
    named = Q(reason__regex=naming.pattern) if naming.is_telling else Q(reason=naming.user_id)
    rows = Erasure.objects.in_account(account_id).filter(named).order_by("id")
    with transaction.atomic():
        found = list(rows.select_for_update(no_key=True))
        for each in found:
            changes: dict[str, Any] = {"reason": ERASED}
            if each.receipt is not None:
                receipt = {**each.receipt, "reason": ERASED}
                changes |= {"receipt": receipt, "signature": sign_receipt(receipt)}
            Erasure.objects.in_account(account_id).filter(id=each.id).update(**changes)
    return StepReport(counts=Counter(erasures=len(found)))


def erase_archives(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Delete the account's exports and imports: their archives may hold what is known of the user."""
    return StepReport(counts=Counter(transfers=delete_archives(selection.owner.account_id)))


def fold_words(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Drop the words that no memory of the account contains any more from its statistics."""
    folded = fold_terms(selection.owner.account_id, after=int(cursor or 0), size=TERMS_A_BATCH)
    return StepReport(cursor=str(folded.mark or ""))


def filtered_memories(selection: Selection) -> QuerySet[Memory]:
    """Return the memories that a filter finds among those that its owner sees and may change."""
    owner = selection.owner
    # entries and learnings belong to their contexts
    rows = Memory.objects.filter(visible_rows(owner)).exclude(kind__in=(Kind.CONTEXT_ENTRY, Kind.LEARNING))
    if owner.agent_id:
        rows = rows.filter(Q(agent_id=owner.agent_id) | ~Q(user_id="") & Q(user_id=owner.user_id))
    if selection.user_id:
        rows = rows.filter(user_id=selection.user_id)
    if selection.channel:
        rows = rows.filter(channel=selection.channel)
    if selection.before:
        rows = rows.filter(event_time__lt=selection.before)
    return rows


def erase_filtered(selection: Selection, cursor: str, now: datetime) -> StepReport:
    """Erase the memories that a filter finds. Turns stay as empty places, which the cursor leaves behind."""
    rows = filtered_memories(selection).filter(id__gt=UUID(cursor) if cursor else FIRST_ID)
    rows = rows.exclude(kind=Kind.TURN, text=ERASED)
    ids = list(rows.order_by("id").values_list("id", flat=True)[:MEMORIES_A_BATCH])
    return StepReport(counts=erase_derived(selection.owner, ids, now=now), cursor=str(ids[-1]) if ids else "")


SUBJECT_STEPS: Mapping[str, Step] = {
    "block": block_conversations,
    "conversations": erase_conversations,
    "memories": erase_own_memories,
    "naming memories": erase_naming_memories,
    "rows": erase_rows,
    "sealed values": erase_sealed,
    "redis": erase_redis,
    "ledger changes": flush_ledger_changes,
    "audited reads": flush_audited_reads,
    "ledger marks": erase_marks,
    "answers": erase_answers,
    "audit": erase_audit,
    "histories": erase_histories,
    "reasons": erase_reasons,
    "archives": erase_archives,
    "words": fold_words,
}
"""The steps of erasing a user, by name, in order."""
FILTER_STEPS: Mapping[str, Step] = {"memories": erase_filtered, "words": fold_words}
"""The steps of erasing what a filter finds."""
