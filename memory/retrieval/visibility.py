"""The wall for searches over all kinds at once, as conditions on memories and on their vectors.

What lives in contexts or conversations is let through by two lists worked out once a statement (`READABLE`), not row by
row: so the planner can start from an index on the owner, whatever the size of the account.

A reasoning that tells more than the account allows now is behind the wall as well, whenever it was stored: `TOLD`.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet

from memory.models import Kind, Memory, Participant, PersistentContext, Vector
from memory.models.memory import OF_CONTEXTS, OF_CONVERSATIONS
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval.statements import STAND_IN, OwnerShape, Sql, where_of

REASONING = frozenset({Kind.TURN_SLOT, Kind.WORK_EPISODE})
"""Kinds that may tell of reasoning."""

TIERS = f"ARRAY[{', '.join(repr(tier) for tier in ['', *map(str, ReasoningTier)])}]"
ALLOWED = f"""allowed AS MATERIALIZED (
    SELECT ({TIERS})[:array_position({TIERS}, reasoning_tier::text)] AS tiers
    FROM accounts WHERE id = %(account_id)s),"""
"""The tiers that the account allows now, and the empty one, of what is no reasoning."""

# no EXISTS: of that the planner might make a list of all slots of all accounts
TOLD = f"""({{table}}.kind NOT IN ({", ".join(repr(kind.value) for kind in sorted(REASONING))}) OR coalesce(
    (SELECT own.tier FROM turn_slots AS own WHERE own.memory_ptr_id = {{memory_id}}),
    (SELECT own.tier FROM work_episodes AS own WHERE own.memory_ptr_id = {{memory_id}}), ''
) = ANY((SELECT tiers FROM allowed)::text[]))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """`ctes` begin the statement's WITH, each ending in a comma; `rows` and `vectors` are conditions over them."""

    ctes: str
    rows: str
    vectors: str
    parameters: dict[str, Any]


@lru_cache(maxsize=256)
def walls_of(shape: OwnerShape, kinds: tuple[str, ...], *, mark: str = "") -> Walls:
    """For owners of this shape, memories of these kinds, or of all. With another `mark` the same statement may have
    more than one; the `ctes` of all kinds do for others, too."""
    owner = shape.owner
    wanted = frozenset(map(Kind, kinds)) or frozenset(Kind)
    parameters: dict[str, Any] = {}
    rows = conditions(Memory.objects.all(), owner, wanted, f"{mark}m", parameters)
    vectors = conditions(Vector.objects.all(), owner, wanted, f"{mark}v", parameters)
    if REASONING & wanted:
        rows += f" AND {TOLD.format(table='memories', memory_id='memories.id')}"
        vectors += f" AND {TOLD.format(table='memory_vectors', memory_id='memory_vectors.memory_id')}"
    return Walls(ctes=listed(owner, wanted, parameters), rows=rows, vectors=vectors, parameters=parameters)


def listed(owner: Owner, wanted: Collection[Kind], parameters: dict[str, Any]) -> str:
    """The lists of contexts that may be read, of conversations that the agent takes part in, and of tiers allowed."""
    ctes = [ALLOWED] if REASONING & frozenset(wanted) else []
    if OF_CONTEXTS & frozenset(wanted):
        where = where_of(PersistentContext.objects.visible_to(owner).active(), prefix="c")
        parameters |= where.parameters
        ctes.append(
            f"readable AS MATERIALIZED (SELECT array_agg(id) AS ids FROM persistent_contexts WHERE {where.text}),"
        )
    if owner.agent_id and OF_CONVERSATIONS & frozenset(wanted):
        where = where_of(Participant.objects.of_agent(owner), prefix="p")
        parameters |= where.parameters
        ctes.append(
            "attended AS MATERIALIZED (SELECT array_agg(conversation_id) AS ids FROM conversation_participants "
            f"WHERE {where.text}),"
        )
    return " ".join(ctes)


def conditions(
    rows: "QuerySet[Any]", owner: Owner, wanted: Collection[Kind], prefix: str, parameters: dict[str, Any]
) -> str:
    """Those of one table. With a user, what is that user's or nobody's in particular."""
    of_owner: Any = rows.filter(account_id=owner.account_id)
    of_owner = of_owner.in_channels(owner)
    of_owner = of_owner.recallable(STAND_IN["now"]) if rows.model is Memory else of_owner.live(STAND_IN["now"])
    if owner.user_id:
        of_owner = of_owner.filter(user_id__in=("", owner.user_id))
    shared = where_of(of_owner, prefix=f"{prefix}o")
    parameters |= shared.parameters
    groups = [
        group_of(rows, owner, frozenset(wanted) - OF_CONTEXTS - OF_CONVERSATIONS, f"{prefix}k", ""),
        group_of(
            rows,
            replace(owner, agent_id=""),
            frozenset(wanted) & OF_CONVERSATIONS,
            f"{prefix}l",
            " AND conversation_id = ANY((SELECT ids FROM attended)::text[])" if owner.agent_id else "",
        ),
        group_of(
            rows,
            replace(owner, agent_id=""),
            frozenset(wanted) & OF_CONTEXTS,
            f"{prefix}c",
            " AND context_id = ANY((SELECT ids FROM readable)::uuid[])",
        ),
    ]
    for group in groups:
        parameters |= group.parameters
    seen = " OR ".join(f"({group.text})" for group in groups if group.text)
    return f"{shared.text} AND ({seen})"


def group_of(rows: "QuerySet[Any]", owner: Owner, kinds: Collection[Kind], prefix: str, further: str) -> Sql:
    if not kinds:
        return Sql(text="", parameters={})
    visible: Any = rows
    where = where_of(visible.visible_to(owner, *sorted(kinds)), prefix=prefix)
    return Sql(text=f"{where.text}{further}", parameters=where.parameters)
