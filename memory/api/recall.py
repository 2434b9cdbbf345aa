"""`/recall`: one question to memories of all kinds. `/context` shares its request fields and result shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    AwareDateTimeField,
    Degraded,
    Fraction,
    IdList,
    MemoryStatus,
    OwnerFields,
    PastDateTimeField,
    QuestionText,
    Similarity,
    TextList,
    TimeRangeFields,
    TopK,
    draft_fields,
)
from memory.api.snippets import SnippetFields, SnippetOptions
from memory.api.vectors import QueryVectorFields, QuestionFields, read_vector
from memory.api.views import FollowUpResponse, OwnerViewSet
from memory.errors import Unprocessable
from memory.kinds import Kind, kind_choices, kinds_of_types
from memory.models import Goal, TurnSlot
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import MAX_QUERY_CHARACTERS, Mode, Posture, Query, Scope
from memory.retrieval.techniques import TECHNIQUE_NAMES
from memory.services.recall.recall import RecallRequest, conclude_recall, recall
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import BoundedList, ExternalId, FiniteFloat, Flag, WholeNumber, describe_choices

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
        describe_choices(child)
        super().__init__(child=child, max_length=len(choices), required=False, help_text=help_text)


class Techniques(Choices):
    """The techniques of a recall (`retrieval.techniques`)."""

    def __init__(self) -> None:
        help_text = (
            "Names of techniques. Named rewriters are the only rewriters besides `names`, named retrievers the only "
            "retrievers, and a named fusion replaces the others. A name after a minus is left out. At least one "
            "retriever that needs no other must remain."
        )
        super().__init__(TECHNIQUES, help_text)


DeadlineField = partial(
    WholeNumber,
    min_value=1,
    max_value=MAX_DEADLINE_MS,
    required=False,
    help_text="Time limit in milliseconds. What is not ready by then is left out, and named in `degraded`.",
)
"""A time limit in milliseconds."""
CONFIDENCE_DIGITS = 4
ABSTAINED_HELP = "True if memories were found, but none that is likely enough to help."


class RecallFields(OwnerFields, TimeRangeFields, QueryVectorFields, SnippetOptions):
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
    include_episodic = Flag(default=True, help_text="Include turns, episodes and records of work.")
    include_semantic = Flag(default=True, help_text="Include facts, entities, goals and other knowledge.")
    include_procedural = Flag(default=True, help_text="Include strategies.")
    slots = Choices(TurnSlot.Slot.choices, "Limit to these slots of structured turns, without other memories.")
    top_k = TopK()
    mode = serializers.ChoiceField(
        MODES,
        required=False,
        help_text="Part of each vector that is compared: the first 64 dimensions, the first 256, or all. Vectors of a "
        "model that is not trained for shortening are always compared as a whole, and so are passages of long texts "
        "without an index; `broad` and `default` then answer `mode_not_supported` in `degraded`. `deep` looks at more "
        "candidates where there are long texts. Default: the first 256 where the model allows it, else all.",
    )
    techniques = Techniques()
    time_window_hours = FiniteFloat(required=False, min_value=MIN_WINDOW_HOURS, help_text="Limit to so many hours ago.")
    as_of = AwareDateTimeField(
        required=False,
        help_text="Facts that were true at this time, or will be, as far as is known. Default: now, so that a "
        "fact is not found before its `valid_from`. What was said later is still found: add `until` to leave it out.",
    )
    known_at = PastDateTimeField(required=False, help_text="Facts as they were believed at this time. Default: now.")
    min_confidence = Fraction(default=0.0, help_text="Least confidence of facts, from 0 to 1.")
    min_score = Fraction(
        required=False,
        help_text="Least `confidence` of results, from 0 to 1. Default: none in `/recall`; `/context` leaves all "
        "out if even the best result is unlikely to help.",
    )
    include_superseded = Flag(
        default=False,
        help_text="Rank statements that later ones replaced like any others. They are marked with `superseded_by`.",
    )
    suppress_injected = Flag(default=False, help_text="Leave out what the conversation's injection ledger holds.")
    deadline_ms = DeadlineField()


def recall_request_from_body(owner: Owner, body: dict[str, Any], *, text: str) -> RecallRequest:
    """Make the recall request of a checked body with RecallFields. The caller sets `max_tokens`.

    Raises as `validate_vector` does.
    """
    given = draft_fields(Query, body) | {
        "text": text,
        "posture": Posture(body["posture"]),
        "mode": Mode(body["mode"]) if "mode" in body else None,
        # in the order sent, which is the order of preference
        "scopes": list(dict.fromkeys(Scope(name) for name in body.get("scopes", []))),
        "kinds": kinds_from_body(body),
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


def kinds_from_body(body: dict[str, Any]) -> list[Kind]:
    """Return the kinds to search, sorted; empty for all. Raises Unprocessable if none is left."""
    named = sorted({Kind(name) for name in body.get("kinds", [])})
    included = kinds_of_types(
        episodic=body["include_episodic"], semantic=body["include_semantic"], procedural=body["include_procedural"]
    )
    kinds = [kind for kind in named if kind in included] if named and included else named or included
    if named and not kinds:
        raise Unprocessable("no kind is left: `kinds` names none of the included types of memory")
    return kinds


class CandidateAnswer(SnippetFields):
    """A memory that a recall found."""

    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Key of this memory in the injection ledger.")
    kind = serializers.ChoiceField(kind_choices())
    conversation_id = serializers.CharField(help_text="Empty: none.")
    slot = serializers.ChoiceField(
        TurnSlot.Slot.choices, allow_null=True, help_text="Slot of a structured turn, or null."
    )
    record_id = serializers.UUIDField(allow_null=True, help_text="Structured turn that the slot belongs to.")
    status = MemoryStatus()
    similarity = Similarity()
    confidence = serializers.FloatField(
        allow_null=True,
        help_text="How likely the memory helps to answer, from 0 to 1. Comparable between answers. Null "
        "for a turn that is included because it is next to a result.",
    )
    flags = TextList(
        help_text="`instruction`: the text gives orders to the model that reads it. Such results are told last. "
        "Found by rules, which miss some."
    )
    superseded_by = serializers.UUIDField(
        allow_null=True, help_text="Later memory of this answer that replaces what this one says, or null."
    )
    superseded_at = serializers.DateTimeField(
        allow_null=True, help_text="When the later one was said. Null if nothing replaces it."
    )

    @staticmethod
    def compute_slot(candidate: Candidate) -> str | None:
        return candidate.slot or None

    @staticmethod
    def compute_status(candidate: Candidate) -> str | None:
        return candidate.status or None

    @staticmethod
    def compute_confidence(candidate: Candidate) -> float | None:
        return round(candidate.likelihood, CONFIDENCE_DIGITS) if candidate.ways else None


class RecallBody(QuestionFields, RecallFields):
    """A question, for whom it is asked, and which memories may answer it."""

    query = QuestionText(
        required=False,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="The question, or a text that memories should be close to. Required without `query_embedding`.",
    )
    max_tokens = WholeNumber(
        required=False,
        min_value=1,
        max_value=MAX_TOKENS,
        help_text="Maximum number of tokens of all texts together, estimated. A text that is too long for the rest is "
        "skipped in favour of later ones. Of long texts the snippets count, unless `whole`. Default: no limit.",
    )
    explain = Flag(default=False, help_text="Add to each result what every technique made of it (`signals`).")


class RecalledMemory(CandidateAnswer):
    text = serializers.CharField(help_text="The text, or the snippet of a longer one, unless `whole`.")
    truncated = serializers.BooleanField(help_text="True if `text` is not the whole text.")
    score = serializers.FloatField(help_text="Comparable within one answer only.")
    event_time = serializers.DateTimeField()
    channel = serializers.CharField()
    reasons = TextList(help_text="Why it was found, for people.")
    also = IdList(help_text="Near-duplicates that it stands for.")
    found_by = TextList(required=False, help_text="Retrievers that found it. Present with `explain`.")
    signals = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="Present with `explain`. The score is `relevance` times the factors of scorers, each under its name, "
        "unless a reranker (`rerank`) changed the order. Twice the logarithm of `relevance` is the sum of `ranked.*` "
        "less that of the most relevant memory; other fusions use `bm25` and `similarity` alone.",
    )


def serialize_result(result: Candidate, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with as much of its text, and of its explanation, as the request asks for."""
    text = result.text if body["whole"] else result.snippet
    given: dict[str, Any] = {"text": text, "truncated": result.is_cut or len(text) < len(result.text)}
    if body["explain"]:
        given |= {"found_by": sorted(result.ways), "signals": result.signals}
    return RecalledMemory.serialize(result, given)


