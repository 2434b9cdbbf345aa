"""One request, or several, for each operation of the service, in the order in which an agent's work would make them.

An operation is written as in the OpenAPI document without `/api/v1`. `{name}` in paths, queries and bodies stands for
the id that an earlier request with this name was answered with.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from memory.kinds import all_kinds
from memory.models.short_term import MIN_PROMOTION_READS
from memory.retrieval.queries import Mode, Posture, Scope
from tests.api_client import API, ServiceClient


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `name` is what later ones call the id in its answer, and `query` follows its path."""

    operation: str
    body: Mapping[str, Any] | None = None
    name: str = ""
    query: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    """What `{name}` stands for in this request: an id, or the `{name}` of one."""


R = Request

UNKNOWN = "00000000-0000-4000-8000-000000000007"
PAST, FUTURE = "2026-01-05T08:00:00Z", "2126-01-05T08:00:00Z"
TALK = "/conversations/{conversation_id}"
WORKING = "/agents/{agent_id}/working-memory"
KNOWN_IDS = {
    "agent_id": "assistant",
    "source_agent_id": "lender",
    "conversation_id": "talk-1",
    "key": "wallet",
    "pool_id": "board",
    "workflow_run_id": "run-1",
    "user_id": "ana",
    "number": "1",
}
"""What the names stand for that are the client's own, and the number of the first version."""

TURNS = [
    {"role": "user", "content": "I am Ana Lima and I prefer tea. The pump in Rome broke. We decided to replace it."},
    {"role": "assistant", "content": "Carlos Mendez works at Acme Corp. I am waiting for the valve from Acme Corp."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "order"}}]},
    {"role": "tool", "content": "ordered", "tool_call_id": "c1", "name": "order"},
]
SLOTS = {
    "observation": {"text": "The pump in Rome leaks."},
    "reasoning": {
        "tier": "structured_rationale",
        "rationale": {"decisions": [{"what": "Replace the pump", "why": "it leaks"}], "rejected": [{"what": "Wait"}]},
        "summary": "A leak gets worse.",
    },
    "action": {"text": "Ordered a pump.", "calls": [{"tool": "order", "arguments": {"part": "pump"}}]},
    "outcome": {"status": "succeeded", "text": "The pump is ordered."},
}
TRACE = {"reasoning": {"tier": "raw_trace", "text": "Let me think about the pump."}}
QUESTION = {"query": "Who is waiting for the pump in Rome, and what did Ana decide?", "top_k": 10}

