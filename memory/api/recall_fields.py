"""What `/recall` and `/context` are asked with alike, and the question that services take."""

from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from memory.api.episodic import MAX_TOP_K, own_vector
from memory.api.fields import Moment, OwnerFields
from memory.api.vectors import EmbeddingField
from memory.models import Kind, TurnSlot
from memory.owner import Owner
from memory.retrieval.queries import Mode, Posture, Query, Scope
from memory.retrieval.techniques import NAMES
from memory.services.recall.recall import RecallRequest
from memory.services.turns.store import CLOCK_SKEW
from memory_project.http.serializers import BoundedList, ExternalId, FiniteFloat, Flag, WholeNumber

DEFAULT_TOP_K = 10
LONGEST_DEADLINE_MS = 60_000
SHORTEST_WINDOW_HOURS = 0.001
MOST_TOKENS = 1_000_000

POSTURES = [posture.value for posture in Posture]
SCOPES = [scope.value for scope in Scope]
MODES = [mode.value for mode in Mode]
TECHNIQUES = sorted({*NAMES, *(f"-{name}" for name in NAMES)})
"""What `techniques` may hold: each name, and each with a minus before it."""

FILTERS = ("since", "until", "as_of", "known_at", "min_confidence")


class PastMoment(Moment):
    """A moment that has come, as far as clocks agree."""

    def to_internal_value(self, value: Any) -> datetime:
        moment = super().to_internal_value(value)
        if moment > timezone.now() + CLOCK_SKEW:
            raise serializers.ValidationError("Lies more than 5 minutes ahead.")
        return moment


class Techniques(BoundedList):
    """What a recall goes through (`retrieval.techniques`)."""

    def __init__(self, **options: Any) -> None:
        help_text = (
            "Rewriters that are named are the only rewriters, recallers the only recallers, a fusion takes the place "
            "of the others; one with a minus before it is left out. One recaller that finds by itself has to be left."
        )
        super().__init__(
            child=serializers.ChoiceField(TECHNIQUES), max_length=len(TECHNIQUES), help_text=help_text, **options
        )


class RecallFields(OwnerFields):
    """Everything but the question itself and `max_tokens`: of one it bounds results, of the other a text."""

    conversation_id = ExternalId(
        required=False, help_text="The active one: what is near it is preferred; scopes that are sent filter by it."
    )
    posture = serializers.ChoiceField(
        POSTURES, default=Posture.ACTIVE_TURN.value, help_text="What the agent is about: in which order scopes open."
    )
    scopes = BoundedList(
        child=serializers.ChoiceField(SCOPES),
        required=False,
        max_length=len(SCOPES),
        help_text="What is in one of these only. `turn`, `session`, `lineage` need a conversation, `profile` a user.",
    )
    kinds = BoundedList(
        child=serializers.ChoiceField(Kind.choices),
        required=False,
        max_length=len(Kind),
        help_text="Memories of these kinds only.",
    )
    slots = BoundedList(
        child=serializers.ChoiceField(TurnSlot.Slot.choices),
        required=False,
        max_length=len(TurnSlot.Slot),
        help_text="These slots of structured turns only, and nothing else.",
    )
    top_k = WholeNumber(default=DEFAULT_TOP_K, min_value=1, max_value=MAX_TOP_K)
    mode = serializers.ChoiceField(
        MODES,
        default=Mode.DEFAULT.value,
        help_text="How much of the vectors finds: a prefix of 64 dimensions, of 256, or all of them. "
        "Prefixes of a model that is not trained for them find by all.",
    )
    techniques = Techniques(required=False)
    since = Moment(required=False, help_text="What happened then or later.")
    until = Moment(required=False, help_text="What happened before that.")
    time_window_hours = FiniteFloat(
        required=False, min_value=SHORTEST_WINDOW_HOURS, help_text="What happened in the last hours."
    )
    as_of = PastMoment(required=False, help_text="Facts that were true then, instead of now.")
    known_at = PastMoment(required=False, help_text="Facts as they were believed then.")
    min_confidence = FiniteFloat(default=0.0, min_value=0, max_value=1, help_text="Of facts.")
    suppress_injected = Flag(default=False, help_text="Leave out what the conversation's ledger holds.")
    deadline_ms = WholeNumber(
        required=False,
        min_value=1,
        max_value=LONGEST_DEADLINE_MS,
        help_text="What is not there by then is left out, and named in `degraded`.",
    )
    query_embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")


def recall_request(owner: Owner, body: dict[str, Any], *, text: str) -> RecallRequest:
    """What a checked body with RecallFields asks, in these words; `max_tokens` is left to the caller.

    Raises as `admit_vector` does.
    """
    query = Query(
        text=text,
        top_k=body["top_k"],
        conversation_id=body.get("conversation_id", ""),
        posture=Posture(body["posture"]),
        mode=Mode(body["mode"]),
        # in the order sent, which says which are preferred
        scopes=list(dict.fromkeys(Scope(name) for name in body.get("scopes", []))),
        kinds=sorted({Kind(name) for name in body.get("kinds", [])}),
        slots=sorted(set(body.get("slots", []))),
        **{name: body[name] for name in FILTERS if name in body},
    )
    return RecallRequest(
        query=query,
        techniques=body.get("techniques", []),
        own=own_vector(owner, body, "query_embedding"),
        time_window_hours=body.get("time_window_hours"),
        deadline_ms=body.get("deadline_ms"),
        suppress_injected=body["suppress_injected"],
    )
