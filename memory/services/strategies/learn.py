"""Learning strategies (X4), counting how often they worked, finding them, and keeping them consistent when corrected.

A strategy that the same holder learns again in the same channel and for the same type of task is the same strategy: it
is counted, not stored twice. A correction changes its text, its identity and the tools that it calls.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest

from memory.audit import record_audit, texts_metadata
from memory.errors import Conflict, Forbidden, Unprocessable, require_found
from memory.identity import digest_parts, holder_key, normalize_claim
from memory.masking import masks_secrets
from memory.models import Kind, Memory, Strategy, StrategyTool, StrategyUse, Tool
from memory.models.memory import MemoryQuerySet
from memory.models.statements import execute_statement
from memory.owner import Owner
from memory.retrieval.judging import judge_hits
from memory.retrieval.kind_searches import StrategyResults, search_strategies
from memory.services.accounts.register import register_agent
from memory.services.audit import write_waiting_reads
from memory.services.conversations.lifecycle import is_valid_id, look_up_conversation
from memory.services.custody.traces import erase_traces_of_deleted
from memory.services.duplicates.resolve import end_merges, find_survivors, survivors_condition
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.resolve import holder_of_row, owner_of_row
from memory.services.memories.lifecycle import Lifecycle
from memory.services.memories.store import (
    ClientVector,
    MemoryDraft,
    TextUpdate,
    own_vectors,
    store_memories,
    update_texts,
)
from memory.services.recall.recall import embed_search_query, record_search
from memory.services.tools import ensure_tools
from memory_project.ids import uuid7

MAX_TOOLS = 100
"""Tool calls in one strategy."""

PATTERN_SOURCE = "patterns"
"""Source of strategies that were learned from work that ended well."""

FAILURE_SOURCE = "failures"
"""Source of strategies that were learned from calls of tools that failed the same way."""

WHEN_PREFIX = re.compile(r"\s*(?:when\b\s*)?", re.IGNORECASE)
"""Beginning of a pattern that `strategy_text` adds itself."""

# locks the conversation against deletion; one that is deleted already leaves the use without it, as deleting it would
INSERT_USE = """
INSERT INTO strategy_uses (id, account_id, strategy_id, conversation_id, agent_id, success, used_at)
SELECT %(id)s, strategy.account_id, strategy.id, conversation.id, %(agent_id)s, %(success)s, %(used_at)s
FROM memories strategy LEFT JOIN (
    SELECT account_id, id FROM conversations WHERE account_id = %(account_id)s AND id = %(conversation)s FOR KEY SHARE
) AS conversation ON conversation.account_id = strategy.account_id
WHERE strategy.account_id = %(account_id)s AND strategy.id = %(strategy)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyDraft(MemoryDraft):
    """A strategy before it is learned, and whether it worked (`success`), if known, in which conversation.

    `tool_sequence` are names of tools in the order of their calls.
    """

    description: str
    context_pattern: str = ""
    tool_sequence: Sequence[str] = ()
    task_type: str = ""
    conversation_id: str = ""
    success: bool | None = None

    @property
    def text(self) -> str:
        """Return the text to embed."""
        return strategy_text(self.description, self.context_pattern)


@masks_secrets
def learn_strategy(owner: Owner, draft: StrategyDraft, *, embedded: EmbeddedTexts, now: datetime) -> Strategy:
    """Store a strategy, or count a known one, which gets what it lacks from the draft.

    Embed the draft's text first (`embed_texts`), outside transactions. Unknown tools are created. Raises Conflict for a
    quarantined strategy, Unprocessable for a conversation that does not exist or in which the agent takes no part.
    """
    check_strategy_tools(draft)
    conversation = find_conversation_row(owner, draft.conversation_id)
    with transaction.atomic():
        strategy, _is_new = upsert_strategy(owner, draft, embedded=embedded, now=now)
        if draft.success is not None:
            used_at = draft.event_time or now
            count_strategy_use(owner, strategy, success=draft.success, conversation_pk=conversation, now=used_at)
    return strategy


