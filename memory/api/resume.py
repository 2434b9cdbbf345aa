"""`/resume`: the resume packet, everything needed to continue work, as data and as a text for the model."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import BoundedIds, Degraded, Flags, OwnerFields, QuestionText, TextList, draft_fields
from memory.api.recall import DeadlineField, UsageAnswer
from memory.api.replay import ReplayAnswer
from memory.api.views import FollowUpResponse, OwnerViewSet
from memory.extraction.work_notes import NoteKind
from memory.kinds import kind_choices
from memory.models import Goal, TurnRecord
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.services.resume.items import PacketItem, PacketSection
from memory.services.resume.resume import RESUME_TOKENS, ResumePacket, ResumeRequest, conclude_resume, resume_work
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ExternalId, Flag, WholeNumber

MIN_TOKENS = 200
MAX_TOKENS = 50_000
MAX_GOALS = 20
NOTES = [*(kind.value for kind in NoteKind), "said", "fact"]
SOURCES = ["profile", *(name for name, _ in kind_choices())]


class ResumeBody(OwnerFields):
    """The work to resume."""

    conversation_id = ExternalId(
        required=False, help_text="Continuing or interrupted conversation. Default: the one written to last."
    )
    query = QuestionText(
        required=False,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="Default: the open goals and the user's last message.",
    )
    goal_ids = BoundedIds(
        max_length=MAX_GOALS, help_text="Limit to these goals and those below. Default: all open goals."
    )
    max_tokens = WholeNumber(
        default=RESUME_TOKENS,
        min_value=MIN_TOKENS,
        max_value=MAX_TOKENS,
        help_text="Maximum number of tokens of `text`, counted as for `/context`.",
    )
    replay = Flag(default=False, help_text="True to also replay what was done for the most urgent goal.")
    deadline_ms = DeadlineField()


class GoalBlockerAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    description = serializers.CharField()
    status = serializers.ChoiceField(Goal.Status.choices)


class PacketGoal(AnswerSerializer):
    id = serializers.UUIDField()
    description = serializers.CharField(source="text")
    flags = Flags()
    status = serializers.ChoiceField(Goal.Status.choices)
    priority = serializers.IntegerField()
    deadline = serializers.DateTimeField(allow_null=True)
    overdue = serializers.BooleanField()
    parent_id = serializers.UUIDField(allow_null=True)
    depth = serializers.IntegerField(help_text="Levels below the topmost goal of its tree in the packet.")
    blocked_by = GoalBlockerAnswer(many=True, help_text="Goals that it waits for and that are not completed.")
    result = serializers.CharField(help_text="Result of a closed goal.")


class LastOutcome(AnswerSerializer):
    record_id = serializers.UUIDField(allow_null=True, help_text="Null for a message, and for merged turns.")
    id = serializers.UUIDField(help_text="Memory that states the outcome.")
    status = serializers.ChoiceField(TurnRecord.Status.choices, help_text="The words of a message may only suggest it.")
    text = serializers.CharField()
    flags = Flags()
    event_time = serializers.DateTimeField()


class OpenEnd(AnswerSerializer):
    id = serializers.UUIDField(help_text="Memory that states it, or the failed call of a tool.")
    kind = serializers.ChoiceField(NOTES, source="item_type")
    text = serializers.CharField()
    flags = Flags()
    event_time = serializers.DateTimeField()
    reasons = TextList()


class PacketConstraint(AnswerSerializer):
    id = serializers.UUIDField(allow_null=True, help_text="Memory that states it. Null for the user's profile.")
    text = serializers.CharField()
    flags = Flags()
    # the contract's name, and a field's attribute too
    source = serializers.ChoiceField(SOURCES)  # type: ignore[assignment]

    @staticmethod
    def compute_source(piece: PacketItem) -> Any:
        return piece.details["source"]


class PacketEvidence(AnswerSerializer):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(kind_choices())
    note = serializers.ChoiceField(NOTES, source="item_type", help_text="Its role for the work.")
    text = serializers.CharField(help_text="The part of the memory that matters: a sentence, a point or a claim.")
    flags = Flags()
    score = serializers.FloatField(help_text="Score of the recall. 0 for evidence that was not found by a recall.")
    reasons = TextList()
    event_time = serializers.DateTimeField()
    conversation_id = serializers.CharField(help_text="Empty: none.")
    item_key = serializers.CharField(help_text="Key of this memory in the injection ledger.")


class PacketArtifact(AnswerSerializer):
    id = serializers.UUIDField()
    uri = serializers.CharField()
    title = serializers.CharField()
    flags = Flags()
    type = serializers.CharField()
    revision = serializers.IntegerField(help_text="The latest revision.")
    revision_label = serializers.CharField()
    digest = serializers.CharField()
    goal_id = serializers.UUIDField(allow_null=True)


class PacketStrategy(AnswerSerializer):
    id = serializers.UUIDField()
    text = serializers.CharField()
    flags = Flags()
    task_type = serializers.CharField()
    tool_sequence = TextList()
    success_rate = serializers.FloatField()
    success_count = serializers.IntegerField()
    failure_count = serializers.IntegerField()


class LeftOut(serializers.Serializer[Any]):
    """Numbers of pieces by section that did not fit, or that another piece covers."""

    goals = serializers.IntegerField()
    last_outcome = serializers.IntegerField()
    open_ends = serializers.IntegerField()
    constraints = serializers.IntegerField()
    evidence = serializers.IntegerField()
    artifacts = serializers.IntegerField()
    strategies = serializers.IntegerField()
    replay = serializers.IntegerField()


class ResumeAnswer(AnswerSerializer):
    conversation_id = serializers.CharField(help_text="Empty if there is none.")
    lineage = TextList(help_text="Conversations that it continues, latest first.")
    goals = PacketGoal(many=True)
    last_outcome = LastOutcome(allow_null=True)
    open_ends = OpenEnd(many=True)
    constraints = PacketConstraint(many=True)
    evidence = PacketEvidence(many=True, help_text="Decisions first, each in the order of time.")
    artifacts = PacketArtifact(many=True)
    strategies = PacketStrategy(many=True)
    replay = ReplayAnswer(allow_null=True)
    text = serializers.CharField(help_text="The packet as a system message. May be empty.")
    tokens = serializers.IntegerField(help_text="Tokens of the text, counted as for `max_tokens`.")
    left_out = LeftOut()
    degraded = Degraded()
    abstained = serializers.BooleanField(
        help_text="True if nothing that was found for `query` is likely enough to help: none of it is in the packet."
    )
    usage = UsageAnswer()


def sections_of(packet: ResumePacket) -> Mapping[str, Any]:
    """Return the members of the answer that are made of pieces. `details` are further members of a piece."""
    outcomes = packet.items_in(PacketSection.LAST_OUTCOME)
    return {
        "goals": [PacketGoal.serialize(piece, piece.details) for piece in packet.items_in(PacketSection.GOALS)],
        "last_outcome": LastOutcome.serialize(outcomes[0], outcomes[0].details) if outcomes else None,
        "open_ends": OpenEnd.serialize_each(packet.items_in(PacketSection.OPEN_ENDS)),
        "constraints": PacketConstraint.serialize_each(packet.items_in(PacketSection.CONSTRAINTS)),
        "evidence": PacketEvidence.serialize_each(packet.items_in(PacketSection.EVIDENCE)),
        "artifacts": [
            PacketArtifact.serialize(piece, piece.details) for piece in packet.items_in(PacketSection.ARTIFACTS)
        ],
        "strategies": [
            PacketStrategy.serialize(piece, piece.details) for piece in packet.items_in(PacketSection.STRATEGIES)
        ],
    }


class Resume(OwnerViewSet):
    """Reads everything that concerns the next move. Writes only that it was read."""

    for_users = True
    bodies = {"resume": ResumeBody}
    answers = {"resume": ResumeAnswer}
    scopes = {"resume": "read"}
    replica_reads = frozenset({"resume"})
    problems = {"resume": (404,)}
    rate_class = "retrieval"

    def resume(self, request: Request) -> Response:
        """Return what an agent that continues the work needs for the next move, within `max_tokens`.

        Goals with their blockers, the last outcome, open ends, constraints, decisions in force and evidence come from
        the conversation and those that it continues; artifacts and strategies too. They are read from structured turns
        if there are any, else from the messages. 404 for a conversation in which the agent takes no part.
        """
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        asked = ResumeRequest(**draft_fields(ResumeRequest, body), wants_replay=body["replay"])
        packet = resume_work(owner, asked, now=now)
        return FollowUpResponse(
            ResumeAnswer.serialize(packet, sections_of(packet)),
            follow_up=partial(conclude_resume, owner, packet, now=now),
        )
