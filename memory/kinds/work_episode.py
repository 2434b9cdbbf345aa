"""Work episodes: the structured turns of a goal, merged into one story."""

from memory.kinds.base import Audience, KindSpec
from memory.scoring import EPISODIC_WEIGHT

SPEC = KindSpec(
    name="work_episode",
    label="work episode",
    plural="work episodes",
    model="memory.WorkEpisode",
    audience=Audience.PARTICIPANTS,
    memory_type="episodic",
    recall_weight=EPISODIC_WEIGHT,
    scopes=frozenset({"workspace"}),
    has_reasoning_tier=True,
    is_compressed=True,
    not_correctable=frozenset({"user_id", "channel"}),
    lifecycles=("memory.services.work_episodes.propagate.WorkLifecycle",),
)
