"""Samples stored in a scratch account, through the services that serve HTTP: once, however often they are asked."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.core.management.base import CommandError
from django.db import connection, transaction
from django.utils import timezone

from lab.benchmarks.scratch import scratch_account
from lab.evaluation.datasets import EvaluationSample, SampleMemory
from lab.evaluation.progress import open_bar
from memory.errors import MemoryServiceError
from memory.models import Account, Conversation, Kind, Link, Strategy
from memory.models.statements import Embedding
from memory.models.writer import PassageVector
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft, store_entries
from memory.services.contexts.manage import ensure_own_context
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.entities.learn import EntityDraft, upsert_entity
from memory.services.extraction.extract import extract_due
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.goals.plan import GoalDraft, add_goal, complete_goal
from memory.services.memories.links import DERIVED_FROM
from memory.services.recall.term_statistics import fold_terms
from memory.services.strategies.learn import StrategyDraft, learn_strategy, reinforce_strategy
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.turns import store_turns

ACTOR = "command:evaluate_recall"
TEXTS_AT_ONCE = 64
"""Few enough for a progress bar to move and for Ctrl-C not to wait."""
EMBED_SECONDS = 300.0
TERMS_AT_ONCE = 5_000
CONVERSATIONS_AT_ONCE = 8
TABLES = (
    *("memories", "memory_vectors", "memory_terms", "memory_links", "conversations", "conversation_participants"),
    *("entity_names", "persistent_contexts"),
)
"""The tables that recall reads."""

Advance = Callable[[int], None]
"""Called with the number of memories that were embedded or stored since the last call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A sample that can be asked: for whom, and when, where a question does not say.

    `evidence` are the turns behind each fact that was extracted from them: a fact that is found stands for its turns.
    """

    sample: EvaluationSample
    owner: Owner
    asked_at: datetime
    evidence: Mapping[UUID, Sequence[UUID]] = field(default_factory=dict)

    def turns_behind(self, found: Iterable[UUID]) -> list[UUID]:
        """Return what was found, each fact replaced by the turns behind it, each once."""
        return list(dict.fromkeys(turn for each in found for turn in self.evidence.get(each, (each,))))

    @property
    def replacements(self) -> set[tuple[UUID, UUID]]:
        """The pairs of a later and an earlier memory of which questions say that the one replaced the other."""
        return {
            (newer, older)
            for question in self.sample.questions
            if question.replaced
            for newer in self.sample.ids_of(question.answers)
            for older in self.sample.ids_of(question.replaced)
        }


@contextmanager
def load_in_scratch(
    purpose: str, samples: list[EvaluationSample], *, extracts: bool = False
) -> Iterator[Sequence[Loaded]]:
    """Store samples in an account of their own, which is deleted at the end of the block.

    `extracts` says whether knowledge is extracted from the conversations. Raises CommandError.
    """
    with scratch_account(purpose) as scratch:
        with open_bar("loading", steps_of(samples)) as advance:
            loaded = list(load_samples(samples, scratch.account, now=timezone.now(), advance=advance))
        yield extract_samples(loaded, scratch.account, now=timezone.now()) if extracts else loaded


def load_samples(
    samples: list[EvaluationSample], account: Account, *, now: datetime, advance: Advance
) -> Iterator[Loaded]:
    """Embed and store them; each sample is an agent. Raises CommandError where one cannot be stored as it is."""
    for sample in samples:
        owner = Owner(account_id=account.id, agent_id=sample.name, user_id=sample.user_id, actor=ACTOR)
        asked_at = sample.asked_at or now
        embedded = embed_sample(sample, advance)
        try:
            store_sample(owner, sample, embedded, now=asked_at, advance=advance)
        except MemoryServiceError as err:
            raise CommandError(f"sample {sample.name!a} cannot be stored: {err}") from err
        yield Loaded(sample=sample, owner=owner, asked_at=asked_at)
    prepare_searches(account)


def extract_samples(loaded: Sequence[Loaded], account: Account, *, now: datetime) -> list[Loaded]:
    """Extract knowledge from all conversations, as a worker would. Raises CommandError if that fails."""
    Conversation.objects.filter(account_id=account.id).update(extract_after=now)
    while (done := extract_due(now=now, limit=CONVERSATIONS_AT_ONCE, account_id=account.id)).examined:
        if done.failed:
            raise CommandError("The extraction of knowledge failed: see the log of the server's settings.")
    links = Link.objects.filter(account_id=account.id, type=DERIVED_FROM, source__kind=Kind.FACT).order_by("id")
    evidence: dict[UUID, list[UUID]] = defaultdict(list)
    for fact_id, turn_id in links.values_list("source_id", "target_id"):
        evidence[fact_id].append(turn_id)
    return [replace(each, evidence=evidence) for each in loaded]


def steps_of(samples: list[EvaluationSample]) -> int:
    """Return how often `advance` will be called."""
    return sum(len(each.texts) + sum(len(talk.turns) for talk in each.talks) + len(each.notes) for each in samples)


def embed_sample(sample: EvaluationSample, advance: Advance) -> EmbeddedTexts:
    """Embed all texts of a sample. Raises CommandError if the embedder fails: results without vectors are unfair."""
    model, width, vectors, passages = "", 0, dict[str, Embedding](), dict[str, Sequence[PassageVector]]()
    for start in range(0, len(sample.texts), TEXTS_AT_ONCE):
        texts = sample.texts[start : start + TEXTS_AT_ONCE]
        some = embed_texts(texts, deadline_seconds=EMBED_SECONDS)
        if some.error:
            raise CommandError(f"The embedder failed ({some.error}): without vectors there is nothing to evaluate.")
        model, width = some.model, some.width
        vectors |= some.vectors
        passages |= some.passages
        advance(len(texts))
    return EmbeddedTexts(model=model, width=width, vectors=vectors, passages=passages)


def store_sample(
    owner: Owner, sample: EvaluationSample, embedded: EmbeddedTexts, *, now: datetime, advance: Advance
) -> None:
    """Store a sample; what has no time of its own gets `now`."""
    for talk in sample.talks:
        # at once: between the two a worker could take it
        with transaction.atomic():
            said = store_turns(owner, talk.conversation_id, drafts=talk.turns, embedded=embedded, now=now)
            keep_workers_away(said.conversation)
        advance(len(talk.turns))
    for note in sample.notes:
        stored = store_note(owner, note, embedded, now=note.stored_at or now)
        if stored != note.draft.id:
            raise CommandError(f"sample {sample.name!a}: {note.key!a} says the same as another memory")
        advance(1)
    # afterwards: nothing can be added that waits for a goal that is closed
    for note in sample.notes:
        if note.outcome:
            complete_goal(owner, note.draft.id, status=note.outcome, force=True, now=note.stored_at or now)


def keep_workers_away(conversation: Conversation) -> None:
    """Dequeue the conversation: summaries and facts that a worker makes of it would be judged, too."""
    Conversation.objects.filter(account_id=conversation.account_id, pk=conversation.pk).update(
        summarize_after=None, extract_after=None
    )


def store_note(owner: Owner, note: SampleMemory, embedded: EmbeddedTexts, *, now: datetime) -> UUID | None:
    """Store a note and return the id of its row, which is another one's if that says the same already."""
    match note.draft:
        case EntityDraft() as draft:
            return upsert_entity(owner, draft, embedded=embedded, now=now).entity.id
        case FactDraft() as draft:
            return learn_fact(owner, draft, embedded=embedded, now=now).fact.id
        case EpisodeDraft() as draft:
            return store_episodes(owner, drafts=[draft], embedded=embedded, now=now)[0].id
        case EntryDraft() as draft:
            context = ensure_own_context(owner, now=now)
            return store_entries(owner, context.id, drafts=[draft], embedded=embedded, now=now)[0].id
        case GoalDraft() as draft:
            return add_goal(owner, draft, embedded=embedded, now=now).id
        case StrategyDraft() as draft:
            return store_strategy(owner, draft, note, embedded, now=now)


def store_strategy(
    owner: Owner, draft: StrategyDraft, note: SampleMemory, embedded: EmbeddedTexts, *, now: datetime
) -> UUID:
    strategy: Strategy = learn_strategy(owner, draft, embedded=embedded, now=now)
    for success in (*[True] * note.successes, *[False] * note.failures):
        reinforce_strategy(owner, strategy.id, success=success, now=now)
    return strategy.id


def prepare_searches(account: Account) -> None:
    """Update the statistics that a running service would have after a while."""
    mark, goes_on = 0, True
    while goes_on:
        mark = fold_terms(account.id, after=mark, size=TERMS_AT_ONCE).mark
        goes_on = bool(mark)
    with connection.cursor() as cursor:
        # or the planner would go by what it knew before there was anything
        cursor.execute(f"ANALYZE {', '.join(TABLES)}")