STORING = [
    R("GET /key"),
    R("POST /agents", {"agent_id": "planner", "description": "plans"}),
    R("POST /teams", {"name": "crew"}, "team_id"),
    *(R("POST /teams/{team_id}/members", {"agent_id": agent}) for agent in ("assistant", "planner")),
    R("POST /conversations", {"conversation_id": "talk-0", "title": "before"}),
    R("POST /conversations", {"conversation_id": "talk-1", "continues": "talk-0", "user_id": "ana"}),
    R(f"PATCH {TALK}", {"title": "The pump", "metadata": {"a": 1}}),
    R(f"POST {TALK}/turns", {"turns": TURNS[:1], "user_id": "ana"}),
    *(R(f"POST {TALK}/turns", {"turns": TURNS[1:] * 3, "user_id": "ana"}, ids={"conversation_id": c})
      for c in ("talk-1", "talk-2")),
    R("POST /episodic/store", {"conversation_id": "talk-1", "summary": "Ana decided to replace the pump.",
        "key_decisions": ["Replace the pump"], "entities_mentioned": ["Ana Lima"], "tools_called": ["order"]}),
    R("POST /entities", {"name": "Ana Lima", "type": "person", "aliases": ["Anita"]}, "ana"),
    R("POST /entities", {"name": "Acme Corp", "type": "organization"}, "entity_id"),
    R("POST /entities", {"name": "Acme Company", "type": "organization", "aliases": ["Acme"]}, "acme"),
    R("POST /entities", {"name": "Acme Corp", "type": "organization", "description": "It sells pumps."}),
    R("POST /relationships", {"source": "{ana}", "target": "{entity_id}", "type": "WORKS_FOR"}, "relationship_id"),
    R("POST /relationships", {"source": "{ana}", "target": "{acme}", "type": "KNOWS", "weight": 0.5}),
    R("POST /facts", {"claim": "Ana Lima prefers tea.", "user_id": "ana"}, "fact_id"),
    R("POST /facts", {"claim": "Ana Lima prefers coffee.", "user_id": "ana", "confidence": 0.9}, "other_fact"),
    R("POST /facts", {"claim": "The pump in Rome leaks.", "channel": "works"}, "pump_fact"),
    R("POST /facts", {"claim": "The pump is blue.", "entities": ["{ana}"]}, "wrong_fact"),
    R("POST /goals", {"description": "Keep the water running."}, "parent"),
    R("POST /goals", {"description": "Get a valve.", "deadline": FUTURE}, "valve"),
    R("POST /goals", {"description": "Replace the pump in Rome.", "parent": "{parent}", "blocked_by": ["{valve}"],
        "priority": 5}, "goal_id"),
    R("POST /tool-invocations", {"conversation_id": "talk-1", "tool_name": "order", "tool_input": {"part": "pump"},
        "success": True, "latency_ms": 5, "task_type": "repair", "turn_index": 1}, "invocation_id"),
    *(R("POST /tool-invocations/bulk", {"conversation_id": talk, "invocations": [
        {"tool_name": tool, "success": True, "task_type": "repair"} for tool in ("look", "order", "test")]})
      for talk in ("talk-0", "talk-1", "talk-2", "talk-3")),
    R("POST /artifacts", {"uri": "docs/pump.md", "title": "The pump in Rome", "goal_id": "{goal_id}",
        "about": ["{pump_fact}"], "digest": "a"}, "first_artifact"),
    R("POST /artifacts", {"uri": "docs/pump.md", "title": "The pump in Rome", "digest": "b"}, "artifact_id"),
    R("POST /artifacts", {"uri": "docs/order.md", "title": "The order", "derived_from": ["{artifact_id}"]}, "order"),
    R("POST /turn-records", {"conversation_id": "talk-1", **SLOTS, "goal_id": "{goal_id}", "first_index": 0,
        "last_index": 3, "produced": ["{artifact_id}"], "evidence": ["{fact_id}"], "used": ["{order}"],
        "tool_invocations": ["{invocation_id}"], "client_id": "mine"}, "record_id"),
    R(f"POST {TALK}/turn-records", {**SLOTS, "goal_id": "{goal_id}", "used": ["{artifact_id}"]}, "second"),
    *(R(f"POST {TALK}/turn-records", {**SLOTS, "goal_id": "{goal_id}"}) for _ in range(6)),
    R(f"POST {TALK}/turn-records", {"action": {"text": "Waited."}}, "open_record"),
    R("POST /turn-records/{record_id}/slots", {**TRACE, "outcome": {"status": "failed", "text": "Nobody came."}},
        ids={"record_id": "{open_record}"}),
    R("POST /strategies", {"description": "Order parts early.", "tool_sequence": ["order", "test"], "success": True,
        "conversation_id": "talk-1", "task_type": "repair"}, "strategy_id"),
    R("POST /strategies", {"description": "Order the parts early.", "success": False}),
    R("POST /strategies/{strategy_id}/reinforce", {"success": True, "conversation_id": "talk-2"}),
    R("POST /contexts", {"name": "works", "scope": "team", "team": "{team_id}"}, "context_id"),
    R("POST /contexts/{context_id}/entries", {"content": "The pump is in the cellar.", "key": "where"}, "entry_id"),
    R("POST /contexts/{context_id}/entries", {"entries": [{"content": "The cellar is wet.", "key": "wet"},
        {"content": "The cellar is wet.", "key": "damp"}]}),
    R("POST /contexts/{context_id}/items", {"items": [
        {"namespace": ["works", "rome"], "key": "pump", "value": {"state": "broken"},
            "texts": ["The pump broke.", "leak"]},
        {"namespace": ["works", "rome"], "key": "valve", "value": {"state": "ordered"}, "ttl_seconds": 3_600}],
        "deleted": [{"namespace": ["works", "oslo"], "key": "pump"}]}),
    R("POST /learnings", {"team": "{team_id}", "insight": "Pumps leak in May."}, "own_learning"),
    R("POST /learnings", {"agent_id": "planner", "team": "{team_id}", "insight": "Pumps in Rome leak in winter."},
        "learning_id"),
    R("POST /learnings/{learning_id}/vote", {"helpful": True}),
    R("POST /learnings/{learning_id}/vote", {"helpful": False}),
    R("PATCH /profiles/{user_id}", {"preferences": {"drink": "tea"}, "expertise_areas": ["pumps"]}),
    R("PATCH /profiles/{user_id}", {"communication_style": {"tone": "brief"}}),
    R("POST /memories", {"text": "The pump hums at night.", "importance": 0.7}, "memory_id"),
    R("POST /memories", {"text": "The pump is 12 years old.", "kind": "fact", "user_id": "cleo"}),
    R("POST /memories", {"text": "Paint the pump.", "kind": "goal", "user_id": "cleo"}),
    R("POST /memories", {"text": "I live in Rome.", "infer": True, "user_id": "ana"}),
    R("PUT /working-memory/{conversation_id}", {"data": {"scratchpad": "look at the pump"}}),
    R(f"POST {TALK}/thoughts", {"thought": "The pump may be too small."}),
    R(f"PUT {TALK}/active-goal", {"goal_id": "{goal_id}", "description": "Replace the pump."}),
    R(f"PUT {TALK}/values/{{key}}", {"value": {"money": 5}}),
    R(f"POST {TALK}/save", {}),
    R(f"PUT {WORKING}/{{key}}", {"value": [1]}),
    R(f"POST {WORKING}/{{key}}/append", {"value": 2}),
    R(f"POST {WORKING}/persist", {}),
    R(f"POST {WORKING}/load", {}),
    R(f"POST {WORKING}/{{key}}/share", {"target_agent_id": "planner"}),
    R(f"PUT {WORKING}/{{key}}", {"value": [1]}, ids={"agent_id": "lender"}),
    R(f"POST {WORKING}/{{key}}/share", {"target_agent_id": "assistant"}, ids={"agent_id": "lender"}),
    *(R(f"PUT {WORKING}/{name}", {"value": 1}) for name in ("persist", "load")),
    R("POST /short-term-memories", {"memory_key": "k", "memory_value": "The pump leaks.", "session_id": "talk-1"},
        "short_term_id"),
    R("POST /short-term-memories/{short_term_id}/refresh", {"ttl_seconds": 200_000}),
    R("POST /short-term-memories", {"memory_key": "brief", "memory_value": 1}, "brief"),
    R("POST /short-term-memories", {"memory_key": "k", "memory_value": "Rain.", "ttl_seconds": 200_000}, "kept"),
    *(R("PUT /keyed-memories/{key}", {"value": "The wallet is red.", "tier": tier, **more}) for tier, more in (
        ("working", {"session_id": "talk-1"}), ("short_term", {"session_id": "talk-1"}), ("long_term", {}))),
    R("POST /erasures", {"user_id": "dora", "channel": "attic"}),
    R("DELETE /subjects/{user_id}", name="erasure_id", ids={"user_id": "dora"}),
    R("GET /subjects/{user_id}/erasure", ids={"user_id": "dora"}),
    R("POST /workflow-runs", {"workflow_run_id": "run-1", "agents": ["assistant", "planner"]}),
    R("PATCH /workflow-runs/{workflow_run_id}", {"metadata": {"step": 2}, "add_agents": ["tester"]}),
    R("POST /workflow-runs/{workflow_run_id}/pools", {"pool_id": "board", "pool_type": "shared_memory"}),
    R("POST /pools", {"pool_id": "shared", "data": {"plan": "pump"}, "scope": "team", "team": "{team_id}"}),
    R("PATCH /pools/{pool_id}", {"expires_at": FUTURE}),
    R("PUT /pools/{pool_id}/data", {"data": {"plan": {"step": 1}}}),
    R("PATCH /pools/{pool_id}/data", {"data": {"step": 2}}, query="?path=/plan"),
    R("POST /pools/{pool_id}/grant", {"agent_id": "lender", "level": "read"}),
    R("POST /pools/{pool_id}/revoke", {"agent_id": "lender"}),
    R("POST /workflow-runs/{workflow_run_id}/pools", {"pool_id": "news", "pool_type": "blackboard"}),
    R("POST /pools/{pool_id}/postings", {"content": "The pump came."}, ids={"pool_id": "news"}),
    R("POST /workflow-runs/{workflow_run_id}/pools", {"pool_id": "results", "pool_type": "tool_cache"}),
    *(R("PUT /pools/{pool_id}/cache/{key}", {"value": {"found": 1}}, ids={"pool_id": "results", "key": key})
      for key in ("wallet", "purse")),
    R("POST /ledger/{conversation_id}/mark", {"item_key": "skill:pump"}),
    R("POST /ledger/{conversation_id}/check", {"item_key": "skill:pump"}),
    R("POST /jobs/{name}/run", {"dry_run": True}, "job_id", ids={"name": "decay"}),
]  # fmt: skip

