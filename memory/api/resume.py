"""`/resume`: the packet that resumes work, as data and as a text for the model."""

from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Degraded, OwnerFields, Prose
from memory.api.recall_fields import LONGEST_DEADLINE_MS
from memory.api.replay import ReplayAnswer, represent_slice
from memory.api.views import ConcludedResponse, OwnerViewSet
from memory.extraction.work_notes import NoteKind
from memory.models import Goal, Kind, TurnRecord
from memory.services.recall.search import LONGEST_QUERY
from memory.services.resume.pieces import Piece, Section
from memory.services.resume.resume import RESUME_TOKENS, ResumePacket, ResumeRequest, conclude_resume, resume_work
from memory_project.http.serializers import BoundedList, ExternalId, Flag, WholeNumber

FEWEST_TOKENS = 200
MOST_TOKENS = 50_000
MOST_GOALS = 20
NOTES = [*(kind.value for kind in NoteKind), "said", "fact"]
SOURCES = ["profile", *Kind.values]


class ResumeBody(OwnerFields):
    """What to resume."""

    conversation_id = ExternalId(
        required=False,
        help_text="The one that goes on, or the one that was interrupted; by default the one that was written to last.",
    )
    query = Prose(
        required=False,
        max_length=LONGEST_QUERY,
        help_text="What the next move is about; by default the open goals and what the user said last.",
    )
    goal_ids = BoundedList(
        child=serializers.UUIDField(),
        required=False,
        max_length=MOST_GOALS,
        help_text="These with what is below them; by default all open goals.",
    )
    max_tokens = WholeNumber(
        default=RESUME_TOKENS,
        min_value=FEWEST_TOKENS,
        max_value=MOST_TOKENS,
        help_text="Of `text`, counted as for `/context`: never more.",
    )
    replay = Flag(default=False, help_text="Whether to replay what was done for the most pressing goal, too.")
    deadline_ms = WholeNumber(required=False, min_value=1, max_value=LONGEST_DEADLINE_MS)


