"""The OpenAPI document for tests: its operations, and the smallest body that each accepts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from memory_project.http.docs import openapi_document

METHODS = ("get", "post", "put", "patch", "delete")

REQUIRED_WITHOUT = "Required without `"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path template, with the names of its path parameters, query parameters and headers.

    `body` is the least body, `fields` the schemas of all fields of bodies, by name.
    """

    method: str
    path: str
    parameters: tuple[str, ...]
    queries: tuple[str, ...]
    headers: tuple[str, ...]
    body: dict[str, Any] | None
    fields: dict[str, dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


def read_document() -> dict[str, Any]:
    """Return the document as the service answers it. Do not change it: it is built once per process."""
    return openapi_document()


def operations() -> Iterator[Operation]:
    """Yield every operation of the service."""
    document = read_document()
    for path, methods in document["paths"].items():
        for method in METHODS:
            if described := methods.get(method):
                yield Operation(
                    method=method,
                    path=path,
                    parameters=names_in(described, "path"),
                    queries=names_in(described, "query"),
                    headers=names_in(described, "header"),
                    body=least_body(document, described),
                    fields=body_fields(document, described),
                )


def names_in(described: dict[str, Any], where: str) -> tuple[str, ...]:
    """Return the names of the operation's parameters of one location."""
    return tuple(given["name"] for given in described["parameters"] if given["in"] == where)


def least_body(document: dict[str, Any], described: dict[str, Any]) -> dict[str, Any] | None:
    """Return the required fields, each with the first value that its schema allows; None for no body in JSON."""
    if (schema := json_schema(described)) is None:
        return None
    body: dict[str, Any] = least_value(document, schema)
    return body


def json_schema(described: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of an operation's body in JSON; None where it takes an archive, or nothing."""
    content = described.get("requestBody", {}).get("content", {})
    schema: dict[str, Any] | None = content.get("application/json", {}).get("schema")
    return schema


def body_fields(document: dict[str, Any], described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the schemas of the fields of an operation's body, by name."""
    if (schema := json_schema(described)) is None:
        return {}
    if reference := schema.get("$ref"):
        schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    fields: dict[str, dict[str, Any]] = schema.get("properties", {})
    return fields


def least_value(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    if forms := schema.get("allOf") or schema.get("oneOf"):
        return least_value(document, forms[0])
    if reference := schema.get("$ref"):
        return least_value(document, document["components"]["schemas"][reference.rpartition("/")[2]])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        properties = schema.get("properties", {})
        # one of two fields has to be there: the one that says so
        either = [name for name, field in properties.items() if REQUIRED_WITHOUT in field.get("description", "")]
        needed = [*schema.get("required", ()), *either]
        fields = {name: least_value(document, properties[name]) for name in needed}
        return fields or ({} if "properties" in schema else {"name": "value"})
    if kind == "array":
        return [least_value(document, schema["items"])]
    if kind == "string":
        return str(uuid4()) if schema.get("format") == "uuid" else "x"
    return {"integer": schema.get("minimum", 1), "number": 0.5, "boolean": False}[kind]
