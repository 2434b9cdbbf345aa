"""`/work-episodes`: adjacent structured turns of one goal, merged, and the turns that they were made of."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import ChoiceFilter, UUIDFilter
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import MemoryFields
from memory.api.filters import RowFilter, TextFilter
from memory.api.views import OwnerViewSet
from memory.models import CompressionLevel, TurnRecord, TurnSlot, WorkEpisode
from memory.reasoning import ReasoningTier
from memory.services.records.read import RecordView
from memory.services.records.reasoning import read_policy
from memory.services.work_episodes.read import (
    ExpandedEpisode,
    WorkEpisodeView,
    redacted_view,
    view_work_episode,
    visible_work_episodes,
)
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields

LEVELS = [(str(level.value), level.label) for level in (CompressionLevel.MERGED, CompressionLevel.ARCHIVED)]
TIERS = [tier.value for tier in ReasoningTier]


class EpisodeQuery(ActingFields):
    expand = serializers.ChoiceField(
        ["0", "1"],
        required=False,
        help_text="Add the structured turns that it stands for, their slots as stored (`0`) or shortened (`1`).",
    )


class StoredWorkEpisode(MemoryFields):
    goal_id = serializers.UUIDField(source="for_goal_id", allow_null=True, help_text="Goal that was worked on.")
    level = serializers.ChoiceField(CompressionLevel.choices, help_text="2: merged, 3: archived.")
    first_number = serializers.IntegerField(help_text="Number of the first structured turn that it stands for.")
    last_number = serializers.IntegerField(help_text="Number of the last structured turn that it stands for.")
    tier = serializers.ChoiceField(TIERS, help_text="Deepest tier of reasoning in its text and data.")
    text = serializers.CharField(help_text="Empty if the account's policy allows to show nothing of it.")
    # the contract's name, and a serializer's attribute too
    data = serializers.DictField(  # type: ignore[assignment]
        help_text="Lists of texts: decisions, findings, produced, open_ends, …; goal and outcome; and `outcomes`, the "
        "status and text of each structured turn but the last."
    )
    tokens = serializers.IntegerField(source="token_count", help_text="Tokens of its text.")
    raw_tokens = serializers.IntegerField(help_text="Tokens of everything that it was made of, as it was stored.")
    compressor = serializers.CharField(help_text="Author of the text.")
    archived = serializers.BooleanField(help_text="True if it was made into an episode of a higher level.")
    columns = columns_of(WorkEpisode, "conversation_id status event_time created_at updated_at")


class ExpandedSlot(AnswerSerializer):
    columns = columns_of(TurnSlot, "id slot text data")
    level = serializers.IntegerField()
    tier = serializers.CharField(help_text="Empty unless it is reasoning.")
    provenance = serializers.CharField(help_text="Empty unless it is reasoning.")


class EpisodeRecord(AnswerSerializer):
    columns = columns_of(TurnRecord, "id number client_id status event_time")
    slots = ExpandedSlot(many=True)


class WorkEpisodeAnswer(StoredWorkEpisode):
    derived_from = serializers.UUIDField(allow_null=True, help_text="Episode of level 2 that it was made of.")
    records = EpisodeRecord(many=True, help_text="The structured turns, in order. Empty without `expand`.")
    truncated = serializers.BooleanField(help_text="True if there are more. `/turn-records` lists all of them.")


def serialize_episode(view: WorkEpisodeView) -> dict[str, Any]:
    return StoredWorkEpisode.serialize(view.episode, shown_content(view))


def shown_content(view: WorkEpisodeView) -> dict[str, Any]:
    """Return the members of an episode that the account's policy may reduce."""
    return {"tier": view.tier.value, "text": view.text, "data": view.data}


def serialize_expanded(expanded: ExpandedEpisode) -> dict[str, Any]:
    given = {
        "derived_from": expanded.derived_from,
        "records": [serialize_expanded_record(each) for each in expanded.records],
        "truncated": expanded.truncated,
    }
    return WorkEpisodeAnswer.serialize(expanded.view.episode, shown_content(expanded.view) | given)


def serialize_expanded_record(view: RecordView) -> dict[str, Any]:
    slots = [
        ExpandedSlot.serialize(slot.row, {"text": slot.text, "data": dict(slot.data), "tier": slot.tier})
        for slot in view.slots
    ]
    return EpisodeRecord.serialize(view.record, {"slots": slots})


class WorkEpisodeFilter(RowFilter):
    conversation_id = TextFilter()
    goal_id = UUIDFilter(field_name="for_goal_id", label="Limit to this goal.")
    level = extend_schema_field({"type": "integer", "enum": [int(level) for level, _label in LEVELS]})(
        ChoiceFilter(choices=LEVELS, empty_label=None)
    )
    status = ChoiceFilter(choices=WorkEpisode.Status.choices, empty_label=None)


class WorkEpisodes(OwnerViewSet):
    """Work episodes of conversations in which the agent takes part; without an agent, all of the account's."""

    for_users = True
    queries = {"list": ActingFields, "retrieve": EpisodeQuery}
    answers = {"list": StoredWorkEpisode, "retrieve": WorkEpisodeAnswer}
    filterset_class = WorkEpisodeFilter
    queryset = WorkEpisode.objects.none()

    def list(self, request: Request) -> Response:
        """List episodes at their present level, latest first."""
        owner = self.owner(self.query())
        allowed = read_policy(owner.account_id).tier
        rows = visible_work_episodes(owner, now=timezone.now())
        return self.respond_page(rows, lambda episode: serialize_episode(redacted_view(episode, allowed)))

    def retrieve(self, request: Request, episode_id: UUID) -> Response:
        """Return an episode of any level, even an archived one, as long as retention keeps it."""
        query, now = self.query(), timezone.now()
        level = int(query["expand"]) if "expand" in query else None
        return Response(serialize_expanded(view_work_episode(self.owner(query), episode_id, level=level, now=now)))
