"""Learnings: what agents publish for others in a context, with votes on whether it helped."""

from memory.kinds.base import Audience, KindSpec, Merging
from memory.scoring import FACT_WEIGHT

SPEC = KindSpec(
    name="learning",
    label="learning",
    plural="learnings",
    model="memory.Learning",
    audience=Audience.CONTEXT_READERS,
    recall_weight=FACT_WEIGHT,
    scopes=frozenset({"workspace"}),
    repeat_key=("holder", "temporal", "valid_from", "valid_to"),
    resume_quote="whole",
    merging=Merging(
        evidence=("helpful_count", "unhelpful_count"), moves={"votes": "memory.services.learnings.move_votes"}
    ),
    admin_page="learning",
)
