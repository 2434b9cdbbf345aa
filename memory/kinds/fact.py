"""Facts: claims with a confidence and the time in which they are true."""

from memory.kinds.base import Globalizing, KindSpec, Merging
from memory.scoring import FACT_WEIGHT

SPEC = KindSpec(
    name="fact",
    label="fact",
    plural="facts",
    model="memory.Fact",
    recall_weight=FACT_WEIGHT,
    has_links=True,
    repeat_key=("holder", "temporal", "valid_from", "valid_to"),
    resume_quote="whole",
    has_beliefs=True,
    has_status=True,
    merging=Merging(key=("temporal", "valid_from", "valid_to"), only={"status": "active"}),
    globalizing=Globalizing(
        find="memory.services.facts.globalize.find_prominent_facts",
        copy="memory.services.facts.globalize.globalize_facts",
    ),
    # a corrected claim is another belief, and identity follows from holder, channel and claim
    not_correctable=frozenset({"text", "user_id", "channel"}),
    admin_page="fact",
)
