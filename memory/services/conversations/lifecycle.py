"""The life of conversations, a lineage if they resume each other: opened by a write, found, locked, changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from ledger import store as ledger
from memory import conf
from memory.audit import record_audit
from memory.errors import Conflict, NotFound, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import Conversation, Participant, Turn
from memory.models.statements import execute_statement, fetch_rows, numbered_cursor
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.services.custody.marks import refuse_erased_user
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef

CONTINUATIONS = """
-- the conversations that one resumes, one after the other; UNION ends a cycle
WITH RECURSIVE lineage AS (
    SELECT conversation_id, continues FROM conversations WHERE account_id = %s AND conversation_id = %s
    UNION
    SELECT c.conversation_id, c.continues FROM conversations c JOIN lineage ON c.conversation_id = lineage.continues
    WHERE c.account_id = %s
)
SELECT conversation_id, continues FROM lineage LIMIT %s
"""

# in SQL, here and in `write_columns`, since composing it from a queryset takes as long as the statement and its answer
LOCKED_COLUMNS = {
    field.attname: f'"{field.column}"' for field in Conversation._meta.concrete_fields if field.name != "saved_session"
}
LOCK = f"""
SELECT {", ".join(LOCKED_COLUMNS.values())} FROM conversations
WHERE account_id = $1 AND conversation_id = $2 FOR NO KEY UPDATE
"""  # noqa: S608 (names of columns)

MAX_ID_CHARACTERS = 100
UNKNOWN = "no such conversation"
CHANGEABLE_COLUMNS = frozenset({"title", "metadata", "continues"})
"""Columns that a client may change later. The first write sets user and channel, the turns set counts and times."""
ADVANCED_COLUMNS = (
    *("turn_count", "last_turn_at", "started_at", "ended_at", "cleared_at", "updated_at"),
    *("outcome", "archived", "consolidated_at", "patterns_extracted_at", "summarize_after", "extract_after"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDefaults:
    """Values that a conversation is opened with. Only those that it does not have yet are applied."""

    title: str = ""
    continues: str = ""
    metadata: dict[str, Any] | None = None


def find_conversation(owner: Owner, conversation_id: str) -> Conversation:
    """Return a conversation in which the owner takes part. Raises NotFound."""
    return require_found(look_up_conversation(owner, conversation_id), "conversation")


def look_up_conversation(owner: Owner, conversation_id: str) -> Conversation | None:
    if not is_valid_id(conversation_id):
        return None
    rows = Conversation.objects.visible_to(owner).filter(conversation_id=conversation_id)
    # it may be large, and only restoring a session needs it
    return rows.defer("saved_session").first()


def is_valid_id(text: str) -> bool:
    """Return whether the database can store this id of a conversation. The edges refuse more."""
    if not 1 <= len(text) <= MAX_ID_CHARACTERS:
        return False
    return not any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in text)


def takes_part(owner: Owner, conversation_id: str) -> bool:
    rows = Participant.objects.of_agent(owner).of_conversation(owner.account_id, conversation_id)
    return is_valid_id(conversation_id) and rows.exists()


def refuse_live_data(owner: Owner, conversation_id: str) -> None:
    """Refuse a limited owner a new conversation that would take over data of its live side.

    Working memory and ledger take data under an id without a conversation, from whoever may name it. Raises NotFound.
    """
    is_own = not owner.limited_to_conversations or takes_part(owner, conversation_id)
    if is_own and not owner.limited_to_user:
        return
    ref = ConversationRef(account_id=owner.account_id, conversation_id=conversation_id)
    if ledger.get_all(ref) or WorkingMemory(Owner(account_id=owner.account_id)).get(conversation_id):
        raise NotFound(UNKNOWN)


def create_conversation(
    owner: Owner, conversation_id: str, *, defaults: ConversationDefaults, now: datetime
) -> Conversation:
    """Create a conversation. Raises Conflict if its id exists already, Unprocessable for invalid values."""
    conversation = build_conversation(owner, conversation_id, now=now)
    with transaction.atomic():
        fill_missing_columns(owner, conversation, defaults)
        stored = insert_conversation(owner, conversation)
        if stored.id != conversation.id:
            raise Conflict("a conversation with this id exists already")
        insert_participants(owner, conversation_ids=[conversation_id])
    return stored


@masks_secrets
def change_conversation(
    owner: Owner, conversation_id: str, *, changes: Mapping[str, Any], now: datetime
) -> Conversation:
    """Change `title`, `metadata`, or the conversation that this one `continues` ("" for none).

    Raises NotFound, and Unprocessable as `check_lineage` does.
    """
    with transaction.atomic():
        if changes.get("continues"):
            lock_lineages(owner)
        conversation = lock_visible_conversation(owner, conversation_id)
        if changes.get("continues"):
            check_lineage(owner, conversation, changes["continues"])
        for name in CHANGEABLE_COLUMNS & set(changes):
            setattr(conversation, name, changes[name])
        conversation.updated_at = now
        conversation.save(update_fields=[*(CHANGEABLE_COLUMNS & set(changes)), "updated_at"])
        audit_conversation_update(owner, conversation, sorted(changes))
    return conversation


def audit_conversation_update(owner: Owner, conversation: Conversation, columns: Sequence[str]) -> None:
    record_audit(
        owner,
        operation="update",
        memory_type="conversation",
        conversation_id=conversation.conversation_id,
        metadata={"columns": columns},
    )


def join_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Return the conversation for a write to its live side, created by the first one. The agent takes part in it."""
    found = look_up_conversation(owner, conversation_id)
    if found is not None:
        refuse_erasing(found)
        return found
    with transaction.atomic():
        conversation = open_conversation(owner, conversation_id, defaults=ConversationDefaults(), now=now)
        insert_participants(owner, conversation_ids=[conversation_id])
    return conversation