def upsert_strategy(
    owner: Owner, draft: StrategyDraft, *, embedded: EmbeddedTexts, now: datetime
) -> tuple[Strategy, bool]:
    """Store a checked draft, or complete the known strategy. Returns the strategy and whether it was new.

    Runs in the caller's transaction, and does not count the draft's success.
    """
    new = Strategy(
        kind=Kind.STRATEGY,
        identity=strategy_identity(owner, draft),
        conversation_id=draft.conversation_id,
        text=draft.text,
        description=draft.description,
        context_pattern=draft.context_pattern,
        task_type=draft.task_type,
        tool_sequence=list(draft.tool_sequence),
        **draft.shared_columns(now=now),
    )
    if store_memories(owner, [new], embedded=embedded, own=own_vectors([draft]), now=now):
        link_strategy_tools(owner, new)
        return new, True
    strategy = lock_known_strategy(owner, new.identity)
    complete_strategy(owner, strategy, draft, embedded=embedded, now=now)
    if draft.trust < strategy.trust:
        strategy.trust = draft.trust
        Strategy.objects.filter(account_id=owner.account_id, id=strategy.id).update(trust=draft.trust)
    return strategy, False


def strategy_text(description: str, context_pattern: str) -> str:
    """Return the text of a strategy that is searched, embedded and recalled: when it fits, and what to do then.

    >>> strategy_text("Restart it once.", "the house is cold")
    'When the house is cold: Restart it once.'
    """
    pattern = WHEN_PREFIX.sub("", context_pattern, count=1).rstrip(" \t\r\n.:")
    return f"When {pattern}: {description}" if pattern else description


def check_strategy_tools(draft: StrategyDraft) -> None:
    names = [*draft.tool_sequence, *filter(None, [draft.task_type])]
    # a string would pass as a sequence of one-letter names
    is_list = not isinstance(draft.tool_sequence, str)
    if not is_list or len(draft.tool_sequence) > MAX_TOOLS or not all(map(is_valid_id, names)):
        raise Unprocessable(
            f"a strategy can call at most {MAX_TOOLS} tools; their names must have 1 to 100 characters and no NUL"
        )


def find_conversation_row(owner: Owner, conversation_id: str) -> UUID | None:
    """Return the primary key of the conversation, or None for no id. Raises Unprocessable."""
    if not conversation_id:
        return None
    conversation = look_up_conversation(owner, conversation_id)
    if conversation is None:
        raise Unprocessable("there is no such conversation, or the agent takes no part in it")
    return conversation.id


def strategy_identity(owner: Owner, draft: StrategyDraft | Strategy) -> str:
    """Return what identifies a strategy: holder, channel, type of task and the normalized description.

    Of strategies learned from work the pattern and the tools are part of it, as their descriptions follow from the
    tools. Those learned from failures are identified by the pattern alone, as one may learn later what helps.
    """
    words = [normalize_claim(draft.description)]
    if draft.source == PATTERN_SOURCE:
        words += [normalize_claim(draft.context_pattern), *draft.tool_sequence]
    elif draft.source == FAILURE_SOURCE:
        words = [FAILURE_SOURCE, normalize_claim(draft.context_pattern)]
    return digest_parts(holder_key(owner), owner.channel, "strategy", draft.task_type, *words)


def link_strategy_tools(owner: Owner, strategy: Strategy) -> None:
    tools = ensure_tools(owner, strategy.tool_sequence)
    used = [StrategyTool(account_id=owner.account_id, strategy=strategy, tool_id=tools[name]) for name in sorted(tools)]
    StrategyTool.objects.bulk_create(used, ignore_conflicts=True)


def lock_known_strategy(owner: Owner, identity: str) -> Strategy:
    rows = Strategy.objects.filter(account_id=owner.account_id)
    wanted = rows.filter(Q(identity=identity) | Q(survivors_condition(owner, Kind.STRATEGY, [identity])))
    locked = {each.pk: each for each in lock_strategy_rows(wanted)}
    strategy = next((each for each in locked.values() if each.identity == identity), None)
    if strategy is None:
        raise Conflict("the strategy was removed at the same time: try again")
    if strategy.archived:
        # a strategy that was merged into another is known as that one
        survivors = find_survivors(owner.account_id, [strategy.pk])
        strategy = locked.get(survivors.get(strategy.pk, strategy.pk), strategy)
    if strategy.quarantined:
        raise Conflict("this strategy is quarantined; staff can release it")
    return strategy


def lock_strategy_rows(rows: QuerySet[Strategy]) -> QuerySet[Strategy]:
    """Return the rows as they are locked, in the order in which all code locks memories."""
    return rows.order_by("id").select_for_update()


