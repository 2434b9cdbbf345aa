"""Checks before a change: may the owner write to the row, and has the caller seen its current version.

Grants and refusals are those of rows that agents share: pools and contexts.
"""

from typing import NoReturn, TypeVar
from uuid import UUID

from memory.errors import Forbidden, NotFound, StaleVersion, Unprocessable
from memory.models import Level, Memory, Team
from memory.models.access import SharedQuerySet, SharedRow
from memory.owner import Owner
from memory_project.ids import version_tag

ExpectedVersions = frozenset[str | int] | None
"""Versions that the caller accepts, of any row (`3`) or of a certain row (`version_tag`); None accepts all."""

R = TypeVar("R", bound=SharedRow)


def check_author(owner: Owner, row: Memory, *, what: str) -> None:
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


def check_version(version: int, expected: ExpectedVersions, *, row_id: UUID | None = None) -> None:
    """Raise StaleVersion if the caller has seen another version or, with `row_id`, another row."""
    tags = {version_tag(version), version_tag(version, row_id)}
    if expected is not None and tags.isdisjoint(map(str, expected)):
        raise StaleVersion(f"it was changed since you read it and is at version {version} now: read it again")


def change_grant(row: SharedRow, agent_id: str, level: Level | None, *, is_granted: bool) -> None:
    """Grant or revoke in the row's access control. The caller has locked the row and saves it.

    Revoking without a level removes all levels. Raises Unprocessable for one agent too many.
    """
    if is_granted:
        changed = row.grants.grant(agent_id, level or Level.READ)
    else:
        changed = row.grants.revoke(agent_id, level or Level.READ)
    row.access_control = changed.model_dump()


def find_team_to_share_with(owner: Owner, team_id: UUID) -> Team:
    """Return a team that the acting agent is in. Raises Unprocessable for any other team, whether it exists or not."""
    rows = Team.objects.in_account(owner.account_id).filter(id=team_id)
    if owner.agent_id:
        rows = rows.filter(members__agent_id=owner.agent_id)
    team = rows.first()
    if team is None:
        raise Unprocessable("there is no such team, or the agent is not in it")
    return team
