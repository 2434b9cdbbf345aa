"""Extraction of knowledge from conversations (X10), in the background.

A worker claims a conversation, reads the next turns of one user and channel, has them extracted outside transactions,
and stores the result in one transaction. That first checks that the claim still holds and the turns are unchanged, and
finally counts the turns as extracted: a killed worker leaves them to be done again, and nothing is done twice. Without
EXTRACTION_MODEL, rules extract (`extraction.rules`). If a model fails, the turns stay queued; rules never replace it.

An extractor is shown the turns in chunks that a language model can take, the turns right before them, and the active
facts about those who are named in them, under numbers of their own.

Every item found is accounted for (`outcomes`). If one fails, the others are stored and the turns are extracted again
later, which confirms what is known by then. What keeps failing is parked (`conversations.queue`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import accumulate, takewhile
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from memory import conf
from memory.audit import record_audit
from memory.extraction.knowledge import Chunk, ChunkTurn, Extraction, Extractor, KnownFact
from memory.extraction.model_extractor import knowledge_extractor
from memory.extraction.orders import gives_orders
from memory.identity import name_digest
from memory.models import Conversation, EntityName, Fact, Kind, Link, Turn
from memory.owner import Owner
from memory.providers.digests import cut_message, how_many_fit
from memory.providers.language_models import Usage
from memory.scoring import PROBABLE_REPLACEMENT
from memory.services.account_walk import BatchReport
from memory.services.conversations.lifecycle import lock_visible_conversation
from memory.services.conversations.queue import (
    EXTRACTION,
    TURN_OVERHEAD_TOKENS,
    Claim,
    ClaimOutcome,
    ClaimResult,
    ClaimWorker,
    claim_conversations,
    held_rows,
    is_same_as_read,
    make_due_now,
    message_of_turn,
    read_turns_within,
    record_failure,
    reschedule_or_park,
    reset_claim_columns,
    turns_between,
    unpark,
)
from memory.services.embedding.embed import embed_texts
from memory.services.entities.resolve import filter_by_holder
from memory.services.extraction.outcomes import ExtractionInput, ItemCounts, count_unstored
from memory.services.extraction.store import extraction_texts, store_extractions
from memory.services.facts.review import NAMELESS_USER
from memory.services.facts.store import visible_facts
from memory.services.memories.links import ABOUT, DERIVED_FROM, REPLACES
from memory.services.operations.usage import keep_usage
from memory.tokens import BYTES_PER_TOKEN
from memory_project.tracing import traced

ACTOR = "job:extract_knowledge"
USE = "extraction"
ADVANCED_COLUMNS = (
    *("extracted_count", "extract_after", "consolidated_at"),
    *("extract_lease_until", "extract_attempts", "extract_error"),
)

REQUEST_COLUMNS = ("extract_after", "extract_parked_at", "extract_lease_until", "extract_attempts", "extract_error")
TURNS_BEFORE = 6
"""Number of preceding turns that are shown as context only: they say who "she" is."""
MAX_KNOWN_FACTS = 50
MAX_NAME_WORDS = 4
"""Longer names are not looked for in texts."""
MAX_CANDIDATE_NAMES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionWork:
    """The turns before `stop`, whose knowledge belongs to `owner`, in chunks. `known` are facts by number.

    `usages` grow while the chunks are extracted.
    """

    claim: Claim
    owner: Owner
    start: int
    stop: int
    turns: Sequence[Turn]
    chunks: Sequence[Chunk]
    known: Mapping[int, UUID]
    now: datetime
    usages: list[Usage] = field(default_factory=list)


def request_extraction(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Make the turns that were not extracted yet due now, parked or not. Raises NotFound."""
    with transaction.atomic():
        conversation = lock_visible_conversation(owner, conversation_id)
        if conversation.turn_count > conversation.extracted_count:
            unpark(conversation, EXTRACTION)
            conversation.extract_after = now
            conversation.save(update_fields=REQUEST_COLUMNS)
    return conversation


def extract_due(
    *, now: datetime, limit: int, account_id: UUID | None = None, renew: Callable[[], None] = lambda: None
) -> BatchReport:
    """Extract from the next turns of each due conversation, at most `limit` of them, oldest first.

    Safe to be killed anywhere and to run in several workers. A failed conversation stays queued and delays no other
    one. `renew` is called now and then.
    """
    extractor = knowledge_extractor()
    worker: ClaimWorker[ExtractionWork, list[Extraction]] = ClaimWorker(
        read=read_extraction_work,
        compute=lambda work: extract_from_work(work, extractor),
        store=partial(store_extraction_result, now=now),
        now=now,
        renew=renew,
    )
    claims = claim_conversations(
        EXTRACTION, now=now, limit=limit, account_id=account_id, target_of=lambda row: row.turn_count
    )
    return worker.process_claims(claims, threads=len(claims) if extractor.is_remote else 1)


