"""Requests that a replica may answer, and which of its own writes a key may expect to read there.

After a request that writes, the position of PostgreSQL's log is kept in Redis for the API key. A replica answers the
key's next reads only after it has replayed this position; else, and if anything goes wrong there, the primary does. A
position expires when every replica that is not left out for its lag must have it.

Only the view's own work goes to the replica. Keys are checked at the primary, so that a revoked one ends immediately.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, Error, connection, connections
from psycopg.errors import QueryCanceled, ReadOnlySqlTransaction
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from memory_project.http.credentials import Credential, get_credential, required_scope
from memory_project.measures import REPLICA_READS
from memory_project.postgresql.replicas import FIND_WRITTEN, Replica, parse_position, reading_from, replicas
from memory_project.redis import WRITTEN_PATTERN, client

logger = logging.getLogger(__name__)

MARGIN_SECONDS = 10
"""Seconds for which a position is kept beyond the largest lag: between checks, and between clocks."""

Handler = Callable[..., Any]


class _Unknown:
    """The time until which this process uses no replica, because the position of a write could not be kept."""

    until = 0.0


def route_reads(view: Any, request: Request) -> None:
    """Have the view's handler read from a replica where it may, and keep the position after one that writes."""
    credential, name = get_credential(request), f"{request.method}".lower()
    if credential is None:
        return
    handler = getattr(view, name)
    if view.may_read_from_replica(request):
        setattr(view, name, partial(answer_from_replica, handler, credential))
    elif request.method not in SAFE_METHODS and required_scope(view, name) != "read":
        setattr(view, name, partial(write_and_keep_position, handler, credential))


def answer_from_replica(handler: Handler, credential: Credential, *args: Any, **kwargs: Any) -> Any:
    """Call a handler that only reads: at a replica that has the key's writes, else at the primary."""
    replica = choose_replica(credential)
    if replica is not None:
        try:
            with reading_from(replica.alias):
                answer = handler(*args, **kwargs)
        except Error as err:
            # a statement that took too long would do so again
            if isinstance(err.__cause__, QueryCanceled):
                raise
            leave_out(replica, err)
        else:
            REPLICA_READS.labels(replica.alias).inc()
            return answer
    REPLICA_READS.labels("primary").inc()
    return handler(*args, **kwargs)


def leave_out(replica: Replica, error: Error) -> None:
    """Leave out a replica that failed, but not for a statement that writes, which any replica refuses."""
    if isinstance(error.__cause__, ReadOnlySqlTransaction):
        logger.warning("a request that was to read from %s writes; the primary answers it", replica.alias)
        return
    replica.leave_out(error)
    # broken: the next request gets a new one
    connections[replica.alias].close()


def choose_replica(credential: Credential) -> Replica | None:
    """Return a usable replica that has what the key wrote, the same one each time if possible; None for the primary."""
    known = replicas()
    first = credential.key_id.int % len(known)
    usable = [replica for replica in (*known[first:], *known[:first]) if replica.is_usable()]
    if not usable or time.monotonic() < _Unknown.until:
        return None
    try:
        kept = client().get(written_key(credential))
    except redis.RedisError:
        return None
    position = parse_position(str(kept)) if kept else 0
    return next((replica for replica in usable if has_replayed(replica, position)), None)


def has_replayed(replica: Replica, position: int) -> bool:
    try:
        return replica.has_replayed(position)
    except Error as err:
        leave_out(replica, err)
        return False


def write_and_keep_position(handler: Handler, credential: Credential, *args: Any, **kwargs: Any) -> Any:
    """Call a handler that writes, and keep the position of the log after it, also after a failure."""
    try:
        return handler(*args, **kwargs)
    finally:
        keep_position(credential)


def keep_position(credential: Credential) -> None:
    """Keep where the log is. If that fails, this process reads nothing from replicas until they must have the write."""
    seconds = round(settings.REPLICA_MAX_LAG_SECONDS) + MARGIN_SECONDS
    try:
        with connection.cursor() as cursor:
            cursor.execute(FIND_WRITTEN)
            [position] = cursor.fetchone()
        client().set(written_key(credential), position, ex=seconds)
    except (DatabaseError, redis.RedisError) as err:
        logger.warning("the position of a write was not kept: %s", type(err).__name__)
        _Unknown.until = time.monotonic() + seconds


def written_key(credential: Credential) -> str:
    return WRITTEN_PATTERN.format(account_id=credential.account_id, key_id=credential.key_id)
