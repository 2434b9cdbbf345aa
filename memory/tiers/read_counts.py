"""How often each tier had what an agent's router asked it for: a hash in Redis, a field for its hits or its misses."""

import logging
from collections.abc import Sequence

from redis.exceptions import RedisError

from memory.owner import Owner
from memory_project.redis import AgentPlace, agent_key, client, script

logger = logging.getLogger(__name__)

TIERS = "tiers"
KEPT_SECONDS = 2_592_000
"""The counts of an agent that reads nothing for 30 days are forgotten."""

# seconds, then fields
COUNT = """
for i = 2, #ARGV do
    redis.call('HINCRBY', KEYS[1], ARGV[i], 1)
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""


def count_read(owner: Owner, *, hit: str, missed: Sequence[str]) -> None:
    """Count for these tiers; `hit` is empty where none had it. One round trip.

    Raises nothing: the read is answered, counted or not.
    """
    fields = [f"{name}:misses" for name in missed] + ([f"{hit}:hits"] if hit else [])
    try:
        script(COUNT)(keys=[key_of(owner)], args=[KEPT_SECONDS, *fields])
    except RedisError as err:
        logger.warning("a read of %d tiers was not counted: %s", len(fields), type(err).__name__)


def read_counts(owner: Owner) -> dict[str, int]:
    """Every count there is, by `tier:hits` and `tier:misses`."""
    return {str(field): int(count) for field, count in client().hgetall(key_of(owner)).items()}


def key_of(owner: Owner) -> str:
    return agent_key(AgentPlace(account_id=owner.account_id, agent_id=owner.agent_id), TIERS)