def open_conversation(
    owner: Owner, conversation_id: str, *, defaults: ConversationDefaults, now: datetime
) -> Conversation:
    """Lock the row of a conversation until the transaction ends, or create it, and store missing `defaults`.

    Whoever writes into it takes part in it, which the caller records. Raises Unprocessable for an invalid id and for a
    conversation to continue that does not exist; Conflict if it continues another one already.
    """
    if (
        defaults.continues
        and read_continuations(owner, conversation_id, most=1).get(conversation_id) != defaults.continues
    ):
        lock_lineages(owner)
    conversation = lock_conversation(owner, conversation_id)
    if conversation is None:
        made = build_conversation(owner, conversation_id, now=now)
        fill_missing_columns(owner, made, defaults)
        conversation = insert_conversation(owner, made)
    if missing := fill_missing_columns(owner, conversation, defaults):
        conversation.updated_at = now
        conversation.save(update_fields=[*missing, "updated_at"])
        audit_conversation_update(owner, conversation, missing)
    return conversation


def insert_conversation(owner: Owner, made: Conversation) -> Conversation:
    """Insert a conversation and lock the row with its id: this one, or one that another request has just created."""
    refuse_live_data(owner, made.conversation_id)
    refuse_erased_user(owner.account_id, made.user_id)
    Conversation.objects.bulk_create([made], ignore_conflicts=True)
    conversation = lock_conversation(owner, made.conversation_id)
    if conversation is None:
        raise Conflict("the conversation was deleted at the same time: try again")
    if conversation.id == made.id:
        record_audit(owner, operation="create", memory_type="conversation", conversation_id=made.conversation_id)
    return conversation


def lock_visible_conversation(owner: Owner, conversation_id: str) -> Conversation:
    """Lock the row of a conversation that the owner sees until the transaction ends. Raises NotFound."""
    find_conversation(owner, conversation_id)
    return require_found(lock_conversation(owner, conversation_id), "conversation")


def lock_conversation(owner: Owner, conversation_id: str) -> Conversation | None:
    """Lock the row of a conversation, or return None. Raises Conflict for one that is being erased."""
    found = lock_conversation_to_erase(owner, conversation_id)
    if found is not None:
        refuse_erasing(found)
    return found


def refuse_erasing(conversation: Conversation) -> None:
    if conversation.erasing:
        raise Conflict("this conversation is being erased: use another conversation_id, or try again later")


def lock_conversation_to_erase(owner: Owner, conversation_id: str) -> Conversation | None:
    if not is_valid_id(conversation_id):
        return None
    with numbered_cursor() as cursor:
        cursor.execute(LOCK, [owner.account_id, conversation_id])
        row = cursor.fetchone()
    if row is None:
        return None
    found = Conversation.from_db(connection.alias, LOCKED_COLUMNS, row)
    if owner.limited_to_conversations and not (found.agent_id == owner.agent_id or takes_part(owner, conversation_id)):
        raise NotFound(UNKNOWN)
    if owner.limited_to_user and found.user_id != owner.user_id:
        raise NotFound(UNKNOWN)
    return found