def read_extraction_work(claim: Claim) -> ExtractionWork:
    """Read the next turns of one user and channel: as many as a model can be shown together, at least one."""
    start = claim.conversation.extracted_count
    unread = turns_between(claim, start, claim.target)
    turns = cut_fitting_run(read_turns_within(unread, max_tokens=conf.EXTRACTION_INPUT_TOKENS))
    # turns that are missing or quarantined after the last one count as done with it
    following = unread.filter(index__gt=turns[-1].index).first() if turns else None
    owner = knowledge_owner(claim.conversation, turns)
    facts = find_known_facts(owner, turns, now=claim.now)
    before = read_preceding_turns(claim, start, owner)
    return ExtractionWork(
        claim=claim,
        owner=owner,
        start=start,
        stop=claim.target if following is None else following.index,
        turns=turns,
        chunks=list(
            cut_into_chunks(
                turns,
                before=before,
                known=list(facts.values()),
                replacing=find_replacing_turns(owner.account_id, turns),
            )
        ),
        known=dict(enumerate(facts, 1)),
        now=claim.now,
    )


def cut_fitting_run(turns: Sequence[Turn]) -> list[Turn]:
    """Return the first turns that have the same user and channel and that a model can be shown together."""
    if not turns:
        return []
    holder = (turns[0].user_id, turns[0].channel)
    run = list(takewhile(lambda turn: (turn.user_id, turn.channel) == holder, turns))
    return run[: how_many_fit([message_of_turn(turn) for turn in run], max_tokens=conf.EXTRACTION_INPUT_TOKENS)]


def knowledge_owner(conversation: Conversation, turns: Sequence[Turn]) -> Owner:
    """Return the holder of what the turns say: their user or, without one, the agent that began the conversation."""
    owner = Owner(account_id=conversation.account_id, agent_id=conversation.agent_id, actor=ACTOR)
    if not turns:
        return owner
    first = turns[0]
    return replace(
        owner, agent_id=conversation.agent_id or first.agent_id, user_id=first.user_id, channel=first.channel
    )


