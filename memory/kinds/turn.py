"""Turns: messages of a conversation, as they were said."""

from memory.kinds.base import Audience, KindSpec
from memory.scoring import EPISODIC_WEIGHT

SPEC = KindSpec(
    name="turn",
    label="turn",
    plural="turns",
    model="memory.Turn",
    audience=Audience.PARTICIPANTS,
    memory_type="episodic",
    recall_weight=EPISODIC_WEIGHT,
    scopes=frozenset({"turn"}),
    has_links=True,
    replaces=frozenset({"note", "turn"}),
    # who says on another day to have run today, has run again
    repeat_key=("role", "speaker", "agent_id", "user_id", "day"),
    prompt_quote="message",
    correctable=frozenset({"name"}),
    lifecycles=("memory.services.turns.TurnLifecycle",),
    admin_page="turn",
)
