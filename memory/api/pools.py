"""`/pools`: JSON that agents share, and who has access.

The data of a pool is below `/pools/{pool_id}/data`, as a whole or the part that a JSON Pointer in `?path=` selects.
"""

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from django_filters import ChoiceFilter, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.access import AccessControlAnswer, AccessControlFields, GrantBody, RevokeBody, access_control_from_body
from memory.api.fields import AwareDateTimeField, JsonObject, changed_fields, draft_fields
from memory.api.filters import RowFilter, TextFilter
from memory.api.views import OwnerViewSet
from memory.errors import Unprocessable
from memory.models import MemoryPool
from memory.services.pools.data import PoolData, merge_data, read_data, write_data
from memory.services.pools.manage import (
    DEFAULT_SCOPES,
    PoolDraft,
    change_pool,
    create_pool,
    delete_pool,
    find_pool,
    grant_access,
    pool_statistics,
    revoke_access,
)
from memory.tiers.json_documents import parse_path
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, ExternalId, StrictSerializer, Text, WholeNumber

TYPES, SCOPES = MemoryPool.PoolType.choices, MemoryPool.Scope.choices
ENTRY_COUNT_HELP = "Number of top-level members of the data, or of postings, or of cached results."
OWN_TYPES = [(name, label) for name, label in TYPES if name in DEFAULT_SCOPES]
"""The types of pools that belong to no workflow run."""


class PoolChange(ActingFields):
    access_control = AccessControlFields(required=False, help_text="Grants to agents. A change replaces all of them.")
    expires_at = AwareDateTimeField(
        required=False, allow_null=True, help_text="Time of its expiry with a zone, or null."
    )


class NewPool(PoolChange):
    pool_id = ExternalId(required=False, help_text="Id of the pool. Default: a new UUID.")
    pool_type = serializers.ChoiceField(OWN_TYPES, default=MemoryPool.PoolType.SHARED.value)
    scope = serializers.ChoiceField(
        SCOPES,
        required=False,
        help_text="Range of agents. Default: that of the type.",
    )
    # DRF takes it out of the class
    data = JsonObject(required=False, help_text="First data of the pool.")  # type: ignore[assignment]
    team = serializers.UUIDField(required=False, allow_null=True, help_text="Team. Required for the scope team.")
    task_id = ExternalId(required=False, allow_blank=True, help_text="Task. Required for the scope task.")


class PoolAnswer(AnswerSerializer):
    columns = columns_of(MemoryPool, "pool_id pool_type scope expires_at created_at updated_at")
    agent_id = serializers.CharField(help_text="Agent that owns it. Empty: the account.")
    team = serializers.UUIDField(source="team_id", allow_null=True)
    task_id = serializers.CharField(help_text="May be empty.")
    workflow_run_id = serializers.CharField(help_text="Workflow run that it belongs to. Empty: none.")
    access_control = AccessControlAnswer()
    version = serializers.IntegerField(help_text="Increases with each write, of its access control too.")
    entry_count = serializers.IntegerField(help_text=ENTRY_COUNT_HELP)
    size_bytes = serializers.IntegerField(help_text="Size of all of them as compact JSON, expired results included.")

    @staticmethod
    def compute_workflow_run_id(pool: MemoryPool) -> str:
        return pool.workflow_run.workflow_run_id if pool.workflow_run else ""


class PoolStatisticsAnswer(AnswerSerializer):
    pool_id = serializers.CharField()
    entry_count = serializers.IntegerField(help_text=f"{ENTRY_COUNT_HELP} Expired results do not count.")
    size_bytes = serializers.IntegerField(help_text="Size of all of them as compact JSON. This is what is limited.")
    limit_bytes = serializers.IntegerField(help_text="Maximum of size_bytes.")
    read_count = serializers.IntegerField(help_text="Number of reads of its content.")
    write_count = serializers.IntegerField(help_text="Number of writes of its content after it was created.")
    last_accessed_at = serializers.DateTimeField(allow_null=True, help_text="Time of the last such read or write.")


