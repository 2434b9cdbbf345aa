"""Persistent contexts (P4): create, find, change, archive, share and delete them, and find their entries by key."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from memory.audit import record_audit
from memory.errors import Conflict, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import AccessControl, ContextEntry, Level, Memory, PersistentContext, Team
from memory.models.contexts import OWN_CONTEXT, TEAM_CONTEXT
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.accounts.access import (
    ExpectedVersions,
    check_changeable,
    check_version,
    find_team_to_share_with,
    raise_manage_refused,
    raise_write_refused,
    save_shared_row,
    set_columns,
)
from memory.services.accounts.register import register_agent
from memory.services.memories.correct import ROWS_PER_TRANSACTION, erase_memories

CHANGEABLE = frozenset({"name", "description", "access_control", "metadata"})

# an entry that was merged is read as the one that it was merged into
FIND_KEYED = """
WITH RECURSIVE held AS (
    SELECT m.id, m.account_id, c.id AS context_id, 0 AS depth FROM persistent_contexts c
    JOIN memories m ON m.account_id = c.account_id AND m.kind = 'context_entry' AND m.identity = c.id::text || ':' || %s
    WHERE c.account_id = %s AND c.agent_id = %s AND c.team_id IS NULL AND c.name = %s AND c.scope = 'agent'
    UNION ALL
    SELECT l.target_id, l.account_id, held.context_id, held.depth + 1 FROM held
    JOIN memories m ON m.account_id = held.account_id AND m.id = held.id AND m.archived
    JOIN memory_links l ON l.account_id = held.account_id AND l.source_id = held.id AND l.type = 'DUPLICATE_OF'
    WHERE held.depth < 20
)
SELECT m.id, held.context_id, m.value, held.depth > 0 FROM held
JOIN memories m ON m.account_id = held.account_id AND m.id = held.id
WHERE NOT m.archived AND NOT m.quarantined AND (m.expires_at IS NULL OR m.expires_at > %s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDraft:
    """A context before it is created. `team_id` is required for scope team only."""

    name: str
    description: str = ""
    context_type: str = PersistentContext.ContextType.AGENT_MEMORY
    scope: str = PersistentContext.Scope.AGENT
    access_control: AccessControl = field(default_factory=AccessControl)
    team_id: UUID | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@masks_secrets
def create_context(owner: Owner, draft: ContextDraft) -> PersistentContext:
    """Create a context owned by the acting agent.

    Raises Conflict if the agent has a context of this name; Unprocessable for scope team without a team that the agent
    is in, and for the reserved name of agents' long-term memory.
    """
    if (draft.scope == PersistentContext.Scope.TEAM) != (draft.team_id is not None):
        raise Unprocessable("team is required for scope team, and not allowed for other scopes")
    is_own = (draft.context_type, draft.scope) == (OWN_CONTEXT, PersistentContext.Scope.AGENT)
    if draft.name == OWN_CONTEXT and not is_own:
        raise Unprocessable(
            f"the name {OWN_CONTEXT} is reserved for an agent's long-term memory, of type {OWN_CONTEXT} and scope agent"
        )
    with transaction.atomic():
        register_agent(owner.account_id, owner.agent_id)
        team = find_team_to_share_with(owner, draft.team_id) if draft.team_id else None
        context = PersistentContext(
            account_id=owner.account_id,
            agent_id=owner.agent_id,
            team=team,
            name=draft.name,
            description=draft.description,
            context_type=draft.context_type,
            scope=draft.scope,
            access_control=draft.access_control.model_dump(),
            metadata=draft.metadata,
        )
        with refuse_taken_name():
            context.save(force_insert=True)
        record_audit(owner, operation="create", memory_type="context", affected_ids=[context.id])
    context.refresh_from_db(fields=["created_at", "updated_at"])
    return context


@contextmanager
def refuse_taken_name() -> Iterator[None]:
    """Raise Conflict if the statements inside would give the context's owner two contexts of one name."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as err:
        raise Conflict("the owner already has a context with this name") from err


def ensure_own_context(owner: Owner, *, now: datetime) -> PersistentContext:
    """Return the context of the agent's long-term memory, creating it if it is new. Safe to call concurrently."""
    if not owner.agent_id:
        raise Unprocessable("long-term memory belongs to an agent: name an agent_id")
    found = find_own_context(owner).first()
    if found is not None:
        return found
    mine = {"agent_id": owner.agent_id, "team": None, "name": OWN_CONTEXT, "scope": "agent"}
    with transaction.atomic():
        return get_or_create_context(owner, mine, defaults={"context_type": OWN_CONTEXT, "updated_at": now})


def get_or_create_context(
    owner: Owner, columns: Mapping[str, Any], *, defaults: Mapping[str, Any]
) -> PersistentContext:
    """Return the account's context with these columns, or create it with the defaults as well, audited."""
    context, is_new = PersistentContext.objects.get_or_create(account_id=owner.account_id, **columns, defaults=defaults)
    if is_new:
        record_audit(owner, operation="create", memory_type="context", affected_ids=[context.id])
    return context


def find_own_context(owner: Owner) -> QuerySet[PersistentContext]:
    """Return the context of the agent's long-term memory as a queryset, which may be empty: reading creates none."""
    mine = PersistentContext.objects.filter(account_id=owner.account_id, agent_id=owner.agent_id)
    return mine.filter(team=None, name=OWN_CONTEXT, scope="agent")


def ensure_team_context(owner: Owner, team_id: UUID, *, now: datetime) -> PersistentContext:
    """Return the context in which a team shares its learnings; the first one creates it, for the account.

    Raises Unprocessable for a team that the acting agent is not in.
    """
    shared = {"agent_id": "", "team_id": team_id, "name": TEAM_CONTEXT}
    found = PersistentContext.objects.writable_by(owner).filter(**shared).first()
    if found is not None:
        return found
    with transaction.atomic():
        # the team must not be deleted before its context exists
        Team.objects.in_account(owner.account_id).filter(id=team_id).select_for_update(no_key=True).first()
        find_team_to_share_with(owner, team_id)
        defaults = {"context_type": "shared_context", "scope": "team", "updated_at": now}
        return get_or_create_context(owner, shared, defaults=defaults)


def find_context(owner: Owner, context_id: UUID) -> PersistentContext:
    """Return a context that the owner may read, archived or not. Raises NotFound."""
    return require_found(PersistentContext.objects.visible_to(owner).filter(id=context_id).first(), "context")


def lock_context(owner: Owner, context_id: UUID) -> PersistentContext:
    """Return a context that the owner may write to, locked until the transaction ends, so that writes are serial.

    Raises NotFound, Forbidden if it may only be read, Conflict if it is archived.
    """
    rows = PersistentContext.objects.writable_by(owner).filter(id=context_id)
    context = rows.select_for_update(no_key=True, of=("self",)).first()
    if context is None:
        raise_write_refused(PersistentContext.objects.visible_to(owner).filter(id=context_id), what="context")
    check_not_archived(context)
    return context


def check_not_archived(context: PersistentContext) -> None:
    """Raise Conflict if the context is archived, as it is while it is being deleted."""
    if context.archived:
        raise Conflict("the context is archived and so read-only: unarchive it first, unless it is being deleted")


def lock_managed_context(owner: Owner, context_id: UUID, *, expected: ExpectedVersions) -> PersistentContext:
    """Return a locked context that the owner may grant, archive and change.

    Raises NotFound, Forbidden, StaleVersion.
    """
    rows = PersistentContext.objects.managed_by(owner).filter(id=context_id)
    context = rows.select_for_update(no_key=True, of=("self",)).first()
    if context is None:
        raise_manage_refused(PersistentContext.objects.visible_to(owner).filter(id=context_id), what="context")
    check_version(context.version, expected)
    return context


class KeyedValue(NamedTuple):
    """The value under a key of an agent's own context; `value` None is JSON's null.

    `is_alias` is True where the entry under the key was merged into this one.
    """

    entry_id: UUID
    context_id: UUID
    value: Any
    is_alias: bool


def find_keyed_value(owner: Owner, key: str, *, now: datetime) -> KeyedValue | None:
    """Return the value under a key of the agent's own context, archived or not; None if there is none."""
    rows = fetch_rows(FIND_KEYED, [key, owner.account_id, owner.agent_id, OWN_CONTEXT, now])
    return KeyedValue(*rows[0]) if rows else None


def keyed_identity(context_id: UUID, key: str) -> str:
    """Return the identity of the entry under a key."""
    return f"{context_id}:{key}"


def lock_keyed_entries(context: PersistentContext, keys: Sequence[str]) -> dict[str, ContextEntry]:
    """Return the entries of a locked context under these keys, removed ones included, locked.

    Raises Conflict for a quarantined entry.
    """
    if not keys:
        return {}
    identities = [keyed_identity(context.id, key) for key in keys]
    rows = ContextEntry.objects.filter(account_id=context.account_id, identity__in=identities)
    locked = rows.order_by("id").select_for_update()
    if any(entry.quarantined for entry in locked):
        # a new value would stay invisible to everybody
        raise Conflict("an entry under this key is quarantined: staff must release it before it can be written")
    return {entry.key: entry for entry in locked}


@masks_secrets
def change_context(
    owner: Owner, context_id: UUID, *, changes: Mapping[str, Any], expected: ExpectedVersions, now: datetime
) -> PersistentContext:
    """Change columns of CHANGEABLE; `access_control` is given whole, as JSON.

    Raises NotFound, Forbidden, StaleVersion, Unprocessable; Conflict for a name that is taken, and for any change but
    `access_control` to an archived context.
    """
    check_changeable(changes, allowed=CHANGEABLE, what="context")
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=expected)
        if set(changes) - {"access_control"}:
            check_not_archived(context)
        if OWN_CONTEXT in (context.name, changes.get("name")) and changes.get("name", context.name) != context.name:
            raise Unprocessable(
                f"the name {OWN_CONTEXT} is reserved for an agent's long-term memory and cannot be changed"
            )
        if changes:
            set_columns(context, changes)
            with refuse_taken_name():
                save_shared_row(owner, context, columns=list(changes), operation="update", now=now)
    return context


