"""What stands beside a transcript: what was made of the conversation, who takes part, and its live side in Redis."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from ledger import store
from memory.admin.text import mark_invisible
from memory.admin.transcripts import Window, pretty
from memory.models import Conversation, EpisodicMemory, Participant, TurnRecord
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, Queue
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import place_of
from memory.tiers.working import stored_fields
from memory_project.http.problems import REDIS_ERRORS
from memory_project.redis import Place

MOST_EPISODES = 20
MOST_PARTICIPANTS = 50
MOST_RECORDS = 100
MOST_FOLLOWING = 20
MOST_THOUGHTS = 20
MOST_ROWS = 50
VALUE_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEpisode:
    """A summary, or what an agent stored as an episode. `details` are lists by their names, empty ones left out."""

    row: EpisodicMemory
    text: str
    made_by: str
    of_agent: str
    details: Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownValue:
    """Something under a name, and who wrote it."""

    name: str
    text: str
    writer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSide:
    """What Redis has of a conversation; `is_down` when it gave no answer. Counts are of all there is."""

    is_down: bool = False
    goal: ShownValue | None = None
    thoughts: Sequence[ShownValue] = ()
    fields: Sequence[ShownValue] = ()
    field_count: int = 0
    items: Sequence[ShownValue] = ()
    item_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The conversation that it continues (`continued`: None where that is gone), address and name of those after it."""

    continues: str = ""
    continued: Conversation | None = None
    following: Sequence[tuple[str, str]] = ()


def tell_state(conversation: Conversation) -> str:
    ended = f"ended ({conversation.outcome})" if conversation.outcome else "ended"
    told = ended if conversation.ended_at else "open"
    return f"{told}, archived" if conversation.archived else told


def tell_progress(conversation: Conversation, queue: Queue, now: datetime) -> str:
    """How far the work of a queue reaches, and what comes next."""
    done, error, lease, due = (
        getattr(conversation, name) for name in (queue.done, queue.error, queue.lease, queue.due)
    )
    reach = f"{done} of {conversation.turn_count} turns" if done else "none"
    if error:
        state = "failing" if getattr(conversation, queue.parked) is None else "parked"
        return f"{reach}, {state}: {error} ({getattr(conversation, queue.attempts)}×)"
    if lease and lease > now:
        return f"{reach}, in the making"
    if due is None:
        return reach
    return f"{reach}, queued" if due <= now else f"{reach}, due {due:%Y-%m-%d %H:%M}"


def tell_facts(conversation: Conversation, now: datetime) -> list[tuple[str, str]]:
    """What the row says, for people; empty ones left out."""
    times = [
        ("Began", conversation.started_at),
        ("Last turn", conversation.last_turn_at),
        ("Ended", conversation.ended_at),
        ("Live side cleared", conversation.cleared_at),
    ]
    facts = [
        ("Id", mark_invisible(conversation.conversation_id)),
        ("State", tell_state(conversation)),
        ("User", mark_invisible(conversation.user_id)),
        ("Channel", mark_invisible(conversation.channel)),
        ("Began by", mark_invisible(conversation.agent_id) or "the account"),
        *((label, f"{at:%Y-%m-%d %H:%M} UTC") for label, at in times if at is not None),
        ("Turns", str(conversation.turn_count)),
        ("Summary", tell_progress(conversation, SUMMARIES, now)),
        ("Extraction", tell_progress(conversation, EXTRACTION, now)),
        ("Metadata", tell(conversation.metadata) if conversation.metadata else ""),
    ]
    return [(label, text) for label, text in facts if text]


def read_episodes(conversation: Conversation) -> list[ShownEpisode]:
    """Live and archived, newest first."""
    rows = EpisodicMemory.objects.filter(
        account_id=conversation.account_id, conversation_id=conversation.conversation_id
    )
    return [show_episode(row) for row in rows.order_by("-created_at", "-id")[:MOST_EPISODES]]  # type: ignore[arg-type]


