"""Slots of structured turns: observation, reasoning, action or outcome, at one level of compression."""

from memory.kinds.base import Audience, KindSpec
from memory.scoring import EPISODIC_WEIGHT

SPEC = KindSpec(
    name="turn_slot",
    label="turn slot",
    plural="turn slots",
    model="memory.TurnSlot",
    audience=Audience.PARTICIPANTS,
    memory_type="episodic",
    recall_weight=EPISODIC_WEIGHT,
    scopes=frozenset({"turn"}),
    has_reasoning_tier=True,
    has_guarded_text=True,
    is_compressed=True,
    not_correctable=frozenset({"user_id", "channel"}),
    lifecycles=("memory.services.work_episodes.propagate.WorkLifecycle",),
)
