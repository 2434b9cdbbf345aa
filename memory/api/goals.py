"""`/goals`: goals in trees, with deadlines, which can block each other."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from django_filters import UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    AwareDateTimeField,
    BoundedIds,
    EmbeddingState,
    EventTime,
    IdList,
    MemoryFields,
    Metadata,
    NonBlankText,
    OwnerFields,
    changed_fields,
)
from memory.api.filters import RowFilter, boolean_filter
from memory.api.vectors import VectorFields, read_vector
from memory.api.views import VersionedViewSet
from memory.models import Goal, Link
from memory.models.goals import SUBGOAL_OF
from memory.services.embedding.embed import embed_texts
from memory.services.goals.plan import (
    MAX_PRIORITY,
    GoalDraft,
    add_goal,
    block_goal,
    change_goal,
    complete_goal,
    delete_goal,
    unblock_goal,
)
from memory.services.goals.store import get_goal, goals_in_channels
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import Flag, Text, WholeNumber

MAX_DESCRIPTION_CHARACTERS = 10_000
MAX_RESULT_CHARACTERS = 100_000
MAX_BLOCKERS = 100
STATUSES = Goal.Status.choices
END_STATUSES = [(name, label) for name, label in STATUSES if name not in Goal.OPEN]
ORDERS = {"priority": ("-priority", "due", "id"), "deadline": ("due", "-priority", "id"), "newest": ("-id",)}
STATUS_GROUPS = {name: (name,) for name, _label in STATUSES} | {"open": Goal.OPEN, "any": Goal.Status.values}
PRIORITY_HELP = "Goals with a greater priority come first."


class Priority(WholeNumber):
    """A priority, which may be negative."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=-MAX_PRIORITY, max_value=MAX_PRIORITY, **options)


class GoalColumns(serializers.Serializer[Any]):
    """Columns of a goal that clients set when they add it, may change later, and read in answers.

    Each is declared once: bodies take it as an optional field, answers always have it.
    """

    priority = Priority(help_text=f"{PRIORITY_HELP} Default for a new goal: 0.")
    deadline = AwareDateTimeField(allow_null=True, help_text="Due time with a zone. Null: none.")