class RecalledGoal(AnswerSerializer):
    columns = columns_of(Goal, "id status priority deadline")
    description = serializers.CharField()


class RecalledProfile(serializers.Serializer[Any]):
    user_id = serializers.CharField()
    preferences = serializers.DictField()
    expertise_areas = TextList()
    communication_style = serializers.DictField()


class TechniqueMetric(AnswerSerializer):
    technique = serializers.CharField(help_text="A technique, or another step that takes time, such as `embedding`.")
    took_ms = serializers.FloatField(help_text="Milliseconds.")
    results = serializers.IntegerField(help_text="Number of memories that it found, or kept.")


class UsageAnswer(AnswerSerializer):
    """The cost of an answer."""

    candidates = serializers.IntegerField(help_text="Number of memories that were scored.")
    tokens = serializers.IntegerField(help_text="Tokens of the texts in the answer, estimated.")
    source_tokens = serializers.IntegerField(
        help_text="Tokens of the whole memories that these texts come from, estimated."
    )
    stages_ms = serializers.DictField(
        child=serializers.FloatField(),
        help_text="Milliseconds of each stage, in order: `rewrite`, `embed`, `analyze`, `gather`, `rank`, `rerank`, "
        "`select`, and around a recall `read`, `strategies`, `neighbours`, `pack`.",
    )


