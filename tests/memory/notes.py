"""Notes for tests."""

from typing import Any

from memory.models import Memory
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.notes import NoteDraft, store_note
from tests.memory.episodes import NOW


def jot(owner: Owner, text: str, **fields: Any) -> Memory:
    """Store a note."""
    return store_note(owner, NoteDraft(text=text, **fields), embedded=embed_texts([text]), now=NOW)