def archive_context(owner: Owner, context_id: UUID, *, expected: ExpectedVersions, now: datetime) -> PersistentContext:
    """Make the context read-only and exclude it from searches. Archiving it twice changes nothing."""
    return set_archived(owner, context_id, archived=True, expected=expected, now=now)


def unarchive_context(
    owner: Owner, context_id: UUID, *, expected: ExpectedVersions, now: datetime
) -> PersistentContext:
    """Undo `archive_context`."""
    return set_archived(owner, context_id, archived=False, expected=expected, now=now)


def set_archived(
    owner: Owner, context_id: UUID, *, archived: bool, expected: ExpectedVersions, now: datetime
) -> PersistentContext:
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=expected)
        if context.archived != archived:
            context.archived = archived
            operation = "archive" if archived else "unarchive"
            save_shared_row(owner, context, columns=["archived"], operation=operation, now=now)
    return context


def grant_context(
    owner: Owner, context_id: UUID, *, agent_id: str, level: Level, expected: ExpectedVersions, now: datetime
) -> PersistentContext:
    """Grant an agent access. Raises NotFound, Forbidden, StaleVersion, Unprocessable."""
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=expected)
        context.access_control = context.grants.grant(agent_id, level).model_dump()
        save_shared_row(owner, context, columns=["access_control"], operation="grant", now=now)
    return context


