"""`/workflow-runs`: runs of workflows, the agents that work on them together, and the pools that these share.

Below `/pools/{pool_id}` are the postings and cached results that some of those pools hold.
"""

from datetime import datetime
from math import ceil
from typing import Any

from django.utils import timezone
from django_filters import ChoiceFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import JsonObject, Metadata, QueryWholeNumber, TextList, TtlSeconds, changed_fields, draft_fields
from memory.api.filters import RowFilter, TextFilter
from memory.api.pools import PoolAnswer, PoolChange, PoolViewSet, pool_draft_from_body
from memory.api.views import OwnerViewSet
from memory.models import BlackboardPosting, ToolCacheEntry, WorkflowRun
from memory.models.pools import WORKFLOW_POOL_TYPES
from memory.services.pools.data import (
    MAX_RESULT_TTL_SECONDS,
    cache_result,
    delete_cached_result,
    find_cached_result,
    live_results,
    post_to_blackboard,
    read_postings,
)
from memory.services.pools.workflow_runs import (
    MAX_AGENTS,
    POOL_SCOPES,
    RunDraft,
    change_run,
    create_run_pool,
    find_run,
    run_pools,
    start_run,
)
from memory_project.http.answers import AnswerSerializer, columns_of
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
    columns = columns_of(WorkflowRun, "workflow_run_id status metadata started_at ended_at created_at updated_at")
    workflow = serializers.CharField(help_text="Name of the workflow. May be empty.")
    agent_id = serializers.CharField(help_text="Agent that started it. Empty: the account.")
    agents = TextList(help_text="Agents that share its pools with the one that started it.")


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
        return self.write_row(start_run, owner, draft, now=timezone.now())

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


class NewRunPool(PoolChange):
    pool_id = ExternalId(required=False, help_text="Id of the pool. Default: a new UUID.")
    pool_type = serializers.ChoiceField(WORKFLOW_POOL_TYPES)
    scope = serializers.ChoiceField(
        POOL_SCOPES,
        required=False,
        help_text="Others who may read it. Default: task (none).",
    )
    # DRF takes it out of the class
    data = JsonObject(  # type: ignore[assignment]
        required=False, help_text="First data of the pool. For the type shared_memory only."
    )


class NewPosting(ActingFields):
    content = serializers.JSONField(allow_null=True, help_text="Any JSON value.")


class PostingsQuery(ActingFields):
    after = QueryWholeNumber(required=False, help_text="Limit to greater positions.")


class PostingAnswer(AnswerSerializer):
    columns = columns_of(BlackboardPosting, "id content created_at")
    position = serializers.IntegerField(help_text="Place on the blackboard, from 0 without gaps.")
    agent_id = serializers.CharField(help_text="Agent that posted it. Empty: the account.")


class CachedBody(ActingFields):
    value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    ttl_seconds = TtlSeconds(max_value=MAX_RESULT_TTL_SECONDS, default_seconds=conf.TOOL_CACHE_TTL_SECONDS)


class CachedKeyAnswer(AnswerSerializer):
    columns = columns_of(ToolCacheEntry, "id key expires_at")
    agent_id = serializers.CharField(help_text="Agent that stored the result. Empty: the account.")
    ttl_seconds = serializers.IntegerField(help_text="Seconds until the result expires.")
    hit_count = serializers.IntegerField(help_text="Number of times it was found since it was stored.")


class CachedAnswer(CachedKeyAnswer):
    value = serializers.JSONField(allow_null=True)


def remaining_ttl(entry: ToolCacheEntry, now: datetime) -> dict[str, Any]:
    return {"ttl_seconds": ceil((entry.expires_at - now).total_seconds())}


class RunPools(PoolViewSet):
    """Pools that a run's agents share until it ends. Everything else about them is below `/pools/{pool_id}`.

    Once the run has ended, the content of its pools is read-only. Their owners still grant and revoke access, change
    `expires_at` and delete them.
    """

    bodies = {"create": NewRunPool}
    queries = {"list": ActingFields}
    answer = PoolAnswer

    def list(self, request: Request, workflow_run_id: str) -> Response:
        """List the run's pools without their content, latest first."""
        return self.respond_page(run_pools(self.owner(self.query()), workflow_run_id, now=timezone.now()))

    def create(self, request: Request, workflow_run_id: str) -> Response:
        """Create a pool, as an agent of the run. 409 if the account has a pool of this id, 422 if the run has ended."""
        body = self.body()
        owner, draft = self.owner(body), pool_draft_from_body(body)
        return self.write_row(create_run_pool, owner, workflow_run_id, draft, now=timezone.now())


class Postings(OwnerViewSet):
    """A blackboard: agents add postings, which are never changed or deleted. 422 for a pool of another type."""

    bodies = {"create": NewPosting}
    queries = {"list": PostingsQuery}
    answer = PostingAnswer
    problems = {"list": (422,)}
    not_audited = frozenset({"list"})
    ordering = ("position",)

    def list(self, request: Request, pool_id: str) -> Response:
        """List postings, oldest first. The read counts in the pool's statistics."""
        query = self.query()
        return self.respond_page(
            read_postings(self.owner(query), pool_id, after=query.get("after"), now=timezone.now())
        )

    def create(self, request: Request, pool_id: str) -> Response:
        """Add a posting. 409 if the run has ended, 413 if the pool would become too large."""
        body, owner = self.body_and_owner()
        return self.write_row(post_to_blackboard, owner, pool_id, content=body["content"], now=timezone.now())


class CachedResults(OwnerViewSet):
    """A tool cache: results by key, each of which expires by itself. 422 for a pool of another type."""

    operation_ids = {
        "list": "list_cached_results",
        "retrieve": "get_cached_result",
        "update": "set_cached_result",
        "destroy": "delete_cached_result",
    }
    bodies = {"update": CachedBody}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answer = CachedAnswer
    answers = {"list": CachedKeyAnswer}
    problems = {"list": (422,), "retrieve": (422,)}
    not_audited = frozenset({"retrieve"})

    def list(self, request: Request, pool_id: str) -> Response:
        """List the keys of results that have not expired, latest first."""
        now = timezone.now()
        rows = live_results(self.owner(self.query()), pool_id, now=now)
        return self.respond_page(rows, lambda entry: CachedKeyAnswer.serialize(entry, remaining_ttl(entry, now)))

    def retrieve(self, request: Request, pool_id: str, key: str) -> Response:
        """Return a result, and count it as a hit. 404 if it has expired."""
        now = timezone.now()
        entry = find_cached_result(self.owner(self.query()), pool_id, key, now=now)
        return self.respond(entry, remaining_ttl(entry, now))

    def update(self, request: Request, pool_id: str, key: str) -> Response:
        """Store a result, replacing the present one. 409 if the run has ended, 413 if it or the pool is too large."""
        body, now = self.body(), timezone.now()
        ttl_seconds = body.get("ttl_seconds")
        entry = cache_result(self.owner(body), pool_id, key, value=body["value"], ttl_seconds=ttl_seconds, now=now)
        return self.respond(entry, remaining_ttl(entry, now))

    def destroy(self, request: Request, pool_id: str, key: str) -> Response:
        """Delete a result, if it exists."""
        delete_cached_result(self.owner(self.query()), pool_id, key, now=timezone.now())
        return Response(status=204)
