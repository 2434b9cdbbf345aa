"""`/replay`: the smallest slice of past work that answers a question, with no deeper reasoning than is allowed."""

from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Degraded, Flags, NonBlankText, OwnerFields, draft_fields
from memory.api.recall import POSTURES
from memory.api.views import FollowUpResponse, OwnerViewSet
from memory.models import ApiKey, CompressionLevel, TurnSlot
from memory.reasoning import Provenance, ReasoningTier
from memory.retrieval.queries import MAX_QUERY_CHARACTERS, Posture
from memory.services.replay.candidates import DEEP_POSTURES, DEFAULT_TOKENS, REPLAY_ITEM_KINDS, ReplayRequest
from memory.services.replay.replay import MAX_REPLAY_TOKENS, MIN_REPLAY_TOKENS, ReplaySlice, conclude_replay, replay
from memory_project.http.answers import AnswerSerializer
from memory_project.http.problems import Problem
from memory_project.http.serializers import ExternalId, WholeNumber

TARGETS = ("goal_id", "record_id", "episode_id", "decision")
TIERS = [tier.value for tier in ReasoningTier]


class ReplayBody(OwnerFields):
    """The target of a replay: exactly one of a goal, a structured turn, a work episode, and a decision."""

    goal_id = serializers.UUIDField(required=False, help_text="A goal: what was done for it, and its present state.")
    record_id = serializers.UUIDField(required=False, help_text="A structured turn, and what led to it.")
    episode_id = serializers.UUIDField(required=False, help_text="A work episode.")
    decision = NonBlankText(
        required=False,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="A decision in words: the turn that made it, its result, and later decisions about it.",
    )
    conversation_id = ExternalId(
        required=False, help_text="Limit the search for a decision to it and the conversations that it continues."
    )
    tier = serializers.ChoiceField(
        TIERS, default=ReasoningTier.DECISION_SUMMARY.value, help_text="Deepest tier wanted."
    )
    posture = serializers.ChoiceField(
        POSTURES,
        default=Posture.RESUME.value,
        help_text="`recovery` and `audit` also show what was merged, if there is room, and raw traces if `tier` asks "
        "for them (scope deep_replay).",
    )
    max_tokens = WholeNumber(
        default=DEFAULT_TOKENS,
        min_value=MIN_REPLAY_TOKENS,
        max_value=MAX_REPLAY_TOKENS,
        help_text="Maximum number of tokens of the texts of all pieces together, estimated.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if sum(name in attrs for name in TARGETS) != 1:
            raise serializers.ValidationError(f"Send exactly one of: {', '.join(TARGETS)}.")
        if "conversation_id" in attrs and "decision" not in attrs:
            raise serializers.ValidationError({"conversation_id": ["Allowed together with a decision only."]})
        return attrs


class ReplayTarget(AnswerSerializer):
    type = serializers.ChoiceField([name.removesuffix("_id") for name in TARGETS])
    id = serializers.UUIDField(
        allow_null=True,
        help_text="The memory that states a decision, or null.",
    )


class ReplayPiece(AnswerSerializer):
    record_id = serializers.UUIDField(allow_null=True, help_text="Structured turn that the piece belongs to.")
    episode_id = serializers.UUIDField(allow_null=True, help_text="Work episode that the piece is.")
    memory_id = serializers.UUIDField(allow_null=True, help_text="Null for a raw trace, which is not a memory.")
    kind = serializers.ChoiceField(REPLAY_ITEM_KINDS)
    slot = serializers.ChoiceField(TurnSlot.Slot.choices, allow_blank=True, help_text="Empty for a work episode.")
    level = serializers.ChoiceField(CompressionLevel.choices, help_text="Compression of the piece.")
    tier = serializers.ChoiceField(["", *TIERS], help_text="Deepest tier of reasoning in it. Empty: none.")
    provenance = serializers.ChoiceField(["", *map(str, Provenance)], help_text="Origin of that reasoning.")
    text = serializers.CharField()
    flags = Flags()
    tokens = serializers.IntegerField(help_text="Estimated number of tokens of the text.")
    reason = serializers.CharField(help_text="Why the piece is included.")
    event_time = serializers.DateTimeField()


class ReplayAnswer(AnswerSerializer):
    target = ReplayTarget()
    posture = serializers.ChoiceField(POSTURES, source="request.posture")
    tier = serializers.ChoiceField(TIERS, help_text="Deepest tier of reasoning in the answer.")
    allowed_tier = serializers.ChoiceField(
        TIERS,
        source="allowed",
        help_text="Deepest tier possible: what the account's policy, the posture and the key's scopes allow now.",
    )
    pieces = ReplayPiece(many=True, source="items", help_text="Earliest first.")
    tokens = serializers.IntegerField(help_text="Estimated number of tokens of all texts.")
    left_out = serializers.IntegerField(help_text="Number of pieces that did not fit.")
    degraded = Degraded()

    @staticmethod
    def compute_target(replayed: ReplaySlice) -> dict[str, Any]:
        named = next(name for name in TARGETS if getattr(replayed.request, name))
        return {"type": named.removesuffix("_id"), "id": replayed.target_id}


class Replays(OwnerViewSet):
    """Replays work that the agent takes part in. Writes only that it was read."""

    for_users = True
    bodies = {"replay": ReplayBody}
    answers = {"replay": ReplayAnswer}
    scopes = {"replay": "read"}
    problems = {"replay": (404,)}
    rate_class = "retrieval"

    def replay(self, request: Request) -> Response:
        """Return outcomes and decisions of a goal, of a turn with what led to it, of a work episode, or of a decision.

        Summaries come first; rationales are included if `tier` asks for them. Raw traces need the posture `recovery` or
        `audit` (else 422), a key with the scope deep_replay (else 403), and the account's policy (else `degraded` has
        `raw_trace_not_allowed`); every such answer is in the audit log. 404 for work that the agent takes no part in.
        """
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        given = draft_fields(ReplayRequest, body)
        given |= {"tier": ReasoningTier(body["tier"]), "posture": Posture(body["posture"])}
        asked = ReplayRequest(**given, has_scope=ApiKey.Scope.DEEP_REPLAY in self.credential.scopes)
        if asked.is_deep and asked.posture in DEEP_POSTURES:
            # the service refuses it as well; here the error names the missing scope, as everywhere
            self.credential.require(ApiKey.Scope.DEEP_REPLAY)
            self.refuse_recording(request)
        replayed = replay(owner, asked, now=now)
        return FollowUpResponse(
            ReplayAnswer.serialize(replayed), follow_up=partial(conclude_replay, owner, replayed, now=now)
        )

    def refuse_recording(self, request: Request) -> None:
        """Refuse an Idempotency-Key: a recorded answer would hold traces unsealed, and repeat them without an audit."""
        if "Idempotency-Key" in request.headers:
            detail = "Answers with raw traces are not recorded. Send the request without an Idempotency-Key."
            raise Problem(400, "idempotency_key_refused", detail)