class EditableGoalFields(OwnerFields, VectorFields, GoalColumns):
    """The fields of a goal that clients set when they add it and may change later."""

    description = NonBlankText(
        required=False, max_length=MAX_DESCRIPTION_CHARACTERS, help_text="Description of the work."
    )
    parent = serializers.UUIDField(  # type: ignore[assignment]  # DRF takes it out of the class
        required=False,
        allow_null=True,
        help_text="Goal that this one is a part of, of the same user (or agent). Null: none.",
    )
    metadata = Metadata(required=False, help_text="Facts of your own about the goal. A change replaces all of them.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for name in GoalColumns._declared_fields:
            fields[name].required = False
        return fields


class NewGoal(EditableGoalFields):
    description = NonBlankText(max_length=MAX_DESCRIPTION_CHARACTERS, help_text="Description of the work.")
    blocked_by = BoundedIds(
        max_length=MAX_BLOCKERS, help_text="Open goals that it waits for, of the same user (or agent)."
    )
    event_time = EventTime("Time when it was set, at most 5 minutes in the future. Default: now.")


class GoalChange(EditableGoalFields):
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "embedding" in attrs and "description" not in attrs:
            raise serializers.ValidationError({"embedding": ["Send the vector together with its description."]})
        return attrs


class GoalEnd(OwnerFields):
    status = serializers.ChoiceField(END_STATUSES, default=Goal.Status.COMPLETED.value, help_text="Its final status.")
    result = Text(required=False, max_length=MAX_RESULT_CHARACTERS, allow_blank=True, help_text="Outcome of the work.")
    force = Flag(default=False, help_text="True to complete the goal although goals that it waits for are not.")


class GoalBlocker(OwnerFields):
    by = serializers.UUIDField(help_text="Goal that this one waits for.")


class GoalsQuery(OwnerFields):
    status = serializers.ChoiceField(
        list(STATUS_GROUPS), default="open", help_text="`open`: active or blocked. `any`: all."
    )
    due_before = AwareDateTimeField(required=False, help_text="Limit to goals with an earlier deadline.")
    ordering = serializers.ChoiceField(
        list(ORDERS),
        default="priority",
        help_text="`priority`: greatest priority first, then the earliest deadline. `deadline`: earliest deadline "
        "first, then the greatest priority. `newest`: latest first.",
    )


class DescribedGoal(MemoryFields):
    """The first members of a stored goal: answers have them before its columns."""

    description = serializers.CharField(source="text")
    status = serializers.ChoiceField(STATUSES, help_text="`blocked` until all goals that it waits for are completed.")


class StoredGoal(DescribedGoal, GoalColumns):
    """A goal, as answers show it."""

    parent_id = serializers.UUIDField(allow_null=True, help_text="Goal that this one is a part of.")
    completed_at = serializers.DateTimeField(allow_null=True, help_text="Time of its completion or abandonment.")
    result = serializers.CharField(help_text="Outcome of the work on it. May be empty.")
    version = serializers.IntegerField(help_text="Increases by one with each change.")
    event_time = serializers.DateTimeField(help_text="Time when it was set.")
    embedding = EmbeddingState()
    columns = columns_of(Goal, "metadata created_at updated_at")


class RelatedGoal(AnswerSerializer):
    columns = columns_of(Goal, "id status priority deadline")
    description = serializers.CharField(source="text")


class GoalRelations(AnswerSerializer):
    """The goals around a goal, read from a GoalView."""

    parent = RelatedGoal(allow_null=True)
    children = RelatedGoal(many=True)
    blocked_by = RelatedGoal(
        many=True, source="blockers", help_text="Goals that it waits for, completed and abandoned ones too."
    )
    blocks = RelatedGoal(many=True, source="waiters", help_text="Goals that wait for it.")
    truncated = serializers.BooleanField(help_text="True if there are more. `/goals?parent=` lists all children.")


class GoalWithRelated(StoredGoal, GoalRelations):
    pass


class CompletedGoal(StoredGoal):
    unblocked = IdList(help_text="Goals that nothing blocks any more.")


class GoalFilter(RowFilter):
    parent = UUIDFilter(method="filter_parent", label="Limit to goals directly below this one.")
    overdue = boolean_filter(field_name="deadline", method="filter_overdue", label="True for open, overdue goals.")

    def filter_parent(self, rows: QuerySet[Goal], _name: str, parent: UUID) -> QuerySet[Goal]:
        account_id: UUID = self.request.auth.account_id
        below = Link.objects.filter(account_id=account_id, target_id=parent, type=SUBGOAL_OF)
        return rows.filter(id__in=below.values("source_id"))

    def filter_overdue(self, rows: QuerySet[Goal], _name: str, overdue: bool) -> QuerySet[Goal]:
        late = Q(completed_at=None, deadline__lt=timezone.now())
        return rows.filter(late) if overdue else rows.exclude(late)


class Goals(VersionedViewSet):
    """Goals of the user, those of no user that the agent added, and the account's. Without a user, all that it added.

    403 for changes of the account's goals by an agent.
    """

    for_users = True
    bodies = {"create": NewGoal, "partial_update": GoalChange}
    queries = {"list": GoalsQuery, "retrieve": OwnerFields, "destroy": OwnerFields}
    answer = StoredGoal
    answers = {"retrieve": GoalWithRelated}
    conditional = frozenset({"partial_update", "destroy"})
    filterset_class = GoalFilter
    queryset = Goal.objects.none()

    def list(self, request: Request) -> Response:
        """List goals of the channel and of `_global`. Default: open ones, by priority and then by deadline."""
        query, now = self.query(), timezone.now()
        self.ordering = ORDERS[query["ordering"]]  # type: ignore[misc]  # of this request's view alone
        rows = goals_in_channels(self.owner(query), now=now).filter(status__in=STATUS_GROUPS[query["status"]])
        if "due_before" in query:
            rows = rows.filter(deadline__lt=query["due_before"])
        return self.respond_page(rows)

    def create(self, request: Request) -> Response:
        """Add a goal.

        422 for a parent or blocker that does not exist or belongs to another user (or agent), and for a closed blocker.
        """
        body, owner = self.body_and_owner()
        values = changed_fields(body)
        draft = GoalDraft(parent_id=values.pop("parent", None), own=read_vector(owner, body), **values)
        embedded = embed_texts([] if draft.own else [draft.description])
        return self.write_row(add_goal, owner, draft, embedded=embedded, now=timezone.now())

    def retrieve(self, request: Request, goal_id: UUID) -> Response:
        """Return a goal with the goals around it. The ETag is of the goal itself; the others have their own."""
        view = get_goal(self.owner(self.query()), goal_id, now=timezone.now())
        return self.respond_with_etag(view.goal, GoalRelations.serialize(view))

    def partial_update(self, request: Request, goal_id: UUID) -> Response:
        """Change the given fields. Equal values change nothing.

        422 for a parent that is the goal itself or below it.
        """
        body, now = self.body(), timezone.now()
        owner, expected = self.owner(body), self.expected_versions()
        own, changes = read_vector(owner, body), changed_fields(body)
        embedded = embed_texts([changes["description"]] if "description" in changes and own is None else [])
        return self.respond_with_etag(
            change_goal(owner, goal_id, changes=changes, embedded=embedded, own=own, expected=expected, now=now)
        )

    def destroy(self, request: Request, goal_id: UUID) -> Response:
        """Delete a goal for good. Goals that waited for it alone become active; goals below it lose their parent."""
        delete_goal(self.owner(self.query()), goal_id, expected=self.expected_versions(), now=timezone.now())
        return Response(status=204)


class GoalProgress(VersionedViewSet):
    """Closing goals, and making them wait for each other."""

    for_users = True
    bodies = {"complete": GoalEnd, "block": GoalBlocker, "unblock": GoalBlocker}
    answer = StoredGoal
    answers = {"complete": CompletedGoal}
    conditional = frozenset({"complete", "block", "unblock"})

    def complete(self, request: Request, goal_id: UUID) -> Response:
        """Close a goal for good. Goals that waited for it alone become active when it is completed.

        They stay blocked when it is abandoned, until they are unblocked, or completed with `force`. Repeating the same
        end changes nothing. 409 for another end of a closed goal, and for completing a blocked goal without `force`;
        the answer names the goals that block it.
        """
        body, expected = self.body(), self.expected_versions()
        owner, end = self.owner(body), {"result": "", **changed_fields(body)}

        def write() -> Response:
            done = complete_goal(owner, goal_id, **end, expected=expected, now=timezone.now())
            return self.respond_with_etag(done.goal, {"unblocked": [str(other) for other in done.unblocked]})

        return self.write_once(write)

    def block(self, request: Request, goal_id: UUID) -> Response:
        """Make the goal wait for another open goal. 422 if that one waits for this one; 409 if this one is closed."""
        return self.change_blocker(goal_id, block_goal)

    def unblock(self, request: Request, goal_id: UUID) -> Response:
        """Stop the goal from waiting for another one. Changes nothing if it does not wait."""
        return self.change_blocker(goal_id, unblock_goal)

    def change_blocker(self, goal_id: UUID, change: Callable[..., Goal]) -> Response:
        body, expected = self.body(), self.expected_versions()
        owner, by = self.owner(body), body["by"]
        return self.write_row(change, owner, goal_id, by=by, expected=expected, now=timezone.now())
