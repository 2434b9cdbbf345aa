"""`/goals`: what is to be done, in trees and in each other's way."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from django_filters import FilterSet, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.conversations import yes_or_no
from memory.api.episodic import own_vector
from memory.api.fields import Metadata, Moment, OwnerFields, Prose
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.models import Goal, Link
from memory.models.goals import SUBGOAL_OF
from memory.owner import Owner
from memory.services.accounts.access import Versions
from memory.services.embedding.embed import embed_texts
from memory.services.goals.plan import (
    LARGEST_PRIORITY,
    GoalDraft,
    GoalView,
    add_goal,
    block_goal,
    change_goal,
    complete_goal,
    delete_goal,
    get_goal,
    listed_goals,
    unblock_goal,
)
from memory_project.http.conditional import etag_of
from memory_project.http.serializers import BoundedList, ExternalId, Text, WholeNumber

LONGEST_GOAL = 10_000
LONGEST_RESULT = 100_000
MOST_BLOCKERS = 100
STATUSES = Goal.Status.choices
ENDS = [(name, label) for name, label in STATUSES if name not in Goal.OPEN]
ORDERS = {"priority": ("-priority", "due", "id"), "deadline": ("due", "-priority", "id"), "newest": ("-id",)}
WANTED = {name: (name,) for name, _label in STATUSES} | {"open": Goal.OPEN, "any": Goal.Status.values}

OWN_VECTOR = "A vector of your own, instead of the service's."
OWN_MODEL = "Of which model it is; the configured one by default."


class Priority(WholeNumber):
    """The greater, the more it matters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=-LARGEST_PRIORITY, max_value=LARGEST_PRIORITY, **options)


class NewGoal(OwnerFields):
    description = Prose(max_length=LONGEST_GOAL)
    priority = Priority(required=False, help_text="The greater, the more it matters; 0 by default.")
    deadline = Moment(required=False, allow_null=True, help_text="With a zone.")
    parent = serializers.UUIDField(  # type: ignore[assignment]  # DRF takes it out of the class
        required=False, allow_null=True, help_text="The goal that it is a part of: of the same user (or agent)."
    )
    blocked_by = BoundedList(
        child=serializers.UUIDField(),
        max_length=MOST_BLOCKERS,
        required=False,
        help_text="Open goals that it waits for: of the same user (or agent).",
    )
    metadata = Metadata(required=False)
    embedding = EmbeddingField(required=False, help_text=OWN_VECTOR)
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)


