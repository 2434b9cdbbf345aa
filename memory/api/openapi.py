"""Groups of operations, examples and meanings of choices, for the OpenAPI document.

`describe` is a hook of drf-spectacular.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from memory.api.openapi_enums import ENUMS, describe_enum
from memory.api.openapi_examples import ANSWERS, BODIES, OMITTED, VALUES
from memory.api.openapi_fields import FIELDS, HEADERS, PATH_PARAMETERS, QUERY_PARAMETERS

Schema = dict[str, Any]
LABELS = re.compile(r"^\* `[^`]*` - .*$\n?", re.MULTILINE)
METHODS = ("get", "post", "put", "patch", "delete")
SERVERS = [{"url": "/", "description": "The service that this document comes from."}]
MAX_DEPTH = 8


class OperationGroup(NamedTuple):
    """Operations that serve one task: those whose paths have one of these segments."""

    name: str
    description: str
    segments: frozenset[str]


GROUPS = [
    # the more specific ones come first: a path may have segments of several groups
    OperationGroup(
        "Working memory",
        "What an agent is working on: fields of a conversation, and values by key in four tiers.",
        frozenset({"working-memory", "shared-memory", "keyed-memories", "short-term-memories"}),
    ),
    OperationGroup(
        "Remember and recall",
        "One call to remember, one to recall, one for the text of a prompt, one to go on with interrupted work.",
        frozenset({"memories", "recall", "resume", "replay", "timeline"}),
    ),
    OperationGroup(
        "Conversations",
        "What was said: turns, the live session, summaries, and what was put into prompts already.",
        frozenset({"conversations", "episodic", "ledger"}),
    ),
    OperationGroup(
        "Agents and teams",
        "The agents of the account, their teams, and what the key of a request may do.",
        frozenset({"agents", "key", "teams"}),
    ),
    OperationGroup(
        "Knowledge",
        "What is true: facts, entities, relationships, and profiles of users.",
        frozenset({"facts", "entities", "relationships", "graph", "profiles"}),
    ),
    OperationGroup(
        "Goals and strategies",
        "What is to be done, what worked, and which tools were called.",
        frozenset({"goals", "strategies", "tools", "tool-invocations"}),
    ),
    OperationGroup(
        "Work",
        "What was done: structured turns, the episodes that they are merged into, and artifacts.",
        frozenset({"turn-records", "work-episodes", "artifacts"}),
    ),
    OperationGroup(
        "Shared memory",
        "What agents share: persistent contexts with versions, pools, workflow runs, and learnings of teams.",
        frozenset({"contexts", "entries", "pools", "workflow-runs", "learnings"}),
    ),
    OperationGroup(
        "Privacy",
        "What is known of a user, erased for good, with receipts.",
        frozenset({"subjects", "erasures"}),
    ),
    OperationGroup(
        "Export and import",
        "Everything of an account, an agent or a user as one archive, and back: `GET /exports/{export_id}/download` "
        "returns the zip, `POST /imports` takes it as `application/zip`.",
        frozenset({"export", "exports", "import", "imports"}),
    ),
    OperationGroup("Operations", "Maintenance jobs and the audit log.", frozenset({"jobs", "audit-log"})),
]
FIRST = ("Remember and recall", "Conversations", "Knowledge")
"""Groups that the page shows before the others."""
PROMPT_CONTEXT = "/api/v1/context"
"""One segment that is in the group of recall, although `contexts` are something else."""


def describe(result: Schema, **_options: Any) -> Schema:
    """Add servers, tags, examples and the meaning of choices to the document."""
    result["servers"] = SERVERS
    schemas = result["components"]["schemas"]
    for name in ENUMS.keys() & schemas.keys():
        schemas[name]["description"] = describe_enum(name, schemas[name]["enum"])
    replace_labels(result)
    describe_fields(schemas)
    ordered = sorted(GROUPS, key=lambda group: group.name not in FIRST)
    ordered.sort(key=lambda group: FIRST.index(group.name) if group.name in FIRST else len(FIRST))
    result["tags"] = [{"name": group.name, "description": group.description} for group in ordered]
    for path, methods in result["paths"].items():
        for operation in (methods[method] for method in METHODS if method in methods):
            operation["tags"] = [find_group(path)]
            describe_parameters(operation)
            add_examples(operation, schemas)
    return result


PARAMETERS = {"header": HEADERS, "path": PATH_PARAMETERS, "query": QUERY_PARAMETERS}


def describe_parameters(operation: Schema) -> None:
    """Describe the parameters that are declared without a description. Raises LookupError for one that has none."""
    for parameter in operation.get("parameters", ()):
        if not parameter.get("description"):
            parameter["description"] = PARAMETERS[parameter["in"]][parameter["name"]]


def describe_fields(schemas: Schema) -> None:
    """Describe the fields that are declared without a description, as far as their names are known.

    A field that refers to another schema is described there.
    """
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            if name in FIELDS and not field.get("description") and "$ref" not in str(field):
                field["description"] = FIELDS[name]


def replace_labels(described: Any) -> None:
    """Replace the labels of choices that drf-spectacular adds to descriptions by what the choices mean, where known.

    Where a schema refers to an enumeration, the meanings are there.
    """
    if isinstance(described, dict):
        text = described.get("description")
        if isinstance(text, str) and LABELS.search(text):
            values = described.get("enum") or described.get("schema", {}).get("enum", ())
            known = next((name for name, meanings in ENUMS.items() if values and meanings.keys() == set(values)), None)
            meanings = f"\n\n{describe_enum(known, values)}" if known else ""
            described["description"] = (LABELS.sub("", text).rstrip() + meanings).strip()
        described = list(described.values())
    for each in described if isinstance(described, list) else ():
        replace_labels(each)


def find_group(path: str) -> str:
    """Return the name of the group of a path. Raises LookupError for a path of no group."""
    segments = frozenset(path.split("/"))
    if path == PROMPT_CONTEXT:
        return "Remember and recall"
    # of a conversation, everything belongs together
    first = path.split("/")[3]
    by_first = next((group.name for group in GROUPS if first in group.segments), "")
    name = "Working memory" if segments & GROUPS[0].segments else by_first
    if not name:
        raise LookupError(f"{path} is in no group: name its first segment in GROUPS of memory.api.openapi.")
    return name


def add_examples(operation: Schema, components: Schema) -> None:
    """Add an example to the path parameters and the body of an operation, and to its answers of success."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            # of alternatives, one of them is the example, whatever others of this name are
            name = "" if "oneOf" in parameter["schema"] else parameter["name"]
            parameter["example"] = example_of(parameter["schema"], components, name=name, is_request=True)
    for media_type in iterate_texts(operation.get("requestBody", {})):
        body = BODIES.get(operation["operationId"]) or example_of(media_type["schema"], components, is_request=True)
        media_type["example"] = body
    # a line of a stream is not a body
    if lines := operation.get("requestBody", {}).get("content", {}).get("application/x-ndjson"):
        lines["example"] = example_of(lines["schema"], components, is_request=True)
    for status, response in operation["responses"].items():
        for media_type in iterate_texts(response) if status.startswith("2") else ():
            answer = example_of(media_type["schema"], components, is_request=False)
            special = ANSWERS.get(operation["operationId"])
            # an object of any names has nothing but the names of the special answer
            named = answer if media_type["schema"].get("additionalProperties") is None else {}
            media_type["example"] = named | special if special else answer


