"""Summaries of conversations: each stands for everything up to a turn, and takes in the one before it.

A worker claims a conversation, reads a stretch of turns, has it digested outside transactions, and stores the summary
in one transaction that first checks that the claim still holds: a killed worker leaves the stretch to be done again,
and no stretch is done twice. What a model cannot be shown at once is done stretch by stretch.
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import accumulate, chain, takewhile
from typing import Any, cast
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from redis.exceptions import RedisError

from memory import conf
from memory.audit import record
from memory.errors import NotFound, ProviderError
from memory.extraction.messages import tools_named
from memory.models import Conversation, EpisodicMemory, Kind, Link, Memory, Participant, Turn
from memory.owner import Owner
from memory.providers.digests import Digest, Digester, Stretch, how_many_fit, pieces, summary_digester
from memory.providers.language_models import Usage
from memory.providers.summaries import Message
from memory.services.conversations import find_conversation, lineage_of, lock_conversation
from memory.services.embedding import Embedded, embed_texts
from memory.services.episodes import EpisodeDraft, store_episodes
from memory.services.summary_queue import Claimed, advance, claim_due, held, push_back, renew_lease
from memory.services.turns import visible_turns
from memory.services.usage import record_usage
from memory.tiers.session_stores import session_store

logger = logging.getLogger(__name__)

USE = "summary"
SOURCE = "summary"
SUMMARIES = (SOURCE, "import")
"""Where summaries come from: ours, and those that imports make of whole conversations."""
SUPERSEDES = "SUPERSEDES"
ACTOR = "job:summarize"
TOKENS_AROUND_A_TURN = 15
"""At least, for its role and time, when a model is shown it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizedBatch:
    """What became of a claim. `stopped` says that the model is down and asking for more is of no use."""

    claimed: int
    stored: int
    failed: int
    stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The turns from the claim's start up to `stop`, in parts that a digester can be shown, and what came of it.

    `previous` is the live summary that the new one takes in. Nothing to digest leaves `digest` at the previous one.
    """

    claim: Claimed
    stop: int
    turns: Sequence[Turn]
    parts: Sequence[Sequence[Message]]
    previous: EpisodicMemory | None
    digest: Digest | None = None
    usages: tuple[Usage, ...] = ()
    error: str = ""

    @property
    def summary(self) -> str:
        """Empty where there is nothing to store."""
        return self.digest.summary if self.digest is not None and self.turns else ""


def request_summary(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Queue a summary of everything that was said so far, the latest messages too. Raises NotFound."""
    with transaction.atomic():
        find_conversation(owner, conversation_id)
        conversation = lock_conversation(owner, conversation_id)
        if conversation is None:
            raise NotFound("no such conversation")
        if conversation.turn_count > conversation.summarized_count:
            conversation.summarize_to = conversation.turn_count
            conversation.summarize_after = now
            conversation.save(update_fields=["summarize_to", "summarize_after"])
    return conversation


def latest_summary(owner: Owner, conversation: Conversation) -> EpisodicMemory | None:
    """The summary that the owner sees: the conversation's, else that of the nearest one which it resumes."""
    lineage = [conversation.conversation_id]
    if conversation.continues:
        lineage = lineage_of(owner, conversation.conversation_id)
    rows = live_summaries(owner, lineage)
    return min(rows, key=lambda row: lineage.index(row.conversation_id), default=None)


def live_summaries(owner: Owner, conversation_ids: Sequence[str]) -> QuerySet[EpisodicMemory]:
    """Those that nothing has superseded, the latest first, one for each agent that the owner may read for."""
    # the database's clock: readers are not asked for theirs
    visible: Any = EpisodicMemory.objects.visible_to(owner, Kind.EPISODE).filter(
        Q(expires_at=None) | Q(expires_at__gt=Now()),
        conversation_id__in=conversation_ids,
        source__in=SUMMARIES,
        archived=False,
        quarantined=False,
    )
    return cast("QuerySet[EpisodicMemory]", visible.order_by("-version", "-created_at", "-id"))


