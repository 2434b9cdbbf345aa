"""The OpenAPI document: the declarations of `ServiceViewSet`, plus what all operations share."""

import re
from collections.abc import Iterator
from typing import Any

import inflection
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.serializers import JSONField

from memory_project.http.credentials import required_scope
from memory_project.http.error_codes import type_of
from memory_project.http.problems import CONTENT_TYPE
from memory_project.http.serializers import TEXT, ObjectOrText, StrictSerializer
from memory_project.http.streams import NDJSON, ZIP

JSON_MEDIA_TYPE = "application/json"
PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {
            "type": "string",
            "format": "uri-reference",
            "description": "Leads to the documentation of the code.",
            "example": type_of("invalid"),
        },
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable name of the problem, for programs."},
        "request_id": {"type": "string"},
        "errors": {"type": "object", "description": "What is wrong, by field name.", "additionalProperties": True},
        "limit": {"type": "integer", "description": "Number of elements allowed, if there were more."},
        "limit_bytes": {"type": "integer", "description": "Size limit in bytes."},
        "size_bytes": {"type": "integer", "description": "Actual size in bytes."},
        "stored": {"type": "boolean", "description": "Whether the value was stored although it is over the limit."},
        "line": {"type": "integer", "description": "Number of the invalid line of a stream, from 1."},
    },
}
PROBLEM_REFERENCE = {"$ref": "#/components/schemas/Problem"}
PROBLEMS_OF_ALL = {
    "400": "The request is invalid.",
    "401": "The API key is missing or invalid.",
    "403": "The key may not do this.",
    "429": "Too many requests.",
    "503": "A store is down.",
}
PROBLEMS_OF_BODIES = {"413": "The body is too large.", "415": "The body is not application/json."}
PROBLEMS_OF_UPLOADS = {"413": "The body is too large.", "415": "The body is not application/zip."}
PROBLEMS_OF_WRITES = {
    "409": "Conflict with the stored state, or with a request that is still running.",
    "422": "Well-formed, but the stored state does not allow it.",
}
NO_METHOD = {"405": "The path exists, but not with this method."}
STALE = {"412": "The present version is not the expected one."}
NOT_FOUND = {"404": "It does not exist, or this key may not see it."}
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description="Makes a retry safe: the same key with the same body returns the first answer again for 24 hours.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "maxLength": 1000},
    OpenApiParameter.HEADER,
    description="ETags, or `*`. If the present version has none of them, nothing changes and the answer is 412. A "
    '`version` in quotes, such as `"3"`, is also accepted.',
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    {"type": "string", "maxLength": 1000},
    OpenApiParameter.HEADER,
    description="ETags, or `*`. If the present version has one of them, the answer is 304 without a body.",
)
REQUEST_ID = OpenApiParameter("X-Request-Id", {"type": "string", "maxLength": 100}, OpenApiParameter.HEADER)


