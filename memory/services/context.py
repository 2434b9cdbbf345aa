"""The memory node (A7, B2): what an agent should see before it answers, as one system message.

What is being worked on, the most similar episodes, then the best evidence of all kinds with what was said around it.
All of it is recalled in one go (`services.recall`). Stored text is written by strangers: it stands on lines of its own
behind a mark, and can pass for no section of ours (`layouts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, zip_longest

from ledger import store as ledger
from memory import conf
from memory.models import Kind
from memory.owner import Owner
from memory.providers.deadlines import Deadline
from memory.providers.embeddings import token_counter
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.neighbours import read_neighbours
from memory.services.context_layout import Laid, Material, lay_out
from memory.services.recall import RecallRequest, conclude, prepare, recall
from memory.services.sessions import latest_question
from memory.tiers.working import WorkingMemory
from memory_project.redis import Place

MARK_ROUNDS = 3
"""How often what others injected meanwhile is replaced by other memories, before it is only left out."""


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


def gather_context(owner: Owner, request: ContextRequest, *, now: datetime) -> Context:
    """Working memory, episodes and evidence, laid out; marks the items in the ledger only where asked to.

    Four statements at most, besides the one that looks for the question. Raises Unprocessable where there is no
    query, no vector, and no message of a user that could be one, and as `services.recall.recall`.
    """
    deadline = deadline_of(request.asked)
    asked = complete(owner, request.asked, now=now)
    fields = WorkingMemory(owner).get(asked.query.conversation_id)
    bundle = recall(owner, asked, now=now)
    episodes = nearest_episodes(bundle)
    evidence = [result for result in bundle.results if result not in episodes]
    is_late = deadline.left_seconds() <= 0
    neighbours = [] if is_late else read_neighbours(owner, evidence, asked.query, now=now)
    material = Material(fields=fields, episodes=episodes, evidence=evidence, neighbours=neighbours)
    laid = deliver(owner, material, request)
    lacks = {"neighbours_deadline": is_late, "context_truncated": laid.is_truncated}
    return Context(
        context=laid.text,
        items=laid.items,
        tokens=laid.tokens,
        degraded=sorted({*bundle.degraded, *(code for code, is_so in lacks.items() if is_so)}),
        asked=asked,
        bundle=bundle,
    )


def conclude_context(owner: Owner, context: Context, *, now: datetime) -> None:
    """Count the reads of what the context holds, and write them down (see `services.recall.conclude`)."""
    conclude(owner, context.asked, replace(context.bundle, results=context.items), now=now)


def deadline_of(asked: RecallRequest) -> Deadline:
    deadline_ms = conf.RECALL_DEADLINE_MS if asked.deadline_ms is None else asked.deadline_ms
    return Deadline.after(deadline_ms / 1_000)


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
    """The material laid out, and its memories marked, where the request wants that.

    Where injected ones are suppressed, the text holds exactly what this call was the first to mark: what others marked
    meanwhile is replaced, and what was marked and then had no room is taken out of the ledger again.
    """
    count = token_counter()
    laid = lay_out(material, max_tokens=request.max_tokens, count=count)
    if not request.mark_injected:
        return laid
    place = Place(account_id=owner.account_id, conversation_id=request.asked.query.conversation_id)
    own = mark(owner, place, laid.items)
    if not request.asked.suppress_injected:
        return laid
    for is_last in [*[False] * (MARK_ROUNDS - 1), True]:
        lost = [item for item in laid.items if item.item_key not in own]
        if not lost:
            break
        material = material.only(own) if is_last else material.without({item.item_key for item in lost})
        laid = lay_out(material, max_tokens=request.max_tokens, count=count, kept=own)
        own |= mark(owner, place, [item for item in laid.items if item.item_key not in own])
    for stray in own - {item.item_key for item in laid.items}:
        ledger.evict(place, stray, agent_id=owner.agent_id)
    return laid


def mark(owner: Owner, place: Place, items: Sequence[Candidate]) -> set[str]:
    """Enter the items into the ledger, in one step; returns the keys of those that were not in it."""
    if not items:
        return set()
    values = dict.fromkeys([item.item_key for item in items], ledger.DEFAULT_VALUE)
    marks = ledger.mark_many(place, values, agent_id=owner.agent_id)
    return {item_key for item_key, made in marks.items() if made.first}
