"""What a correction means for a strategy: what makes it the same again, and which tools it calls, follow from it."""

from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from memory.errors import Conflict
from memory.models import Memory, Strategy, StrategyTool
from memory.owner import Owner
from memory.services.strategies import StrategyDraft, check_tools, link_tools, strategy_identity


def spread_strategy_correction(strategy_id: UUID) -> None:
    """Bring a locked strategy's identity and tools up to what its columns say by now, in the correction's transaction.

    Raises Unprocessable for names that no tools have, Conflict where its holder knows another one that says the same.
    """
    rows: Any = Strategy.objects
    strategy: Strategy = rows.get(pk=strategy_id)
    draft = StrategyDraft(description=strategy.text, task_type=strategy.task_type, tool_sequence=strategy.tool_sequence)
    check_tools(draft)
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
