"""Persistent contexts (P4): made, changed, archived, shared. What they hold is in `entries`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from memory.audit import record
from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import AccessControl, Level, PersistentContext, Team
from memory.models.contexts import OWN_CONTEXT, TEAM_CONTEXT
from memory.owner import Owner
from memory.services.accounts.access import (
    Versions,
    change_grant,
    check_version,
    find_team_to_share_with,
    refuse_managing,
    refuse_write,
)
from memory.services.accounts.register import note_agent

CHANGEABLE = frozenset({"name", "description", "access_control", "metadata"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDraft:
    """A context before it is made. `team_id` goes with scope team."""

    name: str
    description: str = ""
    context_type: str = PersistentContext.ContextType.AGENT_MEMORY
    scope: str = PersistentContext.Scope.AGENT
    access_control: AccessControl = field(default_factory=AccessControl)
    team_id: UUID | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def create_context(owner: Owner, draft: ContextDraft) -> PersistentContext:
    """Make one that the acting agent owns.

    Raises Conflict for a name that the agent gave already, Unprocessable for a scope of team without a team that the
    agent is in, and for the name of agents' long-term memory given to something else.
    """
    if (draft.scope == PersistentContext.Scope.TEAM) != (draft.team_id is not None):
        raise Unprocessable("a context of scope team names its team, any other names none")
    is_own = (draft.context_type, draft.scope) == (OWN_CONTEXT, PersistentContext.Scope.AGENT)
    if draft.name == OWN_CONTEXT and not is_own:
        raise Unprocessable(f"the name {OWN_CONTEXT} is that of an agent's long-term memory: its type, and scope agent")
    with transaction.atomic():
        note_agent(owner.account_id, owner.agent_id)
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
        insert_context(context)
        record(owner, operation="create", memory_type="context", affected_ids=[context.id])
    context.refresh_from_db(fields=["created_at", "updated_at"])
    return context


def insert_context(context: PersistentContext) -> None:
    """Raises Conflict where the owner has one of this name."""
    try:
        with transaction.atomic():
            context.save(force_insert=True)
    except IntegrityError as err:
        raise Conflict("there is a context of this name") from err


def own_context(owner: Owner, *, now: datetime) -> PersistentContext:
    """The context in which the agent's long-term memory lives; made when it is new, by one of those who ask at once."""
    if not owner.agent_id:
        raise Unprocessable("long-term memory is an agent's: name one")
    mine = {
        "account_id": owner.account_id,
        "agent_id": owner.agent_id,
        "team": None,
        "name": OWN_CONTEXT,
        "scope": "agent",
    }
    found = PersistentContext.objects.filter(**mine).first()
    if found is not None:
        return found
    with transaction.atomic():
        context, is_new = PersistentContext.objects.get_or_create(
            **mine, defaults={"context_type": OWN_CONTEXT, "updated_at": now}
        )
        if is_new:
            record(owner, operation="create", memory_type="context", affected_ids=[context.id])
    return context


def team_context(owner: Owner, team_id: UUID, *, now: datetime) -> PersistentContext:
    """The context that a team shares its learnings in: the account's own, made with the first of them.

    Raises Unprocessable for a team that the acting agent is not in.
    """
    shared = {"account_id": owner.account_id, "agent_id": "", "team_id": team_id, "name": TEAM_CONTEXT}
    found = PersistentContext.objects.writable_by(owner).filter(**shared).first()
    if found is not None:
        return found
    with transaction.atomic():
        # nobody dissolves it until it has its context
        Team.objects.in_account(owner.account_id).filter(id=team_id).select_for_update(no_key=True).first()
        find_team_to_share_with(owner, team_id)
        context, is_new = PersistentContext.objects.get_or_create(
            **shared, defaults={"context_type": "shared_context", "scope": "team", "updated_at": now}
        )
        if is_new:
            record(owner, operation="create", memory_type="context", affected_ids=[context.id])
    return context


def find_context(owner: Owner, context_id: UUID) -> PersistentContext:
    """One that the owner may read, archived or not. Raises NotFound."""
    context = PersistentContext.objects.visible_to(owner).filter(id=context_id).first()
    if context is None:
        raise NotFound("no such context")
    return context


def lock_context(owner: Owner, context_id: UUID) -> PersistentContext:
    """One that the owner may write to, until the transaction ends: entries of one context are written one by one.

    Raises NotFound, Forbidden where it may only be read, Conflict where it is archived.
    """
    rows = PersistentContext.objects.writable_by(owner).filter(id=context_id)
    context = rows.select_for_update(no_key=True, of=("self",)).first()
    if context is None:
        refuse_write(PersistentContext.objects.visible_to(owner).filter(id=context_id), what="context")
    refuse_archived(context)
    return context