PLACE = {"conversation_id": "talk-1", "user_id": "ana", "channel": "works"}
READING = [
    *(R("POST /recall", {**QUESTION, **PLACE, "posture": posture.value, "explain": True}) for posture in Posture),
    *(R("POST /recall", {**QUESTION, **PLACE, "scopes": [scope.value]}) for scope in Scope),
    *(R("POST /recall", {**QUESTION, "kinds": [str(kind)]}) for kind in all_kinds()),
    *(R("POST /recall", {**QUESTION, "mode": mode.value}) for mode in Mode),
    R("POST /recall", {**QUESTION, "since": PAST, "as_of": PAST, "known_at": PAST, "min_confidence": 0.5}),
    R("POST /recall", {**QUESTION, "slots": ["reasoning", "outcome"], "time_window_hours": 1}),
    R("POST /recall", {"query": "What did we do yesterday before the pump broke?", **PLACE, "suppress_injected": True}),
    R("POST /context", {"conversation_id": "talk-1", "user_id": "ana", "query": "the pump", "mark_injected": True}),
    R("POST /context", {"conversation_id": "talk-1", "max_tokens": 500}),
    R("POST /resume", {"conversation_id": "talk-1", "query": "the pump", "user_id": "ana"}),
    R("POST /resume", {"goal_ids": ["{goal_id}"], "replay": True}),
    *(R("POST /replay", {name: f"{{{value}}}", "posture": posture}) for posture in ("resume", "audit")
      for name, value in (("goal_id", "goal_id"), ("record_id", "record_id"))),
    R("POST /replay", {"record_id": "{open_record}", "posture": "audit", "tier": "raw_trace"}),
    R("POST /replay", {"decision": "Replace the pump", "conversation_id": "talk-1"}),
    R("GET /pools/{pool_id}/cache", ids={"pool_id": "results"}),
    R("GET /pools/{pool_id}/cache/{key}", ids={"pool_id": "results"}),
    R("GET /pools/{pool_id}/postings", ids={"pool_id": "news"}),
    *(R("GET /short-term-memories/{short_term_id}", ids={"short_term_id": "{kept}"})
      for _ in range(MIN_PROMOTION_READS)),
    R("GET /graph", query="?ids={ana},{goal_id},{artifact_id}&depth=3"),
    R("GET /graph", query="?ids={ana}&types=WORKS_FOR,KNOWS"),
    R("GET /timeline", query="?user_id=ana"),
    R("GET /erasures/preview", query="?memory_id={memory_id}"),
    R("GET /erasures/preview", query="?conversation_id=talk-1"),
    R("GET /memories", query="?user_id=ana&kind=note,fact&conversation_id=talk-1"),
    R("GET /timeline", query="?memory_type=fact,turn&conversation_id=talk-1&archived=any&ordering=event_time"),
    R("POST /episodic/search", {"query": "pump"}),
    R("POST /learnings/search", {"query": "pump", "team": "{team_id}"}),
    R("POST /strategies/find", {"task_description": "order a pump", "task_type": "repair"}),
    R("POST /contexts/{context_id}/search", {"query": "Where is the pump?"}),
    R("POST /memories/search", {"query": "wallet", "conversation_id": "talk-1", "since": PAST}),
    R("POST /keyed-memories/search", {"query": "wallet"}),
    R("POST /contexts/{context_id}/items/query", {
        "reads": [{"namespace": ["works", "rome"], "key": "pump", "refresh_ttl": True}],
        "searches": [{"namespace_prefix": ["works"], "query": "Where is the pump?", "filter": {"state": "broken"}}],
        "namespaces": [{"prefixes": [["works"]], "max_depth": 2}]}),
    R("GET /learnings", query="?ordering=score&team={team_id}"),
    R("GET /goals", query="?parent={parent}&status=active&overdue=false&ordering=priority"),
    R("GET /facts", query="?entity={ana}&as_of={past}&temporal=current"),
    R("GET /facts", query="?known_at={past}&status=active"),
    R("GET /entities", query="?name=Anita&ordering=salience"),
    R("GET /entities", query="?conversation_id=talk-1"),
    R("GET /strategies", query="?tool=order&min_success_rate=0.1"),
    R("GET /tools", query="?by=task_type"),
    R("GET /relationships", query="?entity={ana}"),
    R("GET /artifacts", query="?revisions=all&uri_prefix=docs"),
    R("GET /turn-records", query="?goal_id={goal_id}&conversation_id=talk-1"),
    *(R("GET /keyed-memories/{key}", query=f"?tier={tier}&session_id=talk-1") for tier in ("working", "short_term")),
]  # fmt: skip

