"""`/timeline`: what is remembered of all kinds, by the time when it happened."""

from collections.abc import Callable, Sequence
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Moment
from memory.api.graph import Listed, listed
from memory.api.views import OwnerViewSet
from memory.models import Kind, Memory
from memory.retrieval.timeline import SUMMARY_CHARACTERS, Remembered, Stretch, read_timeline
from memory.services.memories.store import MEMORY_TYPES
from memory_project.http.pagination import Cursor, Position, decode_position, read_size
from memory_project.http.serializers import ActingFields, ExternalId

NEWEST_FIRST, OLDEST_FIRST = "-event_time", "event_time"
ARCHIVED = {"false": False, "true": True, "any": None}
PLACE = ("event_time", "id")

GROUPS = {
    group: [kind for kind in Kind if MEMORY_TYPES.get(kind, "semantic") == group]
    for group in ("episodic", "semantic", "procedural")
}
"""The documented words for several kinds each, as the audit log has them."""
NAMED = GROUPS | {kind.value: [kind] for kind in Kind}
MEMORY_TYPE = rf"({'|'.join(NAMED)})"


@extend_schema_field(listed(MEMORY_TYPE, len(NAMED)))
class ListedTypes(Listed):
    shape, most = MEMORY_TYPE, len(NAMED)
    default_error_messages = {"shape": f"With commas between them, some of: {', '.join(NAMED)}."}


class TimelineQuery(ActingFields):
    user_id = ExternalId(required=False, help_text="What is this user's, or nobody's in particular.")
    memory_type = ListedTypes(
        required=False,
        help_text="Memories of these kinds only, with commas between them. `episodic`, `semantic` and `procedural` "
        "stand for several kinds each.",
    )
    channel = ExternalId(required=False, help_text="What is in this channel only; in any, by default.")
    conversation_id = ExternalId(required=False, help_text="What is of this conversation only.")
    archived = serializers.ChoiceField(
        list(ARCHIVED),
        default="false",
        help_text="What was put away: by age, since other memories stand for it, or since somebody removed it. What is "
        "in an archived context is, too.",
    )
    since = Moment(required=False, help_text="What happened then or later.")
    until = Moment(required=False, help_text="What happened before that.")
    ordering = serializers.ChoiceField(
        [NEWEST_FIRST, OLDEST_FIRST], default=NEWEST_FIRST, help_text="`event_time`: the first first."
    )


class RememberedAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    memory_type = serializers.ChoiceField(Kind.choices)
    event_time = serializers.DateTimeField(help_text="When it happened.")
    summary = serializers.CharField(help_text=f"The text, or its first {SUMMARY_CHARACTERS} characters.")
    truncated = serializers.BooleanField(help_text="The text is longer.")
    importance = serializers.FloatField(help_text="From 0 to 1: a context entry's own, the salience of other kinds.")
    access_count = serializers.IntegerField()
    last_accessed = serializers.DateTimeField(allow_null=True)
    channel = serializers.CharField()
    archived = serializers.BooleanField()
    conversation_id = serializers.CharField(help_text="Empty for none.")
    agent_id = serializers.CharField(help_text="Who wrote it; empty for the account.")
    user_id = serializers.CharField(help_text="Whose it is; empty for nobody's in particular.")
    metadata = serializers.DictField()


COLUMNS = tuple(name for name in RememberedAnswer._declared_fields if name not in ("id", "memory_type"))
Page = Callable[..., Sequence[Remembered]]


def represent(row: Remembered) -> dict[str, Any]:
    return {name: getattr(row, name) for name in COLUMNS} | {"id": str(row.id), "memory_type": row.kind}


class TimelineCursor(Cursor):
    """Pages of what a function reads, rather than of a queryset: `read(beyond=, backwards=, limit=)`."""

    columns = list(PLACE)

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        read: Page = queryset
        cursor, size = request.query_params.get("cursor"), read_size(request.query_params)
        position = None if cursor is None else decode_position(cursor, Memory.objects.none(), PLACE)
        found = read(beyond=position and position.values, backwards=is_backwards(position), limit=size + 1)
        return self.turn_to(found, position=position, size=size, request=request)


def is_backwards(position: Position | None) -> bool:
    return position is not None and position.backwards


def stretch_of(query: dict[str, Any]) -> Stretch:
    """What a checked query asks for."""
    filters = ("channel", "conversation_id", "since", "until")
    return Stretch(
        kinds=[kind for name in query.get("memory_type", ()) for kind in NAMED[name]],
        archived=ARCHIVED[query["archived"]],
        **{name: query[name] for name in filters if name in query},
    )


class Timeline(OwnerViewSet):
    """All that the owner sees; with a user, that user's memories and nobody's in particular."""

    queries = {"list": TimelineQuery}
    answers = {"list": RememberedAnswer}
    pagination_class = TimelineCursor

    def list(self, request: Request) -> Response:
        """Memories of all kinds and channels, newest first.

        Left out are what is quarantined or expired, facts that are not believed (any more), and reasoning deeper than
        the account's policy. What searches do not find since it is buried, is here.
        """
        query, now = self.query(), timezone.now()
        # the channel filters; it is not the active one
        owner = self.owner({name: query[name] for name in ("agent_id", "user_id") if name in query})
        stretch, is_newest_first = stretch_of(query), query["ordering"] == NEWEST_FIRST

        def read(*, beyond: Any, backwards: bool, limit: int) -> Sequence[Remembered]:
            newest_first = is_newest_first is not backwards
            return read_timeline(owner, stretch, beyond=beyond, newest_first=newest_first, limit=limit, now=now)

        pages: Any = read
        return self.page(pages, represent)
