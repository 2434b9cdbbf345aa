"""Lineages: the conversations that one resumes, and those that resume it."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.models import Conversation
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation

# an index serves each step; the limits end the recursion
LINEAGE_BOTH_WAYS = """
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

MAX_LINEAGE = 200
"""Maximum of conversations of a lineage, in each direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageStep:
    """A conversation of a lineage with its distance in steps, below zero for earlier ones."""

    conversation: Conversation
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLineage:
    """The conversations that one resumes (`earlier`) and those that resume it (`later`), each nearest first.

    Conversations at the same distance are sorted by their start. `truncated`: there are more than MAX_LINEAGE in
    one direction.
    """

    conversation: Conversation
    earlier: Sequence[LineageStep]
    later: Sequence[LineageStep]
    truncated: bool


def read_conversation_lineage(owner: Owner, conversation_id: str) -> ConversationLineage:
    """Return the lineage without the conversations in which the owner takes no part. Steps are counted with them.

    Three statements. Raises NotFound.
    """
    found = find_conversation(owner, conversation_id)
    values = {"account_id": owner.account_id, "start": conversation_id, "most": MAX_LINEAGE}
    rows: list[tuple[str, int]] = fetch_rows(LINEAGE_BOTH_WAYS, values)
    steps: dict[str, int] = {}
    # nearest first; in a cycle, which should not be possible, each conversation counts once
    for other_id, step in sorted(rows, key=lambda row: abs(row[1])):
        steps.setdefault(other_id, step)
    steps.pop(conversation_id, None)
    others = Conversation.objects.visible_to(owner).filter(conversation_id__in=steps).defer("saved_session")
    lineage = [LineageStep(conversation=row, step=steps[row.conversation_id]) for row in others]
    lineage.sort(key=lambda each: (abs(each.step), each.conversation.started_at, each.conversation.id))
    return ConversationLineage(
        conversation=found,
        earlier=[each for each in lineage if each.step < 0][:MAX_LINEAGE],
        later=[each for each in lineage if each.step > 0][:MAX_LINEAGE],
        truncated=any(sum(1 for _, step in rows if step * way > 0) > MAX_LINEAGE for way in (-1, 1)),
    )