CHANGING = [
    R("PATCH /agents/{agent_id}", {"description": "assists"}),
    R("PATCH /artifacts/{artifact_id}", {"title": "The pump of Rome", "goal_id": None}),
    R("PATCH /entities/{entity_id}", {"name": "Acme Corporation", "aliases": ["Acme Inc"], "salience": 0.7}),
    R("POST /entities/{entity_id}/merge", {"from": "{acme}"}),
    R("POST /entities/{entity_id}/split", {"names": ["Acme Company"]}),
    R("PATCH /facts/{fact_id}", {"confidence": 0.7}),
    R("PATCH /facts/{fact_id}", {"claim": "Ana Lima prefers green tea."}),
    R("POST /facts/{fact_id}/promote", {"reason": "true everywhere"}, ids={"fact_id": "{pump_fact}"}),
    R("POST /facts/{fact_id}/supersede", {"claim": "Ana Lima prefers white tea.", "user_id": "ana"}),
    R("POST /facts/{fact_id}/reject", {}, ids={"fact_id": "{wrong_fact}"}),
    R("PATCH /goals/{goal_id}", {"priority": 7, "description": "Replace the pump.", "parent": None}),
    R("DELETE /short-term-memories/{short_term_id}", ids={"short_term_id": "{brief}"}),
    R("PATCH /memories/{memory_id}", {"text": "The pump hums by day.", "expires_at": FUTURE}),
    R("POST /goals/{goal_id}/unblock", {"by": "{valve}"}),
    R("POST /goals/{goal_id}/block", {"by": "{valve}"}),
    R("POST /goals/{valve}/complete", {"result": "Bought."}),
    R("POST /goals/{goal_id}/complete", {"status": "completed"}),
    R("POST /contexts/{context_id}/snapshots", {"name": "before"}, "snapshot_id"),
    R("PATCH /entries/{entry_id}", {"content": "The pump is in the attic."}),
    R("POST /entries/{entry_id}/boost", {"by": 0.2}),
    R("POST /entries/{entry_id}/reduce", {"by": 0.1}),
    R("POST /entries/{entry_id}/versions/{number}/restore", {}),
    R("PATCH /contexts/{context_id}", {"description": "What we know of the works."}),
    R("POST /contexts/{context_id}/grant", {"agent_id": "lender", "level": "write"}),
    R("POST /contexts/{context_id}/revoke", {"agent_id": "lender"}),
    R("GET /contexts/{context_id}/snapshots/{snapshot_id}"),
    R("POST /contexts/{context_id}/snapshots/{snapshot_id}/restore", {}),
    R("POST /contexts/{context_id}/archive", {}),
    R("POST /contexts/{context_id}/unarchive", {}),
    R(f"POST {TALK}/consolidate", {}),
    R(f"POST {TALK}/summarize", {}),
    R("POST /memories/consolidate", {"session_id": "talk-1"}),
    R("POST /ledger/{conversation_id}/evict", {"item_key": "skill:pump"}),
    R(f"POST {TALK}/participants", {"participant_id": "guest"}),
    R(f"GET {TALK}/participants"),
    R(f"DELETE {TALK}/participants/{{participant_id}}", ids={"participant_id": "guest"}),
    R(f"POST {TALK}/unarchive", {}),
    R(f"POST {TALK}/end", {"outcome": "success"}, ids={"conversation_id": "talk-2"}),
    R("POST /exports", {"include_vectors": True}, "export_id"),
    R("GET /exports/{export_id}"),
    R("POST /imports", name="import_id", query="?dry_run=true"),
    R("GET /imports/{import_id}"),
]