def read_preceding_turns(claim: Claim, start: int, owner: Owner) -> list[ChunkTurn]:
    """Return the last turns before `start` of the same user and channel: the words of others are private."""
    rows = turns_between(claim, max(0, start - TURNS_BEFORE), start)
    own = [turn for turn in rows if (turn.user_id, turn.channel) == (owner.user_id, owner.channel)]
    messages = [message_of_turn(turn) for turn in reversed(own)]
    fitting = how_many_fit(messages, max_tokens=conf.EXTRACTION_INPUT_TOKENS // 4)
    return [build_chunk_turn(turn) for turn in own[len(own) - fitting :]]


def build_chunk_turn(turn: Turn, text: str | None = None) -> ChunkTurn:
    return ChunkTurn(
        index=turn.index,
        role=turn.role,
        speaker=turn.name,
        text=turn.text if text is None else text,
        timestamp=turn.event_time,
    )


def cut_into_chunks(
    turns: Sequence[Turn], *, before: Sequence[ChunkTurn], known: Sequence[KnownFact], replacing: frozenset[int]
) -> Iterator[Chunk]:
    """Yield one chunk of all turns; a single turn that does not fit is cut, and each piece becomes a chunk."""
    whole = Chunk(turns=[build_chunk_turn(turn) for turn in turns], before=before, known=known, replacing=replacing)
    if len(turns) == 1:
        for piece in cut_message(message_of_turn(turns[0]), max_tokens=conf.EXTRACTION_INPUT_TOKENS):
            yield replace(whole, turns=[build_chunk_turn(turns[0], piece.content)])
    elif turns:
        yield whole


def find_replacing_turns(account_id: UUID, turns: Sequence[Turn]) -> frozenset[int]:
    """Return the indexes of the turns that probably replace a statement of which a fact was learned. One statement."""
    facts = Link.objects.filter(
        account_id=account_id, target_id=OuterRef("target_id"), type=DERIVED_FROM, source__kind=Kind.FACT
    )
    links = Link.objects.filter(account_id=account_id, type=REPLACES, source_id__in=[turn.id for turn in turns])
    probable = links.filter(Exists(facts), weight__gte=PROBABLE_REPLACEMENT)
    found = set(probable.values_list("source_id", flat=True)) if turns else set()
    return frozenset(turn.index for turn in turns if turn.id in found)


def find_known_facts(owner: Owner, turns: Sequence[Turn], *, now: datetime) -> dict[UUID, KnownFact]:
    """Return active facts about those who are named in the turns, newest first, by id, numbered from 1.

    For a user, facts about "the user" and about no entity are included. The result fits a quarter of what a model can
    be shown. Claims that give orders are shown to no model. Three statements.
    """
    if not turns:
        return {}
    rows: Any = visible_facts(owner, now=now).filter(filter_by_holder(owner), status=Fact.Status.ACTIVE)
    digests = [name_digest(owner, name) for name in sorted(candidate_names(turns))[:MAX_CANDIDATE_NAMES]]
    names = EntityName.objects.filter(account_id=owner.account_id, name_digest__in=digests)
    named = list(names.values_list("entity_id", flat=True).distinct())
    about = Link.objects.filter(account_id=owner.account_id, type=ABOUT, target_id__in=named)
    newest = ("-recorded_at", "-id")
    found = list(rows.filter(id__in=about.values("source_id")).order_by(*newest)[:MAX_KNOWN_FACTS])
    if owner.user_id and len(found) < MAX_KNOWN_FACTS:
        entities = Link.objects.filter(account_id=owner.account_id, source_id=OuterRef("pk"), type=ABOUT)
        of_user = rows.filter(Q(text__istartswith=NAMELESS_USER) | ~Exists(entities)).exclude(
            id__in=[fact.id for fact in found]
        )
        found += list(of_user.order_by(*newest)[: MAX_KNOWN_FACTS - len(found)])
    harmless = [fact for fact in found if not gives_orders(fact.text)]
    sizes = accumulate(fact.token_count + TURN_OVERHEAD_TOKENS for fact in harmless)
    fitting = sum(1 for _ in takewhile(lambda size: size <= conf.EXTRACTION_INPUT_TOKENS // 4, sizes))
    return {fact.id: KnownFact(number=number, claim=fact.text) for number, fact in enumerate(harmless[:fitting], 1)}


def candidate_names(turns: Sequence[Turn]) -> Collection[str]:
    """Return every run of up to MAX_NAME_WORDS words: there are many, but one statement looks them all up."""
    names = {turn.name for turn in turns if turn.name.strip()}
    for turn in turns:
        words = turn.text[: conf.EXTRACTION_INPUT_TOKENS * BYTES_PER_TOKEN].split()
        for length in range(1, MAX_NAME_WORDS + 1):
            names |= {" ".join(words[start : start + length]) for start in range(len(words) - length + 1)}
    return names


@traced("extract", account=lambda work: work.claim.conversation.account_id)
def extract_from_work(work: ExtractionWork, extractor: Extractor) -> list[Extraction]:
    """Extract from chunk after chunk. Uses no database and may run in a thread.

    Raises ProviderError; the work has the usages until then.
    """
    return [
        extractor.extract(chunk, meter=work.usages.append, deadline_seconds=conf.EXTRACTION_TIMEOUT_SECONDS)
        for chunk in work.chunks
    ]


def store_extraction_result(
    work: ExtractionWork, extracting: "Future[list[Extraction]]", *, now: datetime
) -> ClaimResult:
    """Record what an extraction cost, and store what it found if the claim still holds and the turns are unchanged.

    Changed turns are extracted again, and so are all of them if an item failed, although the others are stored.
    """
    extractions: list[Extraction] = []
    try:
        keep_usage(work.claim.conversation.account_id, use=USE, usages=work.usages, now=now)
        extractions = extracting.result()
        embedded = embed_texts([text for extraction in extractions for text in extraction_texts(extraction)])
        with transaction.atomic():
            conversation = held_rows(work.claim).select_for_update(no_key=True).first()
            if conversation is None:
                return ClaimResult(outcome=ClaimOutcome.OUTDATED)
            if not is_same_as_read(turns_between(work.claim, work.start, work.stop), work.turns):
                make_due_now(work.claim, now=now)
                return ClaimResult(outcome=ClaimOutcome.OUTDATED)
            turns = {turn.index: turn for turn in work.turns}
            inputs = [
                ExtractionInput(
                    owner=work.owner, turns=turns, extraction=extraction, known=work.known, embedded=embedded, now=now
                )
                for extraction in extractions
            ]
            counts = store_extractions(work.owner, inputs, now=now)
            if not counts.failed:
                counts.figures["turns"] = work.stop - work.start
            audit_extraction(work, counts)
            if counts.failed:
                parked = reschedule_or_park(work.claim, error=counts.format_errors(), now=now)
                return ClaimResult(outcome=ClaimOutcome.FAILED, figures=counts.figures + Counter(parked))
            advance_extraction(conversation, work, now=now)
        return ClaimResult(outcome=ClaimOutcome.STORED, figures=counts.figures)
    except Exception as err:  # noqa: BLE001 - the job's outermost loop
        result = record_failure(work.claim, err, now=now)
        return replace(result, figures=count_unstored(extractions) + Counter(result.figures))


def advance_extraction(conversation: Conversation, work: ExtractionWork, *, now: datetime) -> None:
    """Count the turns before `stop` as extracted. Turns after them, or added meanwhile, are due now."""
    conversation.extracted_count = max(conversation.extracted_count, work.stop)
    reset_claim_columns(conversation, EXTRACTION)
    is_done = conversation.extracted_count >= conversation.turn_count
    conversation.extract_after = None if is_done else now
    conversation.consolidated_at = now if is_done else None
    conversation.save(update_fields=ADVANCED_COLUMNS)


def audit_extraction(work: ExtractionWork, counts: ItemCounts) -> None:
    """Record the extraction with its figures in the audit log."""
    conversation_id = work.claim.conversation.conversation_id
    record_audit(
        work.owner,
        operation="extract",
        memory_type="semantic",
        conversation_id=conversation_id,
        session_id=conversation_id,
        result_count=counts.figures["learnt"],
        success=not counts.failed,
        error_message=counts.format_errors() if counts.failed else "",
        metadata=dict(counts.figures),
    )
