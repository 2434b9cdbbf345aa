"""Items of the inbox: what finds them, and what describes them for the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Left

from memory.admin.beliefs import NamedLink
from memory.admin.columns import change_url
from memory.admin.text import excerpt_of, text_excerpt
from memory.kinds import spec_of
from memory.models import FactReview
from memory.redaction import redact
from memory.services.extraction.forget import FORGET_KEY, ForgetState
from memory.services.memories.links import DUPLICATE_OF

RECENT_ROWS = 20_000
"""The newest rows of a large table among which items are looked for, so that no table is scanned."""
MERGED_WITHIN = timedelta(days=30)
"""Older merges of near-duplicates are not asked about."""
TEXT_START = Left("text", 5_000)
"""More of a text than a card shows, so that no secret is cut before it is masked."""

Find = Callable[[QuerySet[Any], datetime], QuerySet[Any]]
Describe = Callable[[Any], "InboxItem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxItem:
    """Something to decide, ready for the page."""

    id: UUID
    what: str
    texts: Sequence[str]
    note: str
    account: str
    at: datetime
    url: str
    account_id: UUID
    agent_id: str
    user_id: str
    conversation_id: str
    page: str = ""
    """The name of the pages of a memory."""
    source: str = ""
    decisions: Sequence[tuple[str, Any]] = ()
    retracted: Sequence[NamedLink] = ()
    """For a request to forget: the facts that were retracted for it."""
    still_said: Sequence[NamedLink] = ()
    """For a request to forget: the turns that still say these facts."""
    erase_url: str = ""
    memories_url: str = ""
    conversation_url: str = ""
    delete_url: str = ""


def annotate(rows: QuerySet[Any], **excerpts: Any) -> QuerySet[Any]:
    found: QuerySet[Any] = rows.annotate(**excerpts)
    return found


def holder_of(memory: str) -> dict[str, F]:
    """Return the columns that say whose the memory is to which rows refer."""
    return {name: F(f"{memory}__{name}") for name in ("agent_id", "user_id", "conversation_id")}


def open_reviews(rows: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    claims = {f"{side}_claim": text_excerpt(f"{side}_fact__text") for side in ("old", "new")}
    return annotate(rows.filter(status=FactReview.Status.OPEN), **claims, **holder_of("new_fact"))


def among_newest(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the newest of the rows. Their oldest id is read first: a range of ids is never taken for a whole table."""
    oldest = rows.order_by("-pk").values_list("pk", flat=True)[RECENT_ROWS - 1 : RECENT_ROWS]
    return rows.filter(pk__gte=oldest[0]) if oldest else rows


def unconfirmed_merges(rows: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    texts = {f"{end}_text": text_excerpt(f"{end}__text") for end in ("source", "target")}
    recent = among_newest(rows).filter(type=DUPLICATE_OF, created_at__gte=now - MERGED_WITHIN)
    return annotate(recent.exclude(properties__has_key="confirmed_by"), **texts, **holder_of("target"))


def newest_memories(**conditions: Any) -> Find:
    """Return what finds the newest memories that fulfil conditions."""
    return lambda rows, now: annotate(among_newest(rows).filter(**conditions), text_start=TEXT_START)


def open_forget_requests(rows: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    # few, which an index finds
    return annotate(rows.filter(metadata__contains={FORGET_KEY: ForgetState.OPEN}), text_start=TEXT_START)


def parked_conversations(rows: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    return rows.filter(Q(extract_parked_at__isnull=False) | Q(summary_parked_at__isnull=False))


def describe_review(row: Any) -> InboxItem:
    similarity = "" if row.similarity is None else f"Similarity {row.similarity:.3f}."
    texts = [f"New: {redact(row.new_claim)}", f"Old: {redact(row.old_claim)}"]
    return item(row, "Two facts contradict each other", texts, similarity, change_url("factreview", row.pk))


def describe_merge(row: Any) -> InboxItem:
    texts = [f"Kept: {redact(row.target_text)}", f"Merged into it: {redact(row.source_text)}"]
    url = change_url("memory", row.target_id)
    return item(row, "Near-duplicates were merged", texts, f"Similarity {row.weight:.3f}.", url)


def describe_memory(what: str, note: str = "") -> Describe:
    """Return what describes a memory by texts, in which `{kind}` is the label of its kind, and `{row}` its row."""

    def describe(row: Any) -> InboxItem:
        spec = spec_of(row.kind)
        url = change_url(spec.admin_page, row.pk)
        text = redact(row.text_start) if row.has_secret else row.text_start
        found = item(row, what.format(kind=spec.label), [text], note.format(row=row), url)
        return replace(found, page=spec.admin_page)

    return describe


def describe_parked(row: Any) -> InboxItem:
    extraction = "Extraction", row.extract_parked_at, row.extract_error
    summary = "Summary", row.summary_parked_at, row.summary_error
    parts = [(name, error) for name, at, error in (extraction, summary) if at]
    note = " ".join(f"{name} failed too often: {error or 'no reason is known'}." for name, error in parts)
    url = change_url("conversation", row.pk)
    return item(row, "Work on a conversation is parked", [row.conversation_id], note, url)


def item(row: Any, what: str, texts: Sequence[str], note: str, url: str) -> InboxItem:
    return InboxItem(
        id=row.pk,
        what=what,
        texts=[excerpt_of(text) for text in texts],
        note=excerpt_of(note),
        account=row.account.name,
        at=row.created_at,
        url=url,
        account_id=row.account_id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        conversation_id=row.conversation_id,
    )
