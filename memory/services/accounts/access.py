"""Checks before a change: may the owner write to the row, and has the caller seen its current version.

Refusals and changes are those of rows that agents share: pools and contexts.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from memory.audit import record_audit
from memory.errors import Conflict, Forbidden, NotFound, StaleVersion, Unprocessable
from memory.models import AccessControl, MemoryPool, MemoryRow, PersistentContext, Team
from memory.models.access import SharedQuerySet, SharedRow
from memory.owner import Owner
from memory_project.ids import version_tag

ExpectedVersions = frozenset[str | int] | None
"""Versions that the caller accepts, of any row (`3`) or of a certain row (`version_tag`); None accepts all."""

R = TypeVar("R", bound=SharedRow)


def check_author(owner: Owner, row: MemoryRow, *, what: str) -> None:
    """Raise Forbidden if the row of knowledge belongs to another agent and not to the owner's user."""
    if not owner.agent_id or row.agent_id == owner.agent_id:
        return
    if not row.user_id or row.user_id != owner.user_id:
        raise Forbidden(f"the agent may read this {what}, but not change it: another agent stored it")


def raise_write_refused(visible: SharedQuerySet[R], *, what: str) -> NoReturn:
    """Raise Forbidden if the owner can see the row (`visible`) but not write to it; otherwise NotFound."""
    reason = f"the agent may read this {what}, but not write to it: ask its owner for write access"
    raise Forbidden(reason) if visible.exists() else NotFound(f"no such {what}")


def raise_manage_refused(visible: SharedQuerySet[R], *, what: str) -> NoReturn:
    """Raise Forbidden if the owner can see the row but not grant, change, delete or archive it; otherwise NotFound."""
    reason = f"only the owner of this {what}, or an API key that acts for the account, may do this"
    raise Forbidden(reason) if visible.exists() else NotFound(f"no such {what}")


def raise_taken(owner: Owner, visible: QuerySet[Any], *, what: str) -> NoReturn:
    """Raise Conflict for an id that is taken; NotFound if the owner is limited and does not see what has the id.

    A key that is bound learns nothing about rows of others from a refusal, but that it cannot have this id.
    """
    if owner.is_limited and not visible.exists():
        raise NotFound(f"no such {what}")
    raise Conflict(f"the account already has a {what} with this id")


def check_version(version: int, expected: ExpectedVersions, *, row_id: UUID | None = None) -> None:
    """Raise StaleVersion if the caller has seen another version or, with `row_id`, another row."""
    tags = {version_tag(version), version_tag(version, row_id)}
    if expected is not None and tags.isdisjoint(map(str, expected)):
        raise StaleVersion(f"it was changed since you read it and is at version {version} now: read it again")


def check_changeable(changes: Collection[str], *, allowed: Collection[str], what: str) -> None:
    """Raise Unprocessable for a change of anything but the columns that are allowed."""
    if refused := set(changes) - set(allowed):
        raise Unprocessable(
            f"a {what}'s {', '.join(sorted(refused))} cannot be changed here; allowed: {', '.join(sorted(allowed))}"
        )


def set_columns(row: SharedRow, changes: Mapping[str, Any]) -> None:
    """Set columns of the row; `access_control` is given whole, as JSON. Raises Unprocessable if that is not valid."""
    for name, value in changes.items():
        setattr(row, name, AccessControl.parse(value).model_dump() if name == "access_control" else value)


def save_shared_row(
    owner: Owner, row: PersistentContext | MemoryPool, *, columns: Sequence[str], operation: str, now: datetime
) -> None:
    """Store these columns of a locked context or pool at its next version, with an audit entry."""
    row.version += 1
    row.updated_at = now
    row.save(update_fields=[*columns, "version", "updated_at"])
    record_audit(
        owner,
        operation=operation,
        memory_type="pool" if isinstance(row, MemoryPool) else "context",
        affected_ids=[row.id],
        metadata={"columns": sorted(columns)},
    )


def find_team_to_share_with(owner: Owner, team_id: UUID) -> Team:
    """Return a team that the acting agent is in. Raises Unprocessable for any other team, whether it exists or not."""
    rows = Team.objects.in_account(owner.account_id).filter(id=team_id)
    if owner.agent_id:
        rows = rows.filter(members__agent_id=owner.agent_id)
    team = rows.first()
    if team is None:
        raise Unprocessable("there is no such team, or the agent is not in it")
    return team
