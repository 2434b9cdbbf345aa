"""Conversations into episodes, one each, without a language model: summarized, embedded and stored in batches.

A conversation is known by its id: what is there already is neither summarized again nor stored twice, so an import
that was interrupted is resumed by running it again. Every batch is stored whole or not at all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from memory.extraction.conversations import BadLine, ImportedConversation
from memory.models import EpisodicMemory, Kind, Memory
from memory.owner import Owner
from memory.providers.summaries import ExtractiveSummarizer, entities_mentioned, key_decisions
from memory.services.embedding import embed_texts
from memory.services.episodes import EpisodeDraft, store_episodes

ACTOR = "command:import_conversations"
SOURCE = "import"
BATCH_CONVERSATIONS = 50
BATCH_CHARACTERS = 4_000_000
# of 150, 300, 500, 1,000 and 2,000 the one that put the session with the answer first most often (MiniLM)
SUMMARY_TOKENS = 500
# nobody waits for an answer, so a slow embedder is waited for; what it leaves is for the `embed` job
EMBED_SECONDS = 120.0
CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of some conversations; `pending` of the imported ones still wait for their vectors."""

    imported: int = 0
    already_there: int = 0
    bad: int = 0
    pending: int = 0

    def __add__(self, other: "Imported") -> "Imported":
        return Imported(
            imported=self.imported + other.imported,
            already_there=self.already_there + other.already_there,
            bad=self.bad + other.bad,
            pending=self.pending + other.pending,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Conversations of one batch that are to be stored, and how many others of it were there already."""

    new: Sequence[ImportedConversation]
    already_there: int


Items = Iterable[ImportedConversation | BadLine]


def import_conversations(account_id: UUID, items: Items, *, now: datetime) -> Iterator[BadLine | Imported]:
    """Store an episode for each conversation; yields every bad line when it is met, and figures after each batch."""
    for step in read_batches(account_id, items, now=now):
        if isinstance(step, BadLine):
            yield step
        else:
            yield from store_batch(account_id, step, now=now)


def rehearse_import(account_id: UUID, items: Items, *, now: datetime) -> Iterator[BadLine | Imported]:
    """What `import_conversations` would yield, as far as that is known before summarizing. Stores nothing."""
    # nothing is stored between batches, so a conversation told twice must be remembered here
    told: set[str] = set()
    for step in read_batches(account_id, items, now=now):
        if isinstance(step, BadLine):
            yield step
            continue
        fresh = {conversation.conversation_id for conversation in step.new} - told
        told |= fresh
        yield Imported(imported=len(fresh), already_there=step.already_there + len(step.new) - len(fresh))


def read_batches(account_id: UUID, items: Items, *, now: datetime) -> Iterator[BadLine | Batch]:
    """At most 50 conversations or 4 million characters to a batch, whichever comes first."""
    waiting: list[ImportedConversation] = []
    characters = 0
    for item in items:
        if isinstance(item, BadLine):
            yield item
        elif ends_after(item, now + CLOCK_SKEW):
            yield refuse(item, "ends in the future")
        else:
            waiting.append(item)
            characters += sum(len(message.content) for message in item.messages)
        if len(waiting) >= BATCH_CONVERSATIONS or characters >= BATCH_CHARACTERS:
            yield make_batch(account_id, waiting)
            waiting, characters = [], 0
    if waiting:
        yield make_batch(account_id, waiting)


def ended_at(conversation: ImportedConversation) -> datetime | None:
    """The latest time that a message of it names, if any does."""
    return max((message.timestamp for message in conversation.messages if message.timestamp), default=None)


def ends_after(conversation: ImportedConversation, moment: datetime) -> bool:
    end = ended_at(conversation)
    return end is not None and end > moment


def identity_of(conversation: ImportedConversation) -> str:
    return f"conversation:{conversation.conversation_id}"


def make_batch(account_id: UUID, conversations: Sequence[ImportedConversation]) -> Batch:
    """One look-up for all of them; of a conversation told twice, the first telling counts."""
    first_told: dict[str, ImportedConversation] = {}
    for conversation in conversations:
        first_told.setdefault(identity_of(conversation), conversation)
    episodes = Memory.objects.visible_to(Owner(account_id=account_id), Kind.EPISODE)
    known = set(episodes.filter(identity__in=first_told).values_list("identity", flat=True))
    new = [conversation for identity, conversation in first_told.items() if identity not in known]
    return Batch(new=new, already_there=len(conversations) - len(new))


def refuse(conversation: ImportedConversation, reason: str) -> BadLine:
    return BadLine(number=conversation.number, reason=f"conversation {conversation.conversation_id!a} {reason}")


def store_batch(account_id: UUID, batch: Batch, *, now: datetime) -> Iterator[BadLine | Imported]:
    """Summarize and embed first, then store: one transaction for each owner's conversations. Figures come last."""
    drafts: dict[Owner, list[EpisodeDraft]] = {}
    for conversation in batch.new:
        draft = draft_episode(conversation, now=now)
        if draft.summary:
            drafts.setdefault(owner_of(account_id, conversation), []).append(draft)
        else:
            yield refuse(conversation, "has nothing to quote")
    yield store_drafts(drafts, already_there=batch.already_there, now=now)


def store_drafts(drafts: Mapping[Owner, Sequence[EpisodeDraft]], *, already_there: int, now: datetime) -> Imported:
    together = [draft for some in drafts.values() for draft in some]
    embedded = embed_texts([draft.summary for draft in together], deadline_seconds=EMBED_SECONDS)
    stored: list[EpisodicMemory] = []
    for owner, some in drafts.items():
        stored += store_episodes(owner, drafts=some, embedded=embedded, now=now)
    return Imported(
        imported=len(stored),
        # another import of the same file may have been quicker
        already_there=already_there + len(together) - len(stored),
        pending=sum(row.embed_after is not None for row in stored),
    )


def owner_of(account_id: UUID, conversation: ImportedConversation) -> Owner:
    return Owner(
        account_id=account_id,
        agent_id=conversation.agent_id,
        user_id=conversation.user_id,
        channel=conversation.channel,
        actor=ACTOR,
    )


def draft_episode(conversation: ImportedConversation, *, now: datetime) -> EpisodeDraft:
    """The conversation as an episode: quoted, dated by its end, or by now where no message names a time."""
    summary = ExtractiveSummarizer().summarize(conversation.messages, max_tokens=SUMMARY_TOKENS)
    return EpisodeDraft(
        conversation_id=conversation.conversation_id,
        summary=summary.text,
        key_decisions=key_decisions(conversation.messages),
        entities_mentioned=entities_mentioned(conversation.messages),
        event_time=ended_at(conversation) or now,
        source=SOURCE,
        identity=identity_of(conversation),
        metadata={"summarizer": summary.source, "messages": len(conversation.messages)},
    )
