"""Who is let into what agents share: grants on pools and contexts, and why somebody is refused."""

from typing import NoReturn, TypeVar
from uuid import UUID

from memory.errors import Forbidden, NotFound, StaleVersion, Unprocessable
from memory.models import Level, Memory, Team
from memory.models.access import SharedQuerySet, SharedRow
from memory.owner import Owner
from memory_project.ids import version_tag

Versions = frozenset[str | int] | None
"""Which versions a caller is content with, of any row (`3`) or of one (`version_tag`); None for any."""

R = TypeVar("R", bound=SharedRow)


def refuse_reader(owner: Owner, row: Memory, *, what: str) -> None:
    """Raise Forbidden where the owner sees a row of knowledge, but it is another agent's, and no user's."""
    if not owner.agent_id or row.agent_id == owner.agent_id:
        return
    if not row.user_id or row.user_id != owner.user_id:
        raise Forbidden(f"the agent may read this {what}, but not change it: another one stored it")


def refuse_write(visible: SharedQuerySet[R], *, what: str) -> NoReturn:
    """Raise Forbidden where the owner sees the row (`visible`) but may not write to it; else NotFound."""
    refuse(visible, what=what, reason=f"the agent may read this {what}, but not write to it")


def refuse_managing(visible: SharedQuerySet[R], *, what: str) -> NoReturn:
    """As `refuse_write`, where the owner may write to it, perhaps, but does not grant, change, delete or archive it."""
    refuse(visible, what=what, reason="only its owner, or a key that acts for the account, may do this")


def refuse(visible: SharedQuerySet[R], *, what: str, reason: str) -> NoReturn:
    if visible.exists():
        raise Forbidden(reason)
    raise NotFound(f"no such {what}")


def check_version(version: int, expected: Versions, *, row_id: UUID | None = None) -> None:
    """Raises StaleVersion where the caller has seen another version, or, with `row_id`, another row's."""
    tags = {version_tag(version), version_tag(version, row_id)}
    if expected is not None and tags.isdisjoint(map(str, expected)):
        raise StaleVersion(f"it is at version {version} by now: read it again")


def change_grant(row: SharedRow, agent_id: str, level: Level | None, *, is_granted: bool) -> None:
    """Grant, or revoke, in the row's access control; to be saved by the caller, who has locked it.

    Revoking without a level takes everything. Raises Unprocessable for one agent too many.
    """
    if is_granted:
        changed = row.grants.grant(agent_id, level or Level.READ)
    else:
        changed = row.grants.revoke(agent_id, level or Level.READ)
    row.access_control = changed.model_dump()


def find_team_to_share_with(owner: Owner, team_id: UUID) -> Team:
    """A team that the acting agent is in. Raises Unprocessable, for another's team as for none."""
    rows = Team.objects.in_account(owner.account_id).filter(id=team_id)
    if owner.agent_id:
        rows = rows.filter(members__agent_id=owner.agent_id)
    team = rows.first()
    if team is None:
        raise Unprocessable("there is no such team, or the agent is not in it")
    return team
