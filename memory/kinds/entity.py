"""Entities: people, places and things, with the names that they are known by."""

from memory.kinds.base import KindSpec
from memory.scoring import ENTITY_WEIGHT

SPEC = KindSpec(
    name="entity",
    label="entity",
    plural="entities",
    model="memory.Entity",
    recall_weight=ENTITY_WEIGHT,
    has_links=True,
    resume_quote="omitted",
    # the text follows from its names, and names are unique per holder and channel
    not_correctable=frozenset({"text", "user_id", "channel"}),
    lifecycles=("memory.services.entities.change.EntityLifecycle",),
    admin_page="entity",
)