def iterate_texts(described: Schema) -> Iterator[Schema]:
    """Yield the media types of a body or an answer, apart from archives, of which the document has no example."""
    yield from (each for each in described.get("content", {}).values() if each["schema"].get("format") != "binary")


def example_of(schema: Schema, components: Schema, *, name: str = "", is_request: bool, depth: int = 0) -> Any:
    """Return a value that fits the schema: the one that VALUES has for this name, else one made of the schema."""
    if not is_request and name not in VALUES and is_nullable(schema):
        return None
    schema = resolve(schema, components)
    if name in VALUES and fits(VALUES[name], schema):
        return VALUES[name]
    if "default" in schema and schema["default"] is not None:
        return schema["default"]
    if "enum" in schema or "const" in schema:
        return schema["enum"][0] if "enum" in schema else schema["const"]
    kind = type_of(schema)
    if kind == "object":
        return example_object(schema, components, is_request=is_request, depth=depth)
    if kind == "array":
        item = example_of(schema.get("items", {}), components, name=name, is_request=is_request, depth=depth + 1)
        return [item] if depth < MAX_DEPTH else []
    return example_scalar(schema, kind)


def resolve(schema: Schema, components: Schema) -> Schema:
    """Return the schema behind references, and the first of alternatives that is not null."""
    while True:
        if reference := schema.get("$ref"):
            schema = components[reference.rpartition("/")[2]]
        elif alternatives := schema.get("allOf") or schema.get("oneOf") or schema.get("anyOf"):
            schema = next(each for each in alternatives if each.get("type") != "null")
        else:
            return schema