def complete_strategy(
    owner: Owner, strategy: Strategy, draft: StrategyDraft, *, embedded: EmbeddedTexts, now: datetime
) -> None:
    """Give a locked strategy the pattern and tools that it lacks and the draft has.

    An archived or expired strategy is restored.
    """
    given = {"context_pattern": draft.context_pattern, "tool_sequence": list(draft.tool_sequence)}
    missing: dict[str, Any] = {name: value for name, value in given.items() if value and not getattr(strategy, name)}
    if strategy.archived:
        missing["archived"] = False
        end_merges(owner.account_id, [strategy.id])
    if strategy.expires_at is not None and strategy.expires_at <= now:
        missing["expires_at"] = None
    if not missing:
        return
    for name, value in missing.items():
        setattr(strategy, name, value)
    if (text := strategy_text(strategy.description, strategy.context_pattern)) != strategy.text:
        strategy.version -= 1  # incremented once, below
        update_texts(owner, [TextUpdate(row=strategy, text=text, own=draft.own)], embedded=embedded, now=now)
    strategy.version, strategy.updated_at = strategy.version + 1, now
    rows = Strategy.objects.filter(account_id=owner.account_id, id=strategy.id)
    rows.update(**missing, version=strategy.version, updated_at=now)
    link_strategy_tools(owner, strategy)
    texts = texts_metadata(owner, [strategy.text])
    record_audit(owner, operation="update", memory_type="procedural", affected_ids=[strategy.id], metadata=texts)


def count_strategy_use(
    owner: Owner, strategy: Strategy, *, success: bool, conversation_pk: UUID | None, now: datetime
) -> None:
    """Count a use of a strategy, in its row (and in the given object) and as a row of its own."""
    name = "success_count" if success else "failure_count"
    rows = Strategy.objects.filter(account_id=owner.account_id, id=strategy.id)
    # in the database, so that no concurrent use is lost
    rows.update(**{name: F(name) + 1}, last_used=Greatest("last_used", now))
    setattr(strategy, name, getattr(strategy, name) + 1)
    strategy.last_used = max(strategy.last_used or now, now)
    used: dict[str, Any] = {"id": uuid7(), "agent_id": owner.agent_id, "success": success, "used_at": now}
    named = {"account_id": owner.account_id, "strategy": strategy.pk, "conversation": conversation_pk}
    execute_statement(INSERT_USE, used | named)
    record_audit(owner, operation="reinforce", memory_type="procedural", affected_ids=[strategy.id])


def reinforce_strategy(
    owner: Owner, strategy_id: UUID, *, success: bool, conversation_id: str = "", now: datetime
) -> Strategy:
    """Count that a strategy worked, or did not, and return it with its counts.

    Raises NotFound, and Unprocessable for a conversation that does not exist.
    """
    conversation = find_conversation_row(owner, conversation_id)
    with transaction.atomic():
        strategy = lock_strategy(owner, strategy_id, now=now)
        count_strategy_use(owner, strategy, success=success, conversation_pk=conversation, now=now)
        register_agent(owner.account_id, owner.agent_id)
    return strategy


def move_uses(giver: Strategy, taker: Strategy, ids: Sequence[str] | None) -> list[UUID]:
    """Move the uses of a locked strategy to another: all, or those with these ids. Returns their ids."""
    uses = StrategyUse.objects.filter(account_id=giver.account_id, strategy_id=giver.pk)
    found = list((uses if ids is None else uses.filter(id__in=ids)).order_by("id").values_list("id", flat=True))
    uses.filter(id__in=found).update(strategy_id=taker.pk)
    return found


def strategies_in_all_channels(owner: Owner, *, now: datetime) -> MemoryQuerySet[Strategy]:
    """Return the strategies that the owner may see, in every channel, for look-ups by id."""
    return Strategy.objects.visible_to(owner, Kind.STRATEGY).live(now)


def visible_strategies(owner: Owner, *, now: datetime) -> QuerySet[Strategy]:
    """Return the strategies that the owner may see in its channel and in `_global`."""
    return strategies_in_all_channels(owner, now=now).in_channels(owner)


def find_strategy(owner: Owner, strategy_id: UUID, *, now: datetime) -> Strategy:
    return require_found(strategies_in_all_channels(owner, now=now).filter(id=strategy_id).first(), "strategy")