class GoalChange(OwnerFields):
    description = Prose(required=False, max_length=LONGEST_GOAL)
    priority = Priority(required=False, help_text="The greater, the more it matters.")
    deadline = Moment(required=False, allow_null=True, help_text="With a zone; null for none.")
    parent = serializers.UUIDField(  # type: ignore[assignment]  # DRF takes it out of the class
        required=False, allow_null=True, help_text="Null for none."
    )
    metadata = Metadata(required=False, help_text="In place of what there is.")
    embedding = EmbeddingField(required=False, help_text="Of the description, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "embedding" in attrs and "description" not in attrs:
            raise serializers.ValidationError({"embedding": ["Goes with a description only."]})
        return attrs


class GoalEnd(OwnerFields):
    status = serializers.ChoiceField(ENDS, default=Goal.Status.COMPLETED.value)
    result = Text(required=False, max_length=LONGEST_RESULT, allow_blank=True, help_text="What came of it.")


class GoalBlocker(OwnerFields):
    by = serializers.UUIDField(help_text="The goal that it waits for.")


class GoalsQuery(OwnerFields):
    status = serializers.ChoiceField(list(WANTED), default="open", help_text="`open`: active or blocked.")
    due_before = Moment(required=False, help_text="With a deadline before that.")
    ordering = serializers.ChoiceField(
        list(ORDERS),
        default="priority",
        help_text="`priority`: what matters most first, of that what is due first. `deadline`: what is due first.",
    )


class StoredGoal(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField(help_text="Who added it; empty for the account.")
    user_id = serializers.CharField(help_text="Whose it is; empty for nobody's in particular.")
    channel = serializers.CharField()
    description = serializers.CharField()
    status = serializers.ChoiceField(STATUSES, help_text="Blocked as long as it waits for a goal that is open.")
    priority = serializers.IntegerField(help_text="The greater, the more it matters.")
    deadline = serializers.DateTimeField(allow_null=True)
    parent_id = serializers.UUIDField(allow_null=True)
    completed_at = serializers.DateTimeField(allow_null=True, help_text="When it was closed, either way.")
    result = serializers.CharField(help_text="What came of it; may be empty.")
    metadata = serializers.DictField()
    version = serializers.IntegerField(help_text="One more with each change.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")


class RelatedGoal(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    description = serializers.CharField()
    status = serializers.ChoiceField(STATUSES)
    priority = serializers.IntegerField()
    deadline = serializers.DateTimeField(allow_null=True)


class GoalWithRelated(StoredGoal):
    parent = RelatedGoal(allow_null=True)
    children = RelatedGoal(many=True)
    blocked_by = RelatedGoal(many=True, help_text="What it waits for; the closed ones hold it up no longer.")
    blocks = RelatedGoal(many=True, help_text="What waits for it.")
    truncated = serializers.BooleanField(help_text="There are more of them: `/goals?parent=` lists all children.")


class CompletedGoal(StoredGoal):
    unblocked = serializers.ListField(
        child=serializers.UUIDField(), help_text="Goals that waited for it, and for nothing else that is open."
    )


COLUMNS = (
    *("item_key", "agent_id", "user_id", "channel", "status", "priority", "deadline", "parent_id", "completed_at"),
    *("result", "metadata", "version", "created_at", "updated_at"),
)


def represent_goal(goal: Goal) -> dict[str, Any]:
    return {name: getattr(goal, name) for name in COLUMNS} | {
        "id": str(goal.id),
        "description": goal.text,
        "embedding": "stored" if goal.embed_after is None else "pending",
    }


def represent_related(goal: Goal) -> dict[str, Any]:
    columns = {name: getattr(goal, name) for name in ("status", "priority", "deadline")}
    return columns | {"id": str(goal.id), "description": goal.text}


def represent_view(view: GoalView) -> dict[str, Any]:
    return represent_goal(view.goal) | {
        "parent": view.parent and represent_related(view.parent),
        "children": [represent_related(goal) for goal in view.children],
        "blocked_by": [represent_related(goal) for goal in view.blockers],
        "blocks": [represent_related(goal) for goal in view.waiters],
        "truncated": view.truncated,
    }


class GoalFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    parent = UUIDFilter(method="of_parent", label="Directly below this goal.")
    overdue = yes_or_no(field_name="deadline", method="of_overdue", label="Open, with a deadline that is over.")

    def of_parent(self, rows: QuerySet[Goal], _name: str, parent: UUID) -> QuerySet[Goal]:
        account_id: UUID = self.request.auth.account_id
        below = Link.objects.filter(account_id=account_id, target_id=parent, type=SUBGOAL_OF)
        return rows.filter(id__in=below.values("source_id"))

    def of_overdue(self, rows: QuerySet[Goal], _name: str, overdue: bool) -> QuerySet[Goal]:
        late = Q(completed_at=None, deadline__lt=timezone.now())
        return rows.filter(late) if overdue else rows.exclude(late)


def draft_of(owner: Owner, body: dict[str, Any]) -> GoalDraft:
    given = {name: body[name] for name in ("priority", "deadline", "blocked_by", "metadata") if name in body}
    own = own_vector(owner, body, "embedding")
    return GoalDraft(description=body["description"], parent_id=body.get("parent"), own=own, **given)


class GoalViewSet(OwnerViewSet):
    """Actions that answer one goal, with its ETag."""

    def shown(self, goal: Goal, *, status: int = 200) -> Response:
        return self.versioned(represent_goal(goal), version=goal.version, status=status)


class Goals(GoalViewSet):
    """With a user, those of the user and of nobody in particular; without one, those that the agent added.

    403 for changes of another agent's goal that is no user's.
    """

    bodies = {"create": NewGoal, "partial_update": GoalChange}
    queries = {"list": GoalsQuery, "retrieve": OwnerFields, "destroy": OwnerFields}
    answers = {
        "list": StoredGoal,
        "create": StoredGoal,
        "retrieve": GoalWithRelated,
        "partial_update": StoredGoal,
    }
    statuses = {"create": 201, "destroy": 204}
    conditional = frozenset({"partial_update", "destroy"})
    filterset_class = GoalFilter
    # for the description of the filters alone: rows come from `list`
    queryset = Goal.objects.none()

    def list(self, request: Request) -> Response:
        """Those of the channel and of `_global`: open ones by default, what matters most first, then what is due."""
        query, now = self.query(), timezone.now()
        self.ordering = ORDERS[query["ordering"]]  # type: ignore[misc]  # of this request's view alone
        rows = listed_goals(self.owner(query), now=now).filter(status__in=WANTED[query["status"]])
        if "due_before" in query:
            rows = rows.filter(deadline__lt=query["due_before"])
        return self.page(rows, represent_goal)

    def create(self, request: Request) -> Response:
        """422 for a parent or a blocker that is not there, or another user's (or agent's), and for a closed blocker."""
        body = self.body()
        owner = self.owner(body)
        draft = draft_of(owner, body)
        embedded = embed_texts([] if draft.own else [draft.description])
        return self.once(lambda: self.shown(add_goal(owner, draft, embedded=embedded, now=timezone.now()), status=201))

    def retrieve(self, request: Request, goal_id: UUID) -> Response:
        """With those around it. Its ETag is of the goal itself; the others have theirs."""
        view = get_goal(self.owner(self.query()), goal_id, now=timezone.now())
        # never 304: those around it change, and its vector may come, under the same ETag
        return Response(represent_view(view), headers={"ETag": etag_of(view.goal.version)})

    def partial_update(self, request: Request, goal_id: UUID) -> Response:
        """What says the same changes nothing. 422 for a parent that is the goal itself, or below it."""
        body = self.body()
        owner, expected = self.owner(body), self.expected()
        own = own_vector(owner, body, "embedding")
        names = ("description", "priority", "deadline", "metadata", "parent")
        changes = {name: body[name] for name in names if name in body}
        embedded = embed_texts([changes["description"]] if "description" in changes and own is None else [])
        now = timezone.now()
        return self.shown(
            change_goal(owner, goal_id, changes=changes, embedded=embedded, own=own, expected=expected, now=now)
        )

    def destroy(self, request: Request, goal_id: UUID) -> Response:
        """For good. What waited for it alone goes on; what was below it has no parent then."""
        delete_goal(self.owner(self.query()), goal_id, expected=self.expected(), now=timezone.now())
        return Response(status=204)


class GoalProgress(GoalViewSet):
    """How goals end, and what they wait for."""

    bodies = {"complete": GoalEnd, "block": GoalBlocker, "unblock": GoalBlocker}
    answers = {"complete": CompletedGoal, "block": StoredGoal, "unblock": StoredGoal}
    conditional = frozenset({"complete", "block", "unblock"})

    def complete(self, request: Request, goal_id: UUID) -> Response:
        """Close it, for good. What waited for it alone is active again. The same again changes nothing; 409 for
        another end of a goal that is closed.
        """
        body, expected = self.body(), self.expected()
        owner, end = self.owner(body), {"status": body["status"], "result": body.get("result", "")}

        def write() -> Response:
            done = complete_goal(owner, goal_id, **end, expected=expected, now=timezone.now())
            answer = represent_goal(done.goal) | {"unblocked": [str(other) for other in done.unblocked]}
            return self.versioned(answer, version=done.goal.version)

        return self.once(write)

    def block(self, request: Request, goal_id: UUID) -> Response:
        """Have it wait for another goal, which is open. 422 where that waits for this one; 409 once it is closed."""
        return self.changed(goal_id, block_goal)

    def unblock(self, request: Request, goal_id: UUID) -> Response:
        """Have it wait for that goal no longer. Where it does not, nothing changes."""
        return self.changed(goal_id, unblock_goal)

    def changed(self, goal_id: UUID, change: Callable[..., Goal]) -> Response:
        body = self.body()
        owner, by = self.owner(body), body["by"]
        expected: Versions = self.expected()
        return self.once(lambda: self.shown(change(owner, goal_id, by=by, expected=expected, now=timezone.now())))
