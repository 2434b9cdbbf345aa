"""Notes: texts to remember that are nothing else."""

from memory.kinds.base import KindSpec, Merging
from memory.scoring import FACT_WEIGHT

SPEC = KindSpec(
    name="note",
    label="note",
    plural="notes",
    recall_weight=FACT_WEIGHT,
    has_links=True,
    replaces=frozenset({"note", "turn"}),
    repeat_key=("holder",),
    resume_quote="whole",
    merging=Merging(),
)
