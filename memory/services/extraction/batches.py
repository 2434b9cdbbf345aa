"""What a claim of the queue of extraction comes down to: a run of turns of one user and channel, and what is known.

An extractor is shown the turns in chunks that a language model can take, the turns right before them, and the facts
that are believed of those who are named in them, under numbers of their own.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate, takewhile
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from memory import conf
from memory.extraction.knowledge import Chunk, ChunkTurn, Extraction, Extractor, KnownFact
from memory.extraction.orders import gives_orders
from memory.identity import name_digest
from memory.models import Conversation, EntityName, Fact, Link, Turn
from memory.owner import Owner
from memory.providers.digests import how_many_fit, pieces
from memory.providers.language_models import Usage
from memory.providers.summaries import Message
from memory.services.conversations.queue import TOKENS_AROUND_A_TURN, Claimed, read_turns, turns_between
from memory.services.facts.learn import visible_facts
from memory.services.facts.review import NAMELESS_USER
from memory.services.memories.links import ABOUT
from memory.tokens import BYTES_PER_TOKEN
from memory_project.tracing import traced

ACTOR = "job:consolidate"
TURNS_BEFORE = 6
"""Shown for reading only: who "she" is stands there."""
MOST_KNOWN_FACTS = 50
LONGEST_KNOWN_NAME = 4
"""Words: longer names are not looked for in texts."""
MOST_CANDIDATE_NAMES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionWork:
    """The turns up to `stop`, whose knowledge is `owner`'s, in chunks. `known` are the facts by number.

    `usages` grow while the chunks are looked through.
    """

    claim: Claimed
    owner: Owner
    start: int
    stop: int
    turns: Sequence[Turn]
    chunks: Sequence[Chunk]
    known: Mapping[int, UUID]
    now: datetime
    usages: list[Usage] = field(default_factory=list)


def read_work(claim: Claimed) -> ExtractionWork:
    """The next turns of one user and channel: as many as a model can be shown at once, at least one."""
    start = claim.conversation.extracted_count
    unread = turns_between(claim, start, claim.target)
    turns = fitting_run(read_turns(unread, max_tokens=conf.EXTRACTION_INPUT_TOKENS))
    # what is missing, or quarantined, behind the last one is done with it
    following = unread.filter(index__gt=turns[-1].index).first() if turns else None
    owner = owner_of(claim.conversation, turns)
    facts = known_facts(owner, turns, now=claim.now)
    return ExtractionWork(
        claim=claim,
        owner=owner,
        start=start,
        stop=claim.target if following is None else following.index,
        turns=turns,
        chunks=list(cut_into_chunks(turns, before=turns_before(claim, start, owner), known=list(facts.values()))),
        known=dict(enumerate(facts, 1)),
        now=claim.now,
    )


def fitting_run(turns: Sequence[Turn]) -> list[Turn]:
    """Those from the first on that are of its user and channel, and that a model can be shown at once."""
    if not turns:
        return []
    whose = (turns[0].user_id, turns[0].channel)
    run = list(takewhile(lambda turn: (turn.user_id, turn.channel) == whose, turns))
    return run[: how_many_fit([message_of(turn) for turn in run], max_tokens=conf.EXTRACTION_INPUT_TOKENS)]


def message_of(turn: Turn) -> Message:
    return Message(role=turn.role, name=turn.name, content=turn.text, timestamp=turn.event_time)


def owner_of(conversation: Conversation, turns: Sequence[Turn]) -> Owner:
    """Whose knowledge it is: the user's of the turns; without one, the agent's that began the conversation."""
    owner = Owner(account_id=conversation.account_id, agent_id=conversation.agent_id, actor=ACTOR)
    if not turns:
        return owner
    first = turns[0]
    return replace(
        owner, agent_id=conversation.agent_id or first.agent_id, user_id=first.user_id, channel=first.channel
    )


def turns_before(claim: Claimed, start: int, owner: Owner) -> list[ChunkTurn]:
    """The last few turns before, of the same user and channel: another's words are none of the owner's business."""
    rows = turns_between(claim, max(0, start - TURNS_BEFORE), start)
    mine = [turn for turn in rows if (turn.user_id, turn.channel) == (owner.user_id, owner.channel)]
    fitting = how_many_fit([message_of(turn) for turn in reversed(mine)], max_tokens=conf.EXTRACTION_INPUT_TOKENS // 4)
    return [chunk_turn(turn) for turn in mine[len(mine) - fitting :]]


def chunk_turn(turn: Turn, text: str | None = None) -> ChunkTurn:
    return ChunkTurn(
        index=turn.index,
        role=turn.role,
        speaker=turn.name,
        text=turn.text if text is None else text,
        timestamp=turn.event_time,
    )


def cut_into_chunks(
    turns: Sequence[Turn], *, before: Sequence[ChunkTurn], known: Sequence[KnownFact]
) -> Iterator[Chunk]:
    """One where all of them fit; a turn that does not is cut, and each piece is a chunk."""
    if len(turns) == 1:
        for piece in pieces(message_of(turns[0]), max_tokens=conf.EXTRACTION_INPUT_TOKENS):
            yield Chunk(turns=[chunk_turn(turns[0], piece.content)], before=before, known=known)
    elif turns:
        yield Chunk(turns=[chunk_turn(turn) for turn in turns], before=before, known=known)


def known_facts(owner: Owner, turns: Sequence[Turn], *, now: datetime) -> dict[UUID, KnownFact]:
    """What is believed of those who are named in the turns, the latest first, by id, numbered from 1 on.

    For a user also what is believed of "the user", and of nobody by name. As much as fits beside the turns; claims
    that give orders are shown to no model. Three statements.
    """
    if not turns:
        return {}
    rows: Any = visible_facts(owner, now=now).filter(user_id=owner.user_id, status=Fact.Status.ACTIVE)
    about = Link.objects.filter(account_id=owner.account_id, type=ABOUT, target_id__in=named_entities(owner, turns))
    newest = ("-recorded_at", "-id")
    found = list(rows.filter(id__in=about.values("source_id")).order_by(*newest)[:MOST_KNOWN_FACTS])
    if owner.user_id and len(found) < MOST_KNOWN_FACTS:
        its_own = Link.objects.filter(account_id=owner.account_id, source_id=OuterRef("pk"), type=ABOUT)
        of_user = rows.filter(Q(text__istartswith=NAMELESS_USER) | ~Exists(its_own)).exclude(
            id__in=[fact.id for fact in found]
        )
        found += list(of_user.order_by(*newest)[: MOST_KNOWN_FACTS - len(found)])
    shown = within_budget([fact for fact in found if not gives_orders(fact.text)])
    return {fact.id: KnownFact(number=number, claim=fact.text) for number, fact in enumerate(shown, 1)}


def within_budget(facts: Sequence[Fact]) -> list[Fact]:
    """The first of them, as far as a quarter of what a model can be shown goes."""
    sizes = accumulate(fact.token_count + TOKENS_AROUND_A_TURN for fact in facts)
    fitting = sum(1 for _ in takewhile(lambda size: size <= conf.EXTRACTION_INPUT_TOKENS // 4, sizes))
    return list(facts[:fitting])


def named_entities(owner: Owner, turns: Sequence[Turn]) -> list[UUID]:
    """The holder's entities whose names stand in the turns, or that speak in them."""
    digests = [name_digest(owner, name) for name in sorted(candidate_names(turns))[:MOST_CANDIDATE_NAMES]]
    names = EntityName.objects.filter(account_id=owner.account_id, name_digest__in=digests)
    return list(names.values_list("entity_id", flat=True).distinct())


def candidate_names(turns: Sequence[Turn]) -> Collection[str]:
    """Every run of a few words that may be a name: there are many, and looking them up is one statement."""
    names = {turn.name for turn in turns if turn.name.strip()}
    for turn in turns:
        words = turn.text[: conf.EXTRACTION_INPUT_TOKENS * BYTES_PER_TOKEN].split()
        for length in range(1, LONGEST_KNOWN_NAME + 1):
            names |= {" ".join(words[start : start + length]) for start in range(len(words) - length + 1)}
    return names


@traced("extract", account=lambda work: work.claim.conversation.account_id)
def think(work: ExtractionWork, extractor: Extractor) -> list[Extraction]:
    """Look through chunk after chunk. Asks no database, and may run in a thread.

    Raises ProviderError; what was used until then is in the work.
    """
    return [
        extractor.extract(chunk, meter=work.usages.append, deadline_seconds=conf.EXTRACTION_TIMEOUT_SECONDS)
        for chunk in work.chunks
    ]