class RecallAnswer(AnswerSerializer):
    results = RecalledMemory(many=True, help_text="Best first.")
    goals = RecalledGoal(many=True, help_text="Open goals, most urgent first.")
    profile = RecalledProfile(allow_null=True, help_text="Profile of the user. Null without a user.")
    metrics = TechniqueMetric(many=True)
    degraded = Degraded()
    abstained = serializers.BooleanField(help_text=ABSTAINED_HELP)
    usage = UsageAnswer()


class Recall(OwnerViewSet):
    """Searches everything that the owner sees. Writes only that the memories were read."""

    for_users = True
    bodies = {"recall": RecallBody}
    answers = {"recall": RecallAnswer}
    scopes = {"recall": "read"}
    replica_reads = frozenset({"recall"})
    rate_class = "retrieval"

    def recall(self, request: Request) -> Response:
        """Find the memories of all kinds that answer the question best, with open goals and the user's profile.

        Without a conversation and scopes, everything that the owner sees is searched. A conversation affects the order:
        what is near it comes first. Scopes filter. With a user, memories of other users are not
        searched.
        """
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        asked = replace(
            recall_request_from_body(owner, body, text=body.get("query", "")), max_tokens=body.get("max_tokens")
        )
        bundle = recall(owner, asked, now=now)
        results = [serialize_result(result, body) for result in bundle.results]
        usage = bundle.usage.with_whole_texts() if body["whole"] else bundle.usage
        answer = RecallAnswer.serialize(bundle, {"results": results, "usage": UsageAnswer.serialize(usage)})
        return FollowUpResponse(
            {"results": results, **answer},  # what was asked for comes first
            follow_up=partial(conclude_recall, owner, asked, bundle, now=now),
        )
