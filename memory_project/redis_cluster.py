"""A Redis Cluster in which all keys of the installation are in one slot, so that one master has all of them.

    redis+cluster://user:password@host1:6379,host2:6379/name

Keys get the prefix `{name}:` on their way to the server: the braces put all of them into one slot, in which scripts,
transactions and the one journal work as on a single Redis. All else in the code knows keys without it. The cluster
moves the slot as a whole, to a replica whose master died or to another master, and connections follow.

A connection asks the nodes that it knows for a key in the slot. The one that answers is the master, and the others name
it (MOVED). A slot that is being moved key by key is not served until all of it has arrived.
"""
# mypy: disallow-untyped-calls=False
# redis-py has no types of connections

import time
from collections.abc import Callable, Sequence
from typing import Any

import redis
from django_redis.pool import ConnectionFactory
from redis.backoff import NoBackoff
from redis.exceptions import AskError, ClusterDownError, MasterDownError, MovedError, TryAgainError
from redis.retry import Retry

from memory_project.redis_urls import ClusterAddress, parse_cluster

Node = tuple[str, int]

MAX_SEARCH_SECONDS = 10.0
"""Seconds that a connection without a timeout looks for the master."""

KEYLESS = frozenset(
    (
        *("AUTH", "CLIENT", "CLUSTER", "CONFIG", "DBSIZE", "DISCARD", "EXEC", "FLUSHDB", "HELLO", "INFO", "MULTI"),
        *("PING", "QUIT", "SCRIPT", "TIME", "UNWATCH"),
    )
)
SCRIPTS = frozenset(("EVAL", "EVALSHA"))
"""Commands whose keys follow their number, which is the second argument."""
MULTIPLE_KEYS = frozenset(("DEL", "EXISTS", "MGET", "UNLINK", "WATCH"))
ONE_KEY = frozenset(
    (
        *("APPEND", "DECR", "DECRBY", "EXPIRE", "EXPIREAT", "GET", "GETDEL", "GETRANGE", "INCR", "INCRBY"),
        *("MEMORY USAGE", "PERSIST", "PEXPIRE", "PEXPIREAT", "PEXPIRETIME", "PSETEX", "PTTL", "SET", "SETEX", "SETNX"),
        *("STRLEN", "TTL", "TYPE"),
        *("HDEL", "HEXISTS", "HGET", "HGETALL", "HINCRBY", "HKEYS", "HLEN", "HMGET", "HSET", "HSETNX", "HVALS"),
        *("LINDEX", "LLEN", "LPOP", "LPUSH", "LRANGE", "LREM", "LTRIM", "RPOP", "RPUSH"),
        *("SADD", "SCARD", "SISMEMBER", "SMEMBERS", "SREM", "ZADD", "ZCARD", "ZRANGE", "ZREM", "ZSCORE"),
        *("XADD", "XDEL", "XLEN", "XRANGE", "XREVRANGE", "XTRIM"),
    )
)
"""Commands by where their keys are. One that is in none of the sets is not sent: its keys would lack the prefix."""

# a SCAN names no key, and is answered with nothing by a node that has lost the slot; a script with a key is not
SCAN = """
local page = redis.call('SCAN', unpack(ARGV))
for i, key in ipairs(page[2]) do
    page[2][i] = string.sub(key, #KEYS[1] + 1)
end
return page
"""

REASONS: dict[type[redis.RedisError], str] = {
    MovedError: "the slot of its keys has moved to another node",
    AskError: "the slot of its keys is being moved to another node",
    TryAgainError: "the slot of its keys is being moved to another node",
    ClusterDownError: "no master serves the slot of its keys (CLUSTERDOWN)",
    MasterDownError: "no master serves the slot of its keys (MASTERDOWN)",
}
"""What a node says instead of serving the slot."""


class ClusterUnavailable(redis.ConnectionError):
    """The cluster does not serve the slot now. The text is what is wrong."""


class Slot:
    """The slot of an installation's keys: their prefix, and the known nodes of the cluster, the likeliest master first.

    Threads share it. None of them can spoil it, since a list of nodes is replaced as a whole.
    """

    def __init__(self, address: ClusterAddress) -> None:
        self.prefix = f"{{{address.name}}}:"
        self._given = address.nodes
        self._nodes: tuple[Node, ...] = address.nodes

    def connect(self, try_node: Callable[[Node], None], *, seconds: float) -> None:
        """Call `try_node`, which raises what a node says, until one is the master. Raises RedisError.

        After `seconds`, no further node is tried; the next call begins with the one that was named last, or another.
        """
        ends_at, tried = time.monotonic() + seconds, set[Node]()
        waiting = [*self._nodes]
        failure: redis.RedisError = unavailable("no node leads to the master of its keys")
        while waiting and time.monotonic() < ends_at:
            node = waiting.pop(0)
            if node in tried:
                continue
            tried.add(node)
            try:
                try_node(node)
            except MovedError as moved:
                # a node that knows no host names itself
                named = (moved.host or node[0], moved.port)
                waiting.insert(0, named)
                # the next call begins with it, if no time is left in this one
                self._nodes = (named, *self._others(named))
            except (redis.ConnectionError, redis.TimeoutError, ClusterDownError) as err:
                failure = err
                self._nodes = (*self._others(node), *((node,) if node in self._given else ()))
            else:
                self._nodes = (node, *self._others(node))
                return
        raise failure

    def _others(self, node: Node) -> Sequence[Node]:
        return [other for other in self._nodes if other != node]