def revoke_context(
    owner: Owner,
    context_id: UUID,
    *,
    agent_id: str,
    level: Level = Level.READ,
    expected: ExpectedVersions,
    now: datetime,
) -> PersistentContext:
    """Revoke an agent's granted access: `read` includes `write`. Raises NotFound, Forbidden, StaleVersion."""
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=expected)
        context.access_control = context.grants.revoke(agent_id, level).model_dump()
        save_shared_row(owner, context, columns=["access_control"], operation="revoke", now=now)
    return context


def delete_context(owner: Owner, context_id: UUID) -> int:
    """Delete the context with its entries, their history, snapshots and access log; return the number of entries.

    For data that must be destroyed; agents archive instead. It archives the context first and deletes entries in
    transactions of ROWS_PER_TRANSACTION: if interrupted, the context is read-only and excluded from searches, and
    deleting it again continues. Raises NotFound, Forbidden.
    """
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=None)
        PersistentContext.objects.filter(account_id=owner.account_id, id=context.id).update(archived=True)
    held = Memory.objects.filter(account_id=owner.account_id, context_id=context_id).order_by("id")
    whole = Owner(account_id=owner.account_id, actor=owner.actor)
    deleted = 0
    while ids := list(held.values_list("id", flat=True)[:ROWS_PER_TRANSACTION]):
        deleted += erase_memories(whole, ids)
    with transaction.atomic():
        lock_managed_context(owner, context_id, expected=None).delete()
        record_audit(owner, operation="delete", memory_type="context", affected_ids=[context_id])
    return deleted