def show_episode(row: EpisodicMemory) -> ShownEpisode:
    lists = (
        ("Decisions", row.key_decisions),
        ("Entities", row.entities_mentioned),
        ("Tools", row.tools_called),
    )
    return ShownEpisode(
        row=row,
        text=mark_invisible(row.text),
        of_agent=mark_invisible(row.agent_id),
        made_by=mark_invisible(", ".join(makers_of(row))),
        details=[(name, [tell(value) for value in values]) for name, values in lists if values],
    )


def makers_of(row: EpisodicMemory) -> list[str]:
    """Where it came from; of a summary, who made it of which turns."""
    metadata = row.metadata
    turns = f"turns {metadata.get('first_index', 0)}–{metadata['last_index']}" if "last_index" in metadata else ""
    return [str(part) for part in (row.source, metadata.get("summarizer"), turns) if part]


def tell(value: Any) -> str:
    return mark_invisible(pretty(value, characters=VALUE_CHARACTERS))[:VALUE_CHARACTERS]


def read_records(conversation: Conversation, window: Window) -> QuerySet[TurnRecord]:
    """The structured turns that are about the messages shown, and those that name no messages; the latest first."""
    shown = Q(first_index__lt=window.end, last_index__gte=window.start) | Q(first_index=None)
    rows = TurnRecord.objects.filter(shown, log=conversation).order_by("-number")
    return rows.only("number", "status", "level", "first_index", "last_index")[:MOST_RECORDS]


def read_participants(conversation: Conversation) -> list[tuple[str, datetime]]:
    rows = Participant.objects.of_conversation(conversation.account_id, conversation.conversation_id)
    found = rows.order_by("created_at", "id").values_list("agent_id", "created_at")[:MOST_PARTICIPANTS]
    return [(mark_invisible(agent_id), joined) for agent_id, joined in found]


def read_lineage(conversation: Conversation) -> Lineage:
    rows = Conversation.objects.filter(account_id=conversation.account_id).only("id", "conversation_id")
    continued = conversation.continues and rows.filter(conversation_id=conversation.continues).first()
    following = rows.filter(continues=conversation.conversation_id).order_by("id")[:MOST_FOLLOWING]
    return Lineage(
        continues=mark_invisible(conversation.continues),
        continued=continued or None,
        following=[(page_of(row), mark_invisible(row.conversation_id)) for row in following],
    )


def page_of(conversation: Conversation) -> str:
    return reverse("admin:memory_conversation_change", args=[conversation.pk])


def read_live_side(conversation: Conversation, *, working: bool, ledger: bool) -> LiveSide:
    """What may be looked at. Looking does not renew the expiry of working memory and ledger."""
    place = Place(account_id=conversation.account_id, conversation_id=conversation.conversation_id)
    session = SessionMemory(place_of(conversation))
    try:
        fields = [show_field(field) for field in stored_fields(place)] if working else []
        thoughts = session.get_thoughts(MOST_THOUGHTS) if working else []
        goal = session.get_active_goal() if working else None
        items = sorted(store.get_all(place).items()) if ledger else []
    except REDIS_ERRORS:
        return LiveSide(is_down=True)
    return LiveSide(
        goal=show_goal(goal) if goal else None,
        thoughts=[show_thought(thought) for thought in reversed(thoughts)],
        fields=fields[:MOST_ROWS],
        field_count=len(fields),
        items=[ShownValue(name=mark_invisible(key), text=mark_invisible(value)) for key, value in items[:MOST_ROWS]],
        item_count=len(items),
    )


def show_field(stored: Any) -> ShownValue:
    return ShownValue(name=mark_invisible(stored.name), text=tell(stored.json), writer=mark_invisible(stored.agent_id))


def show_goal(goal: dict[str, Any]) -> ShownValue:
    return ShownValue(name=tell(goal["goal_id"]), text=tell(goal["goal_description"]))


def show_thought(thought: dict[str, Any]) -> ShownValue:
    return ShownValue(
        name=str(thought["timestamp"])[:19].replace("T", " "),
        text=tell(thought["thought"]),
        writer=mark_invisible(thought["agent_id"]),
    )
