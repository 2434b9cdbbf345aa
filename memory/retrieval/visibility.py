"""Tenant isolation for searches over all kinds together, as conditions on memories and on their vectors.

Readable contexts and attended conversations are listed once per statement (`visibility_ctes`), not checked row by row,
so the planner can start from an index on the owner, whatever the size of the account.

Reasoning of a deeper tier than the account allows now is invisible too, whenever it was stored
(`reasoning_is_allowed`).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet

from memory.kinds import Audience, Kind, all_kinds, kinds_seen_by, kinds_where
from memory.models import Memory, Participant, PersistentContext, Vector
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval.statements import STAND_INS, OwnerShape, Sql, memory_sql, where_sql

TIERS = f"ARRAY[{', '.join(repr(tier) for tier in ['', *map(str, ReasoningTier)])}]"
ALLOWED_TIERS = f"""allowed AS MATERIALIZED (
    SELECT ({TIERS})[:array_position({TIERS}, reasoning_tier::text)] AS tiers
    FROM accounts WHERE id = %(account_id)s),"""
"""The tiers of reasoning that the account allows now, and the empty tier of everything else."""

IN_READABLE_CONTEXT = "context_id = ANY((SELECT ids FROM readable)::uuid[])"
"""The condition that a row is in one of the contexts of `readable_contexts_cte`."""


def reasoning_kinds() -> frozenset[Kind]:
    """Return the kinds that may contain reasoning."""
    return kinds_where(lambda spec: spec.has_reasoning_tier)


def reasoning_is_allowed(*, table: str) -> str:
    """Return the condition that a row of `table` holds no reasoning, or none deeper than the account allows now.

    `table` is `memories` or `memory_vectors`. Statements that use it begin with ALLOWED_TIERS.
    """
    kinds = ", ".join(repr(kind.value) for kind in sorted(reasoning_kinds()))
    tier = memory_sql("{own}.tier", table=table)
    return f"CASE WHEN {table}.kind IN ({kinds}) THEN {tier} = ANY((SELECT tiers FROM allowed)::text[]) ELSE true END"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibilityFilter:
    """Conditions on memories (`rows`) and on their vectors. `ctes` begin the statement's WITH, each with a comma."""

    ctes: str
    rows: str
    vectors: str
    parameters: dict[str, Any]


@lru_cache(maxsize=256)
def visibility_filter(shape: OwnerShape, kinds: tuple[str, ...], *, mark: str = "") -> VisibilityFilter:
    """Return the filter for owners of this shape and these kinds, or all kinds if none are given.

    A statement may contain several filters if each has its own `mark`; the `ctes` of all kinds serve every other one.
    """
    owner = shape.owner
    wanted = frozenset(map(Kind, kinds)) or frozenset(all_kinds())
    parameters: dict[str, Any] = {}
    rows = visible_rows_sql(Memory.objects.all(), owner, wanted, f"{mark}m", parameters)
    vectors = visible_rows_sql(Vector.objects.all(), owner, wanted, f"{mark}v", parameters)
    if reasoning_kinds() & wanted:
        rows += f" AND {reasoning_is_allowed(table='memories')}"
        vectors += f" AND {reasoning_is_allowed(table='memory_vectors')}"
    return VisibilityFilter(
        ctes=visibility_ctes(owner, wanted, parameters), rows=rows, vectors=vectors, parameters=parameters
    )


def visibility_ctes(owner: Owner, wanted: Collection[Kind], parameters: dict[str, Any]) -> str:
    """Return the CTEs of readable contexts, of conversations that the agent takes part in, and of allowed tiers."""
    ctes = [ALLOWED_TIERS] if reasoning_kinds() & frozenset(wanted) else []
    readable = readable_contexts_cte(PersistentContext.objects.visible_to(owner).active(), wanted)
    parameters |= readable.parameters
    ctes.append(readable.text)
    if owner.agent_id and kinds_seen_by(Audience.PARTICIPANTS) & frozenset(wanted):
        where = where_sql(Participant.objects.of_agent(owner), prefix="p")
        parameters |= where.parameters
        ctes.append(
            "attended AS MATERIALIZED (SELECT array_agg(conversation_id) AS ids FROM conversation_participants "
            f"WHERE {where.text}),"
        )
    return " ".join(filter(None, ctes))


def has_contexts(kinds: Collection[Kind]) -> bool:
    """Return True if memories of one of these kinds live in persistent contexts."""
    return not kinds_seen_by(Audience.CONTEXT_READERS).isdisjoint(kinds)


def readable_contexts_cte(
    contexts: "QuerySet[PersistentContext]", kinds: Collection[Kind], *, columns: str = "", condition: str = ""
) -> Sql:
    """Return a CTE of the ids of these contexts, with further columns and under a further condition.

    Empty if memories of these kinds live in no contexts.
    """
    if not has_contexts(kinds):
        return Sql(text="", parameters={})
    where = where_sql(contexts, prefix="c")
    source = f"FROM persistent_contexts WHERE {where.text}{condition}"
    text = f"readable AS MATERIALIZED (SELECT array_agg(id) AS ids{columns} {source}),"
    return Sql(text=text, parameters=where.parameters)


def visible_rows_sql(
    rows: "QuerySet[Any]", owner: Owner, wanted: Collection[Kind], prefix: str, parameters: dict[str, Any]
) -> str:
    """Return the condition for one table. With a user it matches rows of that user and of no user."""
    of_owner: Any = rows.filter(account_id=owner.account_id)
    of_owner = of_owner.in_channels(owner)
    of_owner = of_owner.recallable(STAND_INS["now"]) if rows.model is Memory else of_owner.live(STAND_INS["now"])
    if owner.user_id:
        of_owner = of_owner.filter(user_id__in=("", owner.user_id))
    shared = where_sql(of_owner, prefix=f"{prefix}o")
    parameters |= shared.parameters
    in_contexts, in_conversations = kinds_seen_by(Audience.CONTEXT_READERS), kinds_seen_by(Audience.PARTICIPANTS)
    groups = [
        visible_kinds_sql(rows, owner, frozenset(wanted) - in_contexts - in_conversations, f"{prefix}k", ""),
        visible_kinds_sql(
            rows,
            replace(owner, agent_id=""),
            frozenset(wanted) & in_conversations,
            f"{prefix}l",
            " AND conversation_id = ANY((SELECT ids FROM attended)::text[])" if owner.agent_id else "",
        ),
        visible_kinds_sql(
            rows,
            replace(owner, agent_id=""),
            frozenset(wanted) & in_contexts,
            f"{prefix}c",
            f" AND {IN_READABLE_CONTEXT}",
        ),
    ]
    for group in groups:
        parameters |= group.parameters
    seen = " OR ".join(f"({group.text})" for group in groups if group.text)
    return f"{shared.text} AND ({seen})"


def visible_kinds_sql(rows: "QuerySet[Any]", owner: Owner, kinds: Collection[Kind], prefix: str, further: str) -> Sql:
    if not kinds:
        return Sql(text="", parameters={})
    visible: Any = rows
    where = where_sql(visible.visible_to(owner, *sorted(kinds)), prefix=prefix)
    return Sql(text=f"{where.text}{further}", parameters=where.parameters)
