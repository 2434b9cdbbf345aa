"""`/recall`: one question to memories of all kinds."""

from dataclasses import replace
from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Degraded, IdList, NonBlankText, TextList
from memory.api.recall_fields import MAX_TOKENS, CandidateAnswer, RecallFields, recall_request_from_body
from memory.api.views import FollowUpResponse, OwnerViewSet
from memory.models import Goal
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.services.recall.recall import conclude_recall, recall
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import Flag, WholeNumber


class RecallBody(RecallFields):
    """A question, for whom it is asked, and which memories may answer it."""

    query = NonBlankText(
        max_length=MAX_QUERY_CHARACTERS, help_text="The question, or a text that memories should be close to."
    )
    max_tokens = WholeNumber(
        required=False,
        min_value=1,
        max_value=MAX_TOKENS,
        help_text="Maximum number of tokens of all texts together, estimated. A text that is too long for the rest is "
        "skipped in favour of later ones. Default: no limit.",
    )
    explain = Flag(default=False, help_text="Add to each result what every technique made of it (`signals`).")


class RecalledMemory(CandidateAnswer):
    text = serializers.CharField()
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


class RecalledGoal(AnswerSerializer):
    id = serializers.UUIDField()
    description = serializers.CharField()
    status = serializers.ChoiceField(Goal.Status.choices)
    priority = serializers.IntegerField()
    deadline = serializers.DateTimeField(allow_null=True)


class RecalledProfile(serializers.Serializer[Any]):
    user_id = serializers.CharField()
    preferences = serializers.DictField()
    expertise_areas = TextList()
    communication_style = serializers.DictField()


class TechniqueMetric(AnswerSerializer):
    technique = serializers.CharField(help_text="A technique, or another step that takes time, such as `embedding`.")
    took_ms = serializers.FloatField(help_text="Milliseconds.")
    results = serializers.IntegerField(help_text="Number of memories that it found, or kept.")


class RecallAnswer(AnswerSerializer):
    results = RecalledMemory(many=True, help_text="Best first.")
    goals = RecalledGoal(many=True, help_text="Open goals, most urgent first.")
    profile = RecalledProfile(allow_null=True, help_text="Profile of the user. Null without a user.")
    metrics = TechniqueMetric(many=True)
    degraded = Degraded()


class Recall(OwnerViewSet):
    """Searches everything that the owner sees. Writes only that the memories were read."""

    bodies = {"recall": RecallBody}
    answers = {"recall": RecallAnswer}
    scopes = {"recall": "read"}
    rate_class = "retrieval"

    def recall(self, request: Request) -> Response:
        """Find the memories of all kinds that answer the question best, with open goals and the user's profile.

        Without a conversation and scopes, everything that the owner sees is searched. A conversation affects the order:
        what is near it comes first. Scopes filter. With a user, memories of that user and of no user in particular are
        searched.
        """
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        asked = replace(recall_request_from_body(owner, body, text=body["query"]), max_tokens=body.get("max_tokens"))
        bundle = recall(owner, asked, now=now)
        results = [
            RecalledMemory.serialize(
                result, {"found_by": sorted(result.ways), "signals": result.signals} if body["explain"] else {}
            )
            for result in bundle.results
        ]
        return FollowUpResponse(
            RecallAnswer.serialize(bundle, {"results": results}),
            follow_up=partial(conclude_recall, owner, asked, bundle, now=now),
        )
