"""Write `models.py`, `arguments.py`, `table.py`, `operations.py` and `methods.py` from the service's OpenAPI document.

python -m agent_memory_client.generate openapi.json
"""

import json
import keyword
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

Json = dict[str, Any]
WIDTH = 120
METHODS = ("get", "post", "put", "patch", "delete")
PREFIX = "/api/v1"
JSON = "application/json"
OWNER = ("agent_id", "user_id")
VERBS = frozenset({"recall", "resume", "add_turns"})
"""Operations that have a method of the same name in `verbs`."""
KEYLESS = frozenset({"replay", "query_items"})
"""Operations that only read, and are sent without an Idempotency-Key: a replay of raw traces refuses it, and keeping an
answer takes longer than to read items again."""
OWNERLESS = frozenset({"create_export", "download_newest_export"})
"""Operations that get no agent and user of the client: they would limit what is exported."""
ZIP = "application/zip"
TAKEN = frozenset({"etag", "save", "to_dict"})
"""Names of `Result` itself; fields of these names are found as `result["etag"]`."""
WIDER = {"date-time": "str | datetime", "uuid": "str | UUID"}
"""Types of arguments by the format of their text."""
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
NOTE = '"""{}\n\nWritten by `generate.py`; do not edit.\n"""\n\n# fmt: off\n'


