"""Lineage: the conversations that one resumes, and those that resume it, as far as the owner sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation

MOST_CONVERSATIONS = 200
"""Each way."""

# each step goes by an index; the limits end the recursion, since nothing needs its other rows
AROUND = """
WITH RECURSIVE earlier (conversation_id, continues, step) AS (
    SELECT conversation_id, continues, 0 FROM conversations
    WHERE account_id = %(account_id)s AND conversation_id = %(start)s
    UNION ALL
    SELECT c.conversation_id, c.continues, step - 1
    FROM earlier JOIN conversations c ON c.conversation_id = earlier.continues
    WHERE c.account_id = %(account_id)s AND step >= -%(most)s
), later (conversation_id, step) AS (
    SELECT %(start)s::varchar, 0
    UNION ALL
    SELECT c.conversation_id, step + 1 FROM later JOIN conversations c ON c.continues = later.conversation_id
    WHERE c.account_id = %(account_id)s AND c.continues <> '' AND step <= %(most)s
)
(SELECT conversation_id, step FROM earlier LIMIT %(most)s + 2)
UNION ALL
(SELECT conversation_id, step FROM later LIMIT %(most)s + 2)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A conversation of a lineage, and over how many steps: below zero for those that were there before."""

    conversation: Conversation
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLineage:
    """`earlier`: those that the conversation resumes, the nearest first. `later`: those that resume it, the nearest
    first, of these the first to begin. `truncated` where there are more than MOST_CONVERSATIONS either way."""

    conversation: Conversation
    earlier: Sequence[Related]
    later: Sequence[Related]
    truncated: bool


def conversation_lineage(owner: Owner, conversation_id: str) -> ConversationLineage:
    """What is left out because the owner takes no part in it leaves no gap. Three statements. Raises NotFound."""
    found = find_conversation(owner, conversation_id)
    with connection.cursor() as cursor:
        values: dict[str, Any] = {"account_id": owner.account_id, "start": conversation_id, "most": MOST_CONVERSATIONS}
        cursor.execute(AROUND, values)
        rows: list[tuple[str, int]] = cursor.fetchall()
    steps: dict[str, int] = {}
    # the nearest first: of a ring, which nobody should be able to make, each is told once
    for other_id, step in sorted(rows, key=lambda row: abs(row[1])):
        steps.setdefault(other_id, step)
    related = read_related(owner, {other_id: step for other_id, step in steps.items() if step})
    return ConversationLineage(
        conversation=found,
        earlier=[each for each in related if each.step < 0][:MOST_CONVERSATIONS],
        later=[each for each in related if each.step > 0][:MOST_CONVERSATIONS],
        truncated=any(sum(1 for _, step in rows if step * way > 0) > MOST_CONVERSATIONS for way in (-1, 1)),
    )


def read_related(owner: Owner, steps: dict[str, int]) -> list[Related]:
    rows = Conversation.objects.visible_to(owner).filter(conversation_id__in=steps).defer("saved_session")
    related = [Related(conversation=row, step=steps[row.conversation_id]) for row in rows]
    return sorted(related, key=lambda each: (abs(each.step), each.conversation.started_at, each.conversation.id))
