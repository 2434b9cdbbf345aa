"""Recalls for tests, by words alone by default."""

from typing import Any

from memory.owner import Owner
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.queries import Query
from memory.services.recall.recall import RecallRequest, recall
from tests.memory.episodes import NOW

UNREAD = ("-names", "-self_query", "-query_expansion", "-hyde")
BY_WORDS = ("lexical", "pinned", *UNREAD, "-lineage", "-duplicates", "-diversity", "-rerank")
"""Techniques that neither read the question nor change the ranking by score."""


def recall_by_words(owner: Owner, text: str, *, techniques: tuple[str, ...] = BY_WORDS, **asked: Any) -> Bundle:
    """Recall by words; `asked` are fields of the query."""
    fields: dict[str, Any] = {"text": text, "top_k": 200} | asked
    return recall(owner, RecallRequest(query=Query(**fields), techniques=techniques), now=NOW)


def found_by_words(owner: Owner, text: str, *, techniques: tuple[str, ...] = BY_WORDS, **asked: Any) -> list[Candidate]:
    """Return the results, best first."""
    return list(recall_by_words(owner, text, techniques=techniques, **asked).results)