class Described(NamedTuple):
    """An operation of the document, and what `saved_by` says of it."""

    name: str
    method: str
    path: str
    described: Json
    saved_by: str = ""

    @property
    def parameters(self) -> list[str]:
        """The names in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @property
    def query(self) -> list[str]:
        return sorted(each["name"] for each in self.described["parameters"] if each["in"] == "query")

    @property
    def has_key(self) -> bool:
        headers = {each["name"] for each in self.described["parameters"] if each["in"] == "header"}
        return "Idempotency-Key" in headers and self.name not in KEYLESS

    @property
    def takes_archive(self) -> bool:
        return ZIP in self.described.get("requestBody", {}).get("content", {})

    @property
    def answers_archive(self) -> bool:
        return any(ZIP in response.get("content", {}) for response in self.described["responses"].values())

    @property
    def is_of_archives(self) -> bool:
        """Return True for operations whose calls are written by hand: an archive comes from a file, or goes to one."""
        return self.takes_archive or self.answers_archive


class Generator:
    """The files of one document."""

    def __init__(self, document: Json) -> None:
        self._schemas: Json = document["components"]["schemas"]
        read = [
            Described(each["operationId"], method.upper(), path.removeprefix(PREFIX), each)
            for path, methods in document["paths"].items()
            for method in METHODS
            if (each := methods.get(method))
        ]
        self._operations = sorted(each._replace(saved_by=self.find_saver(each, read)) for each in read)

    def files(self) -> dict[str, str]:
        """Return the text of each file by its name."""
        return {
            "models.py": self.models(),
            "arguments.py": self.arguments(),
            "table.py": self.table(),
            "operations.py": self.operations(),
            "methods.py": self.methods(),
        }

    def find_saver(self, operation: Described, all_: list[Described]) -> str:
        """Return the operation that writes the object which this one answers, on the condition of its ETag."""
        for patch in all_:
            headers = {each["name"] for each in patch.described["parameters"]}
            if patch.method != "PATCH" or "If-Match" not in headers or patch.path.endswith("/data"):
                continue
            answers = {name for each in all_ if each.path == patch.path for name in self.answer_names(each)}
            is_below = operation.path == patch.path.rpartition("/")[0] or f"{operation.path}/".startswith(
                f"{patch.path}/"
            )
            if is_below and answers & set(self.answer_names(operation)):
                return patch.name
        return ""

    def answer_names(self, operation: Described) -> list[str]:
        """Return the names of the objects that an operation answers."""
        name = reference(self.answer_schema(operation) or {})
        union = self._schemas.get(name, {}).get("oneOf", ())
        return [found for each in union if (found := reference(each))] or [name] * bool(name)

    def answer_schema(self, operation: Described) -> Json | None:
        """Return the schema of the answer of success, None for an empty one."""
        for status, response in operation.described["responses"].items():
            if status.startswith("2") and (content := response.get("content")) and JSON in content:
                schema: Json = content[JSON]["schema"]
                return schema
        return None

    def item(self, operation: Described) -> str:
        """Return the type of the items of a page; empty if the answer is no page."""
        name = reference(self.answer_schema(operation) or {})
        if not name.startswith("Paginated"):
            return ""
        return self.type_of(self._schemas[name]["properties"]["results"]["items"], prefix="models.")

    def answer_type(self, operation: Described) -> str:
        """Return the type of an answer."""
        if (schema := self.answer_schema(operation)) is None:
            return "None"
        found = self.type_of(schema, prefix="models.")
        # either of two objects: the caller knows which
        return found if found.startswith("models.") and "|" not in found else "Result"

    def body_fields(self, operation: Described) -> Json:
        """Return the schema of an operation's JSON body."""
        content = operation.described.get("requestBody", {}).get("content", {})
        schema = content.get(JSON, {}).get("schema", {})
        found: Json = self._schemas[name] if (name := reference(schema)) else schema
        return found

    def type_of(self, schema: Json, *, prefix: str = "") -> str:
        """Return the annotation for a schema; objects without declared fields stay JSON."""
        parts = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf") or []
        if parts:
            found = list(dict.fromkeys(self.type_of(part, prefix=prefix) for part in parts))
            return "Any" if "Any" in found else " | ".join(sorted(found, key=lambda each: each == "None"))
        if name := reference(schema):
            target = self._schemas[name]
            return prefix + name if "properties" in target else self.type_of(target, prefix=prefix)
        kinds = schema.get("type", [])
        found = [self.plain_type(kind, schema, prefix) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
        return " | ".join(found) or ("None" if schema.get("enum") == [None] else "str" if "enum" in schema else "Any")

    def plain_type(self, kind: str, schema: Json, prefix: str) -> str:
        if kind == "array":
            return f"list[{self.type_of(schema.get('items', {}), prefix=prefix)}]"
        return {**SIMPLE, "null": "None", "object": "dict[str, Any]"}[kind]

    def answer_components(self) -> list[str]:
        """Return the names of all objects in answers."""
        found: set[str] = set()
        waiting = [schema for each in self._operations if (schema := self.answer_schema(each))]
        while waiting:
            for name in set(references(waiting.pop())) - found:
                found.add(name)
                waiting.append(self._schemas[name])
        return sorted(
            name for name in found if "properties" in self._schemas[name] and not name.startswith("Paginated")
        )

    def models(self) -> str:
        lines = [NOTE.format("The objects of answers, with the fields that this version knows.")]
        lines += ["from __future__ import annotations\n", "from typing import Any\n"]
        lines += ["from agent_memory_client.results import Result"]
        for name in self.answer_components():
            lines += ["", "", f"class {name}(Result):", f'    """`{name}` of the OpenAPI document."""', ""]
            lines += [
                f"    {field}: {self.type_of(schema)}"
                for field, schema in self._schemas[name]["properties"].items()
                if field.isidentifier() and not keyword.iskeyword(field) and field not in TAKEN
            ]
        return "\n".join(lines) + "\n"

    def argument_types(self, operation: Described) -> dict[str, str]:
        """Return the annotations of the fields of a body or a query by their names."""
        body = self.body_fields(operation)
        queried = {each["name"]: each for each in operation.described["parameters"] if each["in"] == "query"}
        required = {*body.get("required", ()), *(name for name, each in queried.items() if each.get("required"))}
        schemas = {name: each["schema"] for name, each in queried.items()} | body.get("properties", {})
        # the client fills in its own agent and user; None sends none
        owner = () if operation.name in OWNERLESS else OWNER
        found = {name: "str | None" if name in owner else self.argument_type(each) for name, each in schemas.items()}
        return {
            name: f"Required[{kind}]" if name in required and name not in OWNER else kind
            for name, kind in sorted(found.items())
        }

    def argument_type(self, schema: Json) -> str:
        """Return the annotation of a value that is sent: wider than that of one that is received."""
        if parts := schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf"):
            found = list(dict.fromkeys(self.argument_type(part) for part in parts))
            return "Any" if "Any" in found else " | ".join(sorted(found, key=lambda each: each == "None"))
        if name := reference(schema):
            target = self._schemas[name]
            return "Mapping[str, Any]" if "properties" in target else self.argument_type(target)
        if schema.get("format") in WIDER:
            return WIDER[schema["format"]] + " | None" * ("null" in schema["type"])
        if "," in schema.get("pattern", "") and schema.get("type") == "string":
            return "str | Sequence[str]"
        kinds = schema.get("type", [])
        found = [self.plain_argument(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
        return " | ".join(found) or ("None" if schema.get("enum") == [None] else "str" if "enum" in schema else "Any")

    def plain_argument(self, kind: str, schema: Json) -> str:
        if kind == "array":
            return f"Sequence[{self.argument_type(schema.get('items', {}))}]"
        return {**SIMPLE, "null": "None", "object": "Mapping[str, Any]"}[kind]

    def arguments(self) -> str:
        lines = [NOTE.format("The keyword arguments of operations: fields of the body, or parameters of the query.")]
        lines += ["from collections.abc import Mapping, Sequence", "from datetime import datetime"]
        lines += ["from typing import Any, Required, TypedDict", "from uuid import UUID"]
        for each in self._operations:
            if each.is_of_archives or not (fields := self.argument_types(each)):
                continue
            name = arguments_name(each)
            if all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
                lines += ["", "", f"class {name}(TypedDict, total=False):"]
                lines += [f'    """Arguments of `{each.name}`."""', ""]
                lines += [f"    {field}: {kind}" for field, kind in fields.items()]
            else:
                lines += ["", "", f'{name} = TypedDict("{name}", {{']
                lines += [f'    "{field}": {kind},' for field, kind in fields.items()]
                lines += ["}, total=False)"]
        return "\n".join(lines) + "\n"

    def table(self) -> str:
        lines = [NOTE.format("The operations of the service, by their ids.")]
        lines += ["from agent_memory_client.calls import Operation\n", "OPERATIONS: dict[str, Operation] = {"]
        for each in self._operations:
            fields = self.body_fields(each).get("properties", {})
            takes_owner = each.name not in OWNERLESS
            owner = tuple(name for name in OWNER if takes_owner and (name in fields or name in each.query))
            query = tuple(each.query) if "requestBody" in each.described else ()
            # what the JSON body takes goes there
            query = tuple(name for name in query if name not in fields)
            arguments = [f"{each.name!r}, {each.method!r}, {each.path!r}"]
            arguments += [f"query={query!r}"] * bool(query)
            arguments += ["has_body=True"] * ("requestBody" in each.described)
            arguments += [f"owner={owner!r}"] * bool(owner)
            arguments += ["has_key=True"] * each.has_key + [f"saved_by={each.saved_by!r}"] * bool(each.saved_by)
            text = ", ".join(arguments).replace("'", '"')
            lines += [f'    "{each.name}": Operation(', *indent(text, 8), "    ),"]
        return "\n".join([*lines, "}"]) + "\n"

    def operations(self) -> str:
        lines = [NOTE.format("Calls of the operations of the service, by their ids.")]
        lines += ["from typing import Unpack\n", "from agent_memory_client import arguments, models"]
        lines += ["from agent_memory_client.calls import Call, Id, PageCall"]
        lines += ["from agent_memory_client.results import Result", "from agent_memory_client.table import OPERATIONS"]
        for each in self._operations:
            if not each.is_of_archives:
                lines += ["", "", *self.builder(each)]
        return "\n".join(lines) + "\n"

    def builder(self, operation: Described) -> Iterator[str]:
        """Yield the lines of the function that makes the call of an operation."""
        item, answer = self.item(operation), self.answer_type(operation)
        ids = operation.parameters
        signature = "".join(f"{name}: Id, " for name in ids) + ("/, " if ids else "")
        returned = f"PageCall[{item}]" if item else f"Call[{answer}]"
        taken = self.argument_types(operation)
        keywords = f"**fields: Unpack[arguments.{arguments_name(operation)}]" if taken else ""
        inside = f"{signature}{keywords}".removesuffix(", ")
        line = f"def {operation.name}({inside}) -> {returned}:"
        yield from [line] if len(line) <= WIDTH else [f"def {operation.name}(", f"    {inside}", f") -> {returned}:"]
        yield from self.docstring(operation)
        given = f"({', '.join(ids)}{',' * (len(ids) == 1)})"
        kind, value = ("PageCall", f"item={item}") if item else ("Call", f"answer={answer}")
        yield f'    operation = OPERATIONS["{operation.name}"]'
        yield f"    ids = {given}"
        fields = "{**fields}" if taken else "{}"
        yield f"    return {kind}(operation=operation, ids=ids, fields={fields}, {value})"

    def docstring(self, operation: Described) -> Iterator[str]:
        body = self.body_fields(operation)
        required = set(body.get("required", ()))
        required |= {
            each["name"] for each in operation.described["parameters"] if each["in"] == "query" and each.get("required")
        }
        names = sorted({*body.get("properties", {}), *operation.query})
        summary = operation.described["summary"].replace("\\", "\\\\").replace('"', "'").rstrip(".")
        groups = {"Required": [n for n in names if n in required], "Fields": [n for n in names if n not in required]}
        details = [
            line for label, group in groups.items() if group for line in indent(f"{label}: {', '.join(group)}.", 4)
        ]
        if not details:
            yield f'    """{summary}."""'
            return
        yield from [f'    """{summary}.', "", *details, '    """']

    def methods(self) -> str:
        lines = [NOTE.format("The methods of both clients and of their raw responses: a line per operation.")]
        lines += ["from agent_memory_client import operations", "from agent_memory_client.binding import ("]
        classes = {
            "Methods": ("`Client`", "blocking", "blocking_pages"),
            "AsyncMethods": ("`AsyncClient`", "awaited", "awaited_pages"),
            "RawMethods": ("`Client.with_raw_response`", "raw", "raw_page"),
            "AsyncRawMethods": ("`AsyncClient.with_raw_response`", "awaited_raw", "awaited_raw_page"),
        }
        lines += [f"    {name}," for name in sorted(name for _of, *names in classes.values() for name in names)]
        lines += [")"]
        for name, (of, one, many) in classes.items():
            lines += ["", "", f"class {name}:", f'    """The operations of the service as methods of {of}."""', ""]
            lines += [
                f"    {each.name} = {many if self.item(each) else one}(operations.{each.name})"
                for each in self._operations
                if each.name not in VERBS and not each.is_of_archives
            ]
        return "\n".join(lines) + "\n"


def arguments_name(operation: Described) -> str:
    """Return the name of the type of an operation's keyword arguments: `CreateFact` for `create_fact`."""
    return operation.name.title().replace("_", "")


def reference(schema: Json) -> str:
    """Return the name that a schema refers to, empty for none."""
    found: str = schema.get("$ref", "").rpartition("/")[2]
    return found


def references(schema: Any) -> Iterator[str]:
    """Yield the names of all components that a schema mentions."""
    if isinstance(schema, dict):
        if name := reference(schema):
            yield name
        schema = list(schema.values())
    for each in schema if isinstance(schema, list) else ():
        yield from references(each)


def indent(text: str, columns: int) -> list[str]:
    """Return text as lines that are indented and fit."""
    space = " " * columns
    return wrap(text, WIDTH, initial_indent=space, subsequent_indent=space, break_long_words=False)


def main() -> None:
    """Write the files next to this one, from the document whose path is the argument."""
    document = json.loads(Path(sys.argv[1]).read_text())
    for name, text in Generator(document).files().items():
        (Path(__file__).parent / name).write_text(text)


if __name__ == "__main__":
    main()
