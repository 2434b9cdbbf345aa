"""The OpenAPI document: what `ServiceViewSet` declares, plus what every operation shares."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.serializers import JSONField

from memory_project.http.bodies import NDJSON
from memory_project.http.credentials import scope_of
from memory_project.http.problems import CONTENT_TYPE
from memory_project.http.serializers import Abridged, StrictSerializer

JSON = "application/json"
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable, for programs."},
        "request_id": {"type": "string"},
        "errors": {"type": "object", "description": "By field.", "additionalProperties": True},
        "limit": {"type": "integer", "description": "How many there may be, where there were more."},
        "limit_bytes": {"type": "integer"},
        "size_bytes": {"type": "integer"},
        "stored": {"type": "boolean", "description": "Whether what is over a limit was stored all the same."},
        "line": {"type": "integer", "description": "Of a stream, from 1 on."},
    },
}
PROBLEMS_OF_ALL = {
    "400": "Not valid",
    "401": "No valid key",
    "403": "Not allowed",
    "429": "Too many",
    "503": "A store is down",
}
PROBLEMS_OF_BODIES = {"413": "Body too large", "415": "Not application/json"}
PROBLEMS_OF_WRITES = {"409": "Conflict, or still running", "422": "Well-formed, but refused"}
NOT_FOUND = {"404": "No such thing, or not for this key"}
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description="Sent again with the same body within 24 hours, the first answer is given again.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "maxLength": 1000},
    OpenApiParameter.HEADER,
    description='ETags, or `*`: of another version, nothing is changed and 412 answered. A `version` in quotes, `"3"`, '
    "will do.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    {"type": "string", "maxLength": 1000},
    OpenApiParameter.HEADER,
    description="ETags, or `*`: where what there is has one of them, 304 without a body.",
)
REQUEST_ID = OpenApiParameter("X-Request-Id", {"type": "string", "maxLength": 100}, OpenApiParameter.HEADER)


class ServiceSchema(AutoSchema):
    """Reads what `ServiceViewSet` declares, from `bodies` to `conditional`; nothing is said twice."""

    def get_override_parameters(self) -> list[Any]:
        parameters: list[Any] = [REQUEST_ID]
        if self.method == "POST":
            parameters.append(IDEMPOTENCY_KEY)
        if self._is_conditional:
            parameters.append(IF_NONE_MATCH if self.method == "GET" else IF_MATCH)
        query = getattr(self.view, "queries", {}).get(self._action)
        return [*parameters, query] if query else parameters

    def get_request_serializer(self) -> Any:
        body = getattr(self.view, "bodies", {}).get(self._action)
        line = getattr(self.view, "streams", {}).get(self._action)
        return {JSON: body, NDJSON: line} if line else body

    def get_response_serializers(self) -> Any:
        declared = getattr(self.view, "statuses", {}).get(self._action, 200)
        statuses = declared if isinstance(declared, tuple) else (declared,)
        answer = getattr(self.view, "answers", {}).get(self._action)
        shape = answer(many=True) if answer and self._is_page else answer
        described = shape or OpenApiResponse(description="No body" if 204 in statuses else "")
        known = {304: OpenApiResponse(description="It has an ETag that If-None-Match names: no body")}
        may_be_known = self._is_conditional and self.method == "GET"
        return {
            **dict.fromkeys(statuses, described),
            **(known if may_be_known else {}),
            **{code: _problem(text) for code, text in self._problems().items()},
        }

    def _problems(self) -> dict[tuple[str, str], str]:
        texts = dict(PROBLEMS_OF_ALL)
        if "{" in self.path:
            texts |= NOT_FOUND
        if self.method in ("POST", "PUT", "PATCH"):
            texts |= PROBLEMS_OF_BODIES | PROBLEMS_OF_WRITES
        for status in getattr(self.view, "problems", {}).get(self._action, ()):
            texts[str(status)] = (NOT_FOUND | PROBLEMS_OF_WRITES)[str(status)]
        if self._is_conditional and self.method != "GET":
            texts["412"] = "Another version than If-Match names"
        return {(code, CONTENT_TYPE): text for code, text in texts.items()}

    def _map_serializer(self, serializer: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        schema = super()._map_serializer(serializer, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        if isinstance(serializer, StrictSerializer) and "properties" in schema:
            schema["additionalProperties"] = False
        return schema

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        if isinstance(field, JSONField):
            # anything is null, too: drf-spectacular's "one of anything and null" would refuse null, which is both
            schema = {name: value for name, value in schema.items() if name not in ("oneOf", "type")}
        if isinstance(field, Abridged):
            schema = {"oneOf": [{"type": "string"}, schema]}
        return schema

    def get_description(self) -> str:  # type: ignore[override]  # of drf-spectacular, which differs from DRF
        scope = scope_of(self.view, self.method)
        return f"{super().get_description()}\n\nScope: `{scope}`.".strip()

    def get_filter_backends(self) -> list[Any]:
        return list(super().get_filter_backends()) if getattr(self.view, "filterset_class", None) else []

    def _is_list_view(self, serializer: Any = None) -> bool:
        return self._is_page

    @property
    def _action(self) -> str:
        return str(getattr(self.view, "action", self.method.lower()))

    @property
    def _is_conditional(self) -> bool:
        return self._action in getattr(self.view, "conditional", ())

    @property
    def _is_page(self) -> bool:
        return self._action in getattr(self.view, "pages", ())


def _problem(text: str) -> OpenApiResponse:
    return OpenApiResponse(response={"$ref": "#/components/schemas/Problem"}, description=text)


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # theirs has no types
    target_class = "memory.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def add_problem_shape(result: dict[str, Any], **_options: Any) -> dict[str, Any]:
    """A hook of drf-spectacular: the shape that all problems refer to."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM
    return result
