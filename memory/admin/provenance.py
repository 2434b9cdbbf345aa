"""The page "Why do you know this?" of a memory: where it comes from, what became of it, and who has seen it.

A fixed number of queries, each of which looks up a bounded number of rows by an index that begins with the account.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from ledger.models import Injection
from memory.admin.base import BoundedAdmin
from memory.admin.beliefs import BeliefHistory, TurnQuote, quote_columns, read_history, turn_quote
from memory.admin.columns import change_url, list_url, why_url
from memory.admin.text import excerpt_of, mark_invisible, text_excerpt
from memory.kinds import Kind, spec_of
from memory.models import AuditEntry, ContextAccessLog, ContextEntryVersion, Conversation, Fact, Link, Memory
from memory.services.memories.links import DERIVED_FROM, DUPLICATE_OF, PROMOTED_FROM, SUPERSEDES

MAX_LINKED = 50
MAX_QUOTES = 20
MAX_LINES = 50
MAX_VERSIONS = 20
MAX_TEXT_CHARACTERS = 5_000
AUTHOR_WINDOW = timedelta(minutes=2)
"""How long after a memory was created its audit entry may have been written."""
READS_SPAN = timedelta(days=7)
MAX_READS_EXAMINED = 5_000
"""The latest reads of the account in the audit log among which those of the memory are looked for."""

REPLACES, MERGED_INTO = "REPLACES", "MERGED_INTO"
SOURCES, DERIVED, REPLACED_BY, REPLACED = "sources", "derived", "replaced_by", "replaced"
SECTION_OF_LINK = {
    (DERIVED_FROM, True): SOURCES,
    (PROMOTED_FROM, True): SOURCES,
    (DERIVED_FROM, False): DERIVED,
    (PROMOTED_FROM, False): DERIVED,
    (SUPERSEDES, False): REPLACED_BY,
    (REPLACES, False): REPLACED_BY,
    (DUPLICATE_OF, True): REPLACED_BY,
    (MERGED_INTO, True): REPLACED_BY,
    (SUPERSEDES, True): REPLACED,
    (REPLACES, True): REPLACED,
    (DUPLICATE_OF, False): REPLACED,
    (MERGED_INTO, False): REPLACED,
}
"""The section of the page that a link belongs to, by its type and whether it goes out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedMemory:
    """Another memory, the type of the link to it, and the address of its own page of this kind."""

    type: str
    kind: str
    text: str
    at: datetime
    weight: float
    url: str
    why_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderLine:
    """A read of the memory. `url` leads to the entry of the log."""

    at: datetime
    reader: str
    action: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionLine:
    """An entry of the ledger's journal about the memory. `url` is empty if the conversation is gone."""

    at: datetime
    event: str
    agent: str
    conversation: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOrigin:
    """Everything that the page shows besides the memory itself."""

    actor: str
    quotes: Sequence[TurnQuote]
    linked: Mapping[str, Sequence[RelatedMemory]]
    history: BeliefHistory | None
    contents: Sequence[ContextEntryVersion]
    reads: Sequence[ReaderLine]
    injections: Sequence[InjectionLine]


def read_provenance(memory: Memory, request: HttpRequest) -> MemoryOrigin:
    """Return what is known about a memory, as far as the user may see it."""
    user: Any = request.user
    may_read_turns = user.has_perm("memory.view_turn")
    may_see_audit = user.has_perm("memory.view_auditentry")
    fact = Fact(id=memory.pk, account_id=memory.account_id)
    is_fact, is_entry = memory.kind == Kind.FACT, memory.kind == Kind.CONTEXT_ENTRY
    versions = ContextEntryVersion.objects.filter(account_id=memory.account_id, entry_id=memory.pk)
    return MemoryOrigin(
        actor=find_author(memory) if may_see_audit else "",
        quotes=read_source_turns(memory) if may_read_turns else [],
        linked=read_linked(memory, user, may_read_turns=may_read_turns),
        history=read_history(fact, may_see_audit=may_see_audit) if is_fact else None,
        contents=list(versions.defer("content", "value").order_by("-number")[:MAX_VERSIONS]) if is_entry else [],
        reads=read_reads(memory, user),
        injections=read_injections(memory) if user.has_perm("ledger.view_injection") else [],
    )


def find_author(memory: Memory) -> str:
    """Return the actor of the first audit entry about the memory, which stored it; "" if none was kept."""
    around = (memory.created_at - AUTHOR_WINDOW, memory.created_at + AUTHOR_WINDOW)
    entries = AuditEntry.objects.filter(account_id=memory.account_id, timestamp__range=around)
    about = entries.filter(affected_ids__contains=[str(memory.pk)]).exclude(operation="retrieve")
    return mark_invisible(about.order_by("timestamp", "id").values_list("actor", flat=True).first() or "")


def read_source_turns(memory: Memory) -> list[TurnQuote]:
    """Return the turns that the memory is derived from, in order of time."""
    links = Link.objects.filter(account_id=memory.account_id, source_id=memory.pk, type=DERIVED_FROM)
    rows = links.filter(target__kind=Kind.TURN).order_by("target__event_time", "target_id")
    return [turn_quote(*row) for row in rows.values_list(*quote_columns("target"))[:MAX_QUOTES]]