def is_nullable(schema: Schema) -> bool:
    """Return whether the schema allows null besides a type."""
    kinds = schema.get("type", ())
    alternatives = schema.get("oneOf") or schema.get("anyOf") or ()
    return (isinstance(kinds, list) and "null" in kinds) or any(each.get("type") == "null" for each in alternatives)


def type_of(schema: Schema) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "any")
    return next(each for each in kind if each != "null") if isinstance(kind, list) else str(kind)


TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "any": object,
}


def fits(value: Any, schema: Schema) -> bool:
    """Return whether a value of VALUES can be one of this schema."""
    if "enum" in schema:
        return value in schema["enum"]
    kind = type_of(schema)
    if isinstance(value, bool) and kind != "boolean":
        return kind == "any"
    is_plain = kind not in ("object", "array") or not (schema.get("properties") or "$ref" in schema.get("items", {}))
    is_formatted = schema.get("format") != "uuid" or is_uuid(value)
    return isinstance(value, TYPES[kind]) and is_plain and is_formatted and "pattern" not in schema


def is_uuid(value: Any) -> bool:
    try:
        return bool(UUID(str(value)))
    except ValueError:
        return False


def example_object(schema: Schema, components: Schema, *, is_request: bool, depth: int) -> Schema:
    fields = schema.get("properties", {})
    required = set(schema.get("required", ()))
    if is_request:
        shown = {*required, *({"agent_id", "user_id"} & fields.keys() if depth == 0 else ())}
        # a change requires nothing, but an example should change something
        if not required:
            shown |= {name for name in fields if name in VALUES and name not in OMITTED}
    else:
        shown = set(fields)
    if depth >= MAX_DEPTH:
        shown = required
    found = {
        name: example_of(field, components, name=name, is_request=is_request, depth=depth + 1)
        for name, field in fields.items()
        if name in shown
    }
    if not fields and isinstance(values := schema.get("additionalProperties"), dict) and values:
        found = {"name": example_of(values, components, is_request=is_request, depth=depth + 1)}
    return found


def example_scalar(schema: Schema, kind: str) -> Any:
    if kind == "string":
        formats = {
            "uuid": "01976d3e-8f00-7c3a-9d2e-5b1f0a6c4e21",
            "date-time": "2026-05-04T12:00:00Z",
            "uri": "http://127.0.0.1:8002/api/v1/facts?cursor=W2ZhbHNlXQ",
        }
        return formats.get(schema.get("format", ""), "text"[: schema.get("maxLength", 4)])
    numbers = {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 0.5), "boolean": True}
    return numbers.get(kind, "value")
