"""Teams and their learnings for tests, stored through the services."""

from typing import Any
from uuid import UUID

from memory.models import Learning, Team
from memory.owner import Owner
from memory.services.accounts.register import add_member, create_team
from memory.services.learnings import LearningDraft, publish_learning
from memory.services.memories.store import ClientVector
from tests.memory.episodes import MODEL, NOTHING, NOW, direction


def team_of(*members: Owner, name: str = "crew") -> Team:
    """A team of these agents, all of one account."""
    account = Owner(account_id=members[0].account_id)
    team = create_team(account, name=name)
    for member in members:
        add_member(account, team.id, agent_id=member.agent_id)
    return team


def learn(owner: Owner, team_id: UUID, insight: str = "Look under the mat.", **fields: Any) -> Learning:
    """Published without the embedder. `fields` are those of the draft; with an `angle`, its vector is known."""
    angle = fields.pop("angle", None)
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    draft = LearningDraft(team_id=team_id, insight=insight, own=own, **fields)
    return publish_learning(owner, draft, embedded=NOTHING, now=NOW)
