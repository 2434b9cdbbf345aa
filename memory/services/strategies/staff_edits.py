"""What a correction means for a strategy: its text, what makes it the same again, and which tools it calls follow."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from memory.errors import Conflict, Unprocessable
from memory.models import Memory, Strategy, StrategyTool
from memory.owner import Owner
from memory.services.strategies.learn import StrategyDraft, check_tools, link_tools, strategy_identity, strategy_text


def check_strategy_correction(changes: Mapping[str, Any]) -> None:
    """Before anything is written. Raises Unprocessable for what is no description, no pattern, no type of task, or no
    list of names of tools."""
    description, pattern = changes.get("description", "unchanged"), changes.get("context_pattern", "")
    if not isinstance(description, str) or not description.strip() or not isinstance(pattern, str):
        raise Unprocessable("a strategy has a description; context_pattern is a text")
    task_type, tool_sequence = changes.get("task_type", ""), changes.get("tool_sequence", [])
    is_list = isinstance(tool_sequence, list) and all(isinstance(name, str) for name in tool_sequence)
    if not is_list or not isinstance(task_type, str):
        raise Unprocessable("task_type is a text, tool_sequence a list of names of tools")
    check_tools(StrategyDraft(description="", task_type=task_type, tool_sequence=tool_sequence))


def reworded(strategy_id: UUID, changes: Mapping[str, Any]) -> dict[str, str]:
    """The `text` of a locked strategy with these changes of its columns; nothing where that stays as it is."""
    rows: Any = Strategy.objects.only("text", "description", "context_pattern")
    strategy: Strategy = rows.get(pk=strategy_id)
    said = {name: changes.get(name, getattr(strategy, name)) for name in ("description", "context_pattern")}
    text = strategy_text(**said)
    return {} if text == strategy.text else {"text": text}


def spread_strategy_correction(strategy_id: UUID) -> None:
    """Bring a locked strategy's identity and tools up to what its columns say by now, in the correction's transaction.

    Raises Conflict where its holder knows another one that says the same.
    """
    rows: Any = Strategy.objects
    strategy: Strategy = rows.get(pk=strategy_id)
    draft = StrategyDraft(
        description=strategy.description,
        context_pattern=strategy.context_pattern,
        task_type=strategy.task_type,
        tool_sequence=strategy.tool_sequence,
        source=strategy.source,
    )
    owner = Owner(
        account_id=strategy.account_id,
        agent_id=strategy.agent_id,
        user_id=strategy.user_id,
        channel=strategy.channel,
    )
    # one that was removed is only itself
    if strategy.identity != str(strategy.pk):
        take_identity(strategy, strategy_identity(owner, draft))
    StrategyTool.objects.filter(strategy=strategy).exclude(tool__name__in=strategy.tool_sequence).delete()
    link_tools(owner, strategy)


def take_identity(strategy: Strategy, identity: str) -> None:
    try:
        with transaction.atomic():
            Memory.objects.filter(pk=strategy.pk).update(identity=identity)
    except IntegrityError as err:
        raise Conflict("there is such a strategy already: archive one of the two") from err
