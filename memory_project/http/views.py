"""The base of all views: it turns declarations into behaviour and keeps the general contract."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import IO, Any, ClassVar, cast
from urllib.parse import unquote_to_bytes
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, Serializer, ValidationError
from rest_framework.viewsets import GenericViewSet

from memory_project.http import pagination
from memory_project.http.answer_limits import limit_answer
from memory_project.http.answers import NOTHING, AnswerSerializer
from memory_project.http.conditional import (
    Versions,
    format_etag,
    intersect_versions,
    matches_if_none_match,
    parse_if_match,
)
from memory_project.http.credentials import Credential, required_scope
from memory_project.http.idempotency import (
    AlreadyAnswered,
    IdempotentAttempt,
    begin_attempt,
    record_afterwards,
    record_with_write,
)
from memory_project.http.problems import Problem
from memory_project.http.replica_reads import route_reads
from memory_project.http.serializers import check_data, refuse_unknown_names
from memory_project.http.streams import NDJSON, ZIP, has_body_of, is_ndjson_stream
from memory_project.http.throttling import Allowance
from memory_project.redis import REQUESTED_WRITES, RequestedWrites

SerializersByAction = Mapping[str, type[Serializer[Any]]]
AnswerShape = type[BaseSerializer[Any]] | Mapping[str, Any] | None
DEFAULT_STATUSES = {"create": 201, "destroy": 204}


class ServiceViewSet(GenericViewSet[Any]):
    """Base of all views. Class attributes declare, by action name, what each action takes and answers.

    - `bodies`, `queries`: the serializers of request bodies and query parameters.
    - `streams`: an action here also takes newline-delimited JSON of that shape, one object per line.
    - `uploads`: actions whose body is a zip of any length, and which read it themselves.
    - `downloads`: actions whose answer is a zip.
    - `answers`: the shape of an answer other than `answer`; a mapping is an OpenAPI schema, for objects whose members
      the client chooses.
    - `operation_ids`: the operation id, where the one that follows from path and action (`schema.name_operation`) does
      not say what the operation does.
    - `undocumented`: actions that the OpenAPI document leaves out, because another path describes them.
    - `deprecated`: True if clients should use other routes instead.
    - `statuses`: the status of success, if not the usual one (`DEFAULT_STATUSES`, else 200); several for an upsert.
    - `problems`: which of 409 and 422 a GET can answer, and 404 where ids are in the query or the body instead of the
      path.
    - `scopes`: the scope required, if it is not `read` for reads and `write` for writes.
    - `for_users`: True if a key that is bound to a user may use the view, because it shows and changes nothing of other
      users then. Any other view refuses such keys.
    - `opens_conversations`: False if writes store data under the id of a conversation that may not exist. Keys that are
      bound to a user may use such views for conversations that exist.
    - `pages`: actions that answer `self.respond_page(rows)` and take `cursor` and `page_size`. `ordering` ends in a
      unique column; a score (`scored`) comes before it. `queryset` is for the OpenAPI document of the filters only.
    - `replica_reads`: actions besides lists that a replica of the database may answer: they read, and write nothing
      before the answer.
    - `conditional`: actions that compare ETags. Reads take `If-None-Match`, writes `If-Match`
      (`self.expected_versions()`). Every other write refuses `If-Match`. A read whose answer can change under the same
      ETag, such as one with related rows, is not in here.

    A POST that writes to PostgreSQL does so in `self.write_once(...)`.
    """

    bodies: ClassVar[SerializersByAction] = {}
    queries: ClassVar[SerializersByAction] = {}
    streams: ClassVar[SerializersByAction] = {}
    uploads: ClassVar[frozenset[str]] = frozenset()
    downloads: ClassVar[frozenset[str]] = frozenset()
    answer: ClassVar[AnswerShape] = None
    answers: ClassVar[Mapping[str, AnswerShape]] = {}
    operation_ids: ClassVar[Mapping[str, str]] = {}
    undocumented: ClassVar[frozenset[str]] = frozenset()
    deprecated: ClassVar[bool] = False
    statuses: ClassVar[Mapping[str, int | tuple[int, ...]]] = {}
    problems: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    scopes: ClassVar[Mapping[str, str]] = {}
    for_users: ClassVar[bool] = False
    opens_conversations: ClassVar[bool] = True
    replica_reads: ClassVar[frozenset[str]] = frozenset()
    conditional: ClassVar[frozenset[str]] = frozenset()
    pages: ClassVar[frozenset[str]] = frozenset({"list"})
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    scored: pagination.ScoreOrdering | None = None
    rate_class: ClassVar[str] = "default"
    filterset_class: ClassVar[Any] = None
    # no OPTIONS: the OpenAPI document describes the routes
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    allowance: Allowance | None = None
    _attempt: IdempotentAttempt | None = None

    @property
    def credential(self) -> Credential:
        credential: Any = self.request.auth
        return cast("Credential", credential)

    def body(self) -> dict[str, Any]:
        """Return the request's body, checked by the action's serializer."""
        return check_data(self.bodies[self.action], self.mask_written(self.request.data))

    def mask_written(self, value: Any) -> Any:
        """Return what the client wrote, with its secrets masked if the account asks for it and the action stores it."""
        stores = self.credential.secrets == "mask" and required_scope(self, f"{self.request.method}") != "read"
        return import_string(settings.MASK_SECRETS)(value) if stores else value

    def query(self) -> dict[str, Any]:
        """Return the query parameters, checked by the action's serializer."""
        shape = self.queries[self.action]
        # without those of pages and filters; `initial` has refused unknown ones
        own = {
            name: self.request.query_params[name]
            for name in shape._declared_fields
            if name in self.request.query_params
        }
        return check_data(shape, own)

    @property
    def answer_shape(self) -> type[AnswerSerializer]:
        """The shape of the action's answer."""
        return cast("type[AnswerSerializer]", self.answer_of(self.action))

    def answer_of(self, action: str) -> AnswerShape:
        """Return the shape that an action answers; None for an answer without a body."""
        return None if 204 in self.statuses_of(action) else self.answers.get(action, self.answer)

    def statuses_of(self, action: str) -> tuple[int, ...]:
        """Return the statuses of success of an action, the default one first."""
        declared = self.statuses.get(action, DEFAULT_STATUSES.get(action, 200))
        return declared if isinstance(declared, tuple) else (declared,)

    def respond(self, row: Any, given: Mapping[str, Any] = NOTHING, *, status: int | None = None) -> Response:
        """Answer a row in the action's shape; `given` members replace the row's. Default status: the declared one."""
        return Response(self.answer_shape.serialize(row, given), status=status or self.statuses_of(self.action)[0])

    def respond_page(self, rows: QuerySet[Any, Any], serialize: Callable[[Any], Any] | None = None) -> Response:
        """Answer a page of these rows, filtered as the request asks, each in the action's shape."""
        page = self.paginate_queryset(self.filter_queryset(rows)) or []
        paginator: Any = self.paginator
        return self.get_paginated_response(paginator.serialize_rows(page, serialize or self.answer_shape.serialize))

    def respond_with_etag(
        self,
        row: Any,
        given: Mapping[str, Any] = NOTHING,
        *,
        row_id: UUID | None = None,
        status: int | None = None,
    ) -> Response:
        """Answer a row with the ETag of its `version`.

        A conditional GET whose `If-None-Match` names that ETag is answered 304. Pass `row_id` where another row can
        take the public id of a deleted one.
        """
        tag, known = format_etag(row.version, row_id), self.request.headers.get("If-None-Match")
        is_conditional_read = self.request.method in SAFE_METHODS and self.action in self.conditional
        if is_conditional_read and matches_if_none_match(known, tag):
            return Response(status=304, headers={"ETag": tag})
        response = self.respond(row, given, status=status)
        response["ETag"] = tag
        return response

    def expected_versions(self, *versions: int | None) -> Versions:
        """Return the versions that the caller accepts: those of `If-Match`, and the given ones that are not None."""
        named = [frozenset({str(version)}) for version in versions if version is not None]
        return reduce(intersect_versions, named, parse_if_match(self.request.headers.get("If-Match")))

    def write_once(self, write: Callable[[], Response]) -> Response:
        """Write and answer. With an `Idempotency-Key`, the answer is recorded in the transaction of the write.

        Do slow work (an embedder, a model) before calling this, not inside.
        """
        if self._attempt is None:
            return write()
        with transaction.atomic():
            self._attempt.lock()
            response = write()
            if response.status_code < 400:
                record_with_write(self._attempt, response)
        self._attempt.is_recorded = response.status_code < 400
        return response

    def refuse_repeated_stream(self, body_hash: str) -> None:
        """Raise AlreadyAnswered for a stream that was stored under its `Idempotency-Key`; a 422 problem for another."""
        if self._attempt is not None:
            self._attempt.body_hash = body_hash
            self._attempt.replay()

    def lock_stream(self) -> None:
        """Keep other streams with the same `Idempotency-Key` out until the caller's transaction ends."""
        if self._attempt is not None:
            self._attempt.lock()

    def record_stream(self, answer: IO[bytes], short: Mapping[str, Any]) -> None:
        """Record the answer of a stream in the transaction of its write; `short` instead if it is too long."""
        if self._attempt is None:
            return
        body = answer.read(settings.ANSWER_LIMIT_BYTES + 1)
        answer.seek(0)
        if len(body) > settings.ANSWER_LIMIT_BYTES:
            body = JSONRenderer().render(short)
        self._attempt.record(201, "application/json", body)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            if self._attempt is not None:
                REQUESTED_WRITES.set(None)
                self._attempt.end_run()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # before scopes are checked: no scope would help
        if f"{request.method}".lower() not in self.action_map:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)
        self._refuse_unread_condition(request)
        if self.action in self.uploads:
            self._refuse_upload(request)
        elif is_ndjson_stream(request.META):
            self._refuse_stream(request)
        else:
            self._refuse_large_body(request)
        self._refuse_unknown_parameters(request)
        self._attempt = begin_attempt(request)
        if self._attempt is not None:
            seconds = settings.IDEMPOTENCY_HOURS * 3_600
            REQUESTED_WRITES.set(RequestedWrites(request_id=self._attempt.write_id, seconds=seconds))
        if settings.DATABASE_REPLICA_URLS:
            route_reads(self, request)

    def may_read_from_replica(self, request: Request) -> bool:
        """Return whether a replica may answer: the action is a list, or one of `replica_reads`."""
        return self.action in (self.pages if request.method in SAFE_METHODS else self.replica_reads)

    def _refuse_large_body(self, request: Request) -> None:
        limit = settings.BODY_LIMIT_BYTES
        if int(request.META.get("CONTENT_LENGTH") or 0) > limit:
            detail = f"The body is too large: it may have at most {limit} bytes."
            raise Problem(413, "body_too_large", detail, limit_bytes=limit)

    def _refuse_stream(self, request: Request) -> None:
        if self.action not in self.streams:
            # nothing has read the body, and without a length Django takes it for an empty one
            raise UnsupportedMediaType(NDJSON)

    def _refuse_upload(self, request: Request) -> None:
        if not has_body_of(request.META, ZIP):
            detail = f"The body is no archive. Send the zip, with the header `Content-Type: {ZIP}`."
            raise Problem(415, "unsupported_media_type", detail)
        if "Idempotency-Key" in request.headers:
            detail = "An archive takes no Idempotency-Key. What is imported twice is there once."
            raise Problem(400, "idempotency_key_refused", detail)

    def _refuse_unread_condition(self, request: Request) -> None:
        if "If-Match" not in request.headers or request.method in SAFE_METHODS or self.action in self.conditional:
            return
        detail = "This operation does not support If-Match, so the condition would not be checked. Send it without."
        raise Problem(400, "if_match_refused", detail)

    def _refuse_unknown_parameters(self, request: Request) -> None:
        query = request.META.get("QUERY_STRING", "")
        if not query:
            return
        try:
            unquote_to_bytes(query.encode("latin-1", "replace")).decode()
        except UnicodeDecodeError as err:
            # Django would silently change the ids in it
            raise Problem(400, "invalid_query", "The query string is not valid UTF-8.") from err
        known = self.known_parameters()
        misplaced = (
            set(request.query_params) & set(getattr(self.bodies.get(self.action), "_declared_fields", ())) - known
        )
        if misplaced:
            raise ValidationError(
                {name: [f'"{name}" belongs in the body of this request, not in its query.'] for name in misplaced}
            )
        refuse_unknown_names(request.query_params, known, noun="query parameter")
        repeated = {name for name, given in request.query_params.lists() if len(given) > 1}
        if repeated:
            raise ValidationError({name: ["Give this parameter only once."] for name in repeated})

    def known_parameters(self) -> set[str]:
        """Return the names of the query parameters that the action takes."""
        shape = self.queries.get(self.action)
        # read from the class: making a serializer for each request would cost more than the rest of the check
        names = set(getattr(shape, "_declared_fields", ()))
        if self.action in self.pages:
            names |= pagination.PAGE_PARAMETERS | set(getattr(self.filterset_class, "base_filters", ()))
        return names

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, AlreadyAnswered):
            return exc.response  # type: ignore[return-value]  # any HttpResponse will do
        return super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        limit_answer(final, getattr(self, "paginator", None) if self.action in self.pages else None)
        if self._attempt is not None:
            record_afterwards(self._attempt, final)
        if self.allowance is not None:
            for name, value in self.allowance.headers().items():
                final[name] = value
        return final
