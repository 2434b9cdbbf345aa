"""`/pools`: JSON that agents share, and who is let in. What a pool holds is below `/pools/{pool_id}/data`."""

from typing import Any

from django.utils import timezone
from django_filters import CharFilter, ChoiceFilter, FilterSet, UUIDFilter
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.access import AccessControlAnswer, AccessControlFields, GrantBody, RevokeBody, access_control_of
from memory.api.fields import Moment
from memory.api.views import OwnerViewSet
from memory.models import MemoryPool
from memory.services.pools.manage import (
    SCOPE_OF,
    PoolDraft,
    change_pool,
    create_pool,
    delete_pool,
    find_pool,
    grant_access,
    pool_statistics,
    revoke_access,
)
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import ActingFields, ExternalId

TYPES, SCOPES = MemoryPool.PoolType.choices, MemoryPool.Scope.choices
OWN_TYPES = [(name, label) for name, label in TYPES if name in SCOPE_OF]
"""Those of pools that belong to no workflow run."""


@extend_schema_field({"type": "object", "additionalProperties": True})
class JsonObject(serializers.Field[dict[str, Any], Any, Any, Any]):
    """Any JSON object, which the parser has checked already."""

    default_error_messages = {"not_an_object": "Must be an object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_an_object")
        return data


class NewPool(ActingFields):
    pool_id = ExternalId(required=False, help_text="Made, where you name none.")
    pool_type = serializers.ChoiceField(OWN_TYPES, default=MemoryPool.PoolType.SHARED.value)
    scope = serializers.ChoiceField(
        SCOPES, required=False, help_text="By default as its type: account, agent, team, task."
    )
    data = JsonObject(required=False)  # type: ignore[assignment]  # DRF takes it out of the class
    access_control = AccessControlFields(required=False)
    expires_at = Moment(required=False, allow_null=True, help_text="With a zone. Gone from then on.")
    team = serializers.UUIDField(required=False, allow_null=True, help_text="Scope team needs it.")
    task_id = ExternalId(required=False, allow_blank=True, help_text="Scope task needs it.")


class PoolChange(ActingFields):
    access_control = AccessControlFields(required=False, help_text="In place of what there is.")
    expires_at = Moment(required=False, allow_null=True, help_text="Null for never.")


