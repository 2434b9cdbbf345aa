"""The OpenAPI document in version 3.0, for tools that do not read 3.1.

Both describe the same. Version 3.0 says `nullable` for the type `null`, and has neither constants nor licences by id.
"""

from collections.abc import Mapping
from typing import Any

VERSION = "3.0.3"
DATA = frozenset({"example", "examples", "default", "enum"})
"""Keywords whose values are data of clients, not schemas."""
NULLS = ({"type": "null"}, {"$ref": "#/components/schemas/NullEnum"})
"""Schemas of nothing but null. drf-spectacular refers to one of them beside enumerations."""
Schema = dict[str, Any]


def convert_document(document: Mapping[str, Any]) -> Schema:
    """Return a document of version 3.1 as one of version 3.0."""
    converted: Schema = convert_node(document)
    schemas = converted["components"]["schemas"]
    converted["components"]["schemas"] = {name: each for name, each in schemas.items() if each not in NULLS}
    licence = {name: value for name, value in document["info"]["license"].items() if name != "identifier"}
    return {**converted, "openapi": VERSION, "info": {**document["info"], "license": licence}}


def convert_node(node: Any) -> Any:
    """Return a part of a document, with every schema in it converted."""
    if isinstance(node, list):
        return [convert_node(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    return convert_schema({name: convert_member(name, value) for name, value in node.items()})


def convert_member(name: str, value: Any) -> Any:
    """Return a member of a part. The keys of `properties` are names of fields, not keywords."""
    if name == "properties":
        return {field: convert_node(schema) for field, schema in value.items()}
    return value if name in DATA else convert_node(value)


def convert_schema(schema: Schema) -> Schema:
    """Return a schema in the words of version 3.0. What is no schema has none of the words, and stays as it is."""
    if isinstance(schema.get("type"), list):
        [kind] = [each for each in schema["type"] if each != "null"]
        schema = {**schema, "type": kind, "nullable": True}
    if "const" in schema:
        schema = {**{name: value for name, value in schema.items() if name != "const"}, "enum": [schema["const"]]}
    for name in ("oneOf", "anyOf"):
        if isinstance(schema.get(name), list):
            schema = convert_choice(schema, name)
    return schema


def convert_choice(schema: Schema, name: str) -> Schema:
    """Return a schema with a choice of schemas: without null among them, and constants as one enumeration."""
    choices = [choice for choice in schema[name] if choice not in NULLS]
    constants = [choice for choice in choices if len(choice.get("enum", ())) == 1 and "type" not in choice]
    others = [choice for choice in choices if choice not in constants]
    rest = {key: value for key, value in schema.items() if key != name}
    if len(choices) < len(schema[name]):
        rest["nullable"] = True
    if constants and not others:
        return {"type": "string", **rest, "enum": [each["enum"][0] for each in constants]}
    # known names, or any text: any text
    if constants and [each.get("type") for each in others] == ["string"]:
        return {**others[0], **rest}
    return {**rest, "allOf" if len(choices) == 1 else name: choices}
