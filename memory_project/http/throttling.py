"""Rate limits: leaky buckets (GCRA) per API key and per account, kept in Redis, decided in one atomic round trip."""

import logging
import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from memory_project.http.credentials import Credential, get_credential
from memory_project.http.problems import REDIS_ERRORS
from memory_project.redis import script, value_key

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60
REDIS_RETRY_SECONDS = 5.0

# The bucket is stored as the time at which it will be empty (TAT). A request moves that time by one interval and is
# refused if it would then lie more than a window ahead of any of its buckets; then it counts in none. Returns, of the
# bucket that refuses or that has least left: allowed, remaining, microseconds until it is empty, microseconds to wait,
# its limit.
GCRA = """
local window = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local buckets, least = {}, nil
for i, key in ipairs(KEYS) do
  local limit = tonumber(ARGV[i + 1])
  local interval = window / limit
  local empty_at = math.max(tonumber(redis.call('GET', key) or now), now)
  local wait = empty_at + interval - now - window
  if wait > 0 then
    return {0, 0, math.ceil(empty_at - now), math.ceil(wait), limit}
  end
  buckets[i] = empty_at + interval
  local left = math.floor((window - (buckets[i] - now)) / interval + 0.000001)
  if not least or left < least[2] then
    least = {1, left, math.ceil(buckets[i] - now), 0, limit}
  end
end
for i, key in ipairs(KEYS) do
  redis.call('SET', key, string.format('%.3f', buckets[i]), 'PX', math.ceil((buckets[i] - now) / 1000) + 1)
end
return least
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The requests that a key, or its account, has left: the fewer ones.

    `reset_seconds` is the time until all of `limit` is available again.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_seconds: int
    wait_seconds: float

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_seconds),
        }


def count_request(credential: Credential, rate_class: str, limit: int) -> Allowance:
    """Count one request of this key and of its account, and return what is left."""
    names = (f"rate:{rate_class}:{credential.key_id}", "rate:account")
    keys = [value_key(credential.account_id, name) for name in names]
    args = [WINDOW_SECONDS * 1_000_000, limit, settings.ACCOUNT_RATE_LIMIT_PER_MINUTE]
    allowed, remaining, empty, wait, limit = script(GCRA)(keys=keys, args=args)
    return Allowance(
        allowed=bool(allowed),
        limit=limit,
        remaining=remaining,
        reset_seconds=-(-empty // 1_000_000),
        wait_seconds=wait / 1_000_000,
    )


class KeyThrottle(BaseThrottle):
    """Limits each key and each account.

    With Redis down every request passes, so that routes on PostgreSQL alone go on working.
    """

    retry_at = 0.0

    def __init__(self) -> None:
        self.allowance: Allowance | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        credential = get_credential(request)
        if credential is None or time.monotonic() < KeyThrottle.retry_at:
            return True
        rate_class = getattr(view, "rate_class", "default")
        limits = {"retrieval": settings.RETRIEVAL_RATE_LIMIT_PER_MINUTE}
        try:
            limit = limits.get(rate_class, settings.RATE_LIMIT_PER_MINUTE)
            self.allowance = count_request(credential, rate_class, limit)
        except REDIS_ERRORS as err:
            # one log line and one timeout per pause, not per request
            KeyThrottle.retry_at = time.monotonic() + REDIS_RETRY_SECONDS
            logger.warning("Rate limits are off for %s s: %s", REDIS_RETRY_SECONDS, type(err).__name__)
            return True
        view.allowance = self.allowance
        return self.allowance.allowed

    def wait(self) -> float | None:
        return self.allowance.wait_seconds if self.allowance else None