VERBS = {
    "list": "list",
    "create": "create",
    "retrieve": "get",
    "update": "set",
    "partial_update": "update",
    "destroy": "delete",
}
"""Verbs of operation ids, by action. The verb of any other action is the last segment of its path."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s")


class ServiceSchema(AutoSchema):
    """Reads the class attributes of `ServiceViewSet`, from `bodies` to `conditional`: nothing is declared twice.

    The docstring of an action is its documentation: the first sentence is the summary, the rest the description.
    """

    def is_excluded(self) -> bool:
        return self._action in getattr(self.view, "undocumented", ())

    def is_deprecated(self) -> bool:
        return bool(getattr(self.view, "deprecated", False))

    def get_operation_id(self) -> str:
        named = getattr(self.view, "operation_ids", {}).get(self._action)
        return named or name_operation(re.sub(f"^{self.path_prefix}/", "", self.path), self._action)

    def get_summary(self) -> str:
        # a summary is plain text, while descriptions are Markdown
        return split_summary(super().get_description())[0].replace("`", "")

    def get_override_parameters(self) -> list[Any]:
        parameters: list[Any] = [REQUEST_ID]
        if self.method != "GET" and not self._is_upload:
            parameters.append(IDEMPOTENCY_KEY)
        if self._is_conditional:
            parameters.append(IF_NONE_MATCH if self.method == "GET" else IF_MATCH)
        query = getattr(self.view, "queries", {}).get(self._action)
        return [*parameters, query] if query else parameters

    def get_request_serializer(self) -> Any:
        if self._is_upload:
            return {ZIP: OpenApiTypes.BINARY}
        body = getattr(self.view, "bodies", {}).get(self._action)
        line = getattr(self.view, "streams", {}).get(self._action)
        return {JSON_MEDIA_TYPE: body, NDJSON: line} if line else body

    def get_response_serializers(self) -> Any:
        view: Any = self.view
        statuses, answer = view.statuses_of(self._action), view.answer_of(self._action)
        shape = answer(many=True) if answer and self._is_page else answer
        described = shape or OpenApiResponse(description="Done; no body." if 204 in statuses else "")
        unchanged = {304: OpenApiResponse(description="The version has an ETag that If-None-Match names; no body.")}
        may_be_unchanged = self._is_conditional and self.method == "GET"
        if self._action in getattr(view, "downloads", ()):
            found: dict[Any, Any] = {(status, ZIP): OpenApiTypes.BINARY for status in statuses}
        else:
            found = dict.fromkeys(statuses, described)
        return {
            **found,
            **(unchanged if may_be_unchanged else {}),
            **{code: OpenApiResponse(PROBLEM_REFERENCE, text) for code, text in self._problems().items()},
        }

    def _problems(self) -> dict[tuple[str, str], str]:
        texts = dict(PROBLEMS_OF_ALL)
        if "{" in self.path:
            texts |= NOT_FOUND
        if self.method in ("POST", "PUT", "PATCH"):
            texts |= PROBLEMS_OF_UPLOADS if self._is_upload else PROBLEMS_OF_BODIES
        if self.method != "GET":
            texts |= PROBLEMS_OF_WRITES
        for status in getattr(self.view, "problems", {}).get(self._action, ()):
            texts[str(status)] = (NOT_FOUND | NO_METHOD | PROBLEMS_OF_WRITES | STALE)[str(status)]
        if self._is_conditional and self.method != "GET":
            texts["412"] = "The present version is not one that If-Match names."
        return {(code, CONTENT_TYPE): text for code, text in texts.items()}

    def _map_serializer(self, serializer: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        schema = super()._map_serializer(serializer, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        if isinstance(serializer, StrictSerializer) and "properties" in schema:
            schema["additionalProperties"] = False
            self._mention_text(schema["properties"].get(serializer.text_field_name()))
        if not vars(type(serializer)).get("__doc__"):
            # drf-spectacular takes the docstring of a base class, which is written for readers of the code
            schema.pop("description", None)
        return schema

    @staticmethod
    def _mention_text(described: dict[str, Any] | None) -> None:
        """Say of the field that holds the text of a thing that it has another name."""
        if described is not None:
            described["description"] = f"{described.get('description', '')} May be sent as `{TEXT}`.".strip()

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        if isinstance(field, JSONField):
            # "anything" includes null: drf-spectacular's "one of anything and null" would refuse null, which is both
            schema = {name: value for name, value in schema.items() if name not in ("oneOf", "type")}
        if isinstance(field, ObjectOrText):
            # the help text is about both forms
            [whole] = schema.pop("allOf", [schema])
            described = {"description": schema["description"]} if whole is not schema else {}
            schema = {"oneOf": [{"type": "string"}, whole], **described}
        return schema

    def get_description(self) -> str:  # type: ignore[override]  # of drf-spectacular, which differs from DRF
        scope = required_scope(self.view, self.method)
        described = split_summary(super().get_description())[1] or " ".join(self._describe_declarations())
        return f"{described}\n\nRequires the scope `{scope}`.".strip()

    def _describe_declarations(self) -> Iterator[str]:
        """Yield sentences about what the view declares of the action, for one of which there is no more to say."""
        if self._is_page:
            yield "`next` leads to the following page, and is null on the last one."
        if self._is_conditional and self.method == "GET":
            yield "304 if `If-None-Match` names the present version."
        elif self._is_conditional:
            yield "412 unless `If-Match`, where it is sent, names the present version."
        if "{" in self.path:
            yield "404 for what does not exist, or what this key may not see."
        if self.method != "GET":
            yield "Sent again with the same `Idempotency-Key`, it gets the first answer."

    def get_filter_backends(self) -> list[Any]:
        return list(super().get_filter_backends()) if getattr(self.view, "filterset_class", None) else []

    def _is_list_view(self, serializer: Any = None) -> bool:
        return self._is_page

    @property
    def _action(self) -> str:
        return str(getattr(self.view, "action", self.method.lower()))

    @property
    def _is_upload(self) -> bool:
        return self._action in getattr(self.view, "uploads", ())

    @property
    def _is_conditional(self) -> bool:
        return self._action in getattr(self.view, "conditional", ())

    @property
    def _is_page(self) -> bool:
        return self._action in getattr(self.view, "pages", ())


def name_operation(path: str, action: str) -> str:
    """Return the id of an operation as a verb with an object: `create_fact`, `list_context_entries`, `block_goal`."""
    nouns = [segment.replace("-", "_") for segment in path.split("/") if not segment.startswith("{")]
    verb = VERBS.get(action) or nouns.pop()
    *parents, last = nouns or [""]
    name = last if action == "list" else inflection.singularize(last)
    return "_".join(filter(None, [verb, *map(inflection.singularize, parents), name]))


def split_summary(docstring: str) -> tuple[str, str]:
    """Return the first sentence of a docstring, without its full stop, and the rest."""
    first, *rest = SENTENCE_END.split(docstring.strip(), maxsplit=1)
    return " ".join(first.split()).removesuffix("."), "".join(rest).strip()


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # theirs has no types
    target_class = "memory.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def add_problem_schema(result: dict[str, Any], **_options: Any) -> dict[str, Any]:
    """Add the schema that all problem responses refer to. A hook of drf-spectacular."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    return result
