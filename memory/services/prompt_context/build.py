"""The memory node (A7, B2): what an agent should see before it answers, as one system message.

What is being worked on, the most similar episodes, then the best evidence of all kinds with what was said around it.
All of it is recalled in one go (`services.recall`). Stored text is written by strangers: it stands on lines of its own
behind a mark, and can pass for no section of ours (`layouts`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, zip_longest
from typing import Any

from ledger import store as ledger
from memory import conf
from memory.models import Kind
from memory.owner import Owner
from memory.providers.deadlines import Deadline
from memory.providers.embeddings import token_counter
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.neighbours import read_neighbours
from memory.retrieval.pipeline import is_question
from memory.services.prompt_context.layout import Counter, Laid, Limits, Material, lay_out
from memory.services.recall.recall import RecallRequest, conclude, deadline_of, prepare, read_injected, recall
from memory.services.sessions.hybrid import latest_question
from memory.tiers.working import WorkingMemory
from memory_project.redis import Place
from memory_project.tracing import traced

MARK_ROUNDS = 3
"""How often what others injected meanwhile is replaced by other memories, before it is only left out."""
EMPTY_ROUNDS = 20
"""The same while there is nothing to show yet: with each round others have got something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What this call entered into a ledger: all that it wanted to show, and what it was the first to mark."""

    owner: Owner
    place: Place
    entered: list[Candidate] = field(default_factory=list)
    held: set[str] = field(default_factory=set)

    def enter(self, items: Sequence[Candidate]) -> None:
        """In one step, each with the near-duplicates that it stands for."""
        keys = dict.fromkeys(keys_of(items), ledger.DEFAULT_VALUE)
        new = {key: value for key, value in keys.items() if key not in self.held}
        marks = ledger.mark_many(self.place, new, agent_id=self.owner.agent_id) if new else {}
        self.held.update(key for key, made in marks.items() if made.first)
        self.entered.extend(items)

    def has(self, item: Candidate) -> bool:
        """Whether nobody else has shown it, or what says the same."""
        return self.held.issuperset(keys_of([item]))

    def among(self, items: Iterable[Candidate]) -> set[str]:
        return {item.item_key for item in items if self.has(item)}

    def take_back(self, *, but: Sequence[Candidate]) -> None:
        """What could have been shown, and had no room in the end. What others have shown in other words stays."""
        own = [item for item in self.entered if self.has(item)]
        for stray in sorted(keys_of(own) - keys_of(but)):
            ledger.evict(self.place, stray, agent_id=self.owner.agent_id)


def keys_of(items: Iterable[Candidate]) -> set[str]:
    """Of the items, and of the near-duplicates that they stand for, which are of their kind."""
    return {f"{item.kind.value}:{each}" for item in items for each in (item.id, *item.also)}


def deliver_unmarked(material: Material, limits: Limits, marks: Marks) -> Laid:
    """The material laid out and marked, without what others marked meanwhile: other memories take its places."""
    laid = lay_out(material, limits)
    marks.enter(laid.items)
    had_items, rounds = bool(laid.items), 0
    while lost := {item.item_key for item in laid.items} - marks.among(laid.items):
        own, rounds = marks.among(material.every()), rounds + 1
        is_last = rounds >= (MARK_ROUNDS if own else EMPTY_ROUNDS)
        material = material.only(own) if is_last else material.without(lost)
        laid = lay_out(material, limits, kept=own)
        marks.enter(laid.items)
    marks.take_back(but=laid.items)
    return replace(laid, is_taken=had_items and not laid.items)


PACKING_SECONDS = 0.2
"""That there are for choosing among what was recalled, though the recall took all the time: it was not for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """What to gather for. Without a text or a vector the question is the latest one of the conversation's user."""

    asked: RecallRequest
    max_tokens: int = conf.CONTEXT_TOKENS
    mark_injected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The message, the memories whose text is in it, its tokens, and what kept it from being better.

    Items come as they stand there; those that no recaller found (`ways`) stand next to one that was.
    """

    context: str
    items: Sequence[Candidate]
    tokens: int
    degraded: Sequence[str]
    asked: RecallRequest
    bundle: Bundle
    """What was asked for and recalled, for `conclude_context`."""
    is_taken: bool = False
    """Whether others injected all that was recalled before this call could."""


@traced("context", told=lambda context: {"items": len(context.items)})
def gather_context(owner: Owner, request: ContextRequest, *, now: datetime) -> Context:
    """Working memory, episodes and evidence, laid out; marks the items in the ledger only where asked to.

    Four statements at most, besides the one that looks for the question, and as many again where others took all that
    was recalled. Raises Unprocessable where there is no query, no vector, and no message of a user that could be one,
    and as `services.recall.recall`.
    """
    request = replace(request, asked=replace(request.asked, deadline=deadline_of(request.asked)))
    asked = complete(owner, request.asked, now=now)
    fields = WorkingMemory(owner).get(asked.query.conversation_id)
    context = recall_context(owner, request, asked, fields, now=now)
    if not context.is_taken:
        return context
    injected = read_injected(owner, asked.query.conversation_id)
    asked = replace(asked, query=replace(asked.query, without=[*asked.query.without, *injected]))
    return recall_context(owner, request, asked, fields, now=now)


def recall_context(
    owner: Owner, request: ContextRequest, asked: RecallRequest, fields: Mapping[str, Any], *, now: datetime
) -> Context:
    """What one recall of the completed question brings, laid out and marked as requested."""
    bundle = recall(owner, asked, now=now)
    episodes = nearest_episodes(bundle)
    shown = {each.id for each in episodes}
    evidence, reserve = ([each for each in found if each.id not in shown] for found in (bundle.results, bundle.others))
    is_late = deadline_of(asked).left_seconds() <= 0
    neighbours = [] if is_late else read_neighbours(owner, evidence, asked.query, now=now)
    material = Material(
        fields=fields,
        episodes=episodes,
        evidence=evidence,
        neighbours=[each for each in neighbours if not is_question(each, asked.query)],
        reserve=reserve,
    )
    laid = deliver(owner, material, request)
    lacks = {
        "neighbours_deadline": is_late,
        "packing_deadline": laid.is_late,
        "context_truncated": laid.is_truncated,
    }
    return Context(
        context=laid.text,
        items=laid.items,
        tokens=laid.tokens,
        degraded=sorted({*bundle.degraded, *(code for code, is_so in lacks.items() if is_so)}),
        asked=asked,
        bundle=bundle,
        is_taken=laid.is_taken,
    )


def conclude_context(owner: Owner, context: Context, *, now: datetime) -> None:
    """Count the reads of what the context holds, and write them down (see `services.recall.conclude`)."""
    conclude(owner, context.asked, replace(context.bundle, results=context.items), now=now)


def complete(owner: Owner, asked: RecallRequest, *, now: datetime) -> RecallRequest:
    """With a question, and with all that the recall and the reading of neighbours have to leave out."""
    query = replace(asked.query, nearest_episodes=conf.EPISODES_IN_CONTEXT, skips_question=True)
    if not query.text and asked.own is None and query.vector is None:
        query = replace(query, text=latest_question(owner, query.conversation_id))
    query = prepare(owner, replace(asked, query=query), now=now)
    return replace(asked, query=query, own=None, time_window_hours=None, suppress_injected=False, max_tokens=None)


def nearest_episodes(bundle: Bundle) -> list[Candidate]:
    """By similarity; those that wait for their vector in turn with them, by words: the two cannot be compared."""
    found = [each for each in (*bundle.results, *bundle.others) if each.kind == Kind.EPISODE]
    by_meaning = sorted(
        (each for each in found if each.similarity is not None), key=lambda each: (-(each.similarity or 0), each.id)
    )
    by_words = sorted(
        (each for each in found if each.similarity is None and each.bm25), key=lambda each: (-each.bm25, each.id)
    )
    alternated = chain.from_iterable(zip_longest(by_meaning, by_words))
    return [each for each in alternated if each is not None][: conf.EPISODES_IN_CONTEXT]


def deliver(owner: Owner, material: Material, request: ContextRequest) -> Laid:
    """The material laid out, and its memories marked where the request wants that."""
    packing_seconds = max(deadline_of(request.asked).left_seconds(), PACKING_SECONDS)
    limits = Limits(
        max_tokens=request.max_tokens,
        counter=Counter(count=token_counter()),
        deadline=Deadline.after(packing_seconds),
    )
    marks = Marks(
        owner=owner,
        place=Place(account_id=owner.account_id, conversation_id=request.asked.query.conversation_id),
    )
    if request.mark_injected and request.asked.suppress_injected:
        return deliver_unmarked(material, limits, marks)
    laid = lay_out(material, limits)
    if request.mark_injected:
        marks.enter(laid.items)
    return laid
