"""Learning from failures (X12): a tool that failed the same way three times gives a strategy that says so.

Failures are the same if tool and normalized error (`extraction.tool_calls`) are. They are counted for one holder in one
channel, over all of its conversations, whenever one of these has ended with such a failure. The strategy also says what
helped: what succeeded afterwards in the same conversations. Errors are encrypted in the records of calls; the strategy
quotes the normalized error, without secrets. If nothing did, the next success of the tool in another ended conversation
says what helped.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory.audit import record_audit, texts_metadata
from memory.errors import Conflict
from memory.extraction.patterns import are_plain
from memory.extraction.tool_calls import describe_tool, normalize_error
from memory.models import Conversation, Strategy, ToolInvocation
from memory.owner import Owner
from memory.services.account_walk import group_by_account
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.entities.resolve import filter_by_holder
from memory.services.memories.store import TextUpdate, update_texts
from memory.services.memories.trust import least_trust_of_conversations
from memory.services.strategies.learn import FAILURE_SOURCE, StrategyDraft, strategy_text, upsert_strategy
from memory.services.strategies.sources import WorkSource, lock_kept_conversations
from memory.services.tools import read_error_messages

MIN_FAILURES = 3
"""Failures of the same kind that teach a strategy."""
MAX_FAILURES = 50
"""Latest failures of a tool that are compared."""
MAX_CALLS_AFTER = 50
"""Calls after a failure among which one that succeeded is looked for."""
MAX_STEPS = 3
"""Steps before the successful repetition that are named."""

FAILED = "It has failed this way at least three times."
NOTHING_HELPED = f"{FAILED} Do not repeat the call unchanged: nothing that was called afterwards has helped so far."
CALLED_AGAIN = f"{FAILED} Call it again later or with other input: that worked."


class FailedTool(NamedTuple):
    """A tool that failed for a holder in a channel."""

    owner: Owner
    tool_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed call of a tool with its normalized error."""

    id: UUID
    conversation_id: str
    timestamp: datetime
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLesson:
    """The strategy that repeated failures teach, and the conversations in which they happened."""

    draft: StrategyDraft
    conversation_ids: frozenset[str]


def learn_from_failures(sources: Sequence[WorkSource], *, now: datetime) -> Counter[str]:
    """Store a strategy for each repeated failure in the conversations among the sources. Returns counts by name.

    `failures_learnt` are new ones, `refused` quarantined ones. Runs outside transactions; can be repeated.
    """
    lessons = [(failed.owner, lesson) for failed in find_failed_tools(sources) for lesson in lessons_of_tool(failed)]
    embedded = embed_texts([lesson.draft.text for _, lesson in lessons])
    figures: Counter[str] = Counter()
    for owner, lesson in lessons:
        try:
            figures["failures_learnt"] += store_lesson(owner, lesson, embedded=embedded, now=now)
        except Conflict:
            figures["refused"] += 1
    return +figures


def find_failed_tools(sources: Sequence[WorkSource]) -> list[FailedTool]:
    """Return the tools that failed with an error in the conversations among the sources, for their holders.

    Those that succeeded are among them where a strategy says that nothing has helped so far.
    """
    owners = {source.row.pk: source.owner for source in sources}
    conversations = group_by_account(source.row for source in sources if isinstance(source.row, Conversation))
    found: dict[FailedTool, None] = {}
    for account_id, rows in conversations.items():
        by_id = {row.conversation_id: owners[row.pk] for row in rows}
        calls = failed_calls(account_id) | successful_calls(account_id).filter(tool_name__in=helpless_tools(account_id))
        calls = calls.filter(conversation_id__in=list(by_id))
        columns = ("agent_id", "user_id", "conversation_id", "tool_name")
        for agent_id, user_id, conversation_id, tool_name in calls.order_by().values_list(*columns).distinct():
            owner = by_id[conversation_id]
            if (user_id == owner.user_id if user_id else agent_id == owner.agent_id) and are_plain([tool_name]):
                found[FailedTool(owner, tool_name)] = None
    return list(found)


