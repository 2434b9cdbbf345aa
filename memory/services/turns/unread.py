"""The turns that a queue's claim has before it: those that are left, and as many of them as a model can be shown."""

from collections.abc import Sequence
from itertools import accumulate, takewhile

from django.db.models import QuerySet

from memory.models import Turn
from memory.owner import Owner
from memory.services.conversations.queue import Claimed
from memory.services.turns.store import visible_turns

TOKENS_AROUND_A_TURN = 15
"""At least, for its role and time, when a model is shown it."""


def turns_between(claim: Claimed, start: int, stop: int) -> QuerySet[Turn]:
    rows = visible_turns(Owner(account_id=claim.conversation.account_id))
    return rows.filter(log=claim.conversation, quarantined=False, index__gte=start, index__lt=stop).order_by("index")


def read_turns(rows: QuerySet[Turn], *, max_tokens: int) -> list[Turn]:
    """The first of the rows: all that fit, perhaps some more; by their counts first, since texts are large."""
    counts = rows.values_list("token_count", flat=True)[: max_tokens // TOKENS_AROUND_A_TURN]
    sizes = accumulate(count + TOKENS_AROUND_A_TURN for count in counts)
    fitting = sum(1 for _ in takewhile(lambda size: size <= max_tokens, sizes))
    return list(rows[: max(fitting, 1)])


def is_same_as_read(rows: QuerySet[Turn], turns: Sequence[Turn]) -> bool:
    """Whether the turns that were read are still all of the rows, each at the version that was read."""
    return list(rows.values_list("id", "version")) == [(turn.id, turn.version) for turn in turns]
