"""`/pools/{pool_id}/data`: the data of a pool, as a whole or the part that a JSON Pointer in `?path=` selects."""

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.errors import Unprocessable
from memory.services.pools.data import PoolData, merge_data, read_data, write_data
from memory.tiers.json_documents import parse_path
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, StrictSerializer, Text, WholeNumber

MAX_PATH_CHARACTERS = 2_000
MAX_VERSION = 2_147_483_647


class PointerField(Text):
    """A JSON Pointer (RFC 6901)."""

    def __init__(self, **options: Any) -> None:
        help_text = "JSON Pointer to a part of the data, such as `/plan/steps/0`. Default: all of it."
        super().__init__(
            **{"max_length": MAX_PATH_CHARACTERS, "allow_blank": True, "default": "", "help_text": help_text} | options
        )

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
