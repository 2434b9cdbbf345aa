"""Redis as a tier: one client per process, one registry of key patterns.

Every key starts with its account, so that no account can name another's key, and carries its conversation or agent as
the hash tag. In a Redis Cluster all of them are in one slot, by a prefix (`redis_cluster`), since what marks an
injection also writes the journal of all accounts. Durations are seconds.
"""

import re
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast
from uuid import UUID

import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from memory_project.redis_cluster import connection_options
from memory_project.redis_urls import is_cluster, parse_cluster, parse_sentinels

KEY_PATTERNS = {
    "working_memory": "account:{account_id}:working_memory:{{{conversation_id}}}",
    "ledger": "account:{account_id}:skill:ledger:{{{conversation_id}}}",
}
"""Every key of one conversation: name to pattern. The doubled braces leave a literal hash tag."""

SESSION_PATTERN = "account:{account_id}:working:{user_id}:{channel}:{{{conversation_id}}}:{name}"
"""The documented keys of a session, behind the account: `name` is turns, thoughts, active_goal, context (the names of
its values), context:<name of a value>, or saved (a mark, while what was saved of it has not been lost)."""

AGENT_PATTERN = "account:{account_id}:agent:{{{agent_id}}}:{task_id}:{workflow_run_id}:{name}"
"""The keys of an agent's working memory, narrowed to a task and a workflow run where it is: `name` is memory (the names
of its values), memory:<name of a value>, shared:<agent> (the names of what that agent was given) or
shared:<agent>:<name of a value>; and tiers (hits and misses of its reads), which is narrowed to nothing."""

AGENT_MEMORY = "memory"
"""The name of the names of an agent's values."""

VALUE_PATTERN = "account:{account_id}:value:{name}"
"""The keys of an account's single values."""

ONCE_PATTERN = "account:{account_id}:once:{tag}:{write_id}"
"""The keys by which a script knows that this write was done already (see ONCE). The tag is that of what it writes."""

RUNNING_PATTERN = "account:{account_id}:running:{request_hash}"
"""The keys of the requests with an `Idempotency-Key` that run now; each holds a word of the one that runs."""

WRITTEN_PATTERN = "account:{account_id}:written:{key_id}"
"""The keys that hold where PostgreSQL's log was after the last write of an API key, while there are replicas."""

ONCE = """
-- the last argument: for how many seconds the last key remembers this write (0: there is no such key)
local once_seconds = tonumber(table.remove(ARGV))
local once = once_seconds > 0 and table.remove(KEYS)
-- what was noted when it was done, or false
local was_done = once and redis.call('GET', once)

local function note_done(answer)
    if once then
        redis.call('SET', once, answer, 'EX', once_seconds)
    end
end
"""
"""Beginning of a script that must not do the same write twice; its keys and arguments end with `once_arguments`."""

SHARED_KEYS = {
    "ledger_journal": "ledger:journal",
    "ledger_epoch": "ledger:epoch",
    "ledger_restored": "ledger:restored",
    "ledger_flushed": "ledger:flushed",
    "access_log": "access:log",
    "access_lost": "access:lost",
    "audit_reads": "audit:reads",
    "refused_audit_reads": "audit:reads:refused",
    "health_probe": "health:probe",
}
"""Keys that belong to no account: the stream of injections not yet in PostgreSQL, the mark that no ledger was lost,
while that mark is missing, the set of ledgers that were restored already, and the newest injection in PostgreSQL; the
stream of the access log's lines not yet in PostgreSQL, and how many found no room in it; the stream of audited reads
not yet in PostgreSQL, and of those that it refused; and what the readiness check writes."""

PAUSE_SECONDS = 2.0
"""Seconds that a Redis which did not answer in time is not asked again."""

SCAN_PAGE = 500
"""Keys looked at in one step of a SCAN: some hundred microseconds."""

