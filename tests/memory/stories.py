"""Work for tests: goals with turns that were recorded, episodes that they were merged to, artifacts that came of them.

Episodes and artifacts are stored as their services store them, without compressing or claiming anything.
"""

from typing import Any
from uuid import UUID

from memory.extraction.turn_slots import Action, Call, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, Artifact, CompressionLevel, Conversation, Goal, Kind, TurnRecord, WorkEpisode
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.memories.links import DERIVED_FROM, PRODUCED, NewLink, insert_links
from memory.services.memories.store import store_memories
from tests.memory.episodes import NOTHING, NOW
from tests.memory.records import add_record


def whole_slots(said: str = "the pump", *, status: str = "succeeded") -> Slots:
    """All four, each with something beyond words."""
    return Slots(
        observation=Observation(text=f"Somebody asks for {said}.", data={"ticket": "OPS-12"}),
        reasoning=Reasoning(
            tier=ReasoningTier.STRUCTURED_RATIONALE,
            rationale=Rationale(
                decisions=[Point(what=f"replace {said}", why="it leaks")], rejected=[Point(what="patch it")]
            ),
        ),
        action=Action(text=f"Ordered {said}.", calls=[Call(tool="order", arguments={"part": said}, result="no. 7")]),
        outcome=Outcome(status=status, text=f"What became of {said}: {status}."),
    )


def make_artifact(owner: Owner, uri: str = "https://example.org/plan.md", **fields: Any) -> Artifact:
    now = fields.pop("now", NOW)
    row = Artifact(kind=Kind.ARTIFACT, text=f"{fields.get('title', '')} {uri}".strip(), uri=uri, event_time=now)
    for name, value in fields.items():
        setattr(row, name, value)
    store_memories(owner, [row], embedded=NOTHING, own={}, now=now)
    return row


def merge(
    owner: Owner, goal: Goal | None, records: list[TurnRecord], text: str = "The pump was replaced.", **fields: Any
) -> WorkEpisode:
    """An episode of these records, which are archived to it."""
    first, last = records[0], records[-1]
    row = WorkEpisode(
        kind=Kind.WORK_EPISODE,
        text=text,
        log=Conversation.objects.get(pk=first.log_id),
        conversation_id=first.conversation_id,
        for_goal=goal,
        first_number=first.number,
        last_number=last.number,
        event_time=last.event_time,
        raw_tokens=sum(record.raw_tokens for record in records),
        **{"status": "succeeded", "compressor": "extractive", "data": {"decisions": ["replace it"]}, **fields},
    )
    store_memories(owner, [row], embedded=NOTHING, own={}, now=NOW)
    TurnRecord.objects.filter(pk__in=[record.pk for record in records]).update(level=row.level, episode=row)
    return row


def archive(owner: Owner, episode: WorkEpisode, text: str = "Pump replaced.") -> WorkEpisode:
    """The archived one of an episode, made of it."""
    records = list(
        TurnRecord.objects.filter(
            log_id=episode.log_id, number__range=(episode.first_number, episode.last_number)
        ).order_by("number")
    )
    row = merge(owner, episode.for_goal, records, text, level=CompressionLevel.ARCHIVED)
    insert_links(owner.account_id, [NewLink(source_id=row.pk, type=DERIVED_FROM, target_id=episode.pk)])
    return row


def link_produced(owner: Owner, source_id: UUID, artifact: Artifact) -> None:
    insert_links(owner.account_id, [NewLink(source_id=source_id, type=PRODUCED, target_id=artifact.pk)])


def make_records(account: Account, numbers: range) -> list[TurnRecord]:
    """Each in a conversation of its own."""
    owner = Owner(account_id=account.id, agent_id="assistant")
    return [add_record(owner, f"chat {number}").record for number in numbers]


def make_episodes(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for record in make_records(account, numbers):
        merge(owner, None, [record])


def make_artifacts(account: Account, numbers: range) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    for number in numbers:
        make_artifact(owner, f"docs/{number}.md")