class Blocker(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    description = serializers.CharField()
    status = serializers.ChoiceField(Goal.Status.choices)


class PacketGoal(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    description = serializers.CharField()
    status = serializers.ChoiceField(Goal.Status.choices)
    priority = serializers.IntegerField()
    deadline = serializers.DateTimeField(allow_null=True)
    overdue = serializers.BooleanField()
    parent_id = serializers.UUIDField(allow_null=True)
    depth = serializers.IntegerField(help_text="Below the first of its tree that is told.")
    blocked_by = Blocker(many=True, help_text="Open ones.")
    result = serializers.CharField(help_text="Of a closed one.")


class LastOutcome(serializers.Serializer[Any]):
    record_id = serializers.UUIDField(allow_null=True, help_text="Null for what was said, or merged.")
    id = serializers.UUIDField(help_text="The memory that says it.")
    status = serializers.ChoiceField(TurnRecord.Status.choices, help_text="Of what was only said, how that sounds.")
    text = serializers.CharField()
    event_time = serializers.DateTimeField()


class OpenEnd(serializers.Serializer[Any]):
    id = serializers.UUIDField(help_text="The memory that says it.")
    kind = serializers.ChoiceField(NOTES)
    text = serializers.CharField()
    event_time = serializers.DateTimeField()
    reasons = serializers.ListField(child=serializers.CharField())


class PacketConstraint(serializers.Serializer[Any]):
    id = serializers.UUIDField(allow_null=True, help_text="The memory that says it; null for the user's profile.")
    text = serializers.CharField()
    # the contract's name, and a field's attribute too
    source = serializers.ChoiceField(SOURCES)  # type: ignore[assignment]


class PacketEvidence(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(Kind.choices)
    note = serializers.ChoiceField(NOTES, help_text="What it is to the work.")
    text = serializers.CharField(help_text="What of the memory matters: a sentence, a point, a claim.")
    score = serializers.FloatField(help_text="Of the recall; 0 for what was found because of where it stands.")
    reasons = serializers.ListField(child=serializers.CharField())
    event_time = serializers.DateTimeField()
    conversation_id = serializers.CharField(help_text="Empty for none.")
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")


class PacketArtifact(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    uri = serializers.CharField()
    title = serializers.CharField()
    type = serializers.CharField()
    revision = serializers.IntegerField(help_text="The latest.")
    revision_label = serializers.CharField()
    digest = serializers.CharField()
    goal_id = serializers.UUIDField(allow_null=True)


class PacketStrategy(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    text = serializers.CharField()
    task_type = serializers.CharField()
    tool_sequence = serializers.ListField(child=serializers.CharField())
    success_rate = serializers.FloatField()
    success_count = serializers.IntegerField()
    failure_count = serializers.IntegerField()


class LeftOut(serializers.Serializer[Any]):
    """Of each section, what had no room or was told by something else."""

    goals = serializers.IntegerField()
    last_outcome = serializers.IntegerField()
    open_ends = serializers.IntegerField()
    constraints = serializers.IntegerField()
    evidence = serializers.IntegerField()
    artifacts = serializers.IntegerField()
    strategies = serializers.IntegerField()
    replay = serializers.IntegerField()


class ResumeAnswer(serializers.Serializer[Any]):
    conversation_id = serializers.CharField(help_text="Empty where there is none.")
    lineage = serializers.ListField(
        child=serializers.CharField(), help_text="The conversations that it continues, the latest first."
    )
    goals = PacketGoal(many=True)
    last_outcome = LastOutcome(allow_null=True)
    open_ends = OpenEnd(many=True)
    constraints = PacketConstraint(many=True)
    evidence = PacketEvidence(many=True, help_text="Decisions first, each in the order of time.")
    artifacts = PacketArtifact(many=True)
    strategies = PacketStrategy(many=True)
    replay = ReplayAnswer(allow_null=True)
    text = serializers.CharField(help_text="All of it as a system message; may be empty.")
    tokens = serializers.IntegerField(help_text="Of the text, as counted for `max_tokens`.")
    left_out = LeftOut()
    degraded = Degraded()


def represent_packet(packet: ResumePacket) -> dict[str, Any]:
    outcomes = [represent_outcome(piece) for piece in packet.of(Section.LAST_OUTCOME)]
    return {
        "conversation_id": packet.conversation_id,
        "lineage": list(packet.lineage),
        "goals": [represent_goal(piece) for piece in packet.of(Section.GOALS)],
        "last_outcome": outcomes[0] if outcomes else None,
        "open_ends": [represent_open_end(piece) for piece in packet.of(Section.OPEN_ENDS)],
        "constraints": [represent_constraint(piece) for piece in packet.of(Section.CONSTRAINTS)],
        "evidence": [represent_evidence(piece) for piece in packet.of(Section.EVIDENCE)],
        "artifacts": [{"id": piece.id} | dict(piece.facts) for piece in packet.of(Section.ARTIFACTS)],
        "strategies": [
            {"id": piece.id, "text": piece.text} | dict(piece.facts) for piece in packet.of(Section.STRATEGIES)
        ],
        "replay": represent_slice(packet.replay) if packet.replay else None,
        "text": packet.text,
        "tokens": packet.tokens,
        "left_out": dict(packet.left_out),
        "degraded": list(packet.degraded),
    }


def represent_goal(piece: Piece) -> dict[str, Any]:
    return {"id": piece.id, "description": piece.text} | dict(piece.facts)


def represent_outcome(piece: Piece) -> dict[str, Any]:
    return {"id": piece.id, "text": piece.text, "event_time": piece.event_time} | dict(piece.facts)


def represent_open_end(piece: Piece) -> dict[str, Any]:
    return {
        "id": piece.id,
        "kind": piece.says,
        "text": piece.text,
        "event_time": piece.event_time,
        "reasons": list(piece.reasons),
    }


def represent_constraint(piece: Piece) -> dict[str, Any]:
    return {"id": piece.id, "text": piece.text, "source": piece.facts["source"]}


def represent_evidence(piece: Piece) -> dict[str, Any]:
    return {
        "id": piece.id,
        "kind": piece.kind,
        "note": piece.says,
        "text": piece.text,
        "score": piece.score,
        "reasons": list(piece.reasons),
        "event_time": piece.event_time,
        "conversation_id": piece.conversation_id,
        "item_key": piece.item_key,
    }


class Resume(OwnerViewSet):
    """Reads whatever bears on the next move; writes nothing but that it was read."""

    bodies = {"resume": ResumeBody}
    answers = {"resume": ResumeAnswer}
    scopes = {"resume": "read"}
    rate_class = "retrieval"

    def resume(self, request: Request) -> Response:
        """What whoever goes on with the work needs for the next move, within `max_tokens`.

        Goals with what they wait for, the last outcome, open ends, constraints, decisions in force and evidence, of
        the conversation and those that it continues; artifacts and strategies. From structured turns where there are
        any, else from what was said. 404 for a conversation in which the agent takes no part.
        """
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        asked = ResumeRequest(
            conversation_id=body.get("conversation_id", ""),
            query=body.get("query", ""),
            goal_ids=body.get("goal_ids", []),
            max_tokens=body["max_tokens"],
            wants_replay=body["replay"],
            deadline_ms=body.get("deadline_ms"),
        )
        packet = resume_work(owner, asked, now=now)
        return ConcludedResponse(represent_packet(packet), conclude=partial(conclude_resume, owner, packet, now=now))
