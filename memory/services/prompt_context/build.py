"""The memory node (A7, B2): what an agent should see before it answers, as one system message.

Working memory, the most similar episodes, the user's profile, then the best evidence of all kinds with what was said
around it, all from one recall. Stored text stands on lines of its own after a mark, so that it cannot pass for a
section (`layout`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, zip_longest
from time import perf_counter
from typing import Any
from uuid import UUID

from ledger import store as ledger
from memory import conf
from memory.kinds import spec_of
from memory.models import Conversation
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.providers.embeddings import token_counter
from memory.retrieval.candidates import Bundle, Candidate, RecallUsage, to_milliseconds
from memory.retrieval.lookups import read_adjacent_turns
from memory.retrieval.pipeline import fold_question, repeats_question
from memory.services.conversations.lifecycle import is_valid_id, look_up_conversation
from memory.services.profiles import find_profile
from memory.services.prompt_context.layout import (
    ContextLimits,
    ContextMaterial,
    EvidenceCosts,
    RenderedContext,
    render_context,
)
from memory.services.recall.recall import (
    RecallRequest,
    conclude_recall,
    deadline_of_request,
    prepare_query,
    read_injected_ids,
    recall,
)
from memory.services.sessions import latest_question, summary_degraded
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef
from memory_project.tracing import traced

MAX_MARK_ROUNDS = 3
"""Rounds in which memories that others injected meanwhile are replaced, before they are only left out."""
MAX_EMPTY_ROUNDS = 20
"""The same limit while there is nothing to show yet: in each round some other call has got something."""
MIN_PACKING_SECONDS = 0.2
"""Seconds for choosing among what was recalled, even if the recall took all the time."""

PROFILE_PARTS = ("preferences", "communication_style", "expertise_areas")

ALL_SUPPRESSED = "all_suppressed"
"""The `degraded` name of an empty context whose answer the ledger holds already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContextRequest:
    """A request for a context. Without a text or vector, the question is the latest message of a user.

    Without one of these either, the context has no recalled memories. `working_fields` are the fields of working memory
    to show; None: all of them.
    """

    recall_request: RecallRequest
    max_tokens: int = conf.CONTEXT_TOKENS
    mark_injected: bool = False
    working_fields: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """A context as one message, the memories in it in its order, its tokens, and what degraded it.

    Items that no retriever found (empty `ways`) stand next to one that was found. `recall_request` and `bundle` are
    for `conclude_prompt_context`; `has_question` is False if nothing was recalled. `is_taken` is True if others
    injected all that was recalled before this call could, and
    `is_suppressed` if it is empty since the ledger holds what would answer.
    """

    context: str
    items: Sequence[Candidate]
    tokens: int
    degraded: Sequence[str]
    recall_request: RecallRequest
    bundle: Bundle
    usage: RecallUsage
    is_taken: bool = False
    is_suppressed: bool = False
    has_question: bool = True

    @property
    def abstained(self) -> bool:
        """Return True if memories were found, but none that is likely enough to help.

        Those that the ledger holds count.
        """
        return self.bundle.abstained and not self.is_suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMarks:
    """The items that this call marked in a conversation's ledger, and the keys that it was the first to mark."""

    owner: Owner
    conversation: ConversationRef
    marked: list[Candidate] = field(default_factory=list)
    held: set[str] = field(default_factory=set)

    def mark_items(self, items: Sequence[Candidate]) -> None:
        """Mark the items and the near-duplicates that they stand for, in one step."""
        keys = dict.fromkeys(ledger_keys_of_items(items), ledger.DEFAULT_VALUE)
        new = {key: value for key, value in keys.items() if key not in self.held}
        marks = ledger.mark_many(self.conversation, new, agent_id=self.owner.agent_id) if new else {}
        self.held.update(key for key, made in marks.items() if made.first)
        self.marked.extend(items)

    def is_held(self, item: Candidate) -> bool:
        """Return True if no other call has shown the item, or what says the same."""
        return self.held.issuperset(ledger_keys_of_items([item]))

    def held_keys(self, items: Iterable[Candidate]) -> set[str]:
        return {item.item_key for item in items if self.is_held(item)}

    def evict_all_but(self, items: Sequence[Candidate]) -> None:
        """Evict held items that had no room in the end. What others have shown in other words stays marked."""
        held = [item for item in self.marked if self.is_held(item)]
        for key in sorted(ledger_keys_of_items(held) - ledger_keys_of_items(items)):
            ledger.evict(self.conversation, key, agent_id=self.owner.agent_id)


@traced("context", attributes=lambda context: {"items": len(context.items)})
def build_prompt_context(owner: Owner, request: PromptContextRequest, *, now: datetime) -> PromptContext:
    """Return working memory, episodes and evidence as one message; marks the items in the ledger if requested.

    Without a query, a vector and a message of a user, the message is working memory, the keys in the ledger and the
    profile. Takes at most five statements, and as many again if others took all that was recalled, or the ledger holds
    all. Raises as `recall`.
    """
    fields = WorkingMemory(owner).get(request.recall_request.query.conversation_id)
    return build_with_fields(owner, request, fields, now=now)


