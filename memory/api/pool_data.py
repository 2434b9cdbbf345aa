"""`/pools/{pool_id}/data`: what a pool holds, whole or the part that `?path=`, a JSON Pointer, leads to."""

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
from memory_project.http.serializers import ActingFields, StrictSerializer, Text, WholeNumber

LONGEST_PATH = 2_000
LARGEST_VERSION = 2_147_483_647


class PointerField(Text):
    """A JSON Pointer (RFC 6901)."""

    def __init__(self, **options: Any) -> None:
        told = "A JSON Pointer such as `/plan/steps/0`; by default all of it."
        super().__init__(
            **{"max_length": LONGEST_PATH, "allow_blank": True, "default": "", "help_text": told} | options
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
    data = serializers.JSONField(allow_null=True)  # type: ignore[assignment]  # DRF takes it out of the class
    expected_version = WholeNumber(
        required=False, min_value=1, max_value=LARGEST_VERSION, help_text="As `If-Match`: 412 at any other version."
    )


class DataAnswer(serializers.Serializer[Any]):
    pool_id = serializers.CharField()
    path = serializers.CharField()
    data = serializers.JSONField(allow_null=True)  # type: ignore[assignment]  # DRF takes it out of the class
    version = serializers.IntegerField()


class WrittenAnswer(serializers.Serializer[Any]):
    pool_id = serializers.CharField()
    path = serializers.CharField()
    version = serializers.IntegerField()
    size_bytes = serializers.IntegerField(help_text="Of all of its data, as compact JSON.")


class PoolContents(OwnerViewSet):
    """Every write raises the version by one; a stale one (`If-Match`, `expected_version`) is 412 and changes nothing.

    422 where the path leads through what is no object and no list, and for pools that have postings or entries.
    """

    bodies = {"update": DataBody, "partial_update": DataBody}
    queries = {"retrieve": ReadQuery, "update": PathQuery, "partial_update": PathQuery}
    answers = {"retrieve": DataAnswer, "update": WrittenAnswer, "partial_update": WrittenAnswer}
    problems = {"retrieve": (422,)}
    unrecorded = frozenset({"retrieve"})
    conditional = frozenset({"retrieve", "update", "partial_update"})

    def retrieve(self, request: Request, pool_id: str) -> Response:
        """404 where the path leads nowhere. Counted in the pool's statistics."""
        query = self.query()
        found = read_data(self.owner(query), pool_id, path=query["path"], now=timezone.now())
        answer = {"pool_id": pool_id, "path": query["path"], "data": found.data, "version": found.version}
        return self.versioned(answer, version=found.version, row_id=found.row_id)

    def update(self, request: Request, pool_id: str) -> Response:
        """Put the data in place of what is there. Missing objects on the way are made; `-` appends to a list.

        All of the data is an object. 413 where it would be too large; nothing changes then.
        """
        return self.changed(pool_id, write_data)

    def partial_update(self, request: Request, pool_id: str) -> Response:
        """Merge the data into what is there: objects name by name, however deep; everything else is replaced.

        Null is a value like others, and deletes nothing. Otherwise as PUT.
        """
        return self.changed(pool_id, merge_data)

    def changed(self, pool_id: str, change: Callable[..., PoolData]) -> Response:
        body, path = self.body(), self.query()["path"]
        expected = self.expected(body.get("expected_version"))
        owner, now = self.owner(body), timezone.now()
        stored = change(owner, pool_id, path=path, data=body["data"], expected=expected, now=now)
        answer = {"pool_id": pool_id, "path": path, "version": stored.version, "size_bytes": stored.size_bytes}
        return self.versioned(answer, version=stored.version, row_id=stored.row_id)