def summarize_due(*, now: datetime, limit: int, account_id: UUID | None = None) -> SummarizedBatch:
    """Summarize a stretch of each conversation that is due, at most `limit` of them, oldest first.

    Safe to be killed anywhere, and to run in several workers. A failing model leaves its conversations queued.
    """
    digester = summary_digester()
    claims = claim_due(now=now, limit=limit, account_id=account_id)
    works = digest_all([read_work(claim) for claim in claims], digester)
    for work in works:
        keep_usage(work, now=now)
    done = [work for work in works if not work.error]
    failed = [work for work in works if work.error]
    for work in failed:
        push_back(work.claim, error=work.error, now=now)
    embedded = embed_texts([work.summary for work in done])
    stored = sum(store_summary(work, embedded=embedded, now=now) for work in done)
    return SummarizedBatch(claimed=len(claims), stored=stored, failed=len(failed), stopped=bool(failed) and not stored)


def read_work(claim: Claimed) -> Work:
    """As many of the claim's turns as a model can be shown at once, at least one, and the summary of those before."""
    owner = Owner(account_id=claim.conversation.account_id)
    previous = live_summaries(owner, [claim.conversation.conversation_id]).first()
    turns = read_turns(owner, claim)
    messages = [message_of(turn) for turn in turns]
    fitting = how_many_fit(messages, max_tokens=conf.SUMMARY_INPUT_TOKENS)
    parts = [messages[:fitting]]
    if fitting <= 1:
        cut = (pieces(message, max_tokens=conf.SUMMARY_INPUT_TOKENS) for message in messages[:fitting])
        parts = [[piece] for piece in chain.from_iterable(cut)]
    # what is missing, or quarantined, behind the last one is done with it
    following = turns_of(owner, claim).filter(index__gt=turns[fitting - 1].index).first() if fitting else None
    stop = claim.target if following is None else following.index
    return Work(claim=claim, stop=stop, turns=turns[:fitting], parts=parts, previous=previous)


def turns_of(owner: Owner, claim: Claimed) -> QuerySet[Turn]:
    rows = visible_turns(owner).filter(log=claim.conversation, quarantined=False)
    return rows.filter(index__gte=claim.start, index__lt=claim.target).order_by("index")


def read_turns(owner: Owner, claim: Claimed) -> list[Turn]:
    """The first of the claim's turns: all that fit, perhaps some more; by their counts first, since texts are large."""
    rows = turns_of(owner, claim)
    most = conf.SUMMARY_INPUT_TOKENS // TOKENS_AROUND_A_TURN
    counts = rows.values_list("token_count", flat=True)[:most]
    sizes = accumulate(count + TOKENS_AROUND_A_TURN for count in counts)
    fitting = sum(1 for _ in takewhile(lambda size: size <= conf.SUMMARY_INPUT_TOKENS, sizes))
    return list(rows[: max(fitting, 1)])


def message_of(turn: Turn) -> Message:
    return Message(role=turn.role, name=turn.name, content=turn.text, timestamp=turn.event_time)


def digest_all(works: Sequence[Work], digester: Digester) -> list[Work]:
    """Digest part after part, of several conversations side by side where that is worth it. No database in threads."""
    if not works:
        return []
    if not digester.is_remote:
        return digest_parts(works, digester, each=map)
    with ThreadPoolExecutor(len(works)) as pool:
        return digest_parts(works, digester, each=pool.map)


def digest_parts(works: Sequence[Work], digester: Digester, *, each: Callable[..., Iterable[Work]]) -> list[Work]:
    """In rounds of a part each; the leases are renewed between them, since a round takes half a lease at most."""
    done = list(works)
    for number in range(max(len(work.parts) for work in works)):
        if number:
            done = [replace(work, claim=renew_lease(work.claim)) for work in done]
        done = list(each(partial(digest_part, digester=digester, number=number), done))
    return done


def digest_part(work: Work, *, digester: Digester, number: int) -> Work:
    """The work with this part taken into its digest, or with the code of what went wrong."""
    if work.error or number >= len(work.parts):
        return work
    stretch = Stretch(
        messages=work.parts[number],
        previous=work.digest or digest_of(work.previous),
        tools=tools_named([turn.payload for turn in work.turns]),
    )
    usages: list[Usage] = []
    try:
        digest = digester.digest(
            stretch,
            max_tokens=conf.SUMMARY_TOKENS,
            meter=usages.append,
            deadline_seconds=conf.SUMMARY_LEASE_SECONDS / 2,
        )
    except ProviderError as err:
        logger.warning("summary of conversation %s failed: %s", work.claim.conversation.id, err)
        return replace(work, usages=(*work.usages, *usages), error=err.code)
    return replace(work, usages=(*work.usages, *usages), digest=digest)


