"""Erasing a user leaves nothing: words planted through every write are gone from dumps of PostgreSQL and of Redis.

The walk reads the OpenAPI document, and so grows with it.
"""

import json
import re
from itertools import count
from typing import Any, cast
from uuid import uuid4

import pytest
from django.db import connection

from memory.models import Account
from memory.owner import Owner
from memory.services.custody.subjects import continue_erasure, find_subject
from memory_project.redis import client
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.api.test_strangers import Ids
from tests.memory.api.test_strangers import real as real
from tests.memory.custody import later
from tests.openapi import Operation, operations, read_document

USER = "canary-7f3a91"
WORD = "kiwibird"
PLACES = {"agent_id": "planner", "user_id": USER, "role": "user", "source": "agent", "type": "person", "status": "open"}
"""Values of fields that name something, rather than say something of the user."""
LEFT_OUT = {
    *("channel", "embedding", "embedding_model", "continues", "session_id", "ttl_seconds", "event_time"),
    # names of agents
    *("access_control", "agents", "add_agents", "remove_agents"),
}
NOT_STORED = {
    *("search", "recall", "context", "resume", "replay", "find", "erasures", "subjects", "run", "check", "agents"),
    *("archive", "unarchive", "reject", "merge", "split", "end", "participants"),
    *("exports", "imports"),
    *("block", "unblock", "vote", "save", "restore"),
}
"""Parts of the paths of operations that store no texts, or only what names agents, and some that refuse others."""

OF_NO_USER = {"/api/v1/learnings", "/api/v1/relationships"}
"""Paths of what belongs to no user, whoever the request is for."""

BODIES: dict[str, dict[str, Any]] = {
    "POST /api/v1/contexts/{context_id}/entries": {"content": WORD, "metadata": {"note": WORD}},
    "PATCH /api/v1/entries/{entry_id}": {"content": WORD},
    "POST /api/v1/contexts/{context_id}/items": {
        "items": [{"namespace": ["fruit"], "key": WORD, "value": {"note": WORD}, "texts": [WORD]}]
    },
    "POST /api/v1/contexts/{context_id}/snapshots": {"name": WORD},
    "POST /api/v1/conversations": {"agent_id": "planner", "user_id": USER, "title": WORD, "metadata": {"note": WORD}},
    "POST /api/v1/conversations/{conversation_id}/turns": {
        "agent_id": "planner",
        "user_id": USER,
        "turns": [{"role": "user", "content": WORD, "metadata": {"note": WORD}}],
    },
    "POST /api/v1/facts/{fact_id}/supersede": {"claim": WORD},
    "PATCH /api/v1/entities/{entity_id}": {"description": WORD, "properties": {"note": WORD}},
    "PUT /api/v1/keyed-memories/{key}": {"agent_id": "planner", "value": WORD},
    "POST /api/v1/memories": {"agent_id": "planner", "user_id": USER, "text": WORD, "metadata": {"note": WORD}},
    "POST /api/v1/learnings": {"agent_id": "planner", "team": "{team_id}", "insight": WORD},
    "POST /api/v1/relationships": {"source": "{entity_id}", "target": "{other_entity_id}", "type": "KNOWS",
        "properties": {"note": WORD}},
    "POST /api/v1/pools/{pool_id}/postings": {"content": {"note": WORD}},
    "PUT /api/v1/pools/{pool_id}/cache/{key}": {"value": {"note": WORD}},
}  # fmt: skip
"""Bodies for routes that refuse one with all fields, with places for words."""

POOLS = {"POST /api/v1/pools/{pool_id}/postings": "blackboard", "PUT /api/v1/pools/{pool_id}/cache/{key}": "tool_cache"}
"""Types of the pools that routes need; the pool is named after the type."""

WITHOUT_TEXTS = {
    "POST /api/v1/facts/{fact_id}/promote",
    "POST /api/v1/memories/consolidate",
    "POST /api/v1/turn-records/{record_id}/slots",
}
"""Routes whose refusal is no loss: they store no texts, or texts of other routes."""