class PoolFilter(RowFilter):
    pool_type = ChoiceFilter(choices=TYPES)
    scope = ChoiceFilter(choices=SCOPES)
    team = UUIDFilter()
    task_id = TextFilter()


class PoolViewSet(OwnerViewSet):
    """Base of views that answer one pool, with its ETag."""

    def answer_row(self, row: MemoryPool) -> Response:
        # a new pool may take the id of a deleted one
        return self.respond_with_etag(row, row_id=row.id)


class Pools(PoolViewSet):
    """An agent sees pools that scope, type or a grant opens to it. Without an agent, a key sees all of the account's.

    Only the owner of a pool grants, changes and deletes it; 403 for others that see it.
    """

    operation_ids = {"statistics": "get_pool_statistics"}
    bodies = {"create": NewPool, "partial_update": PoolChange}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields, "statistics": ActingFields}
    answer = PoolAnswer
    answers = {"statistics": PoolStatisticsAnswer}
    conditional = frozenset({"retrieve", "partial_update", "destroy"})
    filterset_class = PoolFilter
    queryset = MemoryPool.objects.none()

    def list(self, request: Request) -> Response:
        """List pools without their content, latest first."""
        rows = MemoryPool.objects.visible_to(self.owner(self.query())).live(timezone.now())
        return self.respond_page(rows.select_related("workflow_run").defer("data"))

    def create(self, request: Request) -> Response:
        """Create a pool. 409 if the account has one of this id. Create pools of a run below `/workflow-runs`."""
        body = self.body()
        owner, draft = self.owner(body), pool_draft_from_body(body)
        return self.write_row(create_pool, owner, draft, now=timezone.now())

    def retrieve(self, request: Request, pool_id: str) -> Response:
        """Return a pool without its content."""
        return self.answer_row(find_pool(self.owner(self.query()), pool_id, now=timezone.now()))

    def partial_update(self, request: Request, pool_id: str) -> Response:
        """Change the access control, or when the pool expires."""
        body, expected, now = self.body(), self.expected_versions(), timezone.now()
        owner, changes = self.owner(body), changed_fields(body)
        return self.answer_row(change_pool(owner, pool_id, changes=changes, expected=expected, now=now))

    def destroy(self, request: Request, pool_id: str) -> Response:
        """Delete a pool with its content."""
        delete_pool(self.owner(self.query()), pool_id, expected=self.expected_versions(), now=timezone.now())
        return Response(status=204)

    def statistics(self, request: Request, pool_id: str) -> Response:
        """Return the present statistics. Expired results do not count."""
        found = pool_statistics(self.owner(self.query()), pool_id, now=timezone.now())
        return self.respond(found, {"pool_id": pool_id})


def pool_draft_from_body(body: dict[str, Any]) -> PoolDraft:
    given = draft_fields(PoolDraft, body) | {"access_control": access_control_from_body(body)}
    return PoolDraft(**given, team_id=body.get("team"))


class PoolGrants(PoolViewSet):
    """Access for agents by name, in addition to what the pool's scope opens. The key determines who acts."""

    operation_ids = {"grant": "grant_pool_access", "revoke": "revoke_pool_access"}
    bodies = {"grant": GrantBody, "revoke": RevokeBody}
    answer = PoolAnswer
    conditional = frozenset({"grant", "revoke"})

    def grant(self, request: Request, pool_id: str) -> Response:
        """Grant an agent access. Granting it twice only changes the version."""
        body, owner, expected = self.body(), self.owner(), self.expected_versions()
        return self.write_row(grant_access, owner, pool_id, **body, expected=expected, now=timezone.now())

    def revoke(self, request: Request, pool_id: str) -> Response:
        """Revoke what an agent was granted. What the pool's scope opens to the agent stays open."""
        body, owner, expected = self.body(), self.owner(), self.expected_versions()
        return self.write_row(revoke_access, owner, pool_id, **body, expected=expected, now=timezone.now())


