"""Conversations out of files: their turns as they were said, and their episode, without a language model.

A conversation is known by its id: one that has turns already is left alone, so an import that was interrupted is
resumed by running it again; one of which an older import made only the episode gets its turns. Every conversation is
stored whole or not at all, in the order of the file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.errors import Conflict, Unprocessable
from memory.extraction.imported import BadLine, ImportedConversation, ImportedMessage, Item, NothingSaid
from memory.extraction.messages import tools_named
from memory.models import Conversation, EpisodicMemory, Memory
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.providers.digests import ExtractiveDigester, Stretch
from memory.providers.summaries import Message
from memory.services.conversations.lifecycle import Opening, lock_lineages, open_conversation, would_continue_itself
from memory.services.embedding.embed import Embedded, EmbeddingTime
from memory.services.summaries.episodes import LOG, SOURCE_OF_IMPORTS, adopt_episode, store_copies
from memory.services.summaries.store import EpisodeDraft
from memory.services.turns.store import TurnDraft, append_turns

ACTOR = "command:import_conversations"
BATCH_CONVERSATIONS = 50
BATCH_BYTES = 4_000_000
TURNS_AT_ONCE = 1_000
# nobody waits for an answer, so a slow embedder is waited for; what it leaves is for the `embed` job
EMBED_SECONDS = 120.0
CLOCK_SKEW = timedelta(minutes=5)
FINISHED = ("summarized_count", "buffer_from", "summarize_after", "started_at", "continues", "outcome")
ENDED = ("ended_at", "cleared_at")


class StoredMeanwhile(Conflict):
    """Another import of the same conversation was quicker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of some conversations. `turns` of the imported ones were stored; `pending` of their rows (turns and
    episodes) still wait for their vectors; in those that are `empty` nothing was said."""

    imported: int = 0
    turns: int = 0
    already_there: int = 0
    empty: int = 0
    bad: int = 0
    pending: int = 0

    def __add__(self, other: "Imported") -> "Imported":
        fields = zip(self.__slots__, astuple(self), astuple(other), strict=True)
        return Imported(**{name: one + another for name, one, another in fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Conversations of one batch that are to be stored, and how many others of it were there already."""

    new: Sequence[ImportedConversation]
    already_there: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A conversation ready to be stored. No episode where nothing of it can be quoted."""

    conversation: ImportedConversation
    turns: Sequence[TurnDraft]
    episode: EpisodeDraft | None

    @property
    def texts(self) -> list[str]:
        """What is to be embedded, its episode first."""
        episode = [self.episode.summary] if self.episode else []
        return episode + [draft.message.text for draft in self.turns]


Items = Iterable[Item]


def import_conversations(
    account_id: UUID, items: Items, *, now: datetime, embed_seconds: float = EMBED_SECONDS
) -> Iterator[BadLine | Imported]:
    """Store conversations; yields every bad line when it is met, and figures after each batch.

    Embeds as long as `embed_seconds` last in all, episodes of a batch before its turns.
    """
    time = EmbeddingTime(embed_seconds)
    for step in read_batches(account_id, items, now=now):
        if isinstance(step, Batch):
            yield from store_batch(account_id, step, time=time, now=now)
        else:
            yield step


def rehearse_import(account_id: UUID, items: Items, *, now: datetime) -> Iterator[BadLine | Imported]:
    """What `import_conversations` would yield, as far as that is known before storing. Stores nothing."""
    # nothing is stored between batches, so a conversation told twice must be remembered here
    told: set[str] = set()
    for step in read_batches(account_id, items, now=now):
        if not isinstance(step, Batch):
            yield step
            continue
        fresh = [conversation for conversation in step.new if conversation.conversation_id not in told]
        told |= {conversation.conversation_id for conversation in fresh}
        yield Imported(
            imported=len(fresh),
            turns=sum(len(conversation.messages) for conversation in fresh),
            already_there=step.already_there + len(step.new) - len(fresh),
        )


def read_batches(account_id: UUID, items: Items, *, now: datetime) -> Iterator[BadLine | Imported | Batch]:
    """At most 50 conversations or 4 million bytes to a batch, whichever comes first."""
    waiting: list[ImportedConversation] = []
    size_bytes = 0
    for item in items:
        if isinstance(item, BadLine):
            yield item
        elif isinstance(item, NothingSaid):
            yield Imported(empty=1)
        elif ends_after(item, now + CLOCK_SKEW):
            yield refuse(item, "ends in the future")
        else:
            waiting.append(item)
            size_bytes += item.size_bytes
        if len(waiting) >= BATCH_CONVERSATIONS or size_bytes >= BATCH_BYTES:
            yield make_batch(account_id, waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield make_batch(account_id, waiting)


def last_said_at(conversation: ImportedConversation) -> datetime | None:
    """The latest time that a message of it names, if any does."""
    return max((message.timestamp for message in conversation.messages if message.timestamp), default=None)


def ends_after(conversation: ImportedConversation, moment: datetime) -> bool:
    return any(time > moment for time in (last_said_at(conversation), conversation.ended_at) if time is not None)


def make_batch(account_id: UUID, conversations: Sequence[ImportedConversation]) -> Batch:
    """One look-up for all of them; of a conversation told twice, the first telling counts."""
    first_told: dict[str, ImportedConversation] = {}
    for conversation in conversations:
        first_told.setdefault(conversation.conversation_id, conversation)
    rows = Conversation.objects.visible_to(Owner(account_id=account_id)).filter(turn_count__gt=0)
    known = set(rows.filter(conversation_id__in=first_told).values_list("conversation_id", flat=True))
    new = [conversation for conversation_id, conversation in first_told.items() if conversation_id not in known]
    return Batch(new=new, already_there=len(conversations) - len(new))


def refuse(conversation: ImportedConversation, reason: str) -> BadLine:
    return BadLine(number=conversation.number, reason=f"conversation {conversation.conversation_id!a} {reason}")


def store_batch(account_id: UUID, batch: Batch, *, time: EmbeddingTime, now: datetime) -> Iterator[BadLine | Imported]:
    """Summarize and embed first, then store: one transaction for each conversation. Figures come last."""
    drafted = [draft_conversation(conversation, now=now) for conversation in batch.new]
    # a quotation is worth more than any one turn: should the time run out, it is for turns
    texts = [text for each in drafted for text in each.texts[:1]] + [text for each in drafted for text in each.texts]
    embedded = time.embed(texts)
    total = Imported(already_there=batch.already_there)
    for each in drafted:
        try:
            total += store_conversation(owner_of(account_id, each.conversation), each, embedded=embedded, now=now)
        except StoredMeanwhile:
            total += Imported(already_there=1)
        except Unprocessable as err:
            yield refuse(each.conversation, str(err))
    yield total


def store_conversation(owner: Owner, drafted: Drafted, *, embedded: Embedded, now: datetime) -> Imported:
    """Raises StoredMeanwhile when it has turns by now, Unprocessable when it would come after itself, or has an episode
    of an import."""
    told = drafted.conversation
    stored: list[Memory] = []
    with transaction.atomic():
        if told.continues:
            lock_lineages(owner)
        opening = Opening(title=told.title, metadata=told.metadata)
        conversation = open_conversation(owner, told.conversation_id, opening=opening, now=now)
        if conversation.turn_count:
            raise StoredMeanwhile("it is there already")
        check_order(owner, told)
        # before any turn, in one order everywhere: two imports that name the same agents wait for each other in turn
        for agent_id in agents_of(told):
            insert_participants(replace(owner, agent_id=agent_id), conversation_ids=[told.conversation_id])
        for writer, drafts in stretches(owner, drafted):
            stored += append_turns(writer, conversation, drafts=drafts, embedded=embedded, now=now).new
        stored += store_episode(owner, conversation, drafted, embedded=embedded, now=now)
        finish(conversation, drafted, now=now)
    pending = sum(row.embed_after is not None for row in stored)
    return Imported(imported=1, turns=len(drafted.turns), pending=pending)


def store_episode(
    owner: Owner, conversation: Conversation, drafted: Drafted, *, embedded: Embedded, now: datetime
) -> list[EpisodicMemory]:
    """The conversation's summary from now on, one for each agent that takes part; that of an older import, which made
    nothing else, becomes it instead."""
    if drafted.episode is None:
        return []
    draft = replace(drafted.episode, metadata=drafted.episode.metadata | {LOG: str(conversation.id)})
    older = f"conversation:{conversation.conversation_id}"
    if adopt_episode(owner, conversation, identity=older, metadata=draft.metadata, now=now):
        return []
    # by the row, not by the client's id: another conversation may come to have that
    draft = replace(draft, identity=f"import:{conversation.id}")
    agents = agents_of(drafted.conversation)
    stored = store_copies(owner, draft, agents=agents, embedded=embedded, now=now)
    if len(stored) < len(agents):
        raise Unprocessable("has an episode of an import already")
    return stored


def stretches(owner: Owner, drafted: Drafted) -> Iterator[tuple[Owner, list[TurnDraft]]]:
    """Turns in order, those that one wrote one after the other together, with their writer; 1,000 at most."""
    conversation = drafted.conversation
    told = zip(conversation.messages, drafted.turns, strict=True)
    for writer, pairs in groupby(told, key=lambda pair: writer_of(owner, conversation, pair[0])):
        drafts = (draft for _, draft in pairs)
        while some := list(islice(drafts, TURNS_AT_ONCE)):
            yield writer, some


def writer_of(owner: Owner, conversation: ImportedConversation, message: ImportedMessage) -> Owner:
    """For whom a message is stored."""
    return replace(
        owner,
        agent_id=agent_of(conversation, message),
        user_id=conversation.user_id if message.user_id is None else message.user_id,
        channel=message.channel or conversation.channel,
    )


def agent_of(conversation: ImportedConversation, message: ImportedMessage) -> str:
    return conversation.agent_id if message.agent_id is None else message.agent_id


def agents_of(conversation: ImportedConversation) -> list[str]:
    """Those that take part: its own, and all that wrote in it, in order; an empty one where there is none."""
    wrote = {agent_of(conversation, message) for message in conversation.messages}
    return sorted({conversation.agent_id, *wrote} - {""}) or [""]


def check_order(owner: Owner, told: ImportedConversation) -> None:
    """What it continues may come later in the file, or never; only a ring is refused."""
    if told.continues and would_continue_itself(owner, told.conversation_id, told.continues):
        raise Unprocessable("continues one that continues it")


def finish(conversation: Conversation, drafted: Drafted, *, now: datetime) -> None:
    """Its episode stands for all of it, and nothing of it is live."""
    told = drafted.conversation
    conversation.summarized_count = conversation.turn_count
    conversation.buffer_from = max(conversation.turn_count - conf.SUMMARY_KEEP_MESSAGES, 0)
    conversation.summarize_after = None
    conversation.started_at = min(draft.timestamp or now for draft in drafted.turns)
    conversation.continues = told.continues or conversation.continues
    conversation.outcome = told.outcome
    conversation.ended_at = told.ended_at
    conversation.cleared_at = now if told.ended_at else None
    conversation.save(update_fields=[*FINISHED, *ENDED])


def owner_of(account_id: UUID, conversation: ImportedConversation) -> Owner:
    return Owner(
        account_id=account_id,
        agent_id=conversation.agent_id,
        user_id=conversation.user_id,
        channel=conversation.channel,
        actor=ACTOR,
    )


def draft_conversation(conversation: ImportedConversation, *, now: datetime) -> Drafted:
    return Drafted(
        conversation=conversation,
        turns=list(draft_turns(conversation, now=now)),
        episode=draft_episode(conversation, now=now),
    )


def draft_turns(conversation: ImportedConversation, *, now: datetime) -> Iterator[TurnDraft]:
    """A message that names no time was said when the one before it was (the first: the next that names one)."""
    told = (message.timestamp for message in conversation.messages if message.timestamp)
    moment = next(told, now)
    for message in conversation.messages:
        moment = message.timestamp or moment
        yield TurnDraft(
            message=replace(message.message, payload=payload_of(message)),
            timestamp=moment,
            client_id=message.client_id,
            model=message.model,
            metadata=message.metadata,
            source=SOURCE_OF_IMPORTS,
        )


def payload_of(message: ImportedMessage) -> dict[str, object] | None:
    """With the time as it was told under `timestamp`, where the row's own does not say so: null for none."""
    payload = message.message.payload
    if message.timestamp is not None and not message.timestamp_text:
        return payload
    return (payload or {}) | {"timestamp": message.timestamp_text or None}


def draft_episode(conversation: ImportedConversation, *, now: datetime) -> EpisodeDraft | None:
    """The conversation's summary, by quoting, dated by its end, or by now where no message names a time."""
    stretch = Stretch(
        messages=[message_to_quote(message) for message in conversation.messages],
        previous=None,
        tools=tools_named([message.message.payload for message in conversation.messages]),
    )
    digest = ExtractiveDigester().digest(
        stretch, max_tokens=conf.SUMMARY_TOKENS, meter=lambda usage: None, deadline_seconds=0
    )
    if not digest.summary:
        return None
    return EpisodeDraft(
        conversation_id=conversation.conversation_id,
        summary=digest.summary,
        key_decisions=digest.key_decisions,
        entities_mentioned=digest.entities_mentioned,
        tools_called=digest.tools_called,
        event_time=last_said_at(conversation) or now,
        source=SOURCE_OF_IMPORTS,
        metadata={
            "summarizer": digest.source,
            "first_index": 0,
            "last_index": len(conversation.messages) - 1,
            "turns": len(conversation.messages),
        },
    )


def message_to_quote(told: ImportedMessage) -> Message:
    message = told.message
    return Message(role=message.role, name=message.name, content=message.text, timestamp=told.timestamp)
