"""Which memories hold all words of a text: plain look-up for people who browse, without scores."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.expressions import RawSQL

from memory.retrieval.lexical import QUOTED_TERM

# account by account, since words carry their account as a prefix, and every index starts with it
HOLDING = f"""
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


def with_words(text: str, *, account_id: UUID | None) -> Q:
    """The condition on memories: all words of the text are in theirs, or it is their conversation, agent or user.

    Within one account, or within all for None.
    """
    parameters: list[Any] = [text, account_id, account_id, text, text, text]
    return Q(pk__in=RawSQL(HOLDING, parameters))  # noqa: S611 - a constant with parameters