def lock_strategy(owner: Owner, strategy_id: UUID, *, now: datetime) -> Strategy:
    """Lock a strategy until the transaction ends. Raises NotFound."""
    rows = lock_strategy_rows(strategies_in_all_channels(owner, now=now).filter(id=strategy_id))
    return require_found(rows.first(), "strategy")


def remove_strategy(owner: Owner, strategy_id: UUID, *, now: datetime) -> None:
    """Archive a strategy for good: learned again, it starts without counts. For its holder and the account.

    Raises NotFound, Forbidden.
    """
    write_waiting_reads(owner.account_id)
    with transaction.atomic():
        strategy = lock_strategy(owner, strategy_id, now=now)
        if owner.agent_id and holder_of_row(strategy) != holder_key(owner):
            raise Forbidden("a strategy can be removed only by its holder or by the account")
        rows = Strategy.objects.filter(account_id=owner.account_id, id=strategy.id)
        erase_traces_of_deleted(owner, [strategy.id])
        rows.update(archived=True, identity=str(strategy.id), version=F("version") + 1, updated_at=now)
        record_audit(owner, operation="archive", memory_type="procedural", affected_ids=[strategy.id])


def find_strategies(
    owner: Owner,
    *,
    task_description: str,
    top_k: int,
    own: ClientVector | None = None,
    task_type: str = "",
    min_score: float = 0.0,
    now: datetime,
) -> StrategyResults:
    """Return the strategies that fit a task best, by nearness to its description and by success.

    `own` replaces the description by the client's vector, `task_type` narrows them to one type of task, `min_score` is
    their least confidence. The result says when no vector could be used.
    """
    query = replace(embed_search_query(task_description, top_k=top_k, own=own), types=(task_type,) if task_type else ())
    found = search_strategies(owner, query, now=now)
    hits = [hit for hit in judge_hits(owner, query, found.hits, now=now) if (hit.likelihood or 0.0) >= min_score]
    record_search(owner, task_description, hits, top_k=top_k, memory_type="procedural")
    return replace(found, hits=hits)


class StrategyLifecycle(Lifecycle):
    """Strategies, whose text follows from description and pattern, and whose identity and tools follow as well."""

    def derive_columns(self, row: Memory) -> Mapping[str, str]:
        """Return the `text` that a locked strategy gets, if another one. Raises Unprocessable for unusable changes."""
        changes = self.operation.columns
        description, pattern = changes.get("description", "unchanged"), changes.get("context_pattern", "")
        if not isinstance(description, str) or not description.strip() or not isinstance(pattern, str):
            raise Unprocessable("description must be a text that is not blank, context_pattern a text")
        task_type, tool_sequence = changes.get("task_type", ""), changes.get("tool_sequence", [])
        is_list = isinstance(tool_sequence, list) and all(isinstance(name, str) for name in tool_sequence)
        if not is_list or not isinstance(task_type, str):
            raise Unprocessable("task_type must be a text, tool_sequence a list of names of tools")
        check_strategy_tools(StrategyDraft(description="", task_type=task_type, tool_sequence=tool_sequence))
        rows = Strategy.objects.filter(account_id=self.owner.account_id)
        strategy = rows.only("text", "description", "context_pattern").get(id=row.id)
        parts = {name: changes.get(name, getattr(strategy, name)) for name in ("description", "context_pattern")}
        text = strategy_text(**parts)
        return {} if text == strategy.text else {"text": text}

    def propagate(self, rows: Sequence[Memory]) -> None:
        """Update identity and tools. Raises Conflict where the holder knows an equal strategy."""
        if self.operation.name != "update":
            return
        for row in rows:
            stored = Strategy.objects.filter(account_id=self.owner.account_id, id=row.id)
            strategy = stored.get()
            owner = owner_of_row(strategy)
            # a removed strategy keeps its id as identity
            if strategy.identity != str(strategy.pk):
                try:
                    with transaction.atomic():
                        stored.update(identity=strategy_identity(owner, strategy))
                except IntegrityError as err:
                    raise Conflict("an equal strategy exists already: archive one of the two first") from err
            kept = Tool.objects.filter(account_id=owner.account_id, name__in=strategy.tool_sequence).values("id")
            used = StrategyTool.objects.filter(account_id=owner.account_id, strategy=strategy)
            used.exclude(tool_id__in=kept).delete()
            link_strategy_tools(owner, strategy)
