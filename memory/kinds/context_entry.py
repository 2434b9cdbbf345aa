"""Entries of persistent contexts, with or without a key."""

from memory.kinds.base import Audience, KindSpec, Merging
from memory.scoring import FACT_WEIGHT

SPEC = KindSpec(
    name="context_entry",
    label="context entry",
    plural="context entries",
    model="memory.ContextEntry",
    audience=Audience.CONTEXT_READERS,
    recall_weight=FACT_WEIGHT,
    scopes=frozenset({"workspace"}),
    resume_quote="whole",
    has_access_log=True,
    merging=Merging(
        key=("entry_type", "memory_type"),
        maxima=("importance", "confidence"),
    ),
    correctable=frozenset({"entry_type", "source_type", "memory_type", "importance", "confidence"}),
    lifecycles=("memory.services.contexts.versions.EntryLifecycle",),
    admin_page="contextentry",
)
