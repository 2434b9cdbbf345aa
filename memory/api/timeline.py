"""`/timeline`: memories of all kinds, calls of tools and changes of pools, by the time when they happened."""

from collections.abc import Callable, Sequence
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import OF_USER_HELP, MemoryFields, MemoryStatus, QueryFlag, TimeRangeFields, draft_fields
from memory.api.graph import CommaList, comma_list_schema
from memory.api.views import OwnerViewSet
from memory.kinds import Kind, all_kinds, all_specs, kind_choices
from memory.models import Memory
from memory.retrieval.timeline import SUMMARY_CHARACTERS, TimelineFilter, TimelineItem
from memory.retrieval.timeline_events import Event, read_timeline_with_events
from memory_project.http.answers import columns_of
from memory_project.http.pagination import CursorPagination, decode_cursor, parse_page_size
from memory_project.http.serializers import ActingFields, ExternalId

NEWEST_FIRST, OLDEST_FIRST = "-event_time", "event_time"
CURSOR_COLUMNS = ("event_time", "id")

KIND_GROUPS = {
    group: [Kind(spec.name) for spec in all_specs() if spec.memory_type == group]
    for group in ("episodic", "semantic", "procedural")
}
"""The documented words for groups of kinds, as in the audit log."""
KINDS_BY_NAME = KIND_GROUPS | {kind.value: [kind] for kind in all_kinds()}
EVENTS_BY_NAME = {"procedural": [Event.TOOL_INVOCATION]} | {event.value: [event] for event in Event}
TYPE_NAMES = [*KINDS_BY_NAME, *(event.value for event in Event)]
TYPE_CHOICES = [
    *kind_choices(),
    (Event.TOOL_INVOCATION.value, "call of a tool"),
    (Event.POOL_EVENT.value, "pool event"),
]
MEMORY_TYPE = rf"({'|'.join(TYPE_NAMES)})"


@extend_schema_field(comma_list_schema(MEMORY_TYPE, len(TYPE_NAMES)))
class MemoryTypes(CommaList):
    pattern, max_elements = MEMORY_TYPE, len(TYPE_NAMES)
    default_error_messages = {"shape": f"Must be some of these, separated by commas: {', '.join(TYPE_NAMES)}."}


class ArchivedFlag(QueryFlag):
    """`true` or `false`. The former third value, `any`, is accepted still and read as no value."""

    def to_internal_value(self, data: Any) -> Any:
        return None if data == "any" else super().to_internal_value(data)


class TimelineQuery(ActingFields, TimeRangeFields):
    user_id = ExternalId(required=False, help_text=OF_USER_HELP)
    memory_type = MemoryTypes(
        required=False,
        help_text="Limit to these kinds, separated by commas. `episodic`, `semantic` and `procedural` stand "
        "for several kinds each. `tool_invocation`: calls of tools, which are procedural. `pool_event`: changes of "
        "pools.",
    )
    channel = ExternalId(required=False, help_text="Limit to this channel. Default: all channels.")
    conversation_id = ExternalId(required=False, help_text="Limit to this conversation.")
    archived = ArchivedFlag(
        default=False,
        help_text="Limit to archived memories (true), or to those that are not archived (false). Memories are archived "
        "by age, because other memories stand for them, because someone removed them, or together with their context.",
    )
    include_archived = QueryFlag(
        default=False, help_text="True to list archived memories among the others. `archived` does not count then."
    )
    ordering = serializers.ChoiceField(
        [NEWEST_FIRST, OLDEST_FIRST],
        default=NEWEST_FIRST,
        help_text="`-event_time`: latest first. `event_time`: earliest first.",
    )


class RememberedAnswer(MemoryFields):
    memory_type = serializers.ChoiceField(TYPE_CHOICES, source="kind")
    event_time = serializers.DateTimeField(help_text="Time when it happened.")
    summary = serializers.CharField(help_text=f"The text, or its first {SUMMARY_CHARACTERS} characters.")
    truncated = serializers.BooleanField(help_text="True if the text is longer than the summary.")
    status = MemoryStatus()
    importance = serializers.FloatField(help_text="Importance of a context entry, salience of other kinds: 0 to 1.")
    conversation_id = serializers.CharField(help_text="Empty: none.")
    columns = columns_of(Memory, "access_count last_accessed archived metadata")


ReadPage = Callable[..., Sequence[TimelineItem]]


class TimelineCursor(CursorPagination):
    """Pages of the rows that a function reads, instead of a queryset: `read(beyond=, backwards=, limit=)`."""

    columns = list(CURSOR_COLUMNS)

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        read: ReadPage = queryset
        cursor, size = request.query_params.get("cursor"), parse_page_size(request.query_params)
        position = None if cursor is None else decode_cursor(cursor, Memory.objects.none(), CURSOR_COLUMNS)
        backwards = position is not None and position.backwards
        found = read(beyond=position and position.values, backwards=backwards, limit=size + 1)
        return self.set_page(found, position=position, size=size, request=request)


class Timeline(OwnerViewSet):
    """Everything that the owner sees; with a user, memories of that user and of no user in particular."""

    for_users = True
    queries = {"list": TimelineQuery}
    answers = {"list": RememberedAnswer}
    pagination_class = TimelineCursor

    def list(self, request: Request) -> Response:
        """List memories of all kinds and channels, calls of tools and changes of pools, latest first.

        Changes of pools come from the audit log, as far as it is kept.

        Left out are quarantined and expired memories, facts that are not believed (any more), and reasoning deeper than
        the account's policy allows. Memories that searches no longer find because of their age are included, and so are
        facts that were superseded and goals that are closed; `status` says so.
        """
        query, now = self.query(), timezone.now()
        # the channel is a filter here, not the active channel
        owner = self.owner({name: query[name] for name in ("agent_id", "user_id") if name in query})
        names = query.get("memory_type", ())
        kinds = [kind for name in names for kind in KINDS_BY_NAME.get(name, ())]
        events = [event for name in names for event in EVENTS_BY_NAME.get(name, ())] if names else list(Event)
        filters = {"kinds": kinds, "archived": None if query["include_archived"] else query["archived"]}
        asked = TimelineFilter(**draft_fields(TimelineFilter, query) | filters)

        def read(*, beyond: Any, backwards: bool, limit: int) -> Sequence[TimelineItem]:
            newest_first = (query["ordering"] == NEWEST_FIRST) is not backwards
            return read_timeline_with_events(
                owner,
                asked,
                events=events,
                has_memories=bool(kinds or not names),
                beyond=beyond,
                newest_first=newest_first,
                limit=limit,
                now=now,
            )

        pages: Any = read
        return self.respond_page(pages)
