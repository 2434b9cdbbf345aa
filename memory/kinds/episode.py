"""Episodes: summaries of conversations, private to the agent that keeps them."""

from memory.kinds.base import Audience, KindSpec
from memory.scoring import EPISODIC_WEIGHT

SPEC = KindSpec(
    name="episode",
    label="episode",
    plural="episodes",
    model="memory.EpisodicMemory",
    audience=Audience.AUTHOR,
    memory_type="episodic",
    recall_weight=EPISODIC_WEIGHT,
    scopes=frozenset(),
    has_links=True,
    replaces=frozenset({"episode"}),
    # whichever agent keeps it
    repeat_key=("conversation_id", "user_id"),
    prompt_quote="summary",
    correctable=frozenset({"key_decisions", "entities_mentioned", "tools_called"}),
    admin_page="episodicmemory",
)
