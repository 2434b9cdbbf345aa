"""`/workflow-runs`: the agents that work through one workflow together."""

from typing import Any

from django.utils import timezone
from django_filters import CharFilter, ChoiceFilter, FilterSet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Metadata
from memory.api.views import OwnerViewSet
from memory.models import WorkflowRun
from memory.services.pools.workflow_runs import MOST_AGENTS, RunDraft, change_run, find_run, start_run
from memory_project.http.serializers import ActingFields, BoundedList, ExternalId, Text

LONGEST_NAME = 200


def agent_ids(**options: Any) -> BoundedList:
    return BoundedList(child=ExternalId(), max_length=MOST_AGENTS, required=False, **options)


class NewRun(ActingFields):
    workflow_run_id = ExternalId(required=False, help_text="Made, where you name none.")
    workflow = Text(required=False, max_length=LONGEST_NAME, allow_blank=True, help_text="The workflow's name.")
    agents = agent_ids(help_text="Who works on it besides the agent that begins it.")
    metadata = Metadata(required=False)


class RunChange(ActingFields):
    status = serializers.ChoiceField(
        WorkflowRun.Status.choices,
        required=False,
        help_text="A run ends once; the status that it has already changes nothing.",
    )
    agents = agent_ids(help_text="In place of those there are: who is left out is shut out. Not with the next two.")
    add_agents = agent_ids(help_text="Besides those there are.")
    remove_agents = agent_ids(help_text="These are shut out; the others stay, also those that come at the same time.")
    metadata = Metadata(required=False, help_text="In place of what there is.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in ("add_agents", "remove_agents"):
            if "agents" in attrs and name in attrs:
                raise serializers.ValidationError({name: ["not with agents"]})
        if set(attrs.get("add_agents", ())) & set(attrs.get("remove_agents", ())):
            raise serializers.ValidationError({"remove_agents": ["not who is added"]})
        return attrs


class WorkflowRunAnswer(serializers.Serializer[Any]):
    workflow_run_id = serializers.CharField()
    workflow = serializers.CharField(help_text="The workflow's name; may be empty.")
    agent_id = serializers.CharField(help_text="Who began it; empty for the account.")
    agents = serializers.ListField(child=serializers.CharField(), help_text="They share its pools with who began it.")
    status = serializers.ChoiceField(WorkflowRun.Status.choices)
    metadata = serializers.DictField()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


COLUMNS = (
    *("workflow_run_id", "workflow", "agent_id", "agents", "status", "metadata"),
    *("started_at", "ended_at", "created_at", "updated_at"),
)


def represent_run(run: WorkflowRun) -> dict[str, Any]:
    return {name: getattr(run, name) for name in COLUMNS}


class RunFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    status = ChoiceFilter(choices=WorkflowRun.Status.choices)
    workflow = CharFilter(max_length=LONGEST_NAME, strip=False)


class WorkflowRuns(OwnerViewSet):
    """An agent sees the runs that it began or has a part in; without one, a key sees all."""

    bodies = {"create": NewRun, "partial_update": RunChange}
    queries = {"list": ActingFields, "retrieve": ActingFields}
    answers = {
        "list": WorkflowRunAnswer,
        "create": WorkflowRunAnswer,
        "retrieve": WorkflowRunAnswer,
        "partial_update": WorkflowRunAnswer,
    }
    statuses = {"create": 201}
    filterset_class = RunFilter
    # for the description of the filters alone: rows come from `list`
    queryset = WorkflowRun.objects.none()

    def list(self, request: Request) -> Response:
        """Newest first."""
        return self.page(WorkflowRun.objects.visible_to(self.owner(self.query())), represent_run)

    def create(self, request: Request) -> Response:
        """409 when the account has a run of this id."""
        body = self.body()
        owner = self.owner(body)
        draft = RunDraft(**{name: value for name, value in body.items() if name != "agent_id"})
        return self.once(lambda: Response(represent_run(start_run(owner, draft, now=timezone.now())), status=201))

    def retrieve(self, request: Request, workflow_run_id: str) -> Response:
        return Response(represent_run(find_run(self.owner(self.query()), workflow_run_id)))

    def partial_update(self, request: Request, workflow_run_id: str) -> Response:
        """End it, change who works on it or its metadata: by the agent that began it, or for the account.

        Once it has ended, what its pools hold is read-only; who owns one still grants and revokes, gives it another
        `expires_at` and deletes it. The same status again is 200 and changes nothing, 422 another end. An agent that
        is removed loses what it was granted in the run's pools, and the pools that it made there pass to who began
        the run.
        """
        body = self.body()
        owner = self.owner(body)
        changes = {name: value for name, value in body.items() if name != "agent_id"}
        return Response(represent_run(change_run(owner, workflow_run_id, changes=changes, now=timezone.now())))