class SlotConnection(redis.Connection):
    """A connection to the master of the slot, which puts the prefix before keys."""

    def __init__(self, *, slot: Slot, **options: Any) -> None:
        self._slot = slot
        super().__init__(**options)

    def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> None:
        """Connect to the master of the slot. Raises ClusterUnavailable, ConnectionError or TimeoutError."""
        if self.is_connected:
            return
        try:
            self._slot.connect(self._connect_to, seconds=self.socket_connect_timeout or MAX_SEARCH_SECONDS)
        except tuple(REASONS) as err:
            raise unavailable(REASONS[type(err)]) from err

    def _connect_to(self, node: Node) -> None:
        """Connect to a node. Raises MovedError if it is not the master."""
        self.host, self.port = node
        try:
            super().connect_check_health(check_health=False, retry_socket_connect=False)
            self.send_command("EXISTS", "")
            super().read_response()
        except AskError as err:
            # as long as the slot is on its way, its master is this node
            if isinstance(err, MovedError):
                self.disconnect()
                raise
        except redis.RedisError:
            self.disconnect()
            raise

    def read_response(self, *args: Any, **options: Any) -> Any:
        """Read a response. Raises ClusterUnavailable, after which the next command looks for the master again."""
        try:
            return super().read_response(*args, **options)
        except tuple(REASONS) as err:
            # responses of a pipeline may follow
            self.disconnect()
            raise unavailable(REASONS[type(err)]) from err

    def send_command(self, *args: Any, **options: Any) -> None:
        super().send_command(*self._with_prefix(*args), **options)

    def pack_commands(self, commands: Any) -> Any:
        return super().pack_commands([self._with_prefix(*command) for command in commands])

    def pack_command(self, *args: Any) -> Any:
        return super().pack_command(*self._with_prefix(*args))

    def _with_prefix(self, *args: Any) -> tuple[Any, ...]:
        return with_prefix(self._slot.prefix, args)


class TlsSlotConnection(SlotConnection, redis.SSLConnection):
    """The same, over TLS."""


def unavailable(reason: str) -> ClusterUnavailable:
    return ClusterUnavailable(f"The Redis Cluster cannot serve this installation: {reason}")


def with_prefix(prefix: str, command: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the command with the prefix before its keys. Raises DataError for one whose keys are not known."""
    name, *args = command
    if name in ONE_KEY:
        return name, prefixed(prefix, args[0]), *args[1:]
    if name in SCRIPTS:
        keys_end = 2 + int(args[1])
        return name, *args[:2], *(prefixed(prefix, key) for key in args[2:keys_end]), *args[keys_end:]
    if name in MULTIPLE_KEYS:
        return name, *(prefixed(prefix, key) for key in args)
    if name == "SCAN":
        # redis-py writes it in bytes
        start = args.index(b"MATCH") if b"MATCH" in args else len(args)
        _, pattern, *rest = args[start:] or (b"MATCH", "*")
        return "EVAL", SCAN, 1, prefix, *args[:start], "MATCH", prefixed(prefix, pattern), *rest
    if name.partition(" ")[0] in KEYLESS:
        return command
    raise redis.DataError(f"{name} is not among the commands that memory_project.redis_cluster knows the keys of")


def prefixed(prefix: str, key: str | bytes) -> str | bytes:
    return prefix.encode() + key if isinstance(key, bytes) else prefix + str(key)


class CacheConnections(ConnectionFactory):  # type: ignore[misc]  # django-redis has no types
    """Connections of Django's cache to the cluster that its location names."""

    def get_connection_pool(self, params: dict[str, Any]) -> redis.ConnectionPool:
        options = {name: value for name, value in params.items() if name != "url"}
        # on a fresh connection, after the slot has moved
        retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
        return redis.ConnectionPool(
            **connection_options(parse_cluster(params["url"])), **options, retry=retry, protocol=2
        )


def connection_options(address: ClusterAddress) -> dict[str, Any]:
    """Return what a pool of connections to the cluster takes besides timeouts."""
    chosen = TlsSlotConnection if address.is_encrypted else SlotConnection
    return {"connection_class": chosen, "slot": Slot(address), **address.options}