def preview_prompt_context(owner: Owner, request: PromptContextRequest, *, now: datetime) -> PromptContext:
    """Return what `build_prompt_context` would return, and change nothing: no expiry is renewed, nothing is marked."""
    fields = WorkingMemory(owner).peek(request.recall_request.query.conversation_id)
    return build_with_fields(owner, replace(request, mark_injected=False), fields, now=now)


def build_with_fields(
    owner: Owner, request: PromptContextRequest, fields: Mapping[str, Any], *, now: datetime
) -> PromptContext:
    """Return the context with those of these fields of working memory that the request asks for."""
    deadline = deadline_of_request(request.recall_request)
    request = replace(request, recall_request=replace(request.recall_request, deadline=deadline))
    query = request.recall_request.query
    conversation = look_up_conversation(owner, query.conversation_id)
    if request.working_fields is not None:
        fields = {name: fields[name] for name in request.working_fields if name in fields}
    if not query.text and request.recall_request.own is None and query.vector is None:
        query = replace(query, text=latest_question(owner, conversation))
        if not query.text:
            return build_without_question(owner, request, fields, conversation)
        request = replace(request, recall_request=replace(request.recall_request, query=query))
    completed = complete_request(owner, request.recall_request, now=now)
    context = build_from_recall(owner, request, completed, fields, now=now)
    if context.is_taken:
        injected = read_injected_ids(owner, completed.query.conversation_id)
        completed = replace(completed, query=replace(completed.query, without=[*completed.query.without, *injected]))
        context = build_from_recall(owner, request, completed, fields, now=now)
    if not context.items and has_suppressed_answer(owner, completed, kept_out=query.without, now=now):
        context = replace(context, degraded=[*context.degraded, ALL_SUPPRESSED], is_suppressed=True)
    return replace(context, degraded=sorted({*context.degraded, *summary_degraded(conversation)}))


def has_suppressed_answer(owner: Owner, completed: RecallRequest, *, kept_out: Sequence[UUID], now: datetime) -> bool:
    """Return True if memories that the ledger holds would answer the question. `kept_out` are left out anyway."""
    suppressed = set(completed.query.without).difference(kept_out)
    if not suppressed or deadline_of_request(completed).left_seconds() <= 0:
        return False
    found = recall(owner, replace(completed, query=replace(completed.query, without=list(kept_out))), now=now)
    return any(result.id in suppressed for result in found.results)


def build_without_question(
    owner: Owner, request: PromptContextRequest, fields: Mapping[str, Any], conversation: Conversation | None
) -> PromptContext:
    """Return working memory, the keys in the conversation's ledger and the user's profile: nothing to recall by."""
    conversation_id = request.recall_request.query.conversation_id
    ref = ConversationRef(account_id=owner.account_id, conversation_id=conversation_id)
    injected = sorted(ledger.get_all(ref)) if is_valid_id(conversation_id) else []
    limits = ContextLimits(max_tokens=request.max_tokens, costs=EvidenceCosts(count=token_counter()))
    profile = find_profile(owner, owner.user_id) if owner.user_id else None
    shown = {name: getattr(profile, name) for name in PROFILE_PARTS} if profile else None
    material = ContextMaterial(fields=fields, injected=injected, episodes=[], evidence=[], neighbours=[], profile=shown)
    rendered = render_context(material, limits)
    cut = ["context_truncated"] if rendered.is_truncated else []
    return PromptContext(
        context=rendered.text,
        items=[],
        tokens=rendered.tokens,
        degraded=[*cut, *summary_degraded(conversation)],
        usage=RecallUsage(candidates=0, tokens=rendered.tokens, source_tokens=0, stages_ms={}),
        recall_request=request.recall_request,
        bundle=Bundle(results=[], goals=[], profile=None, metrics=[], degraded=[]),
        has_question=False,
    )


def complete_request(owner: Owner, request: RecallRequest, *, now: datetime) -> RecallRequest:
    """Return the request with its query prepared for the recall and for reading neighbours."""
    query = replace(request.query, nearest_episodes=conf.EPISODES_IN_CONTEXT, has_floor=True)
    query = prepare_query(owner, replace(request, query=query), now=now)
    return replace(request, query=query, own=None, time_window_hours=None, suppress_injected=False, max_tokens=None)