def failed_calls(account_id: UUID) -> Any:
    return ToolInvocation.objects.filter(account_id=account_id, success=False, error_message__isnull=False)


def successful_calls(account_id: UUID) -> Any:
    return ToolInvocation.objects.filter(account_id=account_id, success=True)


def helpless_tools(account_id: UUID) -> list[str]:
    """Return the tools of which a strategy says that nothing has helped."""
    rows = Strategy.objects.filter(account_id=account_id, source=FAILURE_SOURCE, description=NOTHING_HELPED)
    return [name for names in rows.values_list("tool_sequence", flat=True) for name in names]


def lessons_of_tool(failed: FailedTool) -> Iterator[FailureLesson]:
    """Yield a strategy for each error that the tool failed with MIN_FAILURES times."""
    by_error: dict[str, list[Failure]] = defaultdict(list)
    for failure in read_failures(failed):
        by_error[failure.error].append(failure)
    repeated = {error: same for error, same in by_error.items() if len(same) >= MIN_FAILURES}
    if not repeated:
        return
    calls = read_calls(failed, [failure for same in repeated.values() for failure in same])
    for error, same in repeated.items():
        conversation_ids = frozenset(each.conversation_id for each in same)
        draft = StrategyDraft(
            description=describe_help(failed, same, calls),
            context_pattern=f"{failed.tool_name} fails with “{error}”",
            tool_sequence=[failed.tool_name],
            conversation_id=same[0].conversation_id,
            source=FAILURE_SOURCE,
            trust=least_trust_of_conversations(failed.owner.account_id, conversation_ids),
            event_time=same[0].timestamp,
            metadata={"learnt_from": {"failures": len(same), "conversation_id": same[0].conversation_id}},
        )
        yield FailureLesson(draft=draft, conversation_ids=conversation_ids)


def read_failures(failed: FailedTool) -> Iterator[Failure]:
    """Yield the latest failures of the tool with an error, in the holder's conversations of the channel."""
    owner = failed.owner
    conversations = Conversation.objects.filter(
        filter_by_holder(owner), account_id=owner.account_id, channel=owner.channel
    )
    calls = failed_calls(owner.account_id).filter(
        called_for(owner), tool_name=failed.tool_name, conversation_id__in=conversations.values("conversation_id")
    )
    for row, message in read_error_messages(calls.order_by("-timestamp", "-id")[:MAX_FAILURES]):
        if error := normalize_error(message):
            yield Failure(id=row.pk, conversation_id=row.conversation_id, timestamp=row.timestamp, error=error)


def called_for(owner: Owner) -> Q:
    """Return the condition for calls for the owner's user; where no user was named, by the owner's agent."""
    of_agent = Q(user_id="", agent_id=owner.agent_id)
    return of_agent | Q(user_id=owner.user_id) if owner.user_id else of_agent


def read_calls(failed: FailedTool, failures: Sequence[Failure]) -> dict[str, list[tuple[UUID, str, bool | None]]]:
    """Return the holder's calls in the conversations of the failures, in order: id, tool and success of each."""
    calls = ToolInvocation.objects.filter(
        called_for(failed.owner),
        account_id=failed.owner.account_id,
        conversation_id__in={failure.conversation_id for failure in failures},
        timestamp__gte=min(failure.timestamp for failure in failures),
    )
    found: dict[str, list[tuple[UUID, str, bool | None]]] = defaultdict(list)
    columns = ("conversation_id", "id", "tool_name", "success")
    for conversation_id, *call in calls.order_by("timestamp", "id").values_list(*columns).iterator():
        found[conversation_id].append((call[0], call[1], call[2]))
    return found


