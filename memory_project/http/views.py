"""The view that every resource is made of: declares what it takes and answers, and keeps the general contract."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, ClassVar, cast
from urllib.parse import unquote_to_bytes
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer, ValidationError
from rest_framework.viewsets import GenericViewSet

from memory_project.http import pagination
from memory_project.http.bodies import NDJSON, is_stream
from memory_project.http.conditional import Versions, etag_of, is_known, narrow, read_if_match
from memory_project.http.credentials import Credential
from memory_project.http.idempotency import (
    AlreadyAnswered,
    Attempt,
    begin_attempt,
    record_afterwards,
    record_with_write,
)
from memory_project.http.problems import Problem
from memory_project.http.serializers import refuse_unknown
from memory_project.http.throttling import Allowance

Shapes = Mapping[str, type[Serializer[Any]]]


class ServiceViewSet(GenericViewSet[Any]):
    """Actions by name: `bodies` and `queries` say what each takes, `answers` what it answers, `scopes` what it needs.

    An action in `streams` takes any number of lines of that shape, too (NDJSON), which `streams.spooled_lines` reads.
    An action in `pages` answers a page of `self.page(rows, represent)` and takes `cursor` and `page_size`; `ordering`
    ends in a unique column, and a score (`scored`) comes before it. A POST that writes to PostgreSQL does so in
    `self.once(...)`. An action in `conditional` answers `self.versioned(...)`: a read takes `If-None-Match`, a write
    `If-Match` (`self.expected()`), which any other that writes refuses. `problems` says which of 409 and 422 a GET or
    a DELETE answers (other methods may answer both), and 404 where ids are in the query.
    """

    bodies: ClassVar[Shapes] = {}
    queries: ClassVar[Shapes] = {}
    streams: ClassVar[Shapes] = {}
    # a mapping is a schema as it stands, for objects whose members are the client's
    answers: ClassVar[Mapping[str, type[BaseSerializer[Any]] | Mapping[str, Any] | None]] = {}
    # several for an upsert, which tells by them whether there was nothing before
    statuses: ClassVar[Mapping[str, int | tuple[int, ...]]] = {}
    problems: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    scopes: ClassVar[Mapping[str, str]] = {}
    conditional: ClassVar[frozenset[str]] = frozenset()
    pages: ClassVar[frozenset[str]] = frozenset({"list"})
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    scored: pagination.Scored | None = None
    rate_class: ClassVar[str] = "default"
    filterset_class: ClassVar[Any] = None
    # no OPTIONS: what there is, the OpenAPI document says
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    allowance: Allowance | None = None
    _attempt: Attempt | None = None

    @property
    def credential(self) -> Credential:
        credential: Any = self.request.auth
        return cast("Credential", credential)

    def body(self) -> dict[str, Any]:
        """The request's body, its shape checked by the action's serializer."""
        return self._checked(self.bodies[self.action], self.request.data)

    def query(self) -> dict[str, Any]:
        """The query parameters, their shape checked by the action's serializer."""
        shape = self.queries[self.action]
        # those of pages and filters are not the shape's; what nobody knows was refused in `initial`
        own = {
            name: self.request.query_params[name]
            for name in shape._declared_fields
            if name in self.request.query_params
        }
        return self._checked(shape, own)

    def _checked(self, shape: type[Serializer[Any]], data: Any) -> dict[str, Any]:
        serializer = shape(data=data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
        return checked

    def page(self, rows: QuerySet[Any, Any], represent: Callable[[Any], Any]) -> Response:
        """A page of these rows, filtered as the request asks."""
        found = self.paginate_queryset(self.filter_queryset(rows)) or []
        return self.get_paginated_response([represent(row) for row in found])

    def expected(self, *versions: int | None) -> Versions:
        """Which versions the caller is content with: those of `If-Match`, and those given that are not None."""
        named = [frozenset({str(version)}) for version in versions if version is not None]
        return reduce(narrow, named, read_if_match(self.request.headers.get("If-Match")))

    def versioned(self, data: Any, *, version: int, row_id: UUID | None = None, status: int = 200) -> Response:
        """An answer with its ETag; 304 without a body where the caller of a GET has it already (`If-None-Match`).

        With `row_id` for rows whose public id another row may have after them.
        """
        tag = etag_of(version, row_id)
        if self.request.method in SAFE_METHODS and is_known(self.request.headers.get("If-None-Match"), tag):
            return Response(status=304, headers={"ETag": tag})
        return Response(data, status=status, headers={"ETag": tag})

    def once(self, write: Callable[[], Response]) -> Response:
        """Write and answer; with an `Idempotency-Key`, the answer is kept in the same transaction.

        What may take long (an embedder, a model) comes before it, not inside.
        """
        if self._attempt is None:
            return write()
        with transaction.atomic():
            response = write()
            if response.status_code < 500:
                record_with_write(self._attempt, response)
        self._attempt.is_recorded = response.status_code < 500
        return response

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            if self._attempt is not None:
                self._attempt.release()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # before the key's scopes are asked: no scope would help
        if f"{request.method}".lower() not in self.action_map:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)
        if is_stream(request.META):
            self._refuse_stream(request)
        else:
            self._refuse_large_body(request)
        self._refuse_unknown_parameters(request)
        self._refuse_unread_condition(request)
        self._attempt = begin_attempt(request)

    def _refuse_large_body(self, request: Request) -> None:
        limit = settings.BODY_LIMIT_BYTES
        if int(request.META.get("CONTENT_LENGTH") or 0) > limit:
            raise Problem(413, "body_too_large", f"A body has at most {limit} bytes.", limit_bytes=limit)

    def _refuse_stream(self, request: Request) -> None:
        if self.action not in self.streams:
            # nothing has read it, and without a length Django takes it for none
            raise UnsupportedMediaType(NDJSON)
        if "Idempotency-Key" in request.headers:
            detail = "A stream takes no Idempotency-Key: lines that name themselves make it safe to send again."
            raise Problem(400, "idempotency_key_refused", detail)

    def _refuse_unread_condition(self, request: Request) -> None:
        if "If-Match" not in request.headers or request.method in SAFE_METHODS or self.action in self.conditional:
            return
        detail = "Nothing here is compared with If-Match: what it asks for would not be kept. Send it without."
        raise Problem(400, "if_match_refused", detail)

    def _refuse_unknown_parameters(self, request: Request) -> None:
        query = request.META.get("QUERY_STRING", "")
        if not query:
            return
        refuse_broken_text(query)
        refuse_unknown(set(request.query_params) - self.parameters_taken(), told="no such parameter")
        repeated = {name for name, given in request.query_params.lists() if len(given) > 1}
        if repeated:
            raise ValidationError({name: ["given more than once"] for name in repeated})

    def parameters_taken(self) -> set[str]:
        """The names of the query parameters that the action knows."""
        shape = self.queries.get(self.action)
        # the class's own list: making a serializer on each request costs more than the rest of the check
        names = set(getattr(shape, "_declared_fields", ()))
        if self.action in self.pages:
            names |= pagination.PARAMETERS | set(getattr(self.filterset_class, "base_filters", ()))
        return names

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, AlreadyAnswered):
            return exc.response  # type: ignore[return-value]  # any HttpResponse will do
        return super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        if self._attempt is not None:
            record_afterwards(self._attempt, final)
        if self.allowance is not None:
            for name, value in self.allowance.headers().items():
                final[name] = value
        return final


def refuse_broken_text(query: str) -> None:
    """Django would put replacement characters where a query (as WSGI spells it) is not UTF-8: another id than sent."""
    try:
        unquote_to_bytes(query.encode("latin-1", "replace")).decode()
    except UnicodeDecodeError as err:
        raise Problem(400, "invalid_query", "The query is not valid UTF-8.") from err