def write_columns(conversation: Conversation, names: Sequence[str]) -> None:
    """Store these columns of a locked conversation, which hold no JSON."""
    assigned = ", ".join(f'"{name}" = %s' for name in names)
    statement = f"UPDATE conversations SET {assigned} WHERE account_id = %s AND id = %s"  # noqa: S608 (names of columns)
    values = [getattr(conversation, name) for name in names]
    execute_statement(statement, [*values, conversation.account_id, conversation.id])


def build_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Return an unsaved conversation. Raises Unprocessable for an invalid id."""
    if not is_valid_id(conversation_id):
        raise Unprocessable(f"a conversation id has 1 to {MAX_ID_CHARACTERS} characters, no NUL and no lone surrogate")
    return Conversation(
        account_id=owner.account_id,
        conversation_id=conversation_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        channel=owner.channel,
        started_at=now,
    )


@masks_secrets
def fill_missing_columns(owner: Owner, conversation: Conversation, defaults: ConversationDefaults) -> list[str]:
    """Set the columns that are empty and return their names. Raises as `open_conversation` does."""
    if defaults.continues and conversation.continues not in ("", defaults.continues):
        raise Conflict("it continues another conversation already")
    given = {"title": defaults.title, "continues": defaults.continues, "metadata": defaults.metadata}
    missing = {name: value for name, value in given.items() if value and not getattr(conversation, name)}
    if "continues" in missing:
        check_lineage(owner, conversation, defaults.continues)
    for name, value in missing.items():
        setattr(conversation, name, value)
    return sorted(missing)


def lock_lineages(owner: Owner) -> None:
    """Serialize changes of `continues` in the account with a transaction-level advisory lock.

    Take it before the lock of any conversation's row: an erasure holds it while it waits for other rows.
    """
    execute_statement("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"lineages:{owner.account_id}"])


def check_lineage(owner: Owner, conversation: Conversation, continues: str) -> None:
    """Raise Unprocessable if the owner sees no such conversation, or the conversation would continue itself."""
    # most callers have the lock already, but not one that read an outdated `continues`
    lock_lineages(owner)
    if look_up_conversation(owner, continues) is None:
        raise Unprocessable("`continues` names a conversation that does not exist")
    if would_continue_itself(owner, conversation.conversation_id, continues):
        raise Unprocessable("a conversation cannot continue one that continues it")


def would_continue_itself(owner: Owner, conversation_id: str, continues: str) -> bool:
    """Return whether a conversation with this id, stored or not, would continue itself."""
    return conversation_id == continues or conversation_id in read_continuations(owner, continues).values()


def read_continuations(owner: Owner, conversation_id: str, *, most: int | None = None) -> dict[str, str]:
    """Return the conversation and those it resumes, nearest first, with the id that each continues, stored or not.

    At most `most` of them, if given.
    """
    return dict(fetch_rows(CONTINUATIONS, [owner.account_id, conversation_id, owner.account_id, most]))


def advance_conversation(conversation: Conversation, new: Sequence[Turn], *, now: datetime) -> None:
    """Reopen the conversation of new turns, and make due what is derived from it."""
    times = [turn.event_time for turn in new]
    if not conversation.turn_count:
        conversation.started_at = min(times)
    conversation.turn_count += len(new)
    conversation.last_turn_at = max([*times, *filter(None, [conversation.last_turn_at])])
    conversation.ended_at = conversation.cleared_at = None
    conversation.outcome, conversation.archived = "", False
    conversation.consolidated_at = conversation.patterns_extracted_at = None
    conversation.updated_at = now
    plan_summary(conversation, now=now)
    # due since the first turn that is not extracted; failed work keeps its wait, and parked work stays parked
    if conversation.extract_parked_at is None:
        conversation.extract_after = conversation.extract_after or now
    write_columns(conversation, ADVANCED_COLUMNS)


def plan_summary(conversation: Conversation, *, now: datetime) -> None:
    """Set when the next summary is due: now at the threshold, once idle from the smaller limit on.

    A requested summary, the wait after a failed attempt, and a parked summary stay as they are.
    """
    if conversation.summarize_to is not None or conversation.summary_attempts or conversation.summary_parked_at:
        return
    waiting = conversation.turn_count - conversation.summarized_count
    due: datetime | None = None
    if waiting >= conf.SUMMARY_THRESHOLD:
        due = now
    # the last messages are never summarized: with no others, the summary would be due again and again
    elif waiting >= max(conf.SESSION_MAX_MESSAGES_BEFORE_SUMMARY, conf.SUMMARY_KEEP_MESSAGES + 1):
        due = now + timedelta(minutes=conf.SESSION_IDLE_MINUTES)
    conversation.summarize_after = due
