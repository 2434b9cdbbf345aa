"""The page of an account that shows who may do what: grants of pools and contexts as a matrix, and its API keys."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, IntegerField, Q, QuerySet, When
from django.http import HttpRequest, HttpResponse

from memory.admin.base import BoundedAdmin
from memory.admin.columns import change_url, list_url
from memory.admin.text import excerpt_of, mark_invisible
from memory.models import Account, Agent, ApiKey, MemoryPool, PersistentContext, TeamMember
from memory.models.access import Level, SharedRow

MAX_SHARED_ROWS = 100
"""The pools that the matrix shows at most; as many contexts come on top."""
MAX_AGENTS = 30
MAX_KEYS = 100
ANY_OTHER = "\x00"
"""Stands for an agent that no row names and that is in no team. No agent has this name: PostgreSQL refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRow:
    """A pool or a context: its owner, whom its scope opens it to, and what each agent and any other one may do."""

    kind: str
    name: str
    url: str
    owner: str
    scope: str
    cells: Sequence[str]
    others: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessMatrix:
    """The rows and the agents that are their columns. `is_cut` if there is more than is shown."""

    agents: Sequence[str]
    rows: Sequence[AccessRow]
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """An API key, ready for the page."""

    id: UUID
    prefix: str
    name: str
    binding: str
    scopes: str
    state: str
    is_valid: bool
    url: str
    last_used_at: datetime | None


def named_agents(row: SharedRow) -> set[str]:
    """Return the agents that the row names: its owner, those with a grant, and those of its workflow run."""
    run = row.workflow_run if isinstance(row, MemoryPool) else None
    in_run = (run.agent_id, *run.agents) if run else ()
    return {row.agent_id, *row.grants.read, *row.grants.write, *in_run} - {""}


def read_matrix(account: Account, user: Any) -> AccessMatrix:
    """Return the matrix of what the user may look at. Five queries."""
    shared, is_cut = read_shared(account, user)
    team_ids = {row.team_id for *_, row in shared if row.team_id}
    members = TeamMember.objects.filter(account_id=account.pk, team_id__in=team_ids)
    in_teams = members.order_by("agent_id").values_list("agent_id", flat=True).distinct()[: MAX_AGENTS + 1]
    named = {agent for *_, row in shared for agent in named_agents(row)} | set(in_teams)
    registered = Agent.objects.filter(account_id=account.pk).order_by("agent_id").values_list("agent_id", flat=True)
    agents = sorted(named)
    agents += [agent for agent in registered[: MAX_AGENTS + len(named) + 1] if agent not in named]
    shown = sorted(agents[:MAX_AGENTS])
    teams = read_teams(members.filter(agent_id__in=shown))
    rows = [
        AccessRow(
            kind=kind,
            name=excerpt_of(name),
            url=url,
            owner=mark_invisible(row.agent_id) or "the account",
            scope="every agent reads" if row.grants.public_read else row.get_scope_display(),
            cells=[describe_access(row, agent, teams.get(agent, set())) for agent in shown],
            others=describe_access(row, ANY_OTHER, set()),
        )
        for kind, name, url, row in shared
    ]
    return AccessMatrix(
        agents=[mark_invisible(agent) for agent in shown], rows=rows, is_cut=is_cut or len(agents) > MAX_AGENTS
    )


def read_shared(account: Account, user: Any) -> tuple[list[tuple[str, str, str, Any]], bool]:
    """Return the pools and contexts that the user may view (kind, name, address, row), and whether any is left out."""
    shared: list[tuple[str, str, str, Any]] = []
    is_cut = False
    if user.has_perm("memory.view_memorypool"):
        pools = MemoryPool.objects.filter(account_id=account.pk, is_own=False)
        found = list(
            pools.select_related("workflow_run").defer("data").order_by("pool_id", "id")[: MAX_SHARED_ROWS + 1]
        )
        is_cut = len(found) > MAX_SHARED_ROWS
        found = found[:MAX_SHARED_ROWS]
        shared += [("pool", row.pool_id, change_url("memorypool", row.pk), row) for row in found]
    if user.has_perm("memory.view_persistentcontext"):
        contexts = PersistentContext.objects.filter(account_id=account.pk, archived=False).defer(
            "description", "metadata"
        )
        found_contexts = list(contexts.order_by("name", "id")[: MAX_SHARED_ROWS + 1])
        is_cut = is_cut or len(found_contexts) > MAX_SHARED_ROWS
        found_contexts = found_contexts[:MAX_SHARED_ROWS]
        shared += [("context", row.name, change_url("persistentcontext", row.pk), row) for row in found_contexts]
    return shared, is_cut


def read_teams(members: "QuerySet[TeamMember]") -> dict[str, set[UUID]]:
    """Return the teams to which each agent belongs."""
    teams: dict[str, set[UUID]] = defaultdict(set)
    for agent, team_id in members.values_list("agent_id", "team_id"):
        teams[agent].add(team_id)
    return teams


def describe_access(row: Any, agent_id: str, team_ids: set[UUID]) -> str:
    """Return what the agent may do with the row: "owns", "writes", "reads" or ""."""
    if not row.accessible_by(agent_id, Level.READ, team_ids=team_ids):
        return ""
    if row.agent_id == agent_id:
        return "owns"
    return "writes" if row.accessible_by(agent_id, Level.WRITE, team_ids=team_ids) else "reads"


def read_keys(account: Account, now: datetime) -> list[KeyRow]:
    """Return MAX_KEYS of the account's keys and one more, valid ones first, then the newest first. One query."""
    is_valid = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
    place = Case(When(is_valid, then=0), default=1, output_field=IntegerField())
    keys = ApiKey.objects.filter(account_id=account.pk).order_by(place, "-pk")[: MAX_KEYS + 1]
    return [
        KeyRow(
            id=key.pk,
            prefix=key.prefix,
            name=mark_invisible(key.name),
            binding=mark_invisible(", ".join(filter(None, [key.agent_id, key.user_id]))) or "any agent and user",
            scopes=", ".join(key.scopes),
            state=describe_key(key, now),
            is_valid=describe_key(key, now) != "revoked" and (key.expires_at is None or key.expires_at > now),
            url=change_url("apikey", key.pk),
            last_used_at=key.last_used_at,
        )
        for key in keys
    ]


def describe_key(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "valid"
    return f"{'expired' if key.expires_at <= now else 'valid until'} {key.expires_at:%Y-%m-%d %H:%M}"


def show_access(pages: BoundedAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    account = pages.find_row(request, object_id)
    user: Any = request.user
    may_see_keys = user.has_perm("memory.view_apikey")
    keys = read_keys(account, datetime.now(UTC)) if may_see_keys else []
    return pages.render_page(
        request,
        "account/access.html",
        "Access",
        account=account,
        matrix=read_matrix(account, user),
        may_see_keys=may_see_keys,
        may_change_keys=user.has_perm("memory.change_apikey"),
        may_add_keys=user.has_perm("memory.add_apikey"),
        keys=keys[:MAX_KEYS],
        has_more_keys=len(keys) > MAX_KEYS,
        keys_url=list_url("apikey", account=account.pk),
    )
