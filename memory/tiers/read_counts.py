"""Hits and misses of the router's reads: a Redis hash for each agent, with fields for each tier."""

import logging
from collections.abc import Sequence

from redis.exceptions import RedisError

from memory.owner import Owner
from memory_project.redis import AgentMemoryRef, agent_key, client, script

logger = logging.getLogger(__name__)

TIERS = "tiers"
KEPT_SECONDS = 2_592_000
"""The counts of an agent that reads nothing for 30 days expire."""

# ARGV: seconds to live, then fields
COUNT = """
for i = 2, #ARGV do
    redis.call('HINCRBY', KEYS[1], ARGV[i], 1)
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""


def count_read(owner: Owner, *, hit: str, missed: Sequence[str]) -> None:
    """Count a read: a miss for the tiers in `missed`, a hit for `hit` unless it is empty. One round trip.

    Raises nothing: the read is answered even if it cannot be counted.
    """
    fields = [f"{name}:misses" for name in missed] + ([f"{hit}:hits"] if hit else [])
    try:
        script(COUNT)(keys=[read_counts_key(owner)], args=[KEPT_SECONDS, *fields])
    except RedisError as err:
        logger.warning("a read of %d tiers was not counted: %s", len(fields), type(err).__name__)


def read_counts(owner: Owner) -> dict[str, int]:
    """Return all counts, by `<tier>:hits` and `<tier>:misses`."""
    return {str(field): int(count) for field, count in client().hgetall(read_counts_key(owner)).items()}


def read_counts_key(owner: Owner) -> str:
    return agent_key(AgentMemoryRef(account_id=owner.account_id, agent_id=owner.agent_id), TIERS)
