"""`/replay`: the smallest slice of what was done that answers, and no deeper than it may be told."""

from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Degraded, OwnerFields, Prose
from memory.api.recall_fields import POSTURES
from memory.api.views import ConcludedResponse, OwnerViewSet
from memory.models import ApiKey, CompressionLevel, TurnSlot
from memory.reasoning import Provenance, ReasoningTier
from memory.retrieval.queries import LONGEST_QUERY, Posture
from memory.services.replay.candidates import PIECE_KINDS, Piece
from memory.services.replay.replay import (
    DEEP_POSTURES,
    DEFAULT_TOKENS,
    FEWEST_TOKENS,
    MOST_TOKENS,
    ReplayRequest,
    Slice,
    conclude_replay,
    replay,
)
from memory_project.http.problems import Problem
from memory_project.http.serializers import ExternalId, WholeNumber

TARGETS = ("goal_id", "record_id", "episode_id", "decision")
TIERS = [tier.value for tier in ReasoningTier]


class ReplayBody(OwnerFields):
    """What to replay: exactly one of a goal, a record, a work episode, and a decision."""

    goal_id = serializers.UUIDField(required=False, help_text="What was done for it, and where it stands.")
    record_id = serializers.UUIDField(required=False, help_text="One structured turn, and what led to it.")
    episode_id = serializers.UUIDField(required=False, help_text="One work episode.")
    decision = Prose(
        required=False,
        max_length=LONGEST_QUERY,
        help_text="What was decided, in words: the turn that says so, what came of it, what was decided later.",
    )
    conversation_id = ExternalId(
        required=False, help_text="Where a decision is looked for, and in the conversations that it continues."
    )
    tier = serializers.ChoiceField(
        TIERS, default=ReasoningTier.DECISION_SUMMARY.value, help_text="The deepest of reasoning that is wanted."
    )
    posture = serializers.ChoiceField(
        POSTURES,
        default=Posture.RESUME.value,
        help_text="`recovery` and `audit` tell what was merged, too, where there is room, and raw traces where these "
        "are asked for (scope deep_replay).",
    )
    max_tokens = WholeNumber(
        default=DEFAULT_TOKENS,
        min_value=FEWEST_TOKENS,
        max_value=MOST_TOKENS,
        help_text="Of the texts of all pieces together, as estimated: never more.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if sum(name in attrs for name in TARGETS) != 1:
            raise serializers.ValidationError(f"Name exactly one of {', '.join(TARGETS)}.")
        if "conversation_id" in attrs and "decision" not in attrs:
            raise serializers.ValidationError({"conversation_id": ["Goes with a decision alone."]})
        return attrs


class ReplayTarget(serializers.Serializer[Any]):
    type = serializers.ChoiceField([name.removesuffix("_id") for name in TARGETS])
    id = serializers.UUIDField(
        allow_null=True, help_text="As it was asked for; of a decision the memory that says it, null where none does."
    )


class ReplayPiece(serializers.Serializer[Any]):
    record_id = serializers.UUIDField(allow_null=True, help_text="The structured turn that it is of.")
    episode_id = serializers.UUIDField(allow_null=True, help_text="The work episode that it is.")
    memory_id = serializers.UUIDField(allow_null=True, help_text="Null of a raw trace, which is no memory.")
    kind = serializers.ChoiceField(PIECE_KINDS)
    slot = serializers.ChoiceField(["", *TurnSlot.Slot.values], help_text="Empty of a work episode.")
    level = serializers.ChoiceField(CompressionLevel.choices, help_text="How far it is compressed.")
    tier = serializers.ChoiceField(["", *TIERS], help_text="The deepest of reasoning that it tells; empty for none.")
    provenance = serializers.ChoiceField(["", *map(str, Provenance)], help_text="Where that reasoning comes from.")
    text = serializers.CharField()
    tokens = serializers.IntegerField()
    reason = serializers.CharField(help_text="Why it is told.")
    event_time = serializers.DateTimeField()


class ReplayAnswer(serializers.Serializer[Any]):
    target = ReplayTarget()
    posture = serializers.ChoiceField(POSTURES)
    tier = serializers.ChoiceField(TIERS, help_text="The deepest that is told.")
    allowed_tier = serializers.ChoiceField(
        TIERS, help_text="The deepest that could be: what the account allows now, and posture and key open."
    )
    pieces = ReplayPiece(many=True, help_text="In order of time.")
    tokens = serializers.IntegerField()
    left_out = serializers.IntegerField(help_text="Pieces that there was no room for.")
    degraded = Degraded()


def represent_slice(told: Slice) -> dict[str, Any]:
    named = next(name for name in TARGETS if getattr(told.request, name))
    return {
        "target": {"type": named.removesuffix("_id"), "id": text_of(told.target_id)},
        "posture": told.request.posture.value,
        "tier": told.tier.value,
        "allowed_tier": told.allowed.value,
        "pieces": [represent_piece(piece) for piece in told.pieces],
        "tokens": told.tokens,
        "left_out": told.left_out,
        "degraded": list(told.degraded),
    }


def represent_piece(piece: Piece) -> dict[str, Any]:
    return {
        "record_id": text_of(piece.record_id),
        "episode_id": text_of(piece.episode_id),
        "memory_id": text_of(piece.memory_id),
        "kind": piece.kind,
        "slot": piece.slot,
        "level": piece.level,
        "tier": piece.tier,
        "provenance": piece.provenance,
        "text": piece.text,
        "tokens": piece.tokens,
        "reason": piece.reason,
        "event_time": piece.event_time,
    }


def text_of(row_id: Any) -> str | None:
    return None if row_id is None else str(row_id)


class Replays(OwnerViewSet):
    """Of what the agent takes part in. Writes nothing but that it was read."""

    bodies = {"replay": ReplayBody}
    answers = {"replay": ReplayAnswer}
    scopes = {"replay": "read"}
    rate_class = "retrieval"

    def replay(self, request: Request) -> Response:
        """Outcomes and decisions of a goal, of a turn with what led to it, of a work episode, or of a decision.

        Summaries first; rationales where `tier` asks for them. Raw traces are told in the postures `recovery` and
        `audit` alone (else 422), to keys with the scope deep_replay (else 403), where the account's policy allows them
        (else `degraded` says `raw_trace_not_allowed`), and are in the audit log each time. 404 for what the agent takes
        no part in.
        """
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        asked = replay_request(body, has_scope=ApiKey.Scope.DEEP_REPLAY in self.credential.scopes)
        if asked.is_deep and asked.posture in DEEP_POSTURES:
            # the service refuses it as well; this says which scope a key lacks, as everywhere
            self.credential.require(ApiKey.Scope.DEEP_REPLAY)
            self.refuse_keeping(request)
        told = replay(owner, asked, now=now)
        return ConcludedResponse(represent_slice(told), conclude=partial(conclude_replay, owner, told, now=now))

    def refuse_keeping(self, request: Request) -> None:
        """An answer that is kept for who asks again would hold the traces unsealed, and be told again unaudited."""
        if "Idempotency-Key" in request.headers:
            detail = "An answer with raw traces is not kept: ask without an Idempotency-Key, as often as needed."
            raise Problem(400, "idempotency_key_refused", detail)


def replay_request(body: dict[str, Any], *, has_scope: bool) -> ReplayRequest:
    """What a checked body asks."""
    named = {name: body[name] for name in (*TARGETS, "conversation_id") if name in body}
    return ReplayRequest(
        **named,
        tier=ReasoningTier(body["tier"]),
        posture=Posture(body["posture"]),
        max_tokens=body["max_tokens"],
        has_scope=has_scope,
    )