def describe_help(
    failed: FailedTool, failures: Sequence[Failure], calls: dict[str, list[tuple[UUID, str, bool | None]]]
) -> str:
    """Return what to do about these failures: what helped most often, or that nothing helped.

    What succeeded in the same conversations comes before what was called before a success in a later one.
    """
    tool_name = failed.tool_name
    failed_ids = {failure.id for failure in failures}
    repeated: Counter[tuple[str, ...]] = Counter()
    instead: Counter[str] = Counter()
    for of_conversation in calls.values():
        for place, (call_id, _, _) in enumerate(of_conversation):
            if call_id not in failed_ids:
                continue
            later = [name for _, name, success in of_conversation[place + 1 :][:MAX_CALLS_AFTER] if success]
            if tool_name in later:
                repeated[tuple(dict.fromkeys(later[: later.index(tool_name)]))[-MAX_STEPS:]] += 1
            elif later:
                instead[later[0]] += 1
    for steps, _ in repeated.most_common(1):
        return describe_repetition(steps)
    for name, _ in instead.most_common(1):
        if are_plain([name]):
            return f"{FAILED} Instead, {name_step(name)}: that worked afterwards."
    steps_later = find_later_success(failed, failures)
    return NOTHING_HELPED if steps_later is None else describe_repetition(steps_later)


def describe_repetition(steps: Sequence[str]) -> str:
    if not steps or not are_plain(steps):
        return CALLED_AGAIN
    return f"{FAILED} First {', then '.join(map(name_step, steps))}, then call it again: that worked."


def find_later_success(failed: FailedTool, failures: Sequence[Failure]) -> tuple[str, ...] | None:
    """Return the last steps before the first success of the tool in a later ended conversation of the holder.

    Returns None if the tool did not succeed since the latest failure.
    """
    owner = failed.owner
    ended = Conversation.objects.filter(
        filter_by_holder(owner), account_id=owner.account_id, channel=owner.channel, ended_at__isnull=False
    )
    successes = successful_calls(owner.account_id).filter(called_for(owner)).order_by("timestamp", "id")
    since = max(failure.timestamp for failure in failures)
    later = successes.filter(timestamp__gte=since, conversation_id__in=ended.values("conversation_id"))
    first = later.filter(tool_name=failed.tool_name).first()
    if first is None:
        return None
    before = successes.filter(conversation_id=first.conversation_id, timestamp__lte=first.timestamp)
    names = list(
        before.exclude(tool_name=failed.tool_name).reverse().values_list("tool_name", flat=True)[:MAX_CALLS_AFTER]
    )
    return tuple(dict.fromkeys(reversed(names)))[-MAX_STEPS:]


def name_step(tool_name: str) -> str:
    return f"{describe_tool(tool_name)} ({tool_name})"


def store_lesson(owner: Owner, lesson: FailureLesson, *, embedded: EmbeddedTexts, now: datetime) -> int:
    """Store the strategy and return 1 if it is new. A known one learns what helped, if it did not know yet.

    It is not stored if one of the conversations was erased, or is being erased: the next failure looks at what is left.
    """
    draft, conversation_ids = lesson.draft, lesson.conversation_ids
    with transaction.atomic():
        kept = lock_kept_conversations(owner.account_id, conversation_id__in=conversation_ids)
        if len(kept) < len(conversation_ids):
            return 0
        strategy, is_new = upsert_strategy(owner, draft, embedded=embedded, now=now)
        if strategy.description == NOTHING_HELPED and draft.description != NOTHING_HELPED:
            replace_description(owner, strategy, draft.description, embedded=embedded, now=now)
    return int(is_new)


def replace_description(
    owner: Owner, strategy: Strategy, description: str, *, embedded: EmbeddedTexts, now: datetime
) -> None:
    """Give a locked strategy another description, and the text that follows from it."""
    strategy.description = description
    text = strategy_text(description, strategy.context_pattern)
    update_texts(owner, [TextUpdate(row=strategy, text=text)], embedded=embedded, now=now)
    rows = Strategy.objects.filter(account_id=owner.account_id, id=strategy.id)
    rows.update(description=description, version=strategy.version, updated_at=now)
    texts = texts_metadata(owner, [text])
    record_audit(owner, operation="update", memory_type="procedural", affected_ids=[strategy.id], metadata=texts)