class PoolAnswer(serializers.Serializer[Any]):
    pool_id = serializers.CharField()
    pool_type = serializers.ChoiceField(TYPES)
    scope = serializers.ChoiceField(SCOPES)
    agent_id = serializers.CharField(help_text="Who owns it; empty for the account.")
    team = serializers.UUIDField(allow_null=True)
    task_id = serializers.CharField(help_text="May be empty.")
    workflow_run_id = serializers.CharField(help_text="Of the run that it belongs to; empty for none.")
    access_control = AccessControlAnswer()
    version = serializers.IntegerField(help_text="One more with each write, also of its access control.")
    expires_at = serializers.DateTimeField(allow_null=True)
    entry_count = serializers.IntegerField(
        help_text="Names at the top of its data; a blackboard's postings; a tool cache's results."
    )
    size_bytes = serializers.IntegerField(
        help_text="Of all of them as compact JSON. Results count until they are deleted, also when they have expired."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class PoolStatisticsAnswer(serializers.Serializer[Any]):
    pool_id = serializers.CharField()
    entry_count = serializers.IntegerField(
        help_text="Names at the top of its data; a blackboard's postings; a tool cache's results that have not expired."
    )
    size_bytes = serializers.IntegerField(help_text="Of all of them as compact JSON. This is what is limited.")
    limit_bytes = serializers.IntegerField()
    read_count = serializers.IntegerField(help_text="Reads of what it holds.")
    write_count = serializers.IntegerField(help_text="Writes of what it holds, after it was made.")
    last_accessed_at = serializers.DateTimeField(allow_null=True, help_text="By such a read or write.")


COLUMNS = (
    *("pool_id", "pool_type", "scope", "agent_id", "task_id", "access_control", "version"),
    *("expires_at", "entry_count", "size_bytes", "created_at", "updated_at"),
)


def represent_pool(pool: MemoryPool) -> dict[str, Any]:
    run = pool.workflow_run
    columns = {name: getattr(pool, name) for name in COLUMNS}
    return columns | {"team": pool.team_id, "workflow_run_id": run.workflow_run_id if run else ""}


class PoolFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    pool_type = ChoiceFilter(choices=TYPES)
    scope = ChoiceFilter(choices=SCOPES)
    team = UUIDFilter()
    task_id = CharFilter(max_length=LONGEST_ID, strip=False)


class Pools(OwnerViewSet):
    """An agent sees those that scope, type or a grant open to it; without one, a key sees all of the account's.

    Who owns a pool grants, changes and deletes it; 403 for others that see it.
    """

    bodies = {"create": NewPool, "partial_update": PoolChange}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields, "statistics": ActingFields}
    answers = {
        "list": PoolAnswer,
        "create": PoolAnswer,
        "retrieve": PoolAnswer,
        "partial_update": PoolAnswer,
        "statistics": PoolStatisticsAnswer,
    }
    statuses = {"create": 201, "destroy": 204}
    conditional = frozenset({"retrieve", "partial_update", "destroy"})
    filterset_class = PoolFilter
    # for the description of the filters alone: rows come from `list`
    queryset = MemoryPool.objects.none()

    def list(self, request: Request) -> Response:
        """Newest first, without what they hold."""
        rows = MemoryPool.objects.visible_to(self.owner(self.query())).live(timezone.now())
        return self.page(rows.select_related("workflow_run").defer("data"), represent_pool)

    def create(self, request: Request) -> Response:
        """409 when the account has a pool of this id. Pools of workflow runs are made below `/workflow-runs`."""
        body = self.body()
        owner, draft = self.owner(body), draft_of(body)
        return self.once(lambda: self.shown(create_pool(owner, draft, now=timezone.now()), status=201))

    def retrieve(self, request: Request, pool_id: str) -> Response:
        return self.shown(find_pool(self.owner(self.query()), pool_id, now=timezone.now()))

    def partial_update(self, request: Request, pool_id: str) -> Response:
        """Let others in, all at once, or give it another end."""
        body = self.body()
        owner = self.owner(body)
        changes: dict[str, Any] = {name: body[name] for name in ("access_control", "expires_at") if name in body}
        if "access_control" in changes:
            changes["access_control"] = access_control_of(body).model_dump()
        return self.shown(change_pool(owner, pool_id, changes=changes, expected=self.expected(), now=timezone.now()))

    def destroy(self, request: Request, pool_id: str) -> Response:
        """With what it holds."""
        delete_pool(self.owner(self.query()), pool_id, expected=self.expected(), now=timezone.now())
        return Response(status=204)

    def statistics(self, request: Request, pool_id: str) -> Response:
        """As of now: what has expired is not counted."""
        found = pool_statistics(self.owner(self.query()), pool_id, now=timezone.now())
        return Response({"pool_id": pool_id} | {name: getattr(found, name) for name in found.__slots__})

    def shown(self, pool: MemoryPool, *, status: int = 200) -> Response:
        return self.versioned(represent_pool(pool), version=pool.version, row_id=pool.id, status=status)


def draft_of(body: dict[str, Any]) -> PoolDraft:
    names = ("pool_id", "pool_type", "scope", "data", "expires_at", "task_id")
    given = {name: body[name] for name in names if name in body}
    return PoolDraft(**given, access_control=access_control_of(body), team_id=body.get("team"))


class PoolGrants(OwnerViewSet):
    """Letting agents into a pool by name, beyond what its scope opens. The key says who acts."""

    bodies = {"grant": GrantBody, "revoke": RevokeBody}
    answers = {"grant": PoolAnswer, "revoke": PoolAnswer}
    conditional = frozenset({"grant", "revoke"})

    def grant(self, request: Request, pool_id: str) -> Response:
        """Granting twice is granting once, but for the version."""
        body, owner, expected = self.body(), self.owner(), self.expected()

        def write() -> Response:
            pool = grant_access(owner, pool_id, **body, expected=expected, now=timezone.now())
            return self.versioned(represent_pool(pool), version=pool.version, row_id=pool.id)

        return self.once(write)

    def revoke(self, request: Request, pool_id: str) -> Response:
        """What the pool's scope opens to an agent, no revoking takes away."""
        body, owner, expected = self.body(), self.owner(), self.expected()

        def write() -> Response:
            pool = revoke_access(owner, pool_id, **body, expected=expected, now=timezone.now())
            return self.versioned(represent_pool(pool), version=pool.version, row_id=pool.id)

        return self.once(write)
