"""Counts what a call asks of Redis, as the server itself sees it (MONITOR), commands inside of scripts apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex

from redis.client import Monitor

from memory_project.redis import client

GREETINGS = ("HELLO ", "AUTH ", "SELECT ", "CLIENT SETINFO ", "CLIENT SETNAME ")
"""What a new connection begins with: it belongs to no call."""


@contextmanager
def counted_commands() -> Iterator[list[str]]:
    """The commands that clients sent inside of the block; filled in when it ends. Scripts should be loaded before."""
    commands: list[str] = []
    begin, end = token_hex(8), token_hex(8)
    with Monitor(client().connection_pool) as monitor:  # type: ignore[no-untyped-call]  # redis-py has none
        # the connections are up then, and their greetings are not counted
        client().echo(begin)
        yield commands
        client().echo(end)
        # the server reports commands on all its databases, also those of tests that run in parallel
        own = str(client().connection_pool.connection_kwargs.get("db", 0))
        seen_here = [seen for seen in until(end, monitor) if str(seen["db"]) == own]
        sent = [seen["command"] for seen in seen_here if seen["client_type"] != "lua"]
        sent = [command for command in sent if not command.startswith(GREETINGS)]
    first = next(index for index, command in enumerate(sent) if begin in command)
    commands += sent[first + 1 :]


def until(end: str, monitor: Monitor) -> Iterator[dict[str, str]]:
    """Yield what the monitor saw before the command that names `end`."""
    for seen in monitor.listen():  # type: ignore[no-untyped-call]
        if end in seen["command"]:
            return
        yield seen