def refuse_archived(context: PersistentContext) -> None:
    """Raise Conflict where it is archived."""
    if context.archived:
        raise Conflict("the context is archived, and read-only until it is unarchived")


def lock_managed_context(owner: Owner, context_id: UUID, *, expected: Versions) -> PersistentContext:
    """One that the owner may grant, archive and change. Raises NotFound, Forbidden, StaleVersion."""
    rows = PersistentContext.objects.managed_by(owner).filter(id=context_id)
    context = rows.select_for_update(no_key=True, of=("self",)).first()
    if context is None:
        refuse_managing(PersistentContext.objects.visible_to(owner).filter(id=context_id), what="context")
    check_version(context.version, expected)
    return context


def change_context(
    owner: Owner, context_id: UUID, *, changes: Mapping[str, Any], expected: Versions, now: datetime
) -> PersistentContext:
    """Give it new values, by column of CHANGEABLE; `access_control` as JSON, whole.

    Raises NotFound, Forbidden, StaleVersion, Unprocessable, and Conflict for a name that is taken, and for anything but
    `access_control` of an archived context.
    """
    if refused := set(changes) - CHANGEABLE:
        raise Unprocessable(f"cannot be changed: {', '.join(sorted(refused))}")
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=expected)
        if set(changes) - {"access_control"}:
            refuse_archived(context)
        if OWN_CONTEXT in (context.name, changes.get("name")) and changes.get("name", context.name) != context.name:
            raise Unprocessable(f"{OWN_CONTEXT} is where an agent's long-term memory is found: that name stays")
        for name, value in changes.items():
            setattr(context, name, AccessControl.parse(value).model_dump() if name == "access_control" else value)
        save_context(owner, context, columns=list(changes), operation="update", now=now)
    return context


def save_context(
    owner: Owner, context: PersistentContext, *, columns: list[str], operation: str, now: datetime
) -> None:
    """Store these columns of a locked context, at the next version, and the audit row."""
    context.version += 1
    context.updated_at = now
    try:
        with transaction.atomic():
            context.save(update_fields=[*columns, "version", "updated_at"])
    except IntegrityError as err:
        raise Conflict("there is a context of this name") from err
    record(
        owner,
        operation=operation,
        memory_type="context",
        affected_ids=[context.id],
        metadata={"columns": sorted(columns)},
    )


def archive_context(owner: Owner, context_id: UUID, *, expected: Versions, now: datetime) -> PersistentContext:
    """Make it read-only and leave it out of searches. Archiving one twice changes nothing."""
    return set_archived(owner, context_id, archived=True, expected=expected, now=now)


def unarchive_context(owner: Owner, context_id: UUID, *, expected: Versions, now: datetime) -> PersistentContext:
    """Take `archive_context` back."""
    return set_archived(owner, context_id, archived=False, expected=expected, now=now)


def set_archived(
    owner: Owner, context_id: UUID, *, archived: bool, expected: Versions, now: datetime
) -> PersistentContext:
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=expected)
        if context.archived != archived:
            context.archived = archived
            operation = "archive" if archived else "unarchive"
            save_context(owner, context, columns=["archived"], operation=operation, now=now)
    return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Whom to let in, and how far; revoking, `level` None takes everything."""

    agent_id: str
    level: Level | None = None


def grant_context(
    owner: Owner, context_id: UUID, grant: Grant, *, expected: Versions, now: datetime
) -> PersistentContext:
    """Let an agent in. Raises NotFound, Forbidden, StaleVersion, Unprocessable."""
    return change_grants(owner, context_id, grant, is_granted=True, expected=expected, now=now)


def revoke_context(
    owner: Owner, context_id: UUID, grant: Grant, *, expected: Versions, now: datetime
) -> PersistentContext:
    """Shut an agent out again, as far as grants let it in. Raises NotFound, Forbidden, StaleVersion."""
    return change_grants(owner, context_id, grant, is_granted=False, expected=expected, now=now)


def change_grants(
    owner: Owner, context_id: UUID, grant: Grant, *, is_granted: bool, expected: Versions, now: datetime
) -> PersistentContext:
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=expected)
        change_grant(context, grant.agent_id, grant.level, is_granted=is_granted)
        operation = "grant" if is_granted else "revoke"
        save_context(owner, context, columns=["access_control"], operation=operation, now=now)
    return context