def read_linked(memory: Memory, user: Any, *, may_read_turns: bool) -> dict[str, list[RelatedMemory]]:
    """Return the linked memories by section, strongest first. Turns that are quoted are left out of the sources."""
    ends = Q(source_id=memory.pk) | Q(target_id=memory.pk)
    types = {type_ for type_, _ in SECTION_OF_LINK}
    rows = Link.objects.filter(ends, account_id=memory.account_id, type__in=types).order_by("-weight", "id")
    columns: list[Any] = ["type", "weight", "source_id"]
    for end in ("source", "target"):
        columns += [f"{end}_id", f"{end}__kind", text_excerpt(f"{end}__text"), f"{end}__event_time"]
    found: dict[str, list[RelatedMemory]] = {SOURCES: [], DERIVED: [], REPLACED_BY: [], REPLACED: []}
    for type_, weight, source_id, *both in rows.values_list(*columns)[:MAX_LINKED]:
        is_out = source_id == memory.pk
        other_id, kind, text, at = both[4:] if is_out else both[:4]
        section, spec = SECTION_OF_LINK[type_, is_out], spec_of(kind)
        if section == SOURCES and kind == Kind.TURN and may_read_turns:
            continue
        may_read = user.has_perm(f"memory.view_{spec.admin_page}")
        found[section].append(
            RelatedMemory(
                type=type_.replace("_", " ").lower(),
                kind=spec.label,
                text=excerpt_of(text) if may_read else "You may not read it.",
                at=at,
                weight=weight,
                url=change_url(spec.admin_page, other_id),
                why_url=why_url(other_id),
            )
        )
    return found


def read_reads(memory: Memory, user: Any) -> list[ReaderLine]:
    """Return the latest reads: from the access log of its context, and from the audit log if that keeps reads."""
    lines: list[ReaderLine] = []
    if spec_of(memory.kind).has_access_log and user.has_perm("memory.view_contextaccesslog"):
        rows = ContextAccessLog.objects.filter(account_id=memory.account_id, entry_id=memory.pk)
        for row in rows.order_by("-accessed_at", "-id")[:MAX_LINES]:
            reader = mark_invisible(row.agent_id or row.actor) or "the account"
            url = change_url("contextaccesslog", row.pk)
            lines.append(ReaderLine(at=row.accessed_at, reader=reader, action=row.get_action_display(), url=url))
    if user.has_perm("memory.view_auditentry"):
        since = timezone.now() - READS_SPAN
        reads = AuditEntry.objects.filter(account_id=memory.account_id, operation="retrieve", timestamp__gte=since)
        latest = reads.order_by("-timestamp").values("pk")[:MAX_READS_EXAMINED]
        about = reads.filter(pk__in=latest, affected_ids__contains=[str(memory.pk)]).order_by("-timestamp", "-id")
        for entry in about.only("timestamp", "agent_id", "actor", "operation")[:MAX_LINES]:
            reader = mark_invisible(entry.agent_id or entry.actor) or "the account"
            url = change_url("auditentry", entry.pk)
            lines.append(ReaderLine(at=entry.timestamp, reader=reader, action="Recalled", url=url))
    return sorted(lines, key=lambda line: line.at, reverse=True)[:MAX_LINES]


def read_injections(memory: Memory) -> list[InjectionLine]:
    """Return the latest injections of the memory into conversations, and evictions, newest first."""
    rows = Injection.objects.filter(account_id=memory.account_id, item_key=memory.item_key)
    found = list(rows.order_by("-stream_id")[:MAX_LINES])
    names = {row.conversation_id for row in found}
    known = Conversation.objects.filter(account_id=memory.account_id, conversation_id__in=names)
    pages = {name: change_url("conversation", row_id) for name, row_id in known.values_list("conversation_id", "id")}
    return [
        InjectionLine(
            at=row.at,
            event=row.get_event_display().lower(),
            agent=mark_invisible(row.agent_id) or "the account",
            conversation=excerpt_of(row.conversation_id),
            url=pages.get(row.conversation_id, ""),
        )
        for row in found
    ]


def show_provenance(pages: BoundedAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    memory = pages.find_row(request, object_id)
    user: Any = request.user
    spec = spec_of(memory.kind)
    heading = excerpt_of(memory.text)
    conversation = None
    if memory.conversation_id:
        rows = Conversation.objects.filter(account_id=memory.account_id, conversation_id=memory.conversation_id)
        conversation = rows.only("id").first()
    return pages.render_page(
        request,
        "provenance.html",
        "Why do you know this?",
        memory=memory,
        heading=heading,
        label=spec.label,
        page_url=change_url(spec.admin_page, memory.pk),
        conversation_url=change_url("conversation", conversation.pk) if conversation else "",
        text=mark_invisible(memory.text[:MAX_TEXT_CHARACTERS]),
        is_cut=len(memory.text) > MAX_TEXT_CHARACTERS,
        agent=mark_invisible(memory.agent_id) or "the account",
        user_name=mark_invisible(memory.user_id),
        source=mark_invisible(memory.source),
        conversation_name=excerpt_of(memory.conversation_id),
        links_url=list_url("link", q=memory.pk),
        may_read_turns=user.has_perm("memory.view_turn"),
        may_see_injections=user.has_perm("ledger.view_injection"),
        provenance=read_provenance(memory, request),
    )
