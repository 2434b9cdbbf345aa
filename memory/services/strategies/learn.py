"""Strategies (X4): ways of doing something, the tools that they call in order, and how often they worked since.

A strategy learnt again by the same holder, in the same channel and for the same type of task is the same strategy: it
is counted, not stored twice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest

from memory.audit import record, texts_kept
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.identity import digest_of, holder, normalize_claim
from memory.models import Kind, Memory, Strategy, StrategyTool
from memory.owner import Owner
from memory.retrieval.strategies import StrategiesFound, search_strategies
from memory.services.accounts.register import note_agent
from memory.services.conversations.lifecycle import is_id, look_up
from memory.services.duplicates.standing import standing_for, standing_rows
from memory.services.embedding.embed import Embedded
from memory.services.memories.store import OwnVector, Rewording, reword_memories, store_memories
from memory.services.recall.search import make_query, record_search
from memory.services.tools import ensure_tools
from memory_project.ids import uuid7

MOST_TOOLS = 100
"""Calls in one strategy."""

PATTERNS = "patterns"
"""The source of what was learnt from work that ended well."""

BEGINNING_OF_PATTERN = re.compile(r"\s*(?:when\b\s*)?", re.IGNORECASE)
"""What `strategy_text` has of its own."""

# the conversation cannot go away meanwhile; one that is gone already leaves the use without it, as its end would
INSERT_USE = """
INSERT INTO strategy_uses (id, account_id, strategy_id, conversation_id, agent_id, success, used_at)
VALUES (%s, %s, %s, (SELECT id FROM conversations WHERE account_id = %s AND id = %s FOR KEY SHARE), %s, %s, %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyDraft:
    """A strategy before it is learnt, and whether it worked (`success`), if that is known, in which conversation.

    `tool_sequence` are names of tools in the order of their calls. `own` is a vector that the client brought.
    """

    description: str
    context_pattern: str = ""
    tool_sequence: Sequence[str] = ()
    task_type: str = ""
    conversation_id: str = ""
    success: bool | None = None
    source: str = "agent"
    event_time: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)

    @property
    def text(self) -> str:
        """What is to be embedded."""
        return strategy_text(self.description, self.context_pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How a strategy did, in a conversation (its row's id) or none in particular."""

    success: bool
    conversation: UUID | None


def learn_strategy(owner: Owner, draft: StrategyDraft, *, embedded: Embedded, now: datetime) -> Strategy:
    """Store a strategy, or count one that is known already; what that lacks, it takes over from the draft.

    Embed the draft's text first (`embed_texts`), outside transactions. Tools are made where they are unknown. Raises
    Conflict for one that is quarantined, Unprocessable for a conversation that there is not, or in which the agent
    takes no part.
    """
    check_tools(draft)
    conversation = find_place(owner, draft.conversation_id)
    with transaction.atomic():
        strategy, _is_new = put_strategy(owner, draft, embedded=embedded, now=now)
        if draft.success is not None:
            count_use(owner, strategy, Use(success=draft.success, conversation=conversation), now=now)
    return strategy


def put_strategy(owner: Owner, draft: StrategyDraft, *, embedded: Embedded, now: datetime) -> tuple[Strategy, bool]:
    """`learn_strategy` of a checked draft in the caller's transaction, its success not counted; whether it was new."""
    new = make_strategy(owner, draft, now=now)
    own = {} if draft.own is None else {draft.id: draft.own}
    if store_memories(owner, [new], embedded=embedded, own=own, now=now):
        link_tools(owner, new)
        return new, True
    strategy = lock_known(owner, new.identity)
    take_over(owner, strategy, draft, embedded=embedded, now=now)
    return strategy, False


def strategy_text(description: str, context_pattern: str) -> str:
    """What is searched of a strategy, embedded, and recalled: when it fits, and what is done then.

    >>> strategy_text("Restart it once.", "the house is cold")
    'When the house is cold: Restart it once.'
    """
    pattern = BEGINNING_OF_PATTERN.sub("", context_pattern, count=1).rstrip(" \t\r\n.:")
    return f"When {pattern}: {description}" if pattern else description


def check_tools(draft: StrategyDraft) -> None:
    """Raises Unprocessable."""
    names = [*draft.tool_sequence, *filter(None, [draft.task_type])]
    # a text is a sequence, too: of tools with names of one letter
    is_list = not isinstance(draft.tool_sequence, str)
    if not is_list or len(draft.tool_sequence) > MOST_TOOLS or not all(map(is_id, names)):
        raise Unprocessable(f"a strategy calls at most {MOST_TOOLS} tools; names have 1 to 100 characters and no NUL")


def find_place(owner: Owner, conversation_id: str) -> UUID | None:
    """The conversation's row; None for no id. Raises Unprocessable."""
    if not conversation_id:
        return None
    conversation = look_up(owner, conversation_id)
    if conversation is None:
        raise Unprocessable("there is no such conversation, or the agent takes no part in it")
    return conversation.id


def make_strategy(owner: Owner, draft: StrategyDraft, *, now: datetime) -> Strategy:
    return Strategy(
        id=draft.id,
        kind=Kind.STRATEGY,
        identity=strategy_identity(owner, draft),
        conversation_id=draft.conversation_id,
        text=draft.text,
        description=draft.description,
        context_pattern=draft.context_pattern,
        task_type=draft.task_type,
        tool_sequence=list(draft.tool_sequence),
        event_time=draft.event_time or now,
        source=draft.source,
        metadata=draft.metadata,
    )


def strategy_identity(owner: Owner, draft: StrategyDraft) -> str:
    """What makes a strategy the same again: holder, channel, type of task and the words of its description.

    Of one that was learnt from patterns, whose description only names its tools, when it fits as well.
    """
    words = [normalize_claim(draft.description)]
    if draft.source == PATTERNS:
        words.append(normalize_claim(draft.context_pattern))
    return digest_of(holder(owner), owner.channel, "strategy", draft.task_type, *words)


def link_tools(owner: Owner, strategy: Strategy) -> None:
    tools = ensure_tools(owner, strategy.tool_sequence)
    used = [StrategyTool(account_id=owner.account_id, strategy=strategy, tool_id=tools[name]) for name in sorted(tools)]
    StrategyTool.objects.bulk_create(used, ignore_conflicts=True)


def lock_known(owner: Owner, identity: str) -> Strategy:
    """Raises Conflict."""
    rows: Any = Strategy.objects.filter(account_id=owner.account_id, kind=Kind.STRATEGY)
    wanted = rows.filter(Q(identity=identity) | Q(standing_rows(owner, Kind.STRATEGY, [identity])))
    locked = {each.pk: each for each in lock_rows(wanted)}
    strategy: Strategy | None = next((each for each in locked.values() if each.identity == identity), None)
    if strategy is None:
        raise Conflict("the strategy was removed a moment ago")
    if strategy.archived:
        # one that was merged into another is known by that
        standing = standing_for(owner.account_id, [strategy.pk])
        strategy = locked.get(standing.get(strategy.pk), strategy)
    if strategy.quarantined:
        raise Conflict("the strategy that says this is quarantined")
    return strategy


def lock_rows(rows: Any) -> Any:
    """Memories before what their kinds hold, as everybody locks them."""
    return rows.order_by("id").select_for_update(of=("memory_ptr", "self"))


def take_over(owner: Owner, strategy: Strategy, draft: StrategyDraft, *, embedded: Embedded, now: datetime) -> None:
    """Give a locked strategy what the draft knows and it does not: when it fits, which tools it calls.

    One that was archived or has expired meanwhile is there again.
    """
    given = {"context_pattern": draft.context_pattern, "tool_sequence": list(draft.tool_sequence)}
    missing: dict[str, Any] = {name: value for name, value in given.items() if value and not getattr(strategy, name)}
    if strategy.archived:
        missing["archived"] = False
    if strategy.expires_at is not None and strategy.expires_at <= now:
        missing["expires_at"] = None
    if not missing:
        return
    for name, value in missing.items():
        setattr(strategy, name, value)
    if (text := text_of(strategy)) != strategy.text:
        strategy.version -= 1  # the change is counted once
        reword_memories(owner, [Rewording(row=strategy, text=text, own=draft.own)], embedded=embedded, now=now)
    strategy.version, strategy.updated_at = strategy.version + 1, now
    rows: Any = Strategy.objects.filter(pk=strategy.pk)
    rows.update(**missing, version=strategy.version, updated_at=now)
    link_tools(owner, strategy)
    texts = texts_kept(owner, [strategy.text])
    record(owner, operation="update", memory_type="procedural", affected_ids=[strategy.id], metadata=texts)


def text_of(strategy: Strategy) -> str:
    return strategy_text(strategy.description, strategy.context_pattern)


def count_use(owner: Owner, strategy: Strategy, use: Use, *, now: datetime) -> None:
    """Count how a strategy did, in its row and as a use of its own. The strategy given is changed, too."""
    name = "success_count" if use.success else "failure_count"
    rows: Any = Strategy.objects.filter(pk=strategy.pk)
    # added to what is there by then: nobody's use is lost
    rows.update(**{name: F(name) + 1}, last_used=Greatest("last_used", now))
    setattr(strategy, name, getattr(strategy, name) + 1)
    strategy.last_used = max(strategy.last_used or now, now)
    with connection.cursor() as cursor:
        place = [owner.account_id, use.conversation]
        cursor.execute(INSERT_USE, [uuid7(), owner.account_id, strategy.pk, *place, owner.agent_id, use.success, now])
    record(owner, operation="reinforce", memory_type="procedural", affected_ids=[strategy.id])


def reinforce_strategy(
    owner: Owner, strategy_id: UUID, *, success: bool, conversation_id: str = "", now: datetime
) -> Strategy:
    """Count that a strategy worked, or did not. Comes back with its counts.

    Raises NotFound, and Unprocessable for a conversation that there is not.
    """
    conversation = find_place(owner, conversation_id)
    with transaction.atomic():
        strategy = lock_strategy(owner, strategy_id, now=now)
        count_use(owner, strategy, Use(success=success, conversation=conversation), now=now)
        note_agent(owner.account_id, owner.agent_id)
    return strategy


def known_strategies(owner: Owner, *, now: datetime) -> QuerySet[Strategy]:
    """What the owner may see, in every channel: by its id, it is found whatever its label."""
    rows: Any = Strategy.objects.visible_to(owner, Kind.STRATEGY).live(now)
    found: QuerySet[Strategy] = rows
    return found


def visible_strategies(owner: Owner, *, now: datetime) -> QuerySet[Strategy]:
    """What the owner may see in its channel and in `_global`."""
    rows: Any = known_strategies(owner, now=now)
    found: QuerySet[Strategy] = rows.in_channels(owner)
    return found


def find_strategy(owner: Owner, strategy_id: UUID, *, now: datetime) -> Strategy:
    """Raises NotFound."""
    strategy = known_strategies(owner, now=now).filter(id=strategy_id).first()
    if strategy is None:
        raise NotFound("no such strategy")
    return strategy


def lock_strategy(owner: Owner, strategy_id: UUID, *, now: datetime) -> Strategy:
    """Until the transaction ends. Raises NotFound."""
    strategy: Strategy | None = lock_rows(known_strategies(owner, now=now).filter(id=strategy_id)).first()
    if strategy is None:
        raise NotFound("no such strategy")
    return strategy


def remove_strategy(owner: Owner, strategy_id: UUID, *, now: datetime) -> None:
    """Take it out of reads and searches; learnt again, it begins anew. For its holder, and for the account.

    Raises NotFound, Forbidden.
    """
    with transaction.atomic():
        strategy = lock_strategy(owner, strategy_id, now=now)
        if owner.agent_id and holder_of(strategy) != holder(owner):
            raise Forbidden("whose strategy it is removes it, or the account")
        rows = Memory.objects.filter(id=strategy.id)
        rows.update(archived=True, identity=str(strategy.id), version=F("version") + 1, updated_at=now)
        record(owner, operation="archive", memory_type="procedural", affected_ids=[strategy.id])


def holder_of(row: Memory) -> str:
    return holder(Owner(account_id=row.account_id, agent_id=row.agent_id, user_id=row.user_id))


def find_strategies(
    owner: Owner, *, task_description: str, top_k: int, own: OwnVector | None = None, task_type: str = "", now: datetime
) -> StrategiesFound:
    """The strategies that fit a task best: near to its description, or the client's own vector, and often successful.

    Of one type of task, where it is given. Says when meaning could not be had.
    """
    query = replace(make_query(task_description, top_k=top_k, own=own), types=(task_type,) if task_type else ())
    found = search_strategies(owner, query, now=now)
    record_search(owner, task_description, found.hits, top_k=top_k, memory_type="procedural")
    return found