OF_WORK = [
    R("GET /work-episodes", name="episode_id"),
    *(R("GET /work-episodes/{episode_id}", query=f"?expand={level}") for level in "01"),
    R("POST /replay", {"episode_id": "{episode_id}", "posture": "resume"}),
    R("POST /replay", {"goal_id": "{goal_id}", "posture": "audit"}),
    R("POST /resume", {"goal_ids": ["{goal_id}"], "conversation_id": "talk-1"}),
    R("POST /recall", {**QUESTION, "kinds": ["work_episode", "turn_slot"]}),
    R("GET /artifacts/{artifact_id}/lineage"),
    R("GET /turn-records/{record_id}"),
    R("GET /export", query="?include_vectors=true"),
    R("GET /exports/{export_id}/download"),
    R("POST /imports"),
]
"""Reads of work that the job `compress` has merged into episodes, and of what the job `transfer` has exported."""

ERASING = [
    R(f"DELETE {WORKING}/{{key}}/share", query="?target_agent_id=planner"),
    *(R(f"DELETE {WORKING}/{name}") for name in ("{key}", "persist", "load")),
    R(f"DELETE {WORKING}"),
    R("DELETE /relationships/{relationship_id}"),
    R("DELETE /entries/{entry_id}"),
    R("DELETE /contexts/{context_id}/snapshots/{snapshot_id}"),
    R("DELETE /facts/{other_fact}"),
    R("DELETE /memories/{memory_id}"),
    *(R("DELETE /memories", query=f"?user_id=cleo&dry_run={dry}") for dry in ("true", "false")),
    R("DELETE /learnings/{own_learning}"),
    R("DELETE /facts/{fact_id}"),
    R("DELETE /artifacts/{artifact_id}"),
    R("POST /turn-records", {"conversation_id": "talk-0", "action": {"text": "Looked."}}, "last_record"),
    R("DELETE /turn-records/{record_id}", ids={"record_id": "{last_record}"}),
    R("DELETE /goals/{goal_id}"),
    R("DELETE /entities/{entity_id}"),
    R("DELETE /strategies/{strategy_id}"),
    R("DELETE /learnings/{learning_id}"),
    R("DELETE /profiles/{user_id}", query="?user_id=ana"),
    R("DELETE /keyed-memories/{key}", query="?session_id=talk-1"),
    R("DELETE /pools/{pool_id}/cache/{key}", ids={"pool_id": "results"}),
    *(R("DELETE /pools/{pool_id}", ids={"pool_id": pool}) for pool in ("board", "news", "shared", "results")),
    R(f"DELETE {TALK}/active-goal"),
    R(f"DELETE {TALK}/values/{{key}}"),
    R("DELETE /working-memory/{conversation_id}"),
    R("DELETE /teams/{team_id}/members/{agent_id}", ids={"agent_id": "planner"}),
    R("DELETE /teams/{team_id}"),
    R("DELETE /contexts/{context_id}"),
    R("POST /erasures/verify", {"receipt": {"id": 1}, "signature": "x"}),
    R("POST /subjects/{user_id}/readmit", ids={"user_id": "dora"}),
    R(f"GET {TALK}/turns", name="turn_id"),
    R(f"DELETE {TALK}/turns/{{turn_id}}"),
    R("DELETE /episodic/{conversation_id}"),
    R(f"DELETE {TALK}"),
    R("DELETE /agents/{agent_id}"),
]