def keep_usage(work: Work, *, now: datetime) -> None:
    """What the model cost, whatever becomes of the summary."""
    try:
        with transaction.atomic():
            record_usage(work.claim.conversation.account_id, use=USE, usages=work.usages, now=now)
    except IntegrityError:
        logger.warning("usage for conversation %s not kept: its account is gone", work.claim.conversation.id)


def digest_of(episode: EpisodicMemory | None) -> Digest | None:
    """A stored summary as a digest; staff may have corrected its lists to hold other things than texts."""
    if episode is None:
        return None
    return Digest(
        summary=episode.text,
        key_decisions=texts_of(episode.key_decisions),
        entities_mentioned=texts_of(episode.entities_mentioned),
        tools_called=texts_of(episode.tools_called),
        source=episode.source,
    )


def texts_of(items: Sequence[Any]) -> tuple[str, ...]:
    return tuple(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items)


def store_summary(work: Work, *, embedded: Embedded, now: datetime) -> bool:
    """Store what was digested, if the claim still holds; False if it does not, and another worker does it anew."""
    with transaction.atomic():
        conversation = held(work.claim).select_for_update(no_key=True).first()
        if conversation is None or not is_current(work):
            return False
        if work.summary:
            replace_summaries(conversation, work, embedded=embedded, now=now)
        advance(conversation, work.claim, stop=work.stop, now=now)
    trim_session(conversation)
    return True


def is_current(work: Work) -> bool:
    """Whether the summary that was taken in is still there as it was: it may have been corrected, or deleted."""
    previous = work.previous
    if previous is None:
        return True
    rows = Memory.objects.filter(id=previous.id, archived=False, quarantined=False, version=previous.version)
    return rows.select_for_update(no_key=True).exists()


def replace_summaries(conversation: Conversation, work: Work, *, embedded: Embedded, now: datetime) -> None:
    """An episode for each agent that takes part; those before are archived, and linked to the new ones."""
    account = Owner(account_id=conversation.account_id, channel=conversation.channel, actor=ACTOR)
    before = list(live_summaries(account, [conversation.conversation_id]))
    parts = Participant.objects.of_conversation(conversation.account_id, conversation.conversation_id)
    agents = sorted(parts.values_list("agent_id", flat=True)) or [""]
    new: list[EpisodicMemory] = []
    for agent_id in agents:
        owner = replace(account, agent_id=agent_id, user_id=conversation.user_id)
        draft = draft_of(conversation, work, agent_id=agent_id)
        new += store_episodes(owner, drafts=[draft], embedded=embedded, now=now)
    supersede(account, before, new, now=now)


def draft_of(conversation: Conversation, work: Work, *, agent_id: str) -> EpisodeDraft:
    digest = cast("Digest", work.digest)
    before = work.previous.metadata if work.previous else {}
    return EpisodeDraft(
        conversation_id=conversation.conversation_id,
        summary=digest.summary,
        key_decisions=digest.key_decisions,
        entities_mentioned=digest.entities_mentioned,
        tools_called=digest.tools_called,
        event_time=work.turns[-1].event_time,
        source=SOURCE,
        # by the row, not by the client's id: another conversation may come to have that
        identity=f"summary:{conversation.id}:{work.stop}:{agent_id}",
        metadata={
            "summarizer": digest.source,
            "first_index": before.get("first_index", work.turns[0].index),
            "last_index": work.turns[-1].index,
            "turns": before.get("turns", 0) + len(work.turns),
        },
    )


def supersede(
    account: Owner, before: Sequence[EpisodicMemory], new: Sequence[EpisodicMemory], *, now: datetime
) -> None:
    """Archive the summaries before; each is linked from its agent's new one, or the first where it has none."""
    if not before or not new:
        return
    by_agent = {row.agent_id: row for row in new}
    ids = [row.id for row in before]
    Memory.objects.filter(id__in=ids).update(archived=True, version=F("version") + 1, updated_at=now)
    Link.objects.bulk_create(
        [
            Link(
                account_id=account.account_id,
                source=by_agent.get(old.agent_id, new[0]),
                target=old,
                type=SUPERSEDES,
            )
            for old in before
        ]
    )
    record(account, operation="archive", memory_type="episodic", affected_ids=ids, result_count=len(ids))


def trim_session(conversation: Conversation) -> None:
    """The log has everything: a buffer that cannot be trimmed is only longer than it need be."""
    try:
        session_store().trim(conversation)
    except RedisError as err:
        logger.warning("session of conversation %s not trimmed: %s", conversation.id, type(err).__name__)
