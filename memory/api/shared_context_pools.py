"""Pools of workflow runs, and below `/pools/{pool_id}` the postings and the cached results that some of them hold."""

from datetime import datetime
from math import ceil
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.access import AccessControlFields, access_control_of
from memory.api.fields import Count, Moment
from memory.api.pools import JsonObject, PoolAnswer, represent_pool
from memory.api.views import OwnerViewSet
from memory.models import BlackboardPosting, ToolCacheEntry
from memory.models.pools import OF_WORKFLOWS
from memory.services.pools.manage import PoolDraft
from memory.services.pools.share import (
    MOST_TTL_SECONDS,
    cache_result,
    cached_keys,
    find_cached,
    forget_cached,
    post,
    postings,
)
from memory.services.pools.workflow_runs import POOL_SCOPES, create_run_pool, run_pools
from memory_project.http.serializers import ActingFields, ExternalId, WholeNumber


class NewRunPool(ActingFields):
    pool_id = ExternalId(required=False, help_text="Made, where you name none.")
    pool_type = serializers.ChoiceField(OF_WORKFLOWS)
    scope = serializers.ChoiceField(
        POOL_SCOPES, required=False, help_text="Who reads it besides the run's agents; by default (task) nobody."
    )
    access_control = AccessControlFields(required=False)
    expires_at = Moment(required=False, allow_null=True, help_text="With a zone. Gone from then on.")
    # DRF takes it out of the class
    data = JsonObject(required=False, help_text="Of shared_memory alone.")  # type: ignore[assignment]


class NewPosting(ActingFields):
    content = serializers.JSONField(allow_null=True, help_text="Any JSON value.")


class PostingsQuery(ActingFields):
    after = Count(required=False, help_text="A position: only what was posted behind it.")


class PostingAnswer(serializers.Serializer[Any]):
    position = serializers.IntegerField(help_text="From 0, without gaps.")
    agent_id = serializers.CharField(help_text="Who posted it; empty for the account.")
    content = serializers.JSONField(allow_null=True)
    created_at = serializers.DateTimeField()


class CachedBody(ActingFields):
    value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    ttl_seconds = WholeNumber(
        required=False,
        min_value=1,
        max_value=MOST_TTL_SECONDS,
        help_text=f"Until it expires; {conf.TOOL_CACHE_TTL_SECONDS} by default.",
    )


class CachedKeyAnswer(serializers.Serializer[Any]):
    key = serializers.CharField()
    agent_id = serializers.CharField(help_text="Whose result it is; empty for the account.")
    ttl_seconds = serializers.IntegerField(help_text="Until it expires.")
    expires_at = serializers.DateTimeField()
    hit_count = serializers.IntegerField(help_text="How often it was found since it was put there.")


class CachedAnswer(CachedKeyAnswer):
    value = serializers.JSONField(allow_null=True)


def represent_posting(posting: BlackboardPosting) -> dict[str, Any]:
    return {name: getattr(posting, name) for name in ("position", "agent_id", "content", "created_at")}


def represent_key(entry: ToolCacheEntry, *, now: datetime) -> dict[str, Any]:
    columns = {name: getattr(entry, name) for name in ("key", "agent_id", "expires_at", "hit_count")}
    return columns | {"ttl_seconds": ceil((entry.expires_at - now).total_seconds())}


def represent_cached(entry: ToolCacheEntry, *, now: datetime) -> dict[str, Any]:
    return represent_key(entry, now=now) | {"value": entry.value}


class RunPools(OwnerViewSet):
    """What a run's agents share until it ends. All else is below `/pools/{pool_id}`.

    From its end on, what the pools hold is read-only. Who owns one still grants and revokes, gives it another
    `expires_at` and deletes it.
    """

    bodies = {"create": NewRunPool}
    queries = {"list": ActingFields}
    answers = {"list": PoolAnswer, "create": PoolAnswer}
    statuses = {"create": 201}

    def list(self, request: Request, workflow_run_id: str) -> Response:
        """Newest first, without what they hold."""
        return self.page(run_pools(self.owner(self.query()), workflow_run_id, now=timezone.now()), represent_pool)

    def create(self, request: Request, workflow_run_id: str) -> Response:
        """By any agent of the run. 409 when the account has a pool of this id, 422 once the run has ended."""
        body = self.body()
        owner, draft = self.owner(body), draft_of(body)

        def write() -> Response:
            pool = create_run_pool(owner, workflow_run_id, draft, now=timezone.now())
            return self.versioned(represent_pool(pool), version=pool.version, row_id=pool.id, status=201)

        return self.once(write)


def draft_of(body: dict[str, Any]) -> PoolDraft:
    given = {name: body[name] for name in ("pool_id", "pool_type", "scope", "data", "expires_at") if name in body}
    return PoolDraft(**given, access_control=access_control_of(body))


class Postings(OwnerViewSet):
    """A blackboard: agents post, and nobody changes or takes away what is posted. 422 for a pool of another type."""

    bodies = {"create": NewPosting}
    queries = {"list": PostingsQuery}
    answers = {"list": PostingAnswer, "create": PostingAnswer}
    statuses = {"create": 201}
    problems = {"list": (422,)}
    unrecorded = frozenset({"list"})
    ordering = ("position",)

    def list(self, request: Request, pool_id: str) -> Response:
        """In the order in which they were posted. Counted in the pool's statistics."""
        query = self.query()
        rows = postings(self.owner(query), pool_id, after=query.get("after"), now=timezone.now())
        return self.page(rows, represent_posting)

    def create(self, request: Request, pool_id: str) -> Response:
        """409 once the run has ended, 413 where the pool would be too large."""
        body = self.body()
        owner, content = self.owner(body), body["content"]

        def write() -> Response:
            posting = post(owner, pool_id, content=content, now=timezone.now())
            return Response(represent_posting(posting), status=201)

        return self.once(write)


class CachedResults(OwnerViewSet):
    """A tool cache: results by key, each of which expires by itself. 422 for a pool of another type."""

    bodies = {"update": CachedBody}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answers = {"list": CachedKeyAnswer, "retrieve": CachedAnswer, "update": CachedAnswer}
    statuses = {"destroy": 204}
    problems = {"list": (422,), "retrieve": (422,), "destroy": (409, 422)}
    unrecorded = frozenset({"retrieve"})

    def list(self, request: Request, pool_id: str) -> Response:
        """The keys of what has not expired; the key that came last first."""
        now = timezone.now()
        rows = cached_keys(self.owner(self.query()), pool_id, now=now)
        return self.page(rows, lambda entry: represent_key(entry, now=now))

    def retrieve(self, request: Request, pool_id: str, key: str) -> Response:
        """Counts as a hit. 404 once it has expired."""
        now = timezone.now()
        return Response(represent_cached(find_cached(self.owner(self.query()), pool_id, key, now=now), now=now))

    def update(self, request: Request, pool_id: str, key: str) -> Response:
        """In place of what there is. 409 once the run has ended, 413 for a value or a pool that would be too large."""
        body, now = self.body(), timezone.now()
        ttl_seconds = body.get("ttl_seconds")
        entry = cache_result(self.owner(body), pool_id, key, value=body["value"], ttl_seconds=ttl_seconds, now=now)
        return Response(represent_cached(entry, now=now))

    def destroy(self, request: Request, pool_id: str, key: str) -> Response:
        """Whether there was one or not."""
        forget_cached(self.owner(self.query()), pool_id, key, now=timezone.now())
        return Response(status=204)
