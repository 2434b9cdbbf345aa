"""The sidebar of a conversation's page: its summaries, participants and live data in Redis."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from ledger import store
from memory.admin.columns import MINUTE, change_url, why_url
from memory.admin.conversation_timeline import read_items
from memory.admin.text import excerpt_of, mark_invisible
from memory.admin.transcripts import TranscriptWindow, indent_value
from memory.kinds import spec_of
from memory.models import Conversation, EpisodicMemory, Participant, TurnRecord
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, ConversationQueue
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import session_ref
from memory.tiers.working import stored_fields
from memory_project.http.problems import REDIS_ERRORS
from memory_project.redis import ConversationRef

MAX_EPISODES = 20
MAX_PARTICIPANTS = 50
MAX_RECORDS = 100
MAX_CONTINUATIONS = 20
MAX_THOUGHTS = 20
MAX_VALUES = 50
MAX_VALUE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SidebarEpisode:
    """A summary, or an episode that an agent stored. `details` are the lists that are not empty, by name."""

    row: EpisodicMemory
    text: str
    source: str
    agent: str
    details: Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveValue:
    """A named value and its writer; of an injected memory, its text and the address of where it comes from."""

    name: str
    text: str
    writer: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveData:
    """The data of a conversation in Redis; `is_down` if Redis does not answer. Counts include what is not shown."""

    is_down: bool = False
    goal: LiveValue | None = None
    thoughts: Sequence[LiveValue] = ()
    fields: Sequence[LiveValue] = ()
    field_count: int = 0
    items: Sequence[LiveValue] = ()
    item_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SidebarLineage:
    """The conversation that this one continues (`continued` is None if it is gone) and the links to its successors."""

    continues: str = ""
    continued: Conversation | None = None
    following: Sequence[tuple[str, str]] = ()


def format_state(conversation: Conversation) -> str:
    ended = f"ended ({conversation.outcome})" if conversation.outcome else "ended"
    state = ended if conversation.ended_at else "open"
    marks = [("archived", conversation.archived), ("legal hold", conversation.legal_hold)]
    return ", ".join([state, *(name for name, is_set in marks if is_set)])


def format_progress(conversation: Conversation, queue: ConversationQueue, now: datetime) -> str:
    """Format how many turns the work of a queue has covered, and what comes next."""
    done, error, lease, due = (
        getattr(conversation, name) for name in (queue.done, queue.error, queue.lease, queue.due)
    )
    covered = f"{done} of {conversation.turn_count} turns" if done else "none"
    if error:
        state = "failing" if getattr(conversation, queue.parked) is None else "parked"
        return f"{covered}, {state}: {error} ({getattr(conversation, queue.attempts)}×)"
    if lease and lease > now:
        return f"{covered}, in progress"
    if due is None:
        return covered
    return f"{covered}, queued" if due <= now else f"{covered}, due {due:{MINUTE}}"


def list_properties(conversation: Conversation, now: datetime) -> list[tuple[str, str]]:
    """Return the labelled properties of a conversation that are not empty."""
    times = [
        ("Started", conversation.started_at),
        ("Last turn", conversation.last_turn_at),
        ("Ended", conversation.ended_at),
        ("Live data cleared", conversation.cleared_at),
    ]
    properties = [
        ("Id", mark_invisible(conversation.conversation_id)),
        ("State", format_state(conversation)),
        ("User", mark_invisible(conversation.user_id)),
        ("Channel", mark_invisible(conversation.channel)),
        ("Started by", mark_invisible(conversation.agent_id) or "the account"),
        *((label, f"{at:{MINUTE}} UTC") for label, at in times if at is not None),
        ("Turns", str(conversation.turn_count)),
        ("Summary", format_progress(conversation, SUMMARIES, now)),
        ("Extraction", format_progress(conversation, EXTRACTION, now)),
        ("Metadata", format_value(conversation.metadata) if conversation.metadata else ""),
    ]
    return [(label, text) for label, text in properties if text]


def read_episodes(conversation: Conversation) -> list[SidebarEpisode]:
    """Return the episodes of a conversation, newest first, including archived ones."""
    rows = EpisodicMemory.objects.filter(
        account_id=conversation.account_id, conversation_id=conversation.conversation_id
    ).order_by("-created_at", "-id")
    return [sidebar_episode(row) for row in rows[:MAX_EPISODES]]


def sidebar_episode(row: EpisodicMemory) -> SidebarEpisode:
    lists = (("Decisions", row.key_decisions), ("Entities", row.entities_mentioned), ("Tools", row.tools_called))
    metadata = row.metadata
    turns = f"turns {metadata.get('first_index', 0)}–{metadata['last_index']}" if "last_index" in metadata else ""
    source = [str(part) for part in (row.source, metadata.get("summarizer"), turns) if part]
    return SidebarEpisode(
        row=row,
        text=mark_invisible(row.text),
        agent=mark_invisible(row.agent_id),
        source=mark_invisible(", ".join(source)),
        details=[(name, [format_value(value) for value in values]) for name, values in lists if values],
    )


def format_value(value: Any) -> str:
    return mark_invisible(indent_value(value, characters=MAX_VALUE_CHARACTERS))[:MAX_VALUE_CHARACTERS]


def read_records(conversation: Conversation, window: TranscriptWindow) -> QuerySet[TurnRecord]:
    """Return the structured turns about the shown messages, and those about no messages; latest first."""
    shown = Q(first_index__lt=window.end, last_index__gte=window.start) | Q(first_index=None)
    rows = TurnRecord.objects.filter(shown, log=conversation).order_by("-number")
    return rows.only("number", "status", "level", "first_index", "last_index")[:MAX_RECORDS]


def read_participants(conversation: Conversation) -> list[tuple[str, datetime]]:
    """Return the agents that take part and when each joined, in order of joining."""
    rows = Participant.objects.of_conversation(conversation.account_id, conversation.conversation_id)
    found = rows.order_by("created_at", "id").values_list("agent_id", "created_at")[:MAX_PARTICIPANTS]
    return [(mark_invisible(agent_id), joined) for agent_id, joined in found]


def read_lineage(conversation: Conversation) -> SidebarLineage:
    rows = Conversation.objects.filter(account_id=conversation.account_id).only("id", "conversation_id")
    continued = conversation.continues and rows.filter(conversation_id=conversation.continues).first()
    following = rows.filter(continues=conversation.conversation_id).order_by("id")[:MAX_CONTINUATIONS]
    return SidebarLineage(
        continues=mark_invisible(conversation.continues),
        continued=continued or None,
        following=[(change_url("conversation", row.pk), mark_invisible(row.conversation_id)) for row in following],
    )


def read_live_data(conversation: Conversation, *, working: bool, ledger: bool, memories: bool) -> LiveData:
    """Return the parts that the user may look at. Looking does not renew the expiry of working memory and ledger."""
    ref = ConversationRef(account_id=conversation.account_id, conversation_id=conversation.conversation_id)
    session = SessionMemory(session_ref(conversation))
    try:
        fields = stored_fields(ref) if working else []
        thoughts = session.get_thoughts(MAX_THOUGHTS) if working else []
        goal = session.get_active_goal() if working else None
        items = sorted(store.get_all(ref).items()) if ledger else []
    except REDIS_ERRORS:
        return LiveData(is_down=True)
    return LiveData(
        goal=live_value(format_value(goal["goal_id"]), goal["goal_description"]) if goal else None,
        thoughts=[
            live_value(str(thought["timestamp"])[:19].replace("T", " "), thought["thought"], thought["agent_id"])
            for thought in reversed(thoughts)
        ],
        fields=[live_value(field.name, field.json, field.agent_id) for field in fields[:MAX_VALUES]],
        field_count=len(fields),
        items=name_injected(conversation, items[:MAX_VALUES], may_read=memories),
        item_count=len(items),
    )


def name_injected(conversation: Conversation, items: Sequence[tuple[str, str]], *, may_read: bool) -> list[LiveValue]:
    """Return the items of the ledger, with the texts of the memories that they name if one may read them. One query."""
    known = read_items(conversation.account_id, [key for key, _ in items]) if may_read else {}
    return [
        LiveValue(
            name=excerpt_of(row.words), text=f"{spec_of(row.kind).label}, {mark_invisible(value)}", url=why_url(row.pk)
        )
        if (row := known.get(key))
        else LiveValue(name=mark_invisible(key), text=mark_invisible(value))
        for key, value in items
    ]


def live_value(name: str, value: Any, writer: str = "") -> LiveValue:
    return LiveValue(name=mark_invisible(name), text=format_value(value), writer=mark_invisible(writer))
