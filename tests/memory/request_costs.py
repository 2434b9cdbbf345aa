"""Costs of a request that do not depend on the machine: statements, round trips, bytes answered, calls of own code."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from django.db import connection

from memory_project.embedded.paths import PROJECT
from memory_project.postgresql.hangs import WatchedConnection
from tests.round_trips import counted_commands

OWN_CODE = tuple(str(PROJECT / package) + "/" for package in ("memory", "memory_project", "ledger"))
WAIT = WatchedConnection.wait.__code__
"""The function that every exchange with PostgreSQL passes through once."""

RECORDED = Path(__file__).with_name("request_costs.json")
MAX_GROWTH = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCosts:
    """Counts of one request, its work after the answer included.

    `statements` are those to PostgreSQL without those that begin and end transactions, `exchanges` the times that the
    driver waited for PostgreSQL, `commands` those to Redis, `bytes` the length of the answer, `calls` those of the
    service's own functions.
    """

    statements: int
    exchanges: int
    commands: int
    bytes: int
    calls: int

    def grown(self, former: "RequestCosts") -> list[str]:
        """Return what grew beyond the limit, each as a sentence."""
        before, now = asdict(former), asdict(self)
        return [
            f"{name} grew from {before[name]} to {now[name]}" for name in now if now[name] > MAX_GROWTH * before[name]
        ]


def count_costs(request: Callable[[], Any]) -> RequestCosts:
    """Send the request twice and count what it costs: its calls once, and the rest once."""
    statements: list[str] = []

    def note(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        statements.append(str(sql))
        return execute(sql, params, many, context)

    with counted_commands() as commands, connection.execute_wrapper(note):
        answer = request()
    calls, exchanges = count_calls(request)
    return RequestCosts(
        statements=len(statements),
        exchanges=exchanges,
        commands=len(commands),
        bytes=len(answer.content),
        calls=calls,
    )


def count_calls(action: Callable[[], Any]) -> tuple[int, int]:
    """Return how many calls of the service's own functions an action makes, and of those that wait for PostgreSQL.

    Comprehensions do not count: they are functions in some versions of Python only.
    """
    own = exchanges = 0
    is_own: dict[Any, bool] = {}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal own, exchanges
        if event != "call":
            return
        code = frame.f_code
        counts = is_own.get(code)
        if counts is None:
            counts = is_own[code] = code.co_filename.startswith(OWN_CODE) and not code.co_name.endswith(
                ("comp>", "expr>")
            )
        own += counts
        exchanges += code is WAIT

    former = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(former)
    return own, exchanges
