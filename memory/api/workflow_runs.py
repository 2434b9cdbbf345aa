"""`/workflow-runs`: runs of workflows, and the agents that work on them together."""

from typing import Any

from django.utils import timezone
from django_filters import ChoiceFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Metadata, TextList, changed_fields, draft_fields
from memory.api.filters import RowFilter, TextFilter
from memory.api.views import OwnerViewSet
from memory.models import WorkflowRun
from memory.services.pools.workflow_runs import MAX_AGENTS, RunDraft, change_run, find_run, start_run
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, BoundedList, ExternalId, Text

MAX_NAME_CHARACTERS = 200


class RunAgents(BoundedList):
    """A list of agents. Optional."""

    def __init__(self, help_text: str) -> None:
        super().__init__(child=ExternalId(), max_length=MAX_AGENTS, required=False, help_text=help_text)


class NewRun(ActingFields):
    workflow_run_id = ExternalId(required=False, help_text="Id of the run. Default: a new UUID.")
    workflow = Text(required=False, max_length=MAX_NAME_CHARACTERS, allow_blank=True, help_text="Name of the workflow.")
    agents = RunAgents("Agents that work on it in addition to the one that starts it.")
    metadata = Metadata(required=False, help_text="Facts of your own about the run.")


class RunChange(ActingFields):
    status = serializers.ChoiceField(WorkflowRun.Status.choices, required=False, help_text="A run ends only once.")
    agents = RunAgents("All agents of the run: others lose access. Not with add_agents or remove_agents.")
    add_agents = RunAgents("Agents to add to the present ones.")
    remove_agents = RunAgents("Agents that lose access. Others stay, including those added at the same time.")
    metadata = Metadata(required=False, help_text="Facts of your own. Replaces the present ones.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in ("add_agents", "remove_agents"):
            if "agents" in attrs and name in attrs:
                raise serializers.ValidationError({name: ["Not allowed together with agents."]})
        if set(attrs.get("add_agents", ())) & set(attrs.get("remove_agents", ())):
            raise serializers.ValidationError({"remove_agents": ["Must not have agents that are in add_agents."]})
        return attrs


class WorkflowRunAnswer(AnswerSerializer):
    workflow_run_id = serializers.CharField()
    workflow = serializers.CharField(help_text="Name of the workflow. May be empty.")
    agent_id = serializers.CharField(help_text="Agent that started it. Empty: the account.")
    agents = TextList(help_text="Agents that share its pools with the one that started it.")
    status = serializers.ChoiceField(WorkflowRun.Status.choices)
    metadata = serializers.DictField()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class WorkflowRunFilter(RowFilter):
    status = ChoiceFilter(choices=WorkflowRun.Status.choices)
    workflow = TextFilter(max_length=MAX_NAME_CHARACTERS)


class WorkflowRuns(OwnerViewSet):
    """An agent sees runs that it started or works on. Without an agent, a key sees all of the account's."""

    bodies = {"create": NewRun, "partial_update": RunChange}
    queries = {"list": ActingFields, "retrieve": ActingFields}
    answer = WorkflowRunAnswer
    filterset_class = WorkflowRunFilter
    queryset = WorkflowRun.objects.none()

    def list(self, request: Request) -> Response:
        """List runs, latest first."""
        return self.respond_page(WorkflowRun.objects.visible_to(self.owner(self.query())))

    def create(self, request: Request) -> Response:
        """Start a run. 409 if the account has one of this id."""
        body = self.body()
        owner, draft = self.owner(body), RunDraft(**draft_fields(RunDraft, body))
        return self.write_once(lambda: self.respond(start_run(owner, draft, now=timezone.now())))

    def retrieve(self, request: Request, workflow_run_id: str) -> Response:
        """Return a run."""
        return self.respond(find_run(self.owner(self.query()), workflow_run_id))

    def partial_update(self, request: Request, workflow_run_id: str) -> Response:
        """End a run, or change its agents or metadata, as the agent that started it or for the account.

        Once it has ended, the content of its pools is read-only. Their owners still grant and revoke access, change
        `expires_at` and delete them. The same status again is 200 and changes nothing; another end is 422. An agent
        that is removed loses its grants in the run's pools, and pools that it created there pass to the agent that
        started the run.
        """
        body = self.body()
        owner, changes = self.owner(body), changed_fields(body)
        return self.respond(change_run(owner, workflow_run_id, changes=changes, now=timezone.now()))
