"""Request fields and result shapes that `/recall` and `/context` share."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from memory.api.fields import Fraction, OwnerFields, PastDateTimeField, Similarity, TimeRangeQuery, TopK, draft_fields
from memory.api.vectors import QueryVectorFields, read_vector
from memory.kinds import Kind, kind_choices
from memory.models import TurnSlot
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Mode, Posture, Query, Scope
from memory.retrieval.techniques import TECHNIQUE_NAMES
from memory.services.recall.recall import RecallRequest
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import BoundedList, ExternalId, FiniteFloat, Flag, WholeNumber

MAX_DEADLINE_MS = 60_000
MIN_WINDOW_HOURS = 0.001
MAX_TOKENS = 1_000_000

POSTURES = [posture.value for posture in Posture]
SCOPES = [scope.value for scope in Scope]
MODES = [mode.value for mode in Mode]
TECHNIQUES = sorted({*TECHNIQUE_NAMES, *(f"-{name}" for name in TECHNIQUE_NAMES)})
"""Values of `techniques`: each name, and each name after a minus."""


class Choices(BoundedList):
    """A list of choices. Optional."""

    def __init__(self, choices: Sequence[Any], help_text: str) -> None:
        child = serializers.ChoiceField(choices)
        super().__init__(child=child, max_length=len(choices), required=False, help_text=help_text)


class Techniques(Choices):
    """The techniques of a recall (`retrieval.techniques`)."""

    def __init__(self) -> None:
        help_text = (
            "Names of techniques. Named rewriters are the only rewriters, named retrievers the only retrievers, and a "
            "named fusion replaces the others. A name after a minus is left out. At least one retriever that needs no "
            "other must remain."
        )
        super().__init__(TECHNIQUES, help_text)


class DeadlineField(WholeNumber):
    """A time limit in milliseconds."""

    def __init__(self, **options: Any) -> None:
        help_text = "Time limit in milliseconds. What is not ready by then is left out, and named in `degraded`."
        super().__init__(min_value=1, max_value=MAX_DEADLINE_MS, required=False, help_text=help_text, **options)


class RecallFields(OwnerFields, TimeRangeQuery, QueryVectorFields):
    """All fields but the question and `max_tokens`, which limits results in one and a text in the other."""

    conversation_id = ExternalId(
        required=False,
        help_text="Active conversation: memories near it are preferred, scopes filter by it.",
    )
    posture = serializers.ChoiceField(
        POSTURES,
        default=Posture.ACTIVE_TURN.value,
        help_text="Activity of the agent, which determines the order in which scopes are searched.",
    )
    scopes = Choices(
        SCOPES,
        "Limit to memories in one of these scopes. `turn`, `session`, `lineage` need a conversation, `profile` a user.",
    )
    kinds = Choices(kind_choices(), "Limit to memories of these kinds.")
    slots = Choices(TurnSlot.Slot.choices, "Limit to these slots of structured turns, without other memories.")
    top_k = TopK()
    mode = serializers.ChoiceField(
        MODES,
        default=Mode.DEFAULT.value,
        help_text="Part of each vector that is compared: the first 64 dimensions, the first 256, or all. Vectors of a "
        "model that is not trained for shortening are always compared as a whole.",
    )
    techniques = Techniques()
    time_window_hours = FiniteFloat(required=False, min_value=MIN_WINDOW_HOURS, help_text="Limit to so many hours ago.")
    as_of = PastDateTimeField(required=False, help_text="Facts that were true at this time. Default: now.")
    known_at = PastDateTimeField(required=False, help_text="Facts as they were believed at this time. Default: now.")
    min_confidence = Fraction(default=0.0, help_text="Least confidence of facts, from 0 to 1.")
    suppress_injected = Flag(default=False, help_text="Leave out what the conversation's injection ledger holds.")
    deadline_ms = DeadlineField()


def recall_request_from_body(owner: Owner, body: dict[str, Any], *, text: str) -> RecallRequest:
    """Make the recall request of a checked body with RecallFields. The caller sets `max_tokens`.

    Raises as `validate_vector` does.
    """
    given = draft_fields(Query, body) | {
        "text": text,
        "posture": Posture(body["posture"]),
        "mode": Mode(body["mode"]),
        # in the order sent, which is the order of preference
        "scopes": list(dict.fromkeys(Scope(name) for name in body.get("scopes", []))),
        "kinds": sorted({Kind(name) for name in body.get("kinds", [])}),
        "slots": sorted(set(body.get("slots", []))),
    }
    return RecallRequest(
        query=Query(**given),
        techniques=body.get("techniques", []),
        own=read_vector(owner, body, "query_embedding"),
        time_window_hours=body.get("time_window_hours"),
        deadline_ms=body.get("deadline_ms"),
        suppress_injected=body["suppress_injected"],
    )


class CandidateAnswer(AnswerSerializer):
    """A memory that a recall found."""

    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Key of this memory in the injection ledger.")
    kind = serializers.ChoiceField(kind_choices())
    conversation_id = serializers.CharField(help_text="Empty: none.")
    slot = serializers.ChoiceField(
        TurnSlot.Slot.choices, allow_null=True, help_text="Slot of a structured turn, or null."
    )
    record_id = serializers.UUIDField(allow_null=True, help_text="Structured turn that the slot belongs to.")
    similarity = Similarity()

    @staticmethod
    def compute_slot(candidate: Candidate) -> str | None:
        return candidate.slot or None
