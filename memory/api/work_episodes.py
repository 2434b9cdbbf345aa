"""`/work-episodes`: what adjacent structured turns of one goal came to, and what they were."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import CharFilter, ChoiceFilter, FilterSet, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.models import CompressionLevel, TurnRecord, TurnSlot, WorkEpisode
from memory.reasoning import ReasoningTier
from memory.services.records.reasoning import ToldSlot, read_policy
from memory.services.work_episodes.read import (
    EpisodeView,
    ExpandedEpisode,
    ExpandedRecord,
    expand_work_episode,
    listed_work_episodes,
    tell_episode,
    view_work_episode,
)
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import ActingFields

LEVELS = [(str(level.value), level.label) for level in (CompressionLevel.MERGED, CompressionLevel.ARCHIVED)]
TIERS = [tier.value for tier in ReasoningTier]


class EpisodeQuery(ActingFields):
    expand = serializers.ChoiceField(
        ["0", "1"],
        required=False,
        help_text="With the structured turns that it stands for, their slots as they came (`0`), or shortened (`1`).",
    )


class StoredWorkEpisode(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField()
    user_id = serializers.CharField()
    channel = serializers.CharField()
    conversation_id = serializers.CharField()
    goal_id = serializers.UUIDField(allow_null=True)
    level = serializers.ChoiceField(CompressionLevel.choices, help_text="2: merged, 3: archived.")
    first_number = serializers.IntegerField(help_text="Of the first structured turn that it stands for.")
    last_number = serializers.IntegerField()
    status = serializers.ChoiceField(WorkEpisode.Status.choices)
    tier = serializers.ChoiceField(TIERS, help_text="The deepest of reasoning that it tells.")
    text = serializers.CharField(help_text="Empty where the account allows to tell nothing of it.")
    # the contract's name, and a serializer's attribute too
    data = serializers.DictField(  # type: ignore[assignment]
        help_text=(
            "Lists of texts: decisions, findings, produced, open_ends, …; goal, outcome; outcomes: status and text of "
            "each structured turn but the last."
        )
    )
    tokens = serializers.IntegerField(help_text="Of its text.")
    raw_tokens = serializers.IntegerField(help_text="Of all that it was made of, as it came.")
    compressor = serializers.CharField(help_text="Who wrote it.")
    archived = serializers.BooleanField(help_text="It was made into one of a higher level.")
    event_time = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class ExpandedSlot(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    slot = serializers.ChoiceField(TurnSlot.Slot.choices)
    level = serializers.IntegerField()
    text = serializers.CharField()
    data = serializers.DictField()  # type: ignore[assignment]  # as above
    tier = serializers.CharField(help_text="Of reasoning; else empty.")
    provenance = serializers.CharField(help_text="Of reasoning; else empty.")


class EpisodeRecord(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    number = serializers.IntegerField()
    client_id = serializers.CharField()
    status = serializers.ChoiceField(TurnRecord.Status.choices)
    event_time = serializers.DateTimeField()
    slots = ExpandedSlot(many=True)


class WorkEpisodeAnswer(StoredWorkEpisode):
    derived_from = serializers.UUIDField(allow_null=True, help_text="The episode of level 2 that it was made of.")
    records = EpisodeRecord(many=True, help_text="In their order; empty without `expand`.")
    truncated = serializers.BooleanField(help_text="There are more: `/turn-records` has all of a conversation.")


COLUMNS = (
    *("item_key", "agent_id", "user_id", "channel", "conversation_id", "level", "first_number", "last_number"),
    *("status", "raw_tokens", "compressor", "archived", "event_time", "created_at", "updated_at"),
)


def represent_episode(view: EpisodeView) -> dict[str, Any]:
    episode = view.episode
    return {name: getattr(episode, name) for name in COLUMNS} | {
        "id": str(episode.id),
        "goal_id": episode.for_goal_id,
        "tier": view.tier.value,
        "text": view.text,
        "data": view.data,
        "tokens": episode.token_count,
    }


def represent_expanded(expanded: ExpandedEpisode) -> dict[str, Any]:
    return represent_episode(expanded.view) | {
        "derived_from": expanded.derived_from,
        "records": [represent_record(each) for each in expanded.records],
        "truncated": expanded.truncated,
    }


def represent_record(expanded: ExpandedRecord) -> dict[str, Any]:
    record = expanded.record
    told = {name: getattr(record, name) for name in ("number", "client_id", "status", "event_time")}
    return told | {"id": str(record.id), "slots": [represent_slot(slot) for slot in expanded.slots]}


def represent_slot(told: ToldSlot) -> dict[str, Any]:
    row = told.row
    return {
        "id": str(row.id),
        "slot": row.slot,
        "level": row.level,
        "text": told.text,
        "data": dict(told.data),
        "tier": told.tier,
        "provenance": row.provenance,
    }


class WorkEpisodeFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    conversation_id = CharFilter(max_length=LONGEST_ID, strip=False)
    goal_id = UUIDFilter(field_name="for_goal_id", label="Of this goal.")
    level = ChoiceFilter(choices=LEVELS, empty_label=None)
    status = ChoiceFilter(choices=WorkEpisode.Status.choices, empty_label=None)


class WorkEpisodes(OwnerViewSet):
    """Of the conversations in which the agent takes part; all of the account's without an agent."""

    queries = {"list": ActingFields, "retrieve": EpisodeQuery}
    answers = {"list": StoredWorkEpisode, "retrieve": WorkEpisodeAnswer}
    filterset_class = WorkEpisodeFilter
    # for the description of the filters alone: rows come from `list`
    queryset = WorkEpisode.objects.none()

    def list(self, request: Request) -> Response:
        """Each on the level that it is at now, newest first."""
        owner = self.owner(self.query())
        allowed = read_policy(owner.account_id).tier
        rows = listed_work_episodes(owner, now=timezone.now())
        return self.page(rows, lambda episode: represent_episode(tell_episode(episode, allowed)))

    def retrieve(self, request: Request, episode_id: UUID) -> Response:
        """Of whatever level, archived ones as well, as long as retention keeps them."""
        query, now = self.query(), timezone.now()
        owner, level = self.owner(query), query.get("expand")
        if level is None:
            return Response(represent_expanded(view_work_episode(owner, episode_id, now=now)))
        return Response(represent_expanded(expand_work_episode(owner, episode_id, level=int(level), now=now)))
