"""Memories that bear on a question and are missing from its prompt context, each with the reasons, for staff.

What the recall found and dropped is known from its bundle: it had no room, ranked too low, says the same as a result,
or is too unlikely to help. What the recall passed over is searched for in the whole account, whoever may see it: among
the nearest vectors and the memories with the question's words. Nothing here writes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models.functions import Left

from memory import conf
from memory.kinds import Audience, Kind, spec_of
from memory.models import Link, Memory
from memory.models.statements import half_vector
from memory.owner import Owner
from memory.providers.connections import NEVER
from memory.retrieval.candidates import Candidate
from memory.retrieval.hidden import MAX_TEXT_CHARACTERS, build_hidden_statement
from memory.retrieval.plans import RecallContext
from memory.retrieval.queries import Query
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers.lexical import quote_lexeme
from memory.retrieval.statements import owner_shape
from memory.services.memories.links import SUPERSEDES
from memory.services.prompt_context.build import PromptContext
from memory.services.recall.recall import embed_query, recall

MAX_OUTRANKED = 10
"""Memories behind the last result that are listed."""


class Omission(StrEnum):
    """Reasons why a memory is not in a prompt context."""

    BUDGET = "no room"
    RANK = "ranked too low"
    DUPLICATE = "says the same"
    FLOOR = "below the floor"
    LEDGER = "injected already"
    ISOLATION = "isolation"
    CHANNEL = "other channel"
    REASONING = "reasoning policy"
    SUPERSEDED = "superseded"
    NOT_TRUE = "not true then"
    NOT_BELIEVED = "not believed"
    ARCHIVED = "archived"
    QUARANTINED = "quarantined"
    BURIED = "buried"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class OmissionReason:
    """A reason, and a sentence on what it is about."""

    omission: Omission
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedMemory:
    """A memory that is missing from a prompt context. `similarity` is None without a vector."""

    id: UUID
    kind: Kind
    text: str
    reasons: Sequence[OmissionReason]
    similarity: float | None = None
    replaced_by: UUID | None = None


def find_left_out(owner: Owner, context: PromptContext, *, now: datetime) -> list[OmittedMemory]:
    """Return what is missing from a context of this owner, what was found first. At most seven statements more."""
    bundle, shown = context.bundle, {item.id for item in context.items}
    found = list(list_dropped(owner, context, shown))
    known = {each.id for each in (*bundle.results, *bundle.others)} | shown
    if bundle.abstained:
        asked = context.recall_request
        query = replace(asked.query, has_floor=False, min_score=None)
        unlimited = recall(owner, replace(asked, query=query, deadline=None), now=now)
        found += [omit(each, Omission.FLOOR, describe_floor(each)) for each in unlimited.results]
        known |= {each.id for each in (*unlimited.results, *unlimited.others)}
    known |= {other for each in bundle.results for other in each.also}
    return [*found, *find_hidden(owner, context.recall_request.query, sorted(known), now=now)]


def list_dropped(owner: Owner, context: PromptContext, shown: set[UUID]) -> Iterator[OmittedMemory]:
    """Yield what the recall found and the context does not show. One statement if a result stands for others."""
    bundle = context.bundle
    same = read_same(owner, [other for result in bundle.results for other in result.also])
    for each in bundle.results:
        if each.id not in shown:
            yield omit(each, Omission.BUDGET, f"It is a result, but its {each.snippet_tokens} tokens did not fit.")
    for number, result in enumerate(bundle.results, 1):
        reason = OmissionReason(omission=Omission.DUPLICATE, detail=f"Result {number} stands for it.")
        for other in result.also:
            if row := same.get(other):
                kind, text = row
                yield OmittedMemory(id=other, kind=Kind(kind), text=text, reasons=[reason])
    others = [each for each in bundle.others if each.id not in shown]
    for rank, each in enumerate(others[:MAX_OUTRANKED], len(bundle.results) + 1):
        yield omit(each, Omission.RANK, f"It came in place {rank}, and {len(bundle.results)} results were wanted.")


def read_same(owner: Owner, ids: Sequence[UUID]) -> dict[UUID, tuple[str, str]]:
    """Return the kinds and the texts of memories that say the same as a result."""
    rows = Memory.objects.filter(account_id=owner.account_id, id__in=ids)
    read = rows.values_list("id", "kind", Left("text", MAX_TEXT_CHARACTERS)) if ids else []
    return {id_: (kind, text) for id_, kind, text in read}


def omit(candidate: Candidate, omission: Omission, detail: str) -> OmittedMemory:
    return OmittedMemory(
        id=candidate.id,
        kind=candidate.kind,
        text=candidate.text[:MAX_TEXT_CHARACTERS],
        reasons=[OmissionReason(omission=omission, detail=detail)],
        similarity=candidate.similarity,
    )


def describe_floor(candidate: Candidate) -> str:
    return f"Its confidence of {candidate.likelihood:.3f} is too low, and so are those of all others."


def find_hidden(owner: Owner, query: Query, known: Sequence[UUID], *, now: datetime) -> list[OmittedMemory]:
    """Return memories near the question that the owner's recall passes over, nearest first.

    In accounts with more than EXACT_SEARCH_ROWS indexed vectors, those that hold a word of the question.
    """
    account = Owner(account_id=owner.account_id)
    context = RecallContext(owner=account, now=now, deadline=NEVER)
    asked = embed_query(Query(text=query.text), context)
    analysis = analyze_query(account, asked, context)
    is_large = analysis.indexed_rows > conf.EXACT_SEARCH_ROWS
    statement = build_hidden_statement(owner_shape(owner), 0 if is_large else asked.width)
    # words that only hidden memories hold are unknown to the statistics, which do not count those
    words = [
        term for term in (*analysis.terms, *analysis.unknown) if term.is_content and (term.selects or not term.docs)
    ]
    values = {
        "words": " | ".join(quote_lexeme(term.lexeme) for term in words),
        "model": asked.model,
        "vector": None if asked.vector is None else half_vector(asked.vector),
        "known": list(known),
        "without": list(query.without),
        "as_of": query.as_of or now,
    }
    rows = statement.read_dicts(owner, values, now=now)
    ids = [row["id"] for row in rows]
    seen = set(Memory.objects.visible_to(owner).filter(id__in=ids).values_list("id", flat=True))
    links = Link.objects.filter(account_id=owner.account_id, target_id__in=ids, type=SUPERSEDES)
    successors = dict(links.order_by("id").values_list("target_id", "source_id"))
    without = set(query.without)
    found = []
    for row in rows:
        reasons = list(explain_isolation(owner, row, is_seen=row["id"] in seen))
        reasons += explain_state(row, successors, query.as_of or now, now=now)
        if row["id"] in without:
            reasons.append(OmissionReason(omission=Omission.LEDGER, detail="The conversation's ledger holds it."))
        if not reasons:
            detail = "The account's policy does not allow its tier of reasoning."
            reasons.append(OmissionReason(omission=Omission.REASONING, detail=detail))
        found.append(
            OmittedMemory(
                id=row["id"],
                kind=Kind(row["kind"]),
                text=row["text"],
                reasons=reasons,
                similarity=row["similarity"],
                replaced_by=successors.get(row["id"]),
            )
        )
    return found


def explain_isolation(owner: Owner, row: Mapping[str, Any], *, is_seen: bool) -> Iterator[OmissionReason]:
    """Yield why the owner does not see the row, if so."""
    if row["channel"] not in owner.channels:
        yield OmissionReason(omission=Omission.CHANNEL, detail=f"It is in the channel {row['channel']}.")
    if owner.user_id and row["user_id"] not in ("", owner.user_id):
        detail = f"It belongs to the user {row['user_id']}."
    elif is_seen:
        return
    elif (audience := spec_of(row["kind"]).audience) is Audience.PARTICIPANTS:
        detail = f"The agent takes no part in the conversation {row['conversation_id']}."
    elif audience is Audience.CONTEXT_READERS:
        detail = "The agent may not read its context."
    else:
        detail = f"It is private to the agent {row['agent_id']}."
    yield OmissionReason(omission=Omission.ISOLATION, detail=detail)


def explain_state(
    row: Mapping[str, Any], successors: Mapping[UUID, UUID], as_of: datetime, *, now: datetime
) -> Iterator[OmissionReason]:
    """Yield the marks and times of the row that hide it from any recall."""
    marks = (Omission.ARCHIVED, Omission.QUARANTINED, Omission.BURIED)
    yield from (OmissionReason(omission=mark, detail=f"It is {mark.value}.") for mark in marks if row[mark.value])
    if row["expires_at"] is not None and row["expires_at"] <= now:
        detail = f"It expired on {row['expires_at']:%Y-%m-%d at %H:%M} UTC."
        yield OmissionReason(omission=Omission.EXPIRED, detail=detail)
    if row["kind"] != Kind.FACT:
        return
    if row["recorded_at"] is None or row["retracted_at"] is not None:
        retracted = row["retracted_at"]
        detail = f"It was retracted on {retracted:%Y-%m-%d}." if retracted else f"Its status is {row['status']}."
        yield OmissionReason(omission=Omission.NOT_BELIEVED, detail=detail)
    elif row["valid_to"] is not None and row["valid_to"] <= as_of:
        is_superseded = row["id"] in successors
        omission = Omission.SUPERSEDED if is_superseded else Omission.NOT_TRUE
        detail = f"It was true until {row['valid_to']:%Y-%m-%d}."
        yield OmissionReason(omission=omission, detail=detail)
    elif row["valid_from"] is not None and row["valid_from"] > as_of:
        detail = f"It is true from {row['valid_from']:%Y-%m-%d} on."
        yield OmissionReason(omission=Omission.NOT_TRUE, detail=detail)
