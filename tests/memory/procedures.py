"""Tools and strategies for tests: recorded and learned through the services, with vectors known beforehand."""

from datetime import datetime
from typing import Any

from django.db import connection

from memory.models import Strategy, ToolInvocation
from memory.owner import Owner
from memory.services.memories.store import ClientVector
from memory.services.strategies.learn import StrategyDraft, learn_strategy
from memory.services.tools import InvocationDraft, record_invocation
from tests.memory.episodes import MODEL, NOTHING, NOW, direction


def use(tool_name: str = "search", **fields: Any) -> InvocationDraft:
    """`fields` are those of the draft."""
    return InvocationDraft(**{"conversation_id": "c1", "tool_name": tool_name} | fields)


def invoke(owner: Owner, tool_name: str = "search", *, now: datetime = NOW, **fields: Any) -> ToolInvocation:
    return record_invocation(owner, use(tool_name, **fields), now=now)


def learn(owner: Owner, description: str = "Search, then read.", **fields: Any) -> Strategy:
    """Learnt without the embedder. `fields` are those of the draft; with an `angle`, its vector is known."""
    angle, now = fields.pop("angle", None), fields.pop("now", NOW)
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    return learn_strategy(owner, StrategyDraft(description=description, own=own, **fields), embedded=NOTHING, now=now)


def everything_stored() -> str:
    """Every row of every table, as text; bytes stand in it in hexadecimal."""
    with connection.cursor() as cursor:
        rows = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT stored::text FROM "{table}" AS stored')
            rows += [row for (row,) in cursor.fetchall()]
    return "\n".join(rows)


def sealed_bytes(column: str = "tool_input") -> list[bytes]:
    """Return the stored bytes of a column of the invocations where it is not null, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT "{column}" FROM tool_invocations WHERE "{column}" IS NOT NULL ORDER BY id')
        return [bytes(value) for (value,) in cursor.fetchall()]
