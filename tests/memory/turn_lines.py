"""Lines of NDJSON streams of turns."""

import json
from collections.abc import Iterable
from typing import Any

NDJSON = "application/x-ndjson"


TURNS = "/conversations/c1/turns"


FOR_AGENT = f"{TURNS}?agent_id=assistant"


def line(number: int, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": f"message {number}", **fields}


def body_of(lines: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)