MAX_PATH_CHARACTERS = 2_000
MAX_VERSION = 2_147_483_647


class PointerField(Text):
    """A JSON Pointer (RFC 6901)."""

    def __init__(self, **options: Any) -> None:
        help_text = "JSON Pointer to a part of the data, such as `/plan/steps/0`. Default: all of it."
        defaults = {"max_length": MAX_PATH_CHARACTERS, "allow_blank": True, "default": "", "help_text": help_text}
        super().__init__(**dict[str, Any](defaults | options))

    def to_internal_value(self, data: Any) -> str:
        path = super().to_internal_value(data)
        try:
            parse_path(path)
        except Unprocessable as err:
            raise serializers.ValidationError(str(err)) from err
        return path


class PathQuery(StrictSerializer):
    path = PointerField()


class ReadQuery(ActingFields):
    path = PointerField()


class DataBody(ActingFields):
    # DRF takes it out of the class
    data = serializers.JSONField(allow_null=True, help_text="Any JSON value.")  # type: ignore[assignment]
    expected_version = WholeNumber(
        required=False, min_value=1, max_value=MAX_VERSION, help_text="412 at another version."
    )


class PoolPartAnswer(AnswerSerializer):
    pool_id = serializers.CharField()
    path = serializers.CharField()
    version = serializers.IntegerField(help_text="Version of the pool.")


class DataAnswer(PoolPartAnswer):
    data = serializers.JSONField(allow_null=True)  # type: ignore[assignment]  # DRF takes it out of the class


class WrittenAnswer(PoolPartAnswer):
    size_bytes = serializers.IntegerField(help_text="Size of all data of the pool as compact JSON.")


class PoolContents(OwnerViewSet):
    """Every write increases the version by one. A write with another `If-Match` or `expected_version` is 412.

    422 for a path that leads through something other than objects and lists, and for pools with postings or results.
    """

    operation_ids = {"retrieve": "get_pool_data", "update": "replace_pool_data", "partial_update": "merge_pool_data"}
    bodies = {"update": DataBody, "partial_update": DataBody}
    queries = {"retrieve": ReadQuery, "update": PathQuery, "partial_update": PathQuery}
    answer = WrittenAnswer
    answers = {"retrieve": DataAnswer}
    problems = {"retrieve": (422,)}
    not_audited = frozenset({"retrieve"})
    conditional = frozenset({"retrieve", "update", "partial_update"})

    def retrieve(self, request: Request, pool_id: str) -> Response:
        """Return the data at the path. 404 if there is none. The read counts in the pool's statistics."""
        query = self.query()
        found = read_data(self.owner(query), pool_id, path=query["path"], now=timezone.now())
        return self.respond_with_etag(found, {"pool_id": pool_id, "path": query["path"]}, row_id=found.row_id)

    def update(self, request: Request, pool_id: str) -> Response:
        """Replace the data at the path. Missing objects on the way are created; `-` appends to a list.

        The data as a whole is an object. 413 if it would become too large; nothing changes then.
        """
        return self.change_data(pool_id, write_data)

    def partial_update(self, request: Request, pool_id: str) -> Response:
        """Merge the data into the present data: objects member by member at every depth, all else is replaced.

        Null is a value like others, and deletes nothing. Otherwise the same as PUT.
        """
        return self.change_data(pool_id, merge_data)

    def change_data(self, pool_id: str, change: Callable[..., PoolData]) -> Response:
        body, path = self.body(), self.query()["path"]
        expected = self.expected_versions(body.get("expected_version"))
        owner, now = self.owner(body), timezone.now()
        stored = change(owner, pool_id, path=path, data=body["data"], expected=expected, now=now)
        return self.respond_with_etag(stored, {"pool_id": pool_id, "path": path}, row_id=stored.row_id)
