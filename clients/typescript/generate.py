"""Write what the TypeScript client knows of the service from its OpenAPI document.

`python generate.py operations` writes `src/operations.ts` from the table of the Python client. `python generate.py
document openapi.json` writes `.document.json`, from which openapi-typescript makes `src/schema.ts`: the document
without failures, examples and headers, which would double the types and say nothing about the arguments of calls.
"""

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "python" / "src"))

from agent_memory_client.calls import Operation  # noqa: E402 (the path is set above)
from agent_memory_client.table import OPERATIONS  # noqa: E402

NOTE = "// The operations of the service, by their ids. Written by `generate.py`; do not edit.\n"
LEFT_OUT = frozenset({"example", "examples"})


def write_operations() -> str:
    """Return the text of `src/operations.ts`."""
    lines = [f"  {name}: {{ {format_operation(operation)} }}," for name, operation in OPERATIONS.items()]
    return "\n".join([NOTE, "export const OPERATIONS = {", *lines, "} as const;"]) + "\n"


def format_operation(operation: Operation) -> str:
    """Return the members of an operation. What is false or empty is left out."""
    members = {
        "method": operation.method,
        "path": operation.path,
        "query": list(operation.query),
        "hasBody": operation.has_body,
        "owner": list(operation.owner),
        "hasKey": operation.has_key,
    }
    return ", ".join(f"{name}: {json.dumps(value)}" for name, value in members.items() if value)


def shorten(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without what has no part in the types of arguments and answers."""
    for methods in document["paths"].values():
        for operation in methods.values():
            operation.pop("description", None)
            operation["parameters"] = [each for each in operation["parameters"] if each["in"] != "header"]
            responses = operation["responses"].items()
            operation["responses"] = {status: each for status, each in responses if status.startswith("2")}
            for response in operation["responses"].values():
                response.pop("headers", None)
    shortened: dict[str, Any] = drop_examples(document)
    return shortened


def drop_examples(value: Any) -> Any:
    """Return the value without members that are examples, at any depth."""
    if isinstance(value, dict):
        return {name: drop_examples(each) for name, each in value.items() if name not in LEFT_OUT}
    return [drop_examples(each) for each in value] if isinstance(value, list) else value


def main() -> None:
    """Write what the first argument names."""
    if sys.argv[1] == "operations":
        (FOLDER / "src" / "operations.ts").write_text(write_operations())
    else:
        document = shorten(json.loads(Path(sys.argv[2]).read_text()))
        (FOLDER / ".document.json").write_text(json.dumps(document))


if __name__ == "__main__":
    main()
