"""`/recall`: the one question to memories of all kinds."""

from dataclasses import replace
from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Degraded, Prose
from memory.api.recall_fields import MOST_TOKENS, RecallFields, recall_request
from memory.api.views import ConcludedResponse, OwnerViewSet
from memory.models import Goal, Kind, TurnSlot
from memory.retrieval.candidates import Bundle, Candidate, Metric, OpenGoal
from memory.services.recall.recall import conclude, recall
from memory.services.recall.search import LONGEST_QUERY
from memory_project.http.serializers import Flag, WholeNumber


class RecallBody(RecallFields):
    """A question, for whom it is asked, and what may answer it."""

    query = Prose(max_length=LONGEST_QUERY, help_text="The question, or any text that memories shall be close to.")
    max_tokens = WholeNumber(
        required=False,
        min_value=1,
        max_value=MOST_TOKENS,
        help_text="Of all texts together, as estimated. What is too long for the rest makes way for what comes after.",
    )
    explain = Flag(default=False, help_text="Show of each result what every technique made of it (`signals`).")


class RecalledMemory(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(Kind.choices)
    text = serializers.CharField()
    score = serializers.FloatField(help_text="Comparable within one answer only.")
    similarity = serializers.FloatField(allow_null=True, help_text="1 - cosine distance; null without a vector.")
    event_time = serializers.DateTimeField()
    conversation_id = serializers.CharField(help_text="Empty for none.")
    slot = serializers.ChoiceField(TurnSlot.Slot.choices, allow_null=True, help_text="Of a turn slot; null of others.")
    record_id = serializers.UUIDField(allow_null=True, help_text="The structured turn that a turn slot is of.")
    channel = serializers.CharField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    reasons = serializers.ListField(child=serializers.CharField(), help_text="What speaks for it, for people.")
    also = serializers.ListField(child=serializers.UUIDField(), help_text="Near-duplicates that it stands for.")
    found_by = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Recallers that brought it; only when explained."
    )
    signals = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="Only when explained. The score is `relevance` times the factors of scorers, each under its name, "
        "unless a reranker (`rerank`) changed the order. Twice the logarithm of `relevance` is the sum of `ranked.*` "
        "less that of the most relevant memory; other fusions go by `bm25` and `similarity` alone.",
    )


class RecalledGoal(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    description = serializers.CharField()
    status = serializers.ChoiceField(Goal.Status.choices)
    priority = serializers.IntegerField()
    deadline = serializers.DateTimeField(allow_null=True)


class RecalledProfile(serializers.Serializer[Any]):
    user_id = serializers.CharField()
    preferences = serializers.DictField()
    expertise_areas = serializers.ListField(child=serializers.CharField())
    communication_style = serializers.DictField()


class TechniqueMetric(serializers.Serializer[Any]):
    technique = serializers.CharField(help_text="Or another step that takes time, such as `embedding`.")
    took_ms = serializers.FloatField()
    results = serializers.IntegerField(help_text="Memories that it brought, or kept.")


class RecallAnswer(serializers.Serializer[Any]):
    results = RecalledMemory(many=True, help_text="Best first.")
    goals = RecalledGoal(many=True, help_text="Open ones, the most urgent first.")
    profile = RecalledProfile(allow_null=True, help_text="Of the user; null without one.")
    metrics = TechniqueMetric(many=True)
    degraded = Degraded()


def represent_bundle(bundle: Bundle, *, explain: bool) -> dict[str, Any]:
    return {
        "results": [represent_result(result, explain=explain) for result in bundle.results],
        "goals": [represent_goal(goal) for goal in bundle.goals],
        "profile": bundle.profile,
        "metrics": [represent_metric(metric) for metric in bundle.metrics],
        "degraded": list(bundle.degraded),
    }


def represent_result(result: Candidate, *, explain: bool) -> dict[str, Any]:
    shown = {
        "id": str(result.id),
        "kind": result.kind.value,
        "text": result.text,
        "score": result.score,
        "similarity": result.similarity,
        "event_time": result.event_time,
        "conversation_id": result.conversation_id,
        "slot": result.slot or None,
        "record_id": None if result.record_id is None else str(result.record_id),
        "channel": result.channel,
        "item_key": result.item_key,
        "reasons": result.reasons,
        "also": [str(other) for other in result.also],
    }
    return shown | {"found_by": sorted(result.ways), "signals": result.signals} if explain else shown


def represent_goal(goal: OpenGoal) -> dict[str, Any]:
    return {
        "id": str(goal.id),
        "description": goal.description,
        "status": goal.status,
        "priority": goal.priority,
        "deadline": goal.deadline,
    }


def represent_metric(metric: Metric) -> dict[str, Any]:
    return {"technique": metric.technique, "took_ms": metric.took_ms, "results": metric.results}


class Recall(OwnerViewSet):
    """Of everything that the owner sees, what answers best. Writes nothing but that it was read."""

    bodies = {"recall": RecallBody}
    answers = {"recall": RecallAnswer}
    scopes = {"recall": "read"}
    rate_class = "retrieval"

    def recall(self, request: Request) -> Response:
        """The memories of all kinds that answer the question best, with open goals and the user's profile.

        Without a conversation and scopes everything that the owner sees is searched. A conversation orders: what is
        near it comes first; scopes filter. With a user, that user's memories and those of nobody in particular.
        """
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        asked = replace(recall_request(owner, body, text=body["query"]), max_tokens=body.get("max_tokens"))
        bundle = recall(owner, asked, now=now)
        return ConcludedResponse(
            represent_bundle(bundle, explain=body["explain"]),
            conclude=partial(conclude, owner, asked, bundle, now=now),
        )