_ESCAPES = str.maketrans({"%": "%25", "{": "%7B", "}": "%7D"})
# a colon separates a session's user from its channel
_SEGMENT_ESCAPES = _ESCAPES | str.maketrans({":": "%3A"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRef:
    """The part of a key that names a conversation: the account isolates tenants, the conversation is the hash tag."""

    account_id: UUID
    conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRef:
    """The part of a key that names a session, with the conversation's own user and channel, whichever agent asks."""

    account_id: UUID
    user_id: str
    channel: str
    conversation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemoryRef:
    """The part of a key that names an agent's working memory: its own, or that for a task, a workflow run, or both."""

    account_id: UUID
    agent_id: str
    task_id: str = ""
    workflow_run_id: str = ""


def agent_key(place: AgentMemoryRef, *name: str) -> str:
    """Return the key of `name` (see AGENT_PATTERN). Colons join its parts; the last one may hold any character."""
    *parts, last = name
    return AGENT_PATTERN.format(
        account_id=place.account_id,
        agent_id=place.agent_id.translate(_ESCAPES),
        task_id=place.task_id.translate(_SEGMENT_ESCAPES),
        workflow_run_id=place.workflow_run_id.translate(_SEGMENT_ESCAPES),
        name=":".join([*(part.translate(_SEGMENT_ESCAPES) for part in parts), last]),
    )


def session_key(place: SessionRef, name: str) -> str:
    """Return the key of `name` in a session (see SESSION_PATTERN)."""
    return SESSION_PATTERN.format(
        account_id=place.account_id,
        user_id=place.user_id.translate(_SEGMENT_ESCAPES),
        channel=place.channel.translate(_SEGMENT_ESCAPES),
        conversation_id=place.conversation_id.translate(_ESCAPES),
        name=name,
    )


def session_user(name: str) -> str:
    """Return the user of a session's key, given without the account before it; "" for other keys."""
    first, _, rest = name.partition(":")
    return _unescaped(rest.partition(":")[0]) if first == "working" and ":{" in rest else ""


def conversation_key(name: str, place: ConversationRef) -> str:
    """Return the key of `name` (see KEY_PATTERNS). Braces in an id are escaped, or they would change the hash tag."""
    tag = place.conversation_id.translate(_ESCAPES)
    return KEY_PATTERNS[name].format(account_id=place.account_id, conversation_id=tag)


def value_key(account_id: UUID, name: str) -> str:
    """Return the key of one of the account's single values."""
    return VALUE_PATTERN.format(account_id=account_id, name=name)


def scan_values(*, account_id: UUID, cursor: int, containing: str = "") -> tuple[list[str], int]:
    """Return a SCAN page of the names of the account's single values that contain a text; the end is cursor 0.

    Names may repeat.
    """
    pattern = value_key(account_id, f"*{escape_pattern(containing)}*")
    next_cursor, keys = client().scan(cursor=cursor, match=pattern, count=SCAN_PAGE)
    prefix = value_key(account_id, "")
    return [str(key).removeprefix(prefix) for key in keys], int(next_cursor)


def escape_pattern(text: str) -> str:
    """Return the text as a part of a SCAN pattern that stands for itself."""
    return re.sub(r"([*?\[\]^\\])", r"\\\1", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConversation:
    """A conversation with the number of its stored entries, and the seconds until they expire; None if they do not."""

    conversation_id: str
    entries: int
    ttl_seconds: int | None


def scan_conversations(name: str, *, account_id: UUID, cursor: int, containing: str = "") -> tuple[list[str], int]:
    """Return a SCAN page of the account's conversations with the key `name` whose ids contain a text.

    The end is cursor 0. Ids may repeat.
    """
    wanted = f"*{escape_pattern(containing.translate(_ESCAPES))}*"
    pattern = KEY_PATTERNS[name].format(account_id=account_id, conversation_id=wanted)
    next_cursor, keys = client().scan(cursor=cursor, match=pattern, count=SCAN_PAGE)
    return [parse_conversation_key(key) for key in map(str, keys)], int(next_cursor)


def read_stored_conversations(name: str, account_id: UUID, conversation_ids: Sequence[str]) -> list[StoredConversation]:
    """Return those of the conversations whose hash `name` still exists. One round trip."""
    places = [ConversationRef(account_id=account_id, conversation_id=each) for each in conversation_ids]
    with client().pipeline(transaction=False) as pipeline:
        for place in places:
            pipeline.hlen(conversation_key(name, place))
            pipeline.ttl(conversation_key(name, place))
        answers = pipeline.execute()
    found = zip(conversation_ids, answers[::2], answers[1::2], strict=True)
    return [
        StoredConversation(conversation_id=each, entries=entries, ttl_seconds=seconds if seconds >= 0 else None)
        for each, entries, seconds in found
        if entries
    ]


def parse_conversation_key(key: str) -> str:
    """Return the conversation's id; the inverse of `conversation_key`."""
    return _unescaped(key[key.index("{") + 1 : key.rindex("}")])


def scan_agents(*, account_id: UUID, cursor: int) -> tuple[list[AgentMemoryRef], int]:
    """Return a SCAN page of the working memories of the account's agents; the end is cursor 0. Items may repeat."""
    pattern = AGENT_PATTERN.format(
        account_id=account_id, agent_id="*", task_id="*", workflow_run_id="*", name=AGENT_MEMORY
    )
    # values may have a name that looks the same, but they are texts
    next_cursor, keys = client().scan(cursor=cursor, match=pattern, count=SCAN_PAGE, _type="zset")
    placed = [parse_agent_key(account_id, str(key)) for key in keys]
    return [place for place, name in placed if name == AGENT_MEMORY], int(next_cursor)


def parse_agent_key(account_id: UUID, key: str) -> tuple[AgentMemoryRef, str]:
    """Return whose key it is, and the name in it; the inverse of `agent_key`."""
    agent_id, _, rest = key[key.index("{") + 1 :].partition("}:")
    task_id, workflow_run_id, name = rest.split(":", 2)
    ids = {"agent_id": agent_id, "task_id": task_id, "workflow_run_id": workflow_run_id}
    return AgentMemoryRef(account_id=account_id, **{field: _unescaped(text) for field, text in ids.items()}), name


def _unescaped(text: str) -> str:
    return text.replace("%3A", ":").replace("%7B", "{").replace("%7D", "}").replace("%25", "%")


class ReplySource(Protocol):
    """Answers the commands of a call that is awaited (see `async_calls`)."""

    def reply_to(self, command: tuple[Any, ...], options: dict[str, Any]) -> Any: ...


RECORDED_REPLIES: ContextVar[ReplySource | None] = ContextVar("recorded_replies", default=None)
"""What answers the commands of the running code instead of the server; None: the server."""


@dataclass(slots=True, kw_only=True)
class RequestedWrites:
    """The writes of a request that may be sent again: the same request writes the same things in the same order."""

    request_id: str
    seconds: int
    count: int = 0


REQUESTED_WRITES: ContextVar[RequestedWrites | None] = ContextVar("requested_writes", default=None)
"""The writes of the running request, if it has an `Idempotency-Key`."""


def once_arguments(key: str) -> tuple[list[str], int]:
    """Return the last keys, at most one, and the last argument of a script that begins with ONCE and writes `key`."""
    requested = REQUESTED_WRITES.get()
    if requested is None:
        return [], 0
    requested.count += 1
    account_id, tag = key.split(":", 2)[1], key[key.index("{") : key.index("}") + 1]
    write_id = f"{requested.request_id}:{requested.count}"
    return [ONCE_PATTERN.format(account_id=account_id, tag=tag, write_id=write_id)], requested.seconds


class ImpatientRedis(redis.Redis):
    """A connection that fails immediately for a while after a time-out, then lets one command try."""

    # shared by all instances in the process: there is one server
    _asks_again_at = 0.0

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute a command. Raises TimeoutError immediately while the server is assumed to hang."""
        if (recorded := RECORDED_REPLIES.get()) is not None:
            return recorded.reply_to(args, options)
        if ImpatientRedis._asks_again_at:
            self._refuse_during_pause()
        try:
            answer = super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # redis-py has none
        except redis.TimeoutError:
            ImpatientRedis._asks_again_at = time.monotonic() + PAUSE_SECONDS
            raise
        except redis.ResponseError:
            # it answers: a new master without the scripts is to get them at once
            ImpatientRedis._asks_again_at = 0.0
            raise
        ImpatientRedis._asks_again_at = 0.0
        return answer

    def _refuse_during_pause(self) -> None:
        """Raise TimeoutError until the pause is over, then let one command try and pause again."""
        now = time.monotonic()
        if now < ImpatientRedis._asks_again_at:
            raise redis.TimeoutError("it did not answer a moment ago")
        ImpatientRedis._asks_again_at = now + PAUSE_SECONDS


@cache
def client() -> "redis.Redis":
    """Return the process's client: text in and out, short timeouts.

    One retry on a fresh connection covers a restarted server.
    """
    options: dict[str, Any] = {
        "decode_responses": True,
        "socket_timeout": settings.REDIS_TIMEOUT_SECONDS,
        "socket_connect_timeout": settings.REDIS_TIMEOUT_SECONDS,
        # not after a time-out: what did not answer in time would hold the request up once more
        "retry": Retry(ExponentialWithJitterBackoff(cap=0.2, base=0.02), 1, supported_errors=(redis.ConnectionError,)),
        "protocol": 2,
    }
    if is_cluster(settings.REDIS_URL):
        pool = redis.ConnectionPool(**options, **connection_options(parse_cluster(settings.REDIS_URL)))
        return ImpatientRedis.from_pool(pool)
    address = parse_sentinels(settings.REDIS_URL)
    if address is None:
        return ImpatientRedis.from_url(settings.REDIS_URL, **options)
    timeouts = {name: options[name] for name in ("socket_timeout", "socket_connect_timeout")}
    guards: Any = Sentinel  # redis-py has no types of it
    asked = guards(address.sentinels, sentinel_kwargs=address.sentinel_options() | timeouts)
    found: redis.Redis = asked.master_for(
        address.service, redis_class=ImpatientRedis, **options, **address.redis_options()
    )
    return found


def refuse_cluster_node() -> None:
    """Raise ImproperlyConfigured for the URL of a single Redis that is a node of a Redis Cluster.

    One that does not answer is not judged.
    """
    if is_cluster(settings.REDIS_URL):
        return
    try:
        is_node = client().info("cluster").get("cluster_enabled")
    except redis.RedisError:
        return
    if is_node:
        raise ImproperlyConfigured(
            "REDIS_URL names a node of a Redis Cluster as if it were a single Redis: name the cluster instead "
            "(redis+cluster://host1:6379,host2:6379)"
        )


@cache
def script(source: str) -> Callable[..., Any]:
    """Return a Lua script, called by its digest (EVALSHA) in one round trip: `script(source)(keys=[…], args=[…])`."""
    return client().register_script(source)


def read_stream(
    stream: str, size: int, *, after: str, account_id: UUID | None
) -> tuple[list[tuple[str, dict[str, str]]], str]:
    """Return the account's entries among the next `size`, each an id and its fields, and the cursor after them.

    The cursor is "" at the end of the stream. Without an account, return the entries of all accounts.
    """
    start = f"({after}" if after else "-"
    found = cast("list[tuple[str, dict[str, str]]]", client().xrange(stream, min=start, count=size))
    cursor = found[-1][0] if len(found) == size else ""
    return [entry for entry in found if account_id in (None, UUID(entry[1]["account"]))], cursor