class HotPaths:
    """Sends requests in turn and keeps the ids in the answers.

    What the agent's key may not do, such as forming teams, is done with the account's.
    """

    def __init__(self, agent: ServiceClient, account: ServiceClient) -> None:
        self.clients = (agent, account)
        self.ids = defaultdict(lambda: UNKNOWN, KNOWN_IDS | {"past": PAST})
        self.sent: set[str] = set()

    def send_all(self, requests: Sequence[Request]) -> list[str]:
        """Send the requests and return what those that were refused were answered."""
        return [refusal for request in requests if (refusal := self.send(request))]

    def send(self, request: Request) -> str:
        ids = self.ids | filled_in(request.ids, self.ids)
        method, _, path = request.operation.partition(" ")
        url, body = (path + request.query).format_map(ids), filled_in(request.body, ids)
        for client in self.clients:
            if path == "/imports" and method == "POST":
                answer = client.generic(method, url, self.archive(), "application/zip")
            else:
                answer = getattr(client, method.lower())(url, body)
            if answer.status_code != HTTPStatus.FORBIDDEN:
                break
        self.sent.add(f"{method} {API}{path}")
        if answer.status_code >= HTTPStatus.BAD_REQUEST:
            return f"{request.operation}{request.query}: {answer.status_code} {answer.content.decode()}"
        if request.name:
            self.ids[request.name] = id_in(answer.json())
        return ""

    def archive(self) -> bytes:
        """Return the archive that was exported, or another zip until then."""
        answer: Any = self.clients[1].get(f"/exports/{self.ids['export_id']}/download")
        if answer.streaming:
            return b"".join(answer.streaming_content)
        file = BytesIO()
        with ZipFile(file, "w") as zipped:
            zipped.writestr("no archive", "")
        return file.getvalue()


def filled_in(value: Any, ids: Mapping[str, str]) -> Any:
    """Return JSON with the ids in place of their names."""
    if isinstance(value, str):
        return value.format_map(ids) if value.startswith("{") else value
    if isinstance(value, list):
        return [filled_in(each, ids) for each in value]
    return {key: filled_in(each, ids) for key, each in value.items()} if isinstance(value, dict) else value


def id_in(answer: Mapping[str, Any]) -> str:
    """Return the id in an answer, or that of the first row in it."""
    rows = [answer, *answer.get("results", ()), *answer.get("entries", ())]
    return next((str(row[name]) for row in rows for name in ("id", "job_id") if name in row), UNKNOWN)
