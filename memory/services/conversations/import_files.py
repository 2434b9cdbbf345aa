"""Import of conversations from files: their turns and an episode made by quotation, without a language model.

A conversation is known by its id. One that has turns already is left alone, so an interrupted import is resumed by
running it again; one of which an older import stored only the episode gets its turns. Every conversation is stored
completely or not at all, in the order of the file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.dates import CLOCK_SKEW
from memory.errors import Conflict, Unprocessable
from memory.extraction.imported import BadLine, ImportedConversation, ImportedMessage, Item, NothingSaid
from memory.extraction.messages import tools_named
from memory.masking import MASK_POLICY, mask_secrets
from memory.models import Account, Conversation, EpisodicMemory, MemoryRow
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.providers.digests import ExtractiveDigester, TranscriptSegment
from memory.providers.summaries import Message
from memory.services.conversations.lifecycle import (
    ConversationDefaults,
    lock_lineages,
    open_conversation,
    would_continue_itself,
)
from memory.services.embedding.embed import EmbeddedTexts, EmbeddingBudget
from memory.services.summaries.store import LOG, SOURCE_OF_IMPORTS, EpisodeDraft, adopt_episode, store_copies
from memory.services.turns import TurnDraft, append_turns
from memory_project.batches import batched

ACTOR = "command:import_conversations"
BATCH_CONVERSATIONS = 50
BATCH_BYTES = 4_000_000
TURN_BATCH = 1_000
EMBED_SECONDS = 120.0
"""Time for a slow embedder, since no client waits for an answer. The job `embed` does the rest."""
IMPORTED_COLUMNS = (
    *("summarized_count", "buffer_from", "summarize_after", "started_at", "continues", "outcome"),
    *("ended_at", "cleared_at"),
)


class StoredMeanwhile(Conflict):
    """Another import of the same conversation was quicker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """Counts of conversations. `turns` were stored with the `imported` ones.

    `pending` turns and episodes still wait for their vectors. `empty` conversations have no messages.
    """

    imported: int = 0
    turns: int = 0
    already_there: int = 0
    empty: int = 0
    bad: int = 0
    pending: int = 0

    def __add__(self, other: "ImportCounts") -> "ImportCounts":
        fields = zip(self.__slots__, astuple(self), astuple(other), strict=True)
        return ImportCounts(**{name: one + another for name, one, another in fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportBatch:
    """Conversations of one batch to store, and the number of others that are stored already."""

    new: Sequence[ImportedConversation]
    already_there: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedConversation:
    """A conversation ready to be stored, without an episode if nothing of it can be quoted."""

    conversation: ImportedConversation
    turns: Sequence[TurnDraft]
    episode: EpisodeDraft | None

    @property
    def texts(self) -> list[str]:
        """The texts to embed, that of the episode first."""
        episode = [self.episode.summary] if self.episode else []
        return episode + [draft.message.text for draft in self.turns]


ImportItems = Iterable[Item]


def import_conversations(
    account_id: UUID, items: ImportItems, *, now: datetime, embed_seconds: float = EMBED_SECONDS
) -> Iterator[BadLine | ImportCounts]:
    """Store conversations. Yields every bad line as it is read, and counts after each batch.

    Embeds for at most `embed_seconds` in all, the episodes of a batch before its turns.
    """
    budget = EmbeddingBudget(embed_seconds)
    for step in read_import_batches(account_id, items, now=now):
        if isinstance(step, ImportBatch):
            yield from store_import_batch(account_id, step, budget=budget, now=now)
        else:
            yield step


def rehearse_import(account_id: UUID, items: ImportItems, *, now: datetime) -> Iterator[BadLine | ImportCounts]:
    """Yield what `import_conversations` would, as far as that is known before storing. Stores nothing."""
    # nothing is stored between batches, so repeated conversations must be remembered here
    seen: set[str] = set()
    for step in read_import_batches(account_id, items, now=now):
        if not isinstance(step, ImportBatch):
            yield step
            continue
        fresh = [conversation for conversation in step.new if conversation.conversation_id not in seen]
        seen |= {conversation.conversation_id for conversation in fresh}
        yield ImportCounts(
            imported=len(fresh),
            turns=sum(len(conversation.messages) for conversation in fresh),
            already_there=step.already_there + len(step.new) - len(fresh),
        )


def read_import_batches(
    account_id: UUID, items: ImportItems, *, now: datetime
) -> Iterator[BadLine | ImportCounts | ImportBatch]:
    """Yield batches of at most 50 conversations or 4 million bytes, whichever comes first."""
    masks = Account.objects.filter(id=account_id, secrets=MASK_POLICY).exists()
    waiting: list[ImportedConversation] = []
    size_bytes = 0
    for item in items:
        if isinstance(item, BadLine):
            yield item
        elif isinstance(item, NothingSaid):
            yield ImportCounts(empty=1)
        elif max(filter(None, [latest_message_time(item), item.ended_at]), default=now) > now + CLOCK_SKEW:
            yield bad_line(item, "ends in the future")
        else:
            waiting.append(masked_conversation(item) if masks else item)
            size_bytes += item.size_bytes
        if len(waiting) >= BATCH_CONVERSATIONS or size_bytes >= BATCH_BYTES:
            yield make_batch(account_id, waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield make_batch(account_id, waiting)


def masked_conversation(conversation: ImportedConversation) -> ImportedConversation:
    """Return a conversation with the secrets in it masked, before anything embeds or quotes them."""
    return replace(
        conversation,
        title=mask_secrets(conversation.title),
        metadata=mask_secrets(conversation.metadata),
        messages=tuple(map(masked_message, conversation.messages)),
    )


def masked_message(imported: ImportedMessage) -> ImportedMessage:
    message = imported.message
    message = replace(message, text=mask_secrets(message.text), payload=mask_secrets(message.payload))
    return replace(imported, message=message, metadata=mask_secrets(imported.metadata))


def latest_message_time(conversation: ImportedConversation) -> datetime | None:
    """Return the latest time that a message names, if any does."""
    return max((message.timestamp for message in conversation.messages if message.timestamp), default=None)


def make_batch(account_id: UUID, conversations: Sequence[ImportedConversation]) -> ImportBatch:
    """Look the conversations up in one statement. The first of several with the same id counts."""
    by_id: dict[str, ImportedConversation] = {}
    for conversation in conversations:
        by_id.setdefault(conversation.conversation_id, conversation)
    rows = Conversation.objects.visible_to(Owner(account_id=account_id)).filter(turn_count__gt=0)
    known = set(rows.filter(conversation_id__in=by_id).values_list("conversation_id", flat=True))
    new = [conversation for conversation_id, conversation in by_id.items() if conversation_id not in known]
    return ImportBatch(new=new, already_there=len(conversations) - len(new))


def bad_line(conversation: ImportedConversation, reason: str) -> BadLine:
    return BadLine(number=conversation.number, reason=f"conversation {conversation.conversation_id!a} {reason}")


def store_import_batch(
    account_id: UUID, batch: ImportBatch, *, budget: EmbeddingBudget, now: datetime
) -> Iterator[BadLine | ImportCounts]:
    """Summarize and embed first, then store each conversation in its own transaction. Yields the counts last."""
    drafted = [draft_conversation(conversation, now=now) for conversation in batch.new]
    # summaries first: should the time run out, they are worth more than any one turn
    texts = [text for each in drafted for text in each.texts[:1]] + [text for each in drafted for text in each.texts]
    embedded = budget.embed(texts)
    total = ImportCounts(already_there=batch.already_there)
    for each in drafted:
        try:
            total += store_conversation(account_id, each, embedded=embedded, now=now)
        except StoredMeanwhile:
            total += ImportCounts(already_there=1)
        except Unprocessable as err:
            yield bad_line(each.conversation, str(err))
    yield total


def store_conversation(
    account_id: UUID, drafted: DraftedConversation, *, embedded: EmbeddedTexts, now: datetime
) -> ImportCounts:
    """Store one conversation.

    Raises StoredMeanwhile if it has turns by now, Unprocessable if it would continue itself or has an imported episode.
    """
    imported = drafted.conversation
    owner = Owner(
        account_id=account_id,
        agent_id=imported.agent_id,
        user_id=imported.user_id,
        channel=imported.channel,
        actor=ACTOR,
    )
    stored: list[MemoryRow] = []
    with transaction.atomic():
        if imported.continues:
            lock_lineages(owner)
        defaults = ConversationDefaults(title=imported.title, metadata=imported.metadata)
        conversation = open_conversation(owner, imported.conversation_id, defaults=defaults, now=now)
        if conversation.turn_count:
            raise StoredMeanwhile("it is stored already")
        # the continued one may come later in the file, or never: only a cycle is refused
        if imported.continues and would_continue_itself(owner, imported.conversation_id, imported.continues):
            raise Unprocessable("continues one that continues it")
        # before any turn and always in the same order, or two imports that name the same agents could deadlock
        for agent_id in agents_of_conversation(imported):
            insert_participants(replace(owner, agent_id=agent_id), conversation_ids=[imported.conversation_id])
        for writer, drafts in split_by_writer(owner, drafted):
            stored += append_turns(writer, conversation, drafts=drafts, embedded=embedded, now=now).new
        stored += store_imported_episode(owner, conversation, drafted, embedded=embedded, now=now)
        mark_imported(conversation, drafted, now=now)
    pending = sum(row.embed_after is not None for row in stored)
    return ImportCounts(imported=1, turns=len(drafted.turns), pending=pending)


def store_imported_episode(
    owner: Owner, conversation: Conversation, drafted: DraftedConversation, *, embedded: EmbeddedTexts, now: datetime
) -> list[EpisodicMemory]:
    """Store the conversation's summary for each agent that takes part.

    The episode of an older import, which stored nothing else, becomes the summary instead.
    """
    if drafted.episode is None:
        return []
    draft = replace(drafted.episode, metadata=drafted.episode.metadata | {LOG: str(conversation.id)})
    older = f"conversation:{conversation.conversation_id}"
    if adopt_episode(owner, conversation, identity=older, metadata=draft.metadata, now=now):
        return []
    # the primary key, since another conversation may come to have the client's id
    draft = replace(draft, identity=f"import:{conversation.id}")
    agents = agents_of_conversation(drafted.conversation)
    stored = store_copies(owner, draft, agents=agents, embedded=embedded, now=now)
    if len(stored) < len(agents):
        raise Unprocessable("has an imported episode already")
    return stored


def split_by_writer(owner: Owner, drafted: DraftedConversation) -> Iterator[tuple[Owner, list[TurnDraft]]]:
    """Yield the turns in order with their owner, consecutive ones of one owner together, at most 1,000."""
    conversation = drafted.conversation
    messages = zip(conversation.messages, drafted.turns, strict=True)
    for writer, pairs in groupby(messages, key=lambda pair: message_owner(owner, conversation, pair[0])):
        drafts = (draft for _, draft in pairs)
        for batch in batched(drafts, TURN_BATCH):
            yield writer, batch


def message_owner(owner: Owner, conversation: ImportedConversation, message: ImportedMessage) -> Owner:
    """Return the owner for whom a message is stored."""
    return replace(
        owner,
        agent_id=agent_of(conversation, message),
        user_id=conversation.user_id if message.user_id is None else message.user_id,
        channel=message.channel or conversation.channel,
    )


def agent_of(conversation: ImportedConversation, message: ImportedMessage) -> str:
    return conversation.agent_id if message.agent_id is None else message.agent_id


def agents_of_conversation(conversation: ImportedConversation) -> list[str]:
    """Return the agents that take part, sorted: the conversation's own and all writers; [""] if there are none."""
    writers = {agent_of(conversation, message) for message in conversation.messages}
    return sorted({conversation.agent_id, *writers} - {""}) or [""]


def mark_imported(conversation: Conversation, drafted: DraftedConversation, *, now: datetime) -> None:
    """Mark a conversation as covered by its episode, with nothing of it live."""
    imported = drafted.conversation
    conversation.summarized_count = conversation.turn_count
    conversation.buffer_from = max(conversation.turn_count - conf.SUMMARY_KEEP_MESSAGES, 0)
    conversation.summarize_after = None
    conversation.started_at = min(draft.timestamp or now for draft in drafted.turns)
    conversation.continues = imported.continues or conversation.continues
    conversation.outcome = imported.outcome
    conversation.ended_at = imported.ended_at
    conversation.cleared_at = now if imported.ended_at else None
    conversation.save(update_fields=IMPORTED_COLUMNS)


def draft_conversation(conversation: ImportedConversation, *, now: datetime) -> DraftedConversation:
    return DraftedConversation(
        conversation=conversation,
        turns=list(draft_imported_turns(conversation, now=now)),
        episode=draft_imported_episode(conversation, now=now),
    )


def draft_imported_turns(conversation: ImportedConversation, *, now: datetime) -> Iterator[TurnDraft]:
    """Yield turn drafts. A message without a time gets that of the one before, or the first time that any names."""
    time = next((message.timestamp for message in conversation.messages if message.timestamp), now)
    for message in conversation.messages:
        time = message.timestamp or time
        yield TurnDraft(
            message=replace(message.message, payload=imported_payload(message)),
            timestamp=time,
            client_id=message.client_id,
            model=message.model,
            metadata=message.metadata,
            source=SOURCE_OF_IMPORTS,
        )


def imported_payload(message: ImportedMessage) -> dict[str, object] | None:
    """Return the payload, with `timestamp` as the source wrote it (null for none) if the turn's own time differs."""
    payload = message.message.payload
    if message.timestamp is not None and not message.timestamp_text:
        return payload
    return (payload or {}) | {"timestamp": message.timestamp_text or None}


def draft_imported_episode(conversation: ImportedConversation, *, now: datetime) -> EpisodeDraft | None:
    """Return a summary made by quotation, dated by the latest message time, or by now if no message has a time."""
    segment = TranscriptSegment(
        messages=[
            Message(role=each.message.role, name=each.message.name, content=each.message.text, timestamp=each.timestamp)
            for each in conversation.messages
        ],
        previous=None,
        tools=tools_named([message.message.payload for message in conversation.messages]),
    )
    digest = ExtractiveDigester().digest(
        segment, max_tokens=conf.SUMMARY_TOKENS, meter=lambda usage: None, deadline_seconds=0
    )
    if not digest.summary:
        return None
    return EpisodeDraft(
        conversation_id=conversation.conversation_id,
        summary=digest.summary,
        key_decisions=digest.key_decisions,
        entities_mentioned=digest.entities_mentioned,
        tools_called=digest.tools_called,
        event_time=latest_message_time(conversation) or now,
        source=SOURCE_OF_IMPORTS,
        metadata={
            "summarizer": digest.source,
            "first_index": 0,
            "last_index": len(conversation.messages) - 1,
            "turns": len(conversation.messages),
        },
    )