class Planter:
    """Makes bodies whose texts have a word of their own each."""

    def __init__(self, ids: Ids) -> None:
        self.document, self.ids, self.numbers = read_document(), ids, count()

    def word(self, named: bool) -> str:
        return f"{WORD}{next(self.numbers)} {USER if named else 'fruit'}"

    def body(self, operation: Operation, *, named: bool, least: bool) -> dict[str, Any]:
        fields = operation.fields
        if str(operation) in BODIES:
            text = json.dumps(BODIES[str(operation)])
            for name in ("team_id", "entity_id", "other_entity_id"):
                text = text.replace(f"{{{name}}}", self.ids.get(name, ""))
            filled: dict[str, Any] = json.loads("".join(self.fill(part, named) for part in re.split(f"({WORD})", text)))
            return filled
        chosen = operation.body or {} if least else fields
        made = {name: self.value(name, fields.get(name, {}), named=named) for name in chosen if name not in LEFT_OUT}
        if "user_id" in fields:
            made["user_id"] = USER
        return {name: value for name, value in made.items() if value is not None}

    def fill(self, part: str, named: bool) -> str:
        return self.word(named) if part == WORD else part

    def value(self, name: str, schema: dict[str, Any], *, named: bool) -> Any:
        schema = self.resolve(schema)
        if name in PLACES and schema.get("type", "string") == "string" and "enum" not in schema:
            return PLACES[name]
        if name in self.ids or name.endswith("_id") or schema.get("format") in ("uuid", "date-time"):
            return self.ids.get(name)
        if "enum" in schema:
            return schema["enum"][0]
        if name.startswith("tool_") and name != "tool_input":
            return ["search"] if schema.get("type") == "array" else "search"
        kind = schema.get("type", "object")
        if kind == "object" and "properties" in schema:
            fields = schema["properties"].items()
            made = {each: self.value(each, inner, named=named) for each, inner in fields if each not in LEFT_OUT}
            return {each: value for each, value in made.items() if value is not None}
        if kind == "object":
            return {"note": self.word(named)}
        if kind == "array":
            inner = self.resolve(schema["items"])
            return None if inner.get("format") == "uuid" else [self.value("", inner, named=named)]
        if kind == "string":
            return self.word(named)
        return {"integer": schema.get("minimum", 1), "number": 0.5, "boolean": False}.get(str(kind))

    def resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        for name in ("allOf", "anyOf", "oneOf"):
            if name in schema:
                return self.resolve(schema[name][0])
        if reference := schema.get("$ref"):
            found: dict[str, Any] = self.document["components"]["schemas"][reference.rpartition("/")[2]]
            return self.resolve(found)
        return schema


def dump_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace"
            " AND c.relkind IN ('r', 'p') AND NOT c.relispartition")  # fmt: skip
        lines = []
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            lines += [f"{table}: {row[0]}" for row in cursor.fetchall()]
    return "\n".join(lines)


def dump_redis() -> str:
    redis, lines = cast(Any, client()), []
    for key in redis.scan_iter():
        read = {
            "hash": redis.hgetall, "string": redis.get, "set": redis.smembers, "stream": redis.xrange,
            "list": lambda key: redis.lrange(key, 0, -1), "zset": lambda key: redis.zrange(key, 0, -1),
        }[redis.type(key)]  # fmt: skip
        lines.append(f"{key}: {read(key)}")
    return "\n".join(lines)


def lines_with(*words: str) -> list[str]:
    dump = [*dump_database().splitlines(), *dump_redis().splitlines()]
    return [line[:300] for line in dump if any(word in line for word in words)]


def plant(api: ServiceClient, planter: Planter, operation: Operation, *, named: bool) -> str:
    """Send a body with all fields, or with the least if that is refused. Returns the refusal, empty for none."""
    pool = {"pool_id": POOLS[str(operation)]} if str(operation) in POOLS else {}
    path = operation.path.format(**planter.ids | pool)
    for least, without in ((False, ""), (False, "agent_id"), (True, ""), (True, "agent_id")):
        body = planter.body(operation, named=named, least=least)
        body.pop(without, None)
        answer = getattr(api, operation.method)(path, body, HTTP_IDEMPOTENCY_KEY=str(uuid4()))
        if answer.status_code < 400:
            break
    assert answer.status_code < 500, (operation, answer.content)
    return "" if answer.status_code < 400 else str(answer.content)


def writes() -> list[Operation]:
    found = [each for each in operations() if each.method in ("post", "put", "patch") and each.body is not None]
    return [each for each in found if not NOT_STORED & set(each.path.split("/"))]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_nothing_is_left_of_an_erased_user(
    real: Ids, api: ServiceClient, account: Account, owner: Owner, embedding_server: EmbeddingServer
) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    api.post("/conversations", {"conversation_id": "own-talk", "agent_id": "planner", "user_id": USER})
    api.post("/workflow-runs", {"workflow_run_id": "run-2"})
    for kind in POOLS.values():
        api.post("/workflow-runs/run-2/pools", {"pool_id": kind, "pool_type": kind})
    others = {
        "other_entity_id": api.post(
            "/entities", {"agent_id": "assistant", "name": "Somebody", "type": "person"}
        ).json()["id"]
    }
    refusals: dict[str, list[str]] = {}
    for conversation_id in ("own-talk", "talk-1"):
        planter = Planter(real | others | {"conversation_id": conversation_id, "user_id": USER})
        for operation in writes():
            # what is neither stored for the user nor of its conversation must name it in its texts
            is_new = "user_id" in operation.fields and not operation.parameters and not OF_NO_USER & {operation.path}
            is_in_own = conversation_id == "own-talk" and "conversation_id" in operation.parameters
            is_own = is_new or is_in_own or "user_id" in operation.parameters
            refusals.setdefault(str(operation), []).append(plant(api, planter, operation, named=not is_own))
    refused = {name: each for name, each in refusals.items() if all(each) and name not in WITHOUT_TEXTS}
    assert not refused, json.dumps(refused)
    assert len(lines_with(WORD, USER)) > 100

    answer = api.delete(f"/subjects/{USER}?reason=asked")
    assert answer.status_code == 202, answer.content
    for _ in range(1_000):
        erasure = continue_erasure(account.id, find_subject(owner, USER).id, now=later())
        if erasure.status == "completed":
            break

    assert erasure.status == "completed", (erasure.step, erasure.counts)
    left = lines_with(WORD, USER)
    assert not left, "\n".join(left)
    assert api.post("/facts", {"claim": "Back again.", "user_id": USER}).status_code == 409