def build_from_recall(
    owner: Owner, request: PromptContextRequest, completed: RecallRequest, fields: Mapping[str, Any], *, now: datetime
) -> PromptContext:
    """Return the context of one recall of the completed request, marked as requested."""
    bundle = recall(owner, completed, now=now)
    episodes = nearest_episodes(bundle)
    shown = {each.id for each in episodes}
    evidence, reserve = ([each for each in found if each.id not in shown] for found in (bundle.results, bundle.others))
    is_late, began = deadline_of_request(completed).left_seconds() <= 0, perf_counter()
    neighbours = [] if is_late else read_adjacent_turns(owner, evidence, completed.query, now=now)
    asked = fold_question(completed.query.text)
    material = ContextMaterial(
        fields=fields,
        episodes=episodes,
        evidence=evidence,
        neighbours=[each for each in neighbours if not repeats_question(each, completed.query, asked)],
        reserve=reserve,
        profile=bundle.profile,
    )
    read = perf_counter()
    # with the text that was asked: it chooses the snippets
    with_text = replace(request, recall_request=replace(request.recall_request, query=completed.query))
    rendered = render_and_mark(owner, material, with_text)
    own_stages = {"neighbours": read - began, "pack": perf_counter() - read}
    flags = {
        "neighbours_deadline": is_late,
        "packing_deadline": rendered.is_late,
        "context_truncated": rendered.is_truncated,
    }
    return PromptContext(
        context=rendered.text,
        items=rendered.items,
        tokens=rendered.tokens,
        degraded=sorted({*bundle.degraded, *(code for code, is_set in flags.items() if is_set)}),
        recall_request=completed,
        bundle=bundle,
        usage=RecallUsage(
            candidates=bundle.candidates,
            tokens=rendered.tokens,
            source_tokens=sum(item.token_count for item in rendered.items),
            stages_ms={**bundle.stages_ms, **to_milliseconds(own_stages)},
        ),
        is_taken=rendered.is_taken,
    )


def nearest_episodes(bundle: Bundle) -> list[Candidate]:
    """Return the nearest summaries by meaning alternating with those found by words, which still lack a vector.

    The similarity of the former cannot be compared with the scores of the latter.
    """
    candidates = (*bundle.results, *bundle.others)
    found = [each for each in candidates if spec_of(each.kind).prompt_quote == "summary"]
    by_meaning = sorted(
        (each for each in found if each.similarity is not None), key=lambda each: (-(each.similarity or 0), each.id)
    )
    by_words = sorted(
        (each for each in found if each.similarity is None and each.bm25), key=lambda each: (-each.bm25, each.id)
    )
    alternated = chain.from_iterable(zip_longest(by_meaning, by_words))
    return [each for each in alternated if each is not None][: conf.EPISODES_IN_CONTEXT]


def render_and_mark(owner: Owner, material: ContextMaterial, request: PromptContextRequest) -> RenderedContext:
    """Return the rendered material, with its memories marked in the ledger if requested."""
    recall_request = request.recall_request
    seconds = max(deadline_of_request(recall_request).left_seconds(), MIN_PACKING_SECONDS)
    limits = ContextLimits(
        max_tokens=request.max_tokens,
        costs=EvidenceCosts(count=token_counter(), query=recall_request.query),
        deadline=Deadline.after(seconds),
    )
    conversation = ConversationRef(account_id=owner.account_id, conversation_id=recall_request.query.conversation_id)
    marks = LedgerMarks(owner=owner, conversation=conversation)
    if request.mark_injected and recall_request.suppress_injected:
        return render_unshared(material, limits, marks)
    rendered = render_context(material, limits)
    if request.mark_injected:
        marks.mark_items(rendered.items)
    return rendered


def render_unshared(material: ContextMaterial, limits: ContextLimits, marks: LedgerMarks) -> RenderedContext:
    """Return the rendered and marked material; what others marked meanwhile is replaced by other memories."""
    rendered = render_context(material, limits)
    marks.mark_items(rendered.items)
    had_items, rounds = bool(rendered.items), 0
    while lost := {item.item_key for item in rendered.items} - marks.held_keys(rendered.items):
        own, rounds = marks.held_keys(material.all_shown()), rounds + 1
        is_last = rounds >= (MAX_MARK_ROUNDS if own else MAX_EMPTY_ROUNDS)
        material = material.only(own) if is_last else material.without(lost)
        rendered = render_context(material, limits, kept=own)
        marks.mark_items(rendered.items)
    marks.evict_all_but(rendered.items)
    return replace(rendered, is_taken=had_items and not rendered.items)


def ledger_keys_of_items(items: Iterable[Candidate]) -> set[str]:
    """Return the ledger keys of the items, and of the near-duplicates of the same kind that they stand for."""
    return {f"{item.kind.value}:{each}" for item in items for each in (item.id, *item.also)}


def conclude_prompt_context(owner: Owner, context: PromptContext, *, now: datetime) -> None:
    """Count the reads of the memories in the context, and log them (see `conclude_recall`)."""
    if context.has_question:
        conclude_recall(owner, context.recall_request, replace(context.bundle, results=context.items), now=now)
