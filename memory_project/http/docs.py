"""The views of the OpenAPI document and of the pages about errors."""

import json
import re
from functools import cache
from hashlib import sha256
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer2, OpenApiYamlRenderer2

from memory_project.http.conditional import matches_if_none_match
from memory_project.http.error_codes import ERROR_CODES, example_of
from memory_project.http.problems import ProblemDetails, problem_response

RENDERERS: dict[str, Any] = {"yaml": OpenApiYamlRenderer2, "json": OpenApiJsonRenderer2}
CODE = re.compile("`([^`]*)`")


@cache
def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document. Building it takes more than a second, so it is done once."""
    generator: Any = SchemaGenerator
    document: dict[str, Any] = generator().get_schema(request=None, public=True)
    return document


@cache
def rendered_document(format_: str) -> tuple[bytes, str, str]:
    """Return the document in a format of RENDERERS, with its media type and its ETag."""
    renderer = RENDERERS[format_]()
    body: bytes = renderer.render(openapi_document(), renderer_context={})
    return body, renderer.media_type, f'"{sha256(body).hexdigest()[:32]}"'


def render_documents() -> None:
    """Render the document in all formats, before the first request for it."""
    for format_ in RENDERERS:
        rendered_document(format_)


@require_safe
def openapi(request: HttpRequest) -> HttpResponseBase:
    """Answer the OpenAPI document as YAML, or as JSON with `?format=json`. The Accept header does not count."""
    wanted = request.GET.get("format", "yaml")
    if wanted not in RENDERERS:
        errors = {"format": [f"Must be one of: {', '.join(RENDERERS)}."]}
        return problem_response(ProblemDetails(status=400, code="invalid", detail="Not valid: format.", errors=errors))
    body, media_type, tag = rendered_document(wanted)
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if matches_if_none_match(request.headers.get("If-None-Match"), tag):
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(body, content_type=media_type, headers=headers)


@require_safe
def error_codes(request: HttpRequest) -> HttpResponse:
    """Answer the page of all error codes."""
    return render(request, "api_errors.html", {"errors": [describe_code(code) for code in ERROR_CODES]})


@require_safe
def error_code(request: HttpRequest, code: str) -> HttpResponse:
    """Answer the page that the `type` of a problem leads to. Raises Http404 for a code that there is not."""
    if code not in ERROR_CODES:
        raise Http404
    example = json.dumps(example_of(code), indent=2)
    return render(request, "api_error.html", {"error": describe_code(code), "example": example})


def describe_code(code: str) -> dict[str, Any]:
    """Return what a page says of a code."""
    documented = ERROR_CODES[code]
    texts = {"meaning": mark_code(documented.meaning), "remedy": mark_code(documented.remedy)}
    return {"code": code, "status": documented.status, **texts}


def mark_code(text: str) -> SafeString:
    """Return the text as HTML, with code for what is in backticks."""
    return mark_safe(CODE.sub(r"<code>\1</code>", escape(text)))  # noqa: S308  escaped
