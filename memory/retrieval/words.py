"""Plain text look-up for people who browse: memories with all words of a text, without scores."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.expressions import RawSQL

from memory.retrieval.retrievers.lexical import QUOTED_TERM

# account by account, since lexemes begin with their account, and so does every index
MATCHING_IDS = f"""
    WITH asked AS MATERIALIZED (
        SELECT accounts.id AS account_id, (
            SELECT string_agg({QUOTED_TERM}, ' & ')::tsquery
            FROM unnest(tsvector_to_array(memory_lexemes(accounts.id, accounts.language, %s))) AS term
        ) AS words
        FROM accounts WHERE %s::uuid IS NULL OR accounts.id = %s::uuid
    )
    SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.lexemes @@ asked.words
    UNION SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.conversation_id = %s
    UNION SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.agent_id = %s
    UNION SELECT m.id FROM asked JOIN memories m ON m.account_id = asked.account_id AND m.user_id = %s"""


def has_words_or_ids(text: str, *, account_id: UUID | None) -> Q:
    """Return the condition on memories that hold all words of a text, or whose conversation, agent or user it names.

    `account_id` None searches all accounts.
    """
    parameters: list[Any] = [text, account_id, account_id, text, text, text]
    return Q(pk__in=RawSQL(MATCHING_IDS, parameters))  # noqa: S611 - a constant with parameters
