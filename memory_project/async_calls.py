"""Asynchronous twins of synchronous classes: the same calls, awaited, so that none of them blocks the event loop.

A twin declares one line per method, and types follow from the method itself:

- `in_thread(Method)`: the call runs in a thread of this module's pool, because it needs the database.
- `over_redis(Method)`: the call needs Redis alone. It runs on the event loop, and its commands are awaited by
  `redis.asyncio`; on a Redis Cluster, it runs in a thread as well.

How `over_redis` works: the synchronous method runs until it sends a command, which stops it. The command is awaited,
and the method runs again from its start with the reply at hand, until it returns. So such a method must do nothing but
prepare commands and read replies, which the methods of a tier do: each has one command. A command that changes between
two runs is an error. If the method turns out to need the database (a ledger to restore), it runs in a thread instead.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import redis.asyncio
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation
from django.db import close_old_connections
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

from memory_project.redis import RECORDED_REPLIES
from memory_project.redis_urls import is_cluster, parse_sentinels

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")

REDIS_CONNECTIONS = 32
"""Connections of one event loop to Redis; further calls wait for one of them."""

Twin = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]
"""An asynchronous method with the parameters of a synchronous one."""


class AsyncTwin(Generic[S]):
    """Base of twins: holds the synchronous object."""

    def __init__(self, synchronous: S) -> None:
        self.synchronous = synchronous


@cache
def thread_pool() -> ThreadPoolExecutor:
    """Return the threads for calls that need the database: as many as a web process has, and as it has connections.

    They are not the one thread that `sync_to_async` shares by default (`thread_sensitive`), in which calls would wait
    for each other. So a call does not take part in a transaction that its caller has begun.
    """
    return ThreadPoolExecutor(settings.WEB_THREADS, thread_name_prefix="memory-async")


async def run_in_thread(call: Callable[[], T]) -> T:
    """Run a call in a thread, with the caller's context variables, and return its connection to the pool."""
    return await sync_to_async(partial(call_and_release, call), thread_sensitive=False, executor=thread_pool())()


def call_and_release(call: Callable[[], T]) -> T:
    try:
        return call()
    finally:
        close_old_connections()


@dataclass(slots=True)
class RecordedReplies:
    """The replies to the commands of a call so far, for the next run of it."""

    replies: list[tuple[tuple[Any, ...], Any]] = field(default_factory=list)
    position: int = 0

    def reply_to(self, command: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the recorded reply, or raise it if it is an error. Raises ReplyWanted for a command without one."""
        if self.position == len(self.replies):
            raise ReplyWanted(command, options)
        recorded, reply = self.replies[self.position]
        if recorded != command:
            raise RuntimeError("a call sent another command when it ran again: it cannot be awaited")
        self.position += 1
        if isinstance(reply, redis.RedisError):
            raise reply
        return reply


class ReplyWanted(BaseException):
    """Stops a call at a command whose reply must be awaited. It is no error, and may not be caught as one."""

    def __init__(self, command: tuple[Any, ...], options: dict[str, Any]) -> None:
        super().__init__()
        self.command = command
        self.options = options


async def run_over_redis(call: Callable[[], T]) -> T:
    """Run a call whose only input and output are commands to Redis, and await their replies.

    On a Redis Cluster it runs in a thread: connections that follow the slot are synchronous.
    """
    if is_cluster(settings.REDIS_URL):
        return await run_in_thread(call)
    recorded = RecordedReplies()
    while True:
        recorded.position = 0
        token = RECORDED_REPLIES.set(recorded)
        try:
            return call()
        except SynchronousOnlyOperation:
            needs_database = True
        except ReplyWanted as stopped:
            needs_database, wanted = False, stopped
        finally:
            RECORDED_REPLIES.reset(token)
        if needs_database:
            return await run_in_thread(call)
        recorded.replies.append((wanted.command, await reply_from_redis(wanted)))


async def reply_from_redis(wanted: ReplyWanted) -> Any:
    """Return the reply of Redis, or the error that the call is to see."""
    try:
        # redis-py types no commands
        return await async_client().execute_command(*wanted.command, **wanted.options)  # type: ignore[no-untyped-call]
    except redis.RedisError as err:
        return err


CLIENTS: WeakKeyDictionary[asyncio.AbstractEventLoop, "redis.asyncio.Redis"] = WeakKeyDictionary()
"""The clients of running event loops: a connection belongs to the loop that opened it."""


def async_client() -> "redis.asyncio.Redis":
    """Return the event loop's client of Redis."""
    loop = asyncio.get_running_loop()
    if loop not in CLIENTS:
        CLIENTS[loop] = make_async_client()
    return CLIENTS[loop]


class LimitedSentinelPool(SentinelConnectionPool, redis.asyncio.BlockingConnectionPool):
    """Connections to the master behind Sentinels, in whose number calls wait as for those of one Redis."""


def make_async_client() -> "redis.asyncio.Redis":
    timeouts = {
        "socket_timeout": settings.REDIS_TIMEOUT_SECONDS,
        "socket_connect_timeout": settings.REDIS_TIMEOUT_SECONDS,
    }
    options: dict[str, Any] = {"decode_responses": True, "protocol": 2, **timeouts}
    address = parse_sentinels(settings.REDIS_URL)
    if address is None:
        pool = redis.asyncio.BlockingConnectionPool.from_url(
            settings.REDIS_URL, max_connections=REDIS_CONNECTIONS, timeout=settings.REDIS_TIMEOUT_SECONDS, **options
        )
        return redis.asyncio.Redis(connection_pool=pool)
    guards: Any = Sentinel  # redis-py has no types of it
    asked = guards(address.sentinels, sentinel_kwargs=address.sentinel_options() | timeouts)
    found: redis.asyncio.Redis = asked.master_for(
        address.service,
        connection_pool_class=LimitedSentinelPool,
        max_connections=REDIS_CONNECTIONS,
        timeout=settings.REDIS_TIMEOUT_SECONDS,
        **options,
        **address.redis_options(),
    )
    return found


async def close_async_client() -> None:
    """Close the event loop's connections to Redis. Call it before the loop ends; a later call opens new ones."""
    client = CLIENTS.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()
        await client.connection_pool.disconnect()
        asked = getattr(client.connection_pool, "sentinel_manager", None)
        for sentinel in asked.sentinels if asked is not None else ():
            await sentinel.aclose()


def in_thread(method: Callable[Concatenate[Any, P], T]) -> Twin[P, T]:
    """Return the twin of a method that needs the database."""

    @wraps(method)
    async def call(twin: AsyncTwin[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await run_in_thread(partial(method, twin.synchronous, *args, **kwargs))

    return call


def over_redis(method: Callable[Concatenate[Any, P], T]) -> Twin[P, T]:
    """Return the twin of a method that needs Redis alone."""

    @wraps(method)
    async def call(twin: AsyncTwin[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await run_over_redis(partial(method, twin.synchronous, *args, **kwargs))

    return call
