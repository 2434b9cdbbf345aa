"""Secrets in what clients write: masked before anything is stored, or marked, as the account asks for."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from memory.agent_memory import AgentMemory
from memory.extraction.conversations import read_conversations
from memory.extraction.foreign_memories import ForeignMemory
from memory.masking import UNMASKED_NAME
from memory.models import Account, Fact, FactVersion, Memory, Turn
from memory.owner import Owner
from memory.redaction import MASK, holds_secret
from memory.services.conversations.import_files import import_conversations
from memory.services.embedding.embed import EmbeddingBudget
from memory.services.facts.learn import FactDraft
from memory.services.foreign_imports import import_foreign_memories
from memory.services.memories.correct import correct_memory
from memory.services.pools.manage import PoolDraft
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.api.test_strangers import Ids
from tests.memory.api.test_strangers import real as real
from tests.memory.api.test_subject_canary import POOLS, Planter, lines_with, plant, writes
from tests.openapi import Operation

KEY = "sk-proj-Zq81mPv0aLk39TtYwB27nXcR5dEfGh"
SAMPLE = Path(settings.BASE_DIR) / "docs" / "sample" / "secrets.json"
MIN_PRECISION, MIN_RECALL = 0.95, 0.95

pytestmark = pytest.mark.django_db


def set_policy(account: Account, policy: str) -> None:
    Account.objects.filter(id=account.id).update(secrets=policy)


def test_precision_and_recall_on_the_sample() -> None:
    sample = json.loads(SAMPLE.read_text(encoding="utf-8"))

    found = sum(map(holds_secret, sample["secrets"]))
    wrong = sum(map(holds_secret, sample["ordinary"]))

    assert found / (found + wrong) >= MIN_PRECISION
    assert found / len(sample["secrets"]) >= MIN_RECALL


def test_accounts_keep_what_they_are_sent_by_default(api: ServiceClient) -> None:
    answer = api.post("/memories", {"agent_id": "planner", "text": f"The key is {KEY}."})

    assert answer.json()["text"] == f"The key is {KEY}."
    assert not Memory.objects.get(id=answer.json()["id"]).has_secret


def test_a_masked_text_tells_that_something_was_there(account: Account, api: ServiceClient) -> None:
    set_policy(account, "mask")

    answer = api.post("/memories", {"agent_id": "planner", "text": f"The key is {KEY}.", "metadata": {"token": KEY}})

    assert answer.json()["text"] == f"The key is {MASK}."
    assert answer.json()["metadata"] == {"token": MASK}


def test_names_of_secrets_are_no_names_of_things(account: Account, api: ServiceClient) -> None:
    set_policy(account, "mask")
    metadata = {"api_key": "Kd82jfnQ-22PL", "keys": {"vault": KEY}, "scores": [0.5, KEY], "item_key": "lamp"}

    answer = api.post("/memories", {"agent_id": "planner", "text": "Use the vault.", "metadata": metadata})

    kept = {"api_key": MASK, "keys": {"vault": MASK}, "scores": [0.5, MASK], "item_key": "lamp"}
    assert answer.json()["metadata"] == kept


def test_corrections_are_masked_as_well(account: Account, api: ServiceClient) -> None:
    stored = api.post("/memories", {"agent_id": "planner", "text": "The key is in the vault."}).json()
    set_policy(account, "mask")

    answer = api.patch(f"/memories/{stored['id']}", {"text": f"The key is {KEY}."})

    assert answer.json()["text"] == f"The key is {MASK}."


def test_ids_and_vectors_stay_as_they_are(account: Account, api: ServiceClient) -> None:
    set_policy(account, "mask")
    vector = [1.0, *[0.0] * 383]

    turn = {"role": "user", "content": "hello", "client_id": KEY, "embedding": vector, "embedding_model": KEY}
    answer = api.post(f"/conversations/{KEY}/turns", {"agent_id": "planner", "turns": [turn]})

    assert answer.status_code == 201, answer.content
    stored = Turn.objects.get(id=answer.json()["turns"][0]["id"])
    assert (stored.conversation_id, stored.client_id) == (KEY, KEY)


def test_names_of_members_are_masked(account: Account, api: ServiceClient) -> None:
    set_policy(account, "mask")

    answer = api.post("/memories", {"agent_id": "planner", "text": "Keys.", "metadata": {KEY: "vault", "color": "red"}})

    assert answer.json()["metadata"] == {MASK: "vault", "color": "red"}


def test_callers_in_python_are_masked_and_their_vectors_made_anew(account: Account, embedding_server: object) -> None:
    set_policy(account, "mask")
    memory = AgentMemory.open(account.name, agent_id="planner")

    fact = memory.learn_fact(FactDraft(claim=f"The key is {KEY}.", metadata={"token": KEY})).fact
    other = memory.learn_fact(FactDraft(claim="The key is in the vault.")).fact

    rows = {row.id: row for row in Memory.objects.all()}
    assert (rows[fact.id].text, rows[fact.id].metadata) == (f"The key is {MASK}.", {"token": MASK})
    assert rows[fact.id].embed_after is not None
    assert rows[other.id].embed_after is None
    assert KEY not in repr(list(Fact.objects.values())) + repr(list(FactVersion.objects.values()))


@pytest.mark.django_db(transaction=True)
def test_values_that_callers_in_python_store_are_masked_in_every_tier(account: Account, empty_redis: None) -> None:
    set_policy(account, "mask")
    memory = AgentMemory.open(account.name, agent_id="planner")
    text, plan = f"The key is {KEY}.", memory.create_pool(PoolDraft(pool_id="plan"))

    memory.working_memory.set("talk", {"note": {"token": KEY}})
    memory.agent_working_memory().store("note", text)
    memory.agent_working_memory().append("list", text)
    memory.agent_working_memory().share_with_agent("helper", "note", text)
    memory.session("talk").set("note", text)
    memory.session("talk").push_thought(text)
    memory.session("talk").set_active_goal("g1", text)
    memory.router.write("note", text)
    memory.short_term("talk").store("note", {"note": text})
    memory.pool(plan.pool_id).write({"note": text})

    assert lines_with(KEY) == []
    assert len(lines_with(MASK)) >= 8


def test_imported_conversations_are_masked_before_they_are_embedded(
    account: Account, embedding_server: EmbeddingServer
) -> None:
    set_policy(account, "mask")
    call = {"type": "function", "id": "1", "function": {"name": "login", "arguments": json.dumps({"token": KEY})}}
    said = {"role": "assistant", "content": f"The key is {KEY}.", "tool_calls": [call]}
    line = json.dumps({"id": "c1", "agent": "planner", "messages": [said]})

    list(import_conversations(account.id, read_conversations([line]), now=timezone.now()))

    turn = Turn.objects.get()
    assert KEY not in turn.text + json.dumps(turn.payload)
    assert not any(KEY in text for text in embedding_server.texts)


def test_memories_imported_from_others_are_masked_before_they_are_embedded(
    account: Account, embedding_server: EmbeddingServer
) -> None:
    set_policy(account, "mask")
    record = ForeignMemory(source_id="1", text=f"The key is {KEY}.", metadata={"token": KEY})

    owner = Owner(account_id=account.id, agent_id="planner")
    import_foreign_memories(owner, "mem0", [record], now=timezone.now(), budget=EmbeddingBudget(10))

    assert [(row.text, row.metadata["token"]) for row in Memory.objects.all()] == [(f"The key is {MASK}.", MASK)]
    assert not any(KEY in text for text in embedding_server.texts)


def test_questions_are_not_masked(account: Account, api: ServiceClient) -> None:
    api.post("/memories", {"agent_id": "planner", "text": f"The key is {KEY}."})
    set_policy(account, "mask")

    found = api.post("/recall", {"agent_id": "planner", "query": f"{KEY}"}).json()["results"]

    assert [each["text"] for each in found] == [f"The key is {KEY}."]


def test_streams_are_masked_line_by_line(account: Account, api: ServiceClient) -> None:
    set_policy(account, "mask")
    lines = [{"role": "user", "content": f"use {KEY}"}, {"role": "user", "content": "thanks"}]

    body = "".join(json.dumps(line) + "\n" for line in lines)
    path = "/conversations/talk-7/turns?agent_id=planner"
    answer = api.generic("POST", path, body, content_type="application/x-ndjson")

    assert len(json.loads(b"".join(answer.streaming_content))["turns"]) == 2
    texts = Memory.objects.filter(conversation_id="talk-7").order_by("identity").values_list("text", flat=True)
    assert sorted(texts) == ["thanks", f"use {MASK}"]


def test_marked_memories_are_kept_whole(account: Account, api: ServiceClient) -> None:
    set_policy(account, "mark")

    held = api.post("/memories", {"agent_id": "planner", "text": f"The key is {KEY}."}).json()
    other = api.post("/memories", {"agent_id": "planner", "text": "The key is in the vault."}).json()

    assert held["text"] == f"The key is {KEY}."
    marked = Memory.objects.filter(has_secret=True).values_list("id", flat=True)
    assert [str(each) for each in marked] == [held["id"]]
    assert held["id"] != other["id"]


def test_a_memory_is_marked_as_long_as_its_text_holds_a_secret(account: Account, api: ServiceClient) -> None:
    set_policy(account, "mark")
    note = api.post("/memories", {"agent_id": "planner", "text": "The key is in the vault."}).json()
    rows = Memory.objects.filter(id=note["id"])

    marks = []
    for text in (f"The key is {KEY}.", "The key is in the safe.", f"The key was {KEY}."):
        assert api.patch(f"/memories/{note['id']}", {"agent_id": "planner", "text": text}).status_code == 200
        marks.append(rows.get().has_secret)
    correct_memory(Owner(account_id=account.id), rows.get().id, changes={"text": "No."}, version=4, now=timezone.now())
    marks.append(rows.get().has_secret)
    correct_memory(Owner(account_id=account.id), rows.get().id, changes={"text": KEY}, version=5, now=timezone.now())
    marks.append(rows.get().has_secret)

    assert marks == [True, False, True, False, True]


class SecretPlanter(Planter):
    """Makes bodies each of whose texts holds a key."""

    def __init__(self, ids: Ids) -> None:
        super().__init__(ids)
        self.numbers = count()

    def body(self, operation: Operation, *, named: bool, least: bool) -> dict[str, Any]:
        made = super().body(operation, named=named, least=least)
        return made | {"items": [each | {"key": "note"} for each in made["items"]]} if "items" in made else made

    def value(self, name: str, schema: dict[str, Any], *, named: bool) -> Any:
        # names of values are not masked
        is_name = self.resolve(schema).get("type") == "string" and UNMASKED_NAME.search(name) and name not in self.ids
        return super().value(name, schema, named=named) if not is_name or name.endswith("_id") else "note"

    def word(self, named: bool) -> str:
        return f"note {next(self.numbers)}: {KEY}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_no_route_stores_a_secret_of_an_account_that_masks_them(
    real: Ids, api: ServiceClient, account: Account, embedding_server: EmbeddingServer
) -> None:
    set_policy(account, "mask")
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    api.post("/workflow-runs", {"workflow_run_id": "run-2"})
    for kind in POOLS.values():
        api.post("/workflow-runs/run-2/pools", {"pool_id": kind, "pool_type": kind})
    person = {"agent_id": "assistant", "name": "Somebody", "type": "person"}
    other = {"other_entity_id": api.post("/entities", person).json()["id"]}
    planter = SecretPlanter(real | other)

    for operation in writes():
        plant(api, planter, operation, named=False)

    assert len(lines_with(MASK)) > 30
    left = lines_with(KEY)
    assert not left, "\n".join(left)
