"""mem0's own client, in an environment of its own, against `/compat/mem0`."""

import asyncio
import inspect
import os
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from agent_memory_client import Client, NotFoundError
from agent_memory_integrations.mem0_memory import AsyncMemory, Memory

from memory.models import Account
from memory.services.accounts.register import READ_WRITE, issue_key
from tests.clients.scripted_server import ScriptedServer, answer
from tests.integrations.environments import make_environment
from tests.integrations.test_mcp import mcp_url as mcp_url
from tests.integrations.test_mcp import shared_mcp as shared_mcp

# the first part is the quick start of mem0's documentation, as it stands there but for the address
QUICK_START = """
import os
from mem0 import MemoryClient

client = MemoryClient(api_key=os.environ["KEY"], host=os.environ["HOST"])
messages = [
    {"role": "user", "content": "Hi, I'm Alex. I'm a vegetarian and I'm allergic to nuts."},
    {"role": "assistant", "content": "Hello Alex! I see that you're a vegetarian with a nut allergy."},
]
client.add(messages, user_id="alex")
results = client.search("What can Alex not eat?", filters={"user_id": "alex"})
assert "allergic to nuts" in str(results["results"]), results

assert client.get_all(filters={"AND": [{"user_id": "alex"}]})["count"] >= 2
assert client.search("What can Alex not eat?", filters={"user_id": "ben"})["results"] == []

[added] = client.add("Alex owns a red bicycle.", user_id="alex", infer=False, metadata={"a": 1})["results"]
memory = client.get(added["id"])
assert (memory["memory"], memory["user_id"], memory["metadata"]) == ("Alex owns a red bicycle.", "alex", {"a": 1})
found = client.search("bicycle", filters={"AND": [{"user_id": "alex"}, {"metadata": {"a": 1}}]}, top_k=20)
assert [each["id"] for each in found["results"]] == [added["id"]], found
client.update(added["id"], text="Alex owns a blue bicycle.")
assert client.get(added["id"])["memory"] == "Alex owns a blue bicycle."
assert client.history(added["id"])[0]["event"] == "ADD"
client.batch_update([{"memory_id": added["id"], "text": "Alex owns a green bicycle."}])
assert client.get(added["id"])["memory"] == "Alex owns a green bicycle."
client.delete(added["id"])
try:
    client.get(added["id"])
    raise SystemExit("the memory is still there")
except Exception as err:
    assert "NotFound" in type(err).__name__, repr(err)
assert {"type": "user", "name": "alex", "id": "alex"} in client.users()["results"]
for refused in ({"user_id": "alex", "run_id": "r1"}, {"agent_id": "bot"}, {}):
    try:
        client.delete_all(**refused)
        raise SystemExit("more was deleted than was asked for")
    except Exception as err:
        assert "delete_all takes" in str(err), repr(err)
assert client.get_all(filters={"user_id": "alex"})["count"] >= 2
client.delete_all(user_id="alex")
assert client.get_all(filters={"user_id": "alex"})["results"] == []
try:
    MemoryClient(api_key="wrong", host=os.environ["HOST"])
    raise SystemExit("a wrong key was accepted")
except ValueError:
    pass
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_quick_start_of_mem0_runs_unmodified(mcp_url: str, api_key: str, tmp_path: Path) -> None:
    run_with_mem0(QUICK_START, mcp_url, api_key, tmp_path)


# the calls of the quick start of mem0's open-source memory
OPEN_SOURCE = """
import inspect
import os
from agent_memory_integrations.mem0_memory import Memory
from mem0 import Memory as Theirs

left_out = {"timestamp", "memory_type", "prompt", "rerank", "reference_date", "show_expired", "kwargs", "self"}
for name in ("add", "search", "get", "get_all", "update", "delete", "delete_all", "history", "from_config"):
    theirs, ours = (inspect.signature(getattr(each, name)).parameters for each in (Theirs, Memory))
    kept = {each: (theirs[each].kind, theirs[each].default) for each in theirs if each not in left_out}
    mine = {each: (ours[each].kind, ours[each].default) for each in ours if each != "self"}
    if name == "update":
        kept.pop("expiration_date")
    assert [(n, k) for n, (k, d) in kept.items()] == [(n, k) for n, (k, d) in mine.items()], (name, kept, mine)

memory = Memory(url=os.environ["HOST"], api_key=os.environ["KEY"])
messages = [
    {"role": "user", "content": "I'm planning to watch a movie tonight. Any recommendations?"},
    {"role": "user", "content": "I love sci-fi movies."},
]
memory.add(messages, user_id="alice", metadata={"category": "movies"})
[added] = memory.add("Alice owns a red bicycle.", user_id="alice", infer=False)["results"]
assert memory.get(added["id"])["memory"] == "Alice owns a red bicycle."
assert len(memory.get_all(filters={"user_id": "alice"})["results"]) == 3
[best] = memory.search("bicycle", filters={"user_id": "alice"}, top_k=1, explain=True)["results"]
assert best["id"] == added["id"] and best["score_details"]["final_score"] == best["score"] >= 0.1, best
assert memory.search("bicycle", filters={"user_id": "alice"}, threshold=1.0)["results"] == []
memory.update(added["id"], data="Alice owns a blue bicycle.")
assert memory.get(added["id"])["memory"] == "Alice owns a blue bicycle."
assert memory.history(added["id"])[0]["event"] == "ADD"
memory.delete(added["id"])
assert memory.get(added["id"]) is None
for refused in (lambda: memory.search("x"), lambda: memory.get_all(), lambda: memory.delete_all(),
                lambda: memory.add("x"), lambda: memory.delete(added["id"])):
    try:
        refused()
        raise SystemExit("it was not refused")
    except ValueError:
        pass
memory.delete_all(user_id="alice")
assert memory.get_all(filters={"user_id": "alice"})["results"] == []
memory.close()
"""


def run_with_mem0(code: str, mcp_url: str, api_key: str, folder: Path) -> None:
    python = make_environment("mem0", "mem0ai==2.2.0", "httpx2~=2.16")
    environ = {"KEY": api_key, "HOST": mcp_url.replace("/mcp", "/compat/mem0")}
    # its telemetry would leave the machine, and its files would be written to the home folder
    private = {"MEM0_TELEMETRY": "False", "HOME": str(folder), "MEM0_DIR": str(folder)}

    done = subprocess.run(
        [str(python), "-c", code],
        env={"PATH": os.environ["PATH"], **environ, **private},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3_000:]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_calls_of_mem0s_open_source_memory_are_answered(mcp_url: str, api_key: str, tmp_path: Path) -> None:
    run_with_mem0(OPEN_SOURCE, mcp_url, api_key, tmp_path)


@pytest.fixture
def compat(mcp_url: str, api_key: str) -> "Mem0Routes":
    return Mem0Routes(mcp_url.replace("/mcp", "/compat/mem0"), api_key)


class Mem0Routes:
    """The routes, without mem0's client."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        sent = {"Authorization": f"Token {self.key}", **headers}
        return httpx2.request(method, self.url + path, json=body, headers=sent, timeout=30)

    def with_key(self, account: Account, *, agent_id: str = "", user_id: str = "") -> "Mem0Routes":
        return Mem0Routes(self.url, issue_key(account, scopes=READ_WRITE, agent_id=agent_id, user_id=user_id).secret)

    def add(self, text: str, **fields: Any) -> str:
        body = {"messages": [{"role": "user", "content": text}], "infer": False, **fields}
        answer = self.send("POST", "/v3/memories/add/", body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["results"][0]["id"])

    def count(self, **filters: Any) -> int:
        return int(self.send("POST", "/v3/memories/", {"filters": filters}).json()["count"])


@pytest.mark.parametrize("memory_id", ["?user_id=alex#", "../../v2/entities/user/alex", "../entities", "..", "", "x/"])
def test_what_is_no_id_reaches_no_other_route(memory_id: str) -> None:
    with ScriptedServer() as server, closing(Memory(url=server.url, api_key="key")) as memory:
        for use in (memory.get, memory.delete, memory.history, lambda each: memory.update(each, "new")):
            with pytest.raises(ValueError, match="is not the id of a memory"):
                use(memory_id)

        assert server.received == []


def test_an_id_is_put_into_the_path_as_it_is() -> None:
    with ScriptedServer(answer(200)) as server, closing(Memory(url=server.url, api_key="key")) as memory:
        memory.delete("0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000")

        assert server.received[0].line.split()[1] == "/v1/memories/0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000/"


def test_an_answer_of_a_proxy_is_a_refusal_with_its_status() -> None:
    with (
        ScriptedServer(answer(404, b"<html>")) as server,
        closing(Memory(url=server.url, api_key="key")) as memory,
        pytest.raises(ValueError, match="404: X"),
    ):
        memory.delete_all(user_id="alex")


@pytest.mark.parametrize("name", ["org/42", "a b?c#d", "..", "%2F", "ünï"])
def test_a_user_of_any_name_is_deleted(compat: "Mem0Routes", name: str) -> None:
    compat.add("Alex eats nuts.", user_id=name)
    compat.add("Ben eats nuts.", user_id="org")

    with closing(Memory(url=compat.url, api_key=compat.key)) as memory:
        memory.delete_all(user_id=name)

    assert (compat.count(user_id=name), compat.count(user_id="org")) == (0, 1)


def test_the_asynchronous_memory_has_the_methods_of_the_other_one(compat: Mem0Routes) -> None:
    async def use() -> list[Any]:
        async with AsyncMemory(url=compat.url, api_key=compat.key) as memory:
            texts = [f"Alex owns {number} bicycles." for number in range(12)]
            added = await asyncio.gather(*(memory.add(each, user_id="alex", infer=False) for each in texts))
            memory_id = added[0]["results"][0]["id"]
            await memory.update(memory_id, "Alex owns a blue canoe.")
            best = await memory.search("canoe", filters={"user_id": "alex"}, top_k=1)
            [first, *_] = await memory.history(memory_id)
            await memory.delete(memory_id)
            gone = await memory.get(memory_id)
            left = await memory.get_all(filters={"user_id": "alex"})
            await memory.delete_all(user_id="alex")
            with pytest.raises(ValueError, match="Name at least one"):
                await memory.add("Ben owns a car.")
            return [best["results"][0]["memory"], first["event"], gone, len(left["results"])]

    assert asyncio.run(use()) == ["Alex owns a blue canoe.", "ADD", None, 11]
    assert compat.count(user_id="alex") == 0


def test_methods_of_both_memories_have_the_same_parameters() -> None:
    shared = [name for name in vars(Memory) if not name.startswith("_")]
    signatures = [{name: inspect.signature(getattr(each, name)) for name in shared} for each in (Memory, AsyncMemory)]

    assert signatures[0] == signatures[1]


def test_only_what_is_named_is_deleted(compat: Mem0Routes, client: Client) -> None:
    client.remember("A note of another agent.")
    compat.add("Alex eats nuts.", user_id="alex")
    compat.add("Alex owns a bicycle.", user_id="alex", agent_id="bot")

    for query in ("", "?user_id=alex&run_id=r1", "?agent_id=bot", "?user_id=*", "?user_id="):
        assert compat.send("DELETE", f"/v1/memories/{query}").status_code == 400, query
    assert compat.send("DELETE", "/v2/entities/app/assistant/").status_code == 400
    assert compat.count(user_id="alex") == compat.count(user_id="alex", agent_id="bot") == 2
    listed = compat.send("GET", "/v1/entities/").json()["results"]
    assert [(each["type"], each["name"]) for each in listed] == [("user", "alex"), ("agent", "mem0")]
    for each in listed:
        assert compat.send("DELETE", f"/v2/entities/{each['type']}/{each['name']}/").status_code == 200
    assert compat.count(user_id="alex") == compat.count(user_id="alex", agent_id="bot") == 0
    assert [each.text for each in client.memories()] == ["A note of another agent."]


def test_a_run_is_a_tag_of_notes_and_is_deleted_with_all_that_is_listed_under_it(
    compat: Mem0Routes, client: Client
) -> None:
    vault = compat.add("The vault code is 8812.", user_id="alex", run_id="r1")
    compat.add("The planner likes figs.", user_id="alex", agent_id="planner", run_id="r1")
    compat.add("The door code is 4711.", user_id="alex", run_id="r2")
    said = {"messages": [{"role": "user", "content": "Hello there."}], "user_id": "alex", "run_id": "r1"}
    compat.send("POST", "/v3/memories/add/", said)
    assert (compat.count(run_id="r1", user_id="alex"), compat.count(run_id="r2", user_id="alex")) == (3, 1)

    assert compat.send("DELETE", "/v2/entities/run/r1/").status_code == 200

    assert compat.send("GET", f"/v1/memories/{vault}/").status_code == 404
    assert (compat.count(run_id="r1", user_id="alex"), compat.count(run_id="r2", user_id="alex")) == (0, 1)
    assert compat.send("DELETE", "/v2/entities/run/r1/").status_code == 404


def test_an_id_stands_for_what_an_update_made_of_a_fact(compat: Mem0Routes, client: Client) -> None:
    first = client.learn("Alex lives in Rome", user_id="alex", agent_id="mem0").id

    with Memory(url=compat.url, api_key=compat.key) as memory:
        made = memory.update(first, "Alex lives in Turin", metadata={"a": 1})
        held = memory.get(first)
        assert held is not None
        assert (held["id"], held["memory"], held["metadata"]) == (made["id"], "Alex lives in Turin", {"a": 1})
        memory.update(first, "Alex lives in Oslo")
        events = [(each["event"], each["old_memory"], each["new_memory"]) for each in memory.history(first)]
        assert events[0] == ("ADD", None, "Alex lives in Rome")
        assert events[1:] == [
            ("UPDATE", "Alex lives in Rome", "Alex lives in Turin"),
            ("UPDATE", "Alex lives in Turin", "Alex lives in Oslo"),
        ]
        memory.delete(first)

    assert compat.count(user_id="alex") == 0


def test_what_was_said_is_gone_after_its_deletion(compat: Mem0Routes) -> None:
    said = [{"role": "user", "content": each} for each in ("My PIN is 4711.", "Hello there.")]
    added = compat.send("POST", "/v3/memories/add/", {"messages": said, "run_id": "r1"}).json()["results"]
    first, second = (each["id"] for each in added)

    assert compat.send("DELETE", f"/v1/memories/{first}/").status_code == 200

    for path in (f"/v1/memories/{first}/", f"/v1/memories/{first}/history/"):
        assert compat.send("GET", path).status_code == 404
    assert compat.send("PUT", f"/v1/memories/{first}/", {"text": "x"}).status_code == 404
    listed = compat.send("POST", "/v3/memories/", {"filters": {"run_id": "r1"}}).json()["results"]
    assert [each["id"] for each in listed] == [second]


def test_deleting_a_fact_keeps_what_was_learned_in_its_place(compat: Mem0Routes, client: Client) -> None:
    acme, initech = (client.learn(f"Alex works at {name}", user_id="alex").id for name in ("Acme", "Initech"))

    assert compat.send("GET", f"/v1/memories/{acme}/").json()["memory"] == "Alex works at Initech"
    assert compat.send("DELETE", f"/v1/memories/{acme}/").status_code == 200
    assert compat.send("GET", f"/v1/memories/{initech}/").json()["memory"] == "Alex works at Initech"


def update_twice(compat: Mem0Routes, client: Client) -> list[str]:
    """Return the ids of a fact and of what two updates made of it, each of them by the id that lists show."""
    ids = [client.learn("Alex lives in Rome", user_id="alex", agent_id="mem0").id]
    for city in ("Turin", "Oslo"):
        body = {"text": f"Alex lives in {city}"}
        ids.append(compat.send("PUT", f"/v1/memories/{ids[-1]}/", body).json()["id"])
    return ids


@pytest.mark.parametrize("position", [0, 1, 2])
def test_deleting_an_updated_fact_by_any_of_its_ids_leaves_no_former_text(
    compat: Mem0Routes, client: Client, position: int
) -> None:
    ids = update_twice(compat, client)
    histories = [compat.send("GET", f"/v1/memories/{each}/history/").json() for each in ids]
    assert [[event["id"] for event in each] for each in histories] == [ids] * 3

    assert compat.send("DELETE", f"/v1/memories/{ids[position]}/").status_code == 200

    for each in ids:
        assert compat.send("GET", f"/v1/memories/{each}/").status_code == 404
        assert compat.send("GET", f"/v1/memories/{each}/history/").status_code == 404
        with pytest.raises(NotFoundError):
            client.get_fact(each, user_id="alex", agent_id="mem0")


def test_several_updated_facts_are_deleted_with_their_former_texts(compat: Mem0Routes, client: Client) -> None:
    first, _, listed = update_twice(compat, client)

    assert compat.send("DELETE", "/v1/batch/", {"memories": [{"memory_id": listed}]}).status_code == 200

    assert compat.send("GET", f"/v1/memories/{first}/").status_code == 404


def test_deleting_a_run_deletes_what_updates_made_of_its_facts(compat: Mem0Routes, client: Client) -> None:
    said = {"messages": [{"role": "user", "content": "I live in Rome."}], "user_id": "alex", "run_id": "r1"}
    compat.send("POST", "/v3/memories/add/", said)
    turn = next(iter(client.turns("r1", agent_id="mem0")))
    fact = client.learn("Alex lives in Rome", source_turn_id=turn.id, user_id="alex", agent_id="mem0")
    made = compat.send("PUT", f"/v1/memories/{fact.id}/", {"text": "Alex lives in Turin"}).json()["id"]

    assert compat.send("DELETE", "/v2/entities/run/r1/").status_code == 200

    for each in (turn.id, fact.id, made):
        assert compat.send("GET", f"/v1/memories/{each}/").status_code == 404
    assert compat.count(user_id="alex") == 0


def test_deleting_an_update_keeps_what_it_is_no_update_of(compat: Mem0Routes, client: Client) -> None:
    acme, initech = (client.learn(f"Alex works at {name}", user_id="alex").id for name in ("Acme", "Initech"))
    named = client.learn("Alex owns a bicycle", user_id="alex", metadata={"mem0_id": acme}).id
    made = compat.send("PUT", f"/v1/memories/{initech}/", {"text": "Alex works at Globex"}).json()["id"]

    for each in (made, named):
        assert compat.send("DELETE", f"/v1/memories/{each}/").status_code == 200

    assert client.get_fact(acme, user_id="alex").status == "superseded"
    with pytest.raises(NotFoundError):
        client.get_fact(initech, user_id="alex")


def test_a_change_that_changes_nothing_says_why(compat: Mem0Routes, client: Client) -> None:
    note = compat.add("Alex eats nuts.", user_id="alex")
    said = {"messages": [{"role": "user", "content": "Hello there."}], "user_id": "alex"}
    turn_id = compat.send("POST", "/v3/memories/add/", said).json()["results"][0]["id"]

    for memory_id, body, reason in (
        (note, {}, "Nothing is changed"),
        (note, {"text": " "}, "not only blanks"),
        (turn_id, {"text": "Goodbye."}, "what was said"),
        (client.add_goal("Book a hotel").id, {"text": "Book a flight"}, "Only notes and facts are changed"),
    ):
        refused = compat.send("PUT", f"/v1/memories/{memory_id}/", body)
        assert (refused.status_code, reason in refused.text) == (400, True), refused.text


def test_several_notes_are_stored_all_or_none(compat: Mem0Routes) -> None:
    parts = [{"type": "text", "text": "Alex owns"}, {"type": "text", "text": "a bicycle."}]
    body = {"user_id": "alex", "infer": False}
    refused: list[Any] = ["", " ", 7, []]

    for content in refused:
        messages = [{"role": "user", "content": each} for each in ("Alex eats nuts.", content)]
        assert compat.send("POST", "/v3/memories/add/", {**body, "messages": messages}).status_code == 400
    assert compat.count(user_id="alex") == 0
    stored = compat.send("POST", "/v3/memories/add/", {**body, "messages": [{"role": "user", "content": parts}]})
    assert stored.json()["results"][0]["memory"] == "Alex owns\na bicycle."


def test_no_note_is_kept_if_a_later_one_is_refused(compat: Mem0Routes) -> None:
    messages = [{"role": "user", "content": each} for each in ("Alex eats nuts.", "x" * 100_001)]

    refused = compat.send("POST", "/v3/memories/add/", {"user_id": "alex", "infer": False, "messages": messages})

    assert (refused.status_code, compat.count(user_id="alex")) == (400, 0)


def test_results_come_by_their_scores_and_are_of_the_user_that_is_named(compat: Mem0Routes) -> None:
    for text in ("Alex plays chess.", "Chess.", "The weather is fine.", "Alex plays a game on Sundays."):
        compat.add(text, user_id="alex")
    compat.add("Nobody plays chess.")
    asked = {"query": "Who plays chess?", "filters": {"user_id": "alex"}, "top_k": 3}

    found = compat.send("POST", "/v3/memories/search/", asked).json()["results"]

    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert (len(found), {each["user_id"] for each in found}) == (3, {"alex"})
    for top_k in (0, -1, 1.5, True, "3"):
        assert compat.send("POST", "/v3/memories/search/", {**asked, "top_k": top_k}).status_code == 400


def test_a_fact_that_another_one_replaced_is_not_listed(compat: Mem0Routes, client: Client) -> None:
    for name in ("Acme", "Initech"):
        client.learn(f"Alex works at {name}", user_id="alex")

    listed = compat.send("POST", "/v3/memories/", {"filters": {"user_id": "alex"}}).json()["results"]

    assert [each["memory"] for each in listed] == ["Alex works at Initech"]


@pytest.mark.slow
def test_memories_of_other_agents_are_reached_by_id_and_with_their_user(compat: Mem0Routes, client: Client) -> None:
    first, second = (compat.add(text, agent_id="bot") for text in ("A red bicycle.", "A blue car."))
    client.add_turns("trip", [{"role": "user", "content": "We fly to Madeira."}])

    assert compat.send("GET", f"/v1/memories/{first}/").json()["memory"] == "A red bicycle."
    assert compat.send("GET", f"/v1/memories/{first}/history/").json()[0]["new_memory"] == "A red bicycle."
    assert compat.send("PUT", f"/v1/memories/{first}/", {"text": "A green one."}).json()["text"] == "A green one."
    gone = {"memories": [{"memory_id": first}, {"memory_id": second}]}
    assert compat.send("DELETE", "/v1/batch/", gone).status_code == 200
    assert compat.count(agent_id="bot") == 0
    assert compat.send("DELETE", "/v1/memories/?user_id=ana").status_code == 200
    assert [each.conversation_id for each in client.list_conversations()] == []


def test_keys_that_are_bound_act_for_whom_they_are_bound_to(compat: Mem0Routes, account: Account) -> None:
    for bound in ({"agent_id": "assistant"}, {"user_id": "ben"}, {"agent_id": "assistant", "user_id": "ben"}):
        routes = compat.with_key(account, **bound)
        memory_id = routes.add("Ben owns a red bicycle.", **{n: v for n, v in bound.items() if n == "user_id"})

        found = routes.send("POST", "/v3/memories/search/", {"query": "bicycle"}).json()["results"]

        assert [each["id"] for each in found] == [memory_id]
        assert found[0]["agent_id"] == bound.get("agent_id", "mem0")
        assert routes.send("DELETE", "/v1/memories/").status_code == 400
        assert routes.send("DELETE", f"/v1/memories/{memory_id}/").status_code == 200


def test_a_run_of_another_agent_says_how_a_key_may_take_part(compat: Mem0Routes, account: Account) -> None:
    planner, writer = (compat.with_key(account, agent_id=each) for each in ("planner", "writer"))
    planner.add("The code is 4711.", run_id="r1")
    messages = {"messages": [{"role": "user", "content": "Hello there."}], "run_id": "r1"}

    for body in ({"infer": False}, {}):
        refused = writer.send("POST", "/v3/memories/add/", {**messages, **body})
        assert (refused.status_code, "let a key that is bound to nobody add" in refused.text) == (403, True), (
            refused.text
        )
    compat.add("The code is 1234.", run_id="r1", agent_id="writer")

    assert writer.add("The code is 5678.", run_id="r1")


def test_an_agent_that_joined_a_run_deletes_its_own_part(compat: Mem0Routes, account: Account, client: Client) -> None:
    planner, writer = (compat.with_key(account, agent_id=each) for each in ("planner", "writer"))
    notes = [planner.add("The code is 4711.", run_id="r1"), compat.add("A word.", run_id="r1", agent_id="writer")]
    notes.append(writer.add("The code is 5678.", run_id="r1"))
    said = {"messages": [{"role": "user", "content": "Hello there."}], "run_id": "r1"}
    turns = [each.send("POST", "/v3/memories/add/", said).json()["results"][0]["id"] for each in (planner, writer)]

    refused = writer.send("DELETE", "/v1/memories/?run_id=r1")

    assert (refused.status_code, "What other agents stored in this run stays" in refused.text) == (403, True)
    left = [each for each in (*notes, *turns) if compat.send("GET", f"/v1/memories/{each}/").status_code == 200]
    assert left == [notes[0], turns[0]]
    assert planner.send("DELETE", "/v1/memories/?run_id=r1").status_code == 200
    assert [each.id for each in client.memories(agent_id=None, user_id=None)] == []


@pytest.mark.slow
def test_a_search_is_not_stopped_by_memories_that_cannot_be_read(compat: Mem0Routes, client: Client) -> None:
    context = client.create_context(name="bicycles", agent_id="mem0")
    client.add_context_entries(context.id, content="A bicycle in a context.", agent_id="mem0")
    wanted = compat.add("A bicycle with metadata.", metadata={"a": 1})

    found = compat.send("POST", "/v3/memories/search/", {"query": "bicycle", "filters": {"metadata": {"a": 1}}})

    assert [(each["id"], each["metadata"]) for each in found.json()["results"]] == [(wanted, {"a": 1})]


def test_a_memory_is_there_on_the_day_on_which_it_expires(compat: Mem0Routes) -> None:
    today = datetime.now(UTC).date().isoformat()
    kept = compat.add("Alex is in town.", user_id="alex", expiration_date=today)

    assert compat.send("GET", f"/v1/memories/{kept}/").json()["expiration_date"] == today
    changed = compat.send("PUT", f"/v1/memories/{kept}/", {"expiration_date": "2999-01-31"}).json()
    assert changed["expiration_date"] == "2999-01-31"
    assert compat.send("PUT", f"/v1/memories/{kept}/", {"expiration_date": "soon"}).status_code == 400


def test_a_threshold_is_the_least_score_and_scores_are_explained(compat: Mem0Routes) -> None:
    compat.add("Alex owns a red bicycle.", user_id="alex")
    compat.add("The weather is fine.", user_id="alex")
    asked = {"query": "Alex owns a red bicycle.", "filters": {"user_id": "alex"}, "explain": True}

    found = [
        compat.send("POST", "/v3/memories/search/", {**asked, "threshold": least}).json()["results"]
        for least in (0.0, 0.9)
    ]

    assert [len(each) for each in found] == [2, 1]
    details = found[1][0]["score_details"]
    assert (details["threshold"], details["final_score"]) == (0.9, found[1][0]["score"])
    assert compat.send("POST", "/v3/memories/search/", {**asked, "threshold": "high"}).status_code == 400


def test_a_number_that_is_infinite_is_refused(compat: Mem0Routes) -> None:
    headers = {"Authorization": f"Token {compat.key}"}

    refused = httpx2.post(
        f"{compat.url}/v3/memories/search/", content=b'{"query": "x", "top_k": 1e999}', headers=headers, timeout=30
    )

    assert refused.status_code == 400


@pytest.fixture
def refusals() -> list[tuple[str, str, Any]]:
    unknown: list[Any] = [
        {"OR": [{"user_id": "a"}, {"user_id": "b"}]},
        {"NOT": [{"user_id": "a"}]},
        {"user_id": {"in": ["a"]}},
        {"created_at": {"gte": "2026-01-01"}},
        {"metadata": {"a": {"gt": 1}}},
        {"AND": [{"user_id": "a"}, {"user_id": "b"}]},
        {"app_id": "x"},
        ["user_id"],
    ]
    message = {"role": "user", "content": "x"}
    return [
        *(("POST", "/v3/memories/", {"filters": each}) for each in unknown),
        ("POST", "/v3/memories/", []),
        ("POST", "/v3/memories/?page_size=0", {}),
        ("POST", "/v3/memories/?page=-1", {}),
        ("POST", "/v3/memories/add/", {"messages": ["x"]}),
        ("POST", "/v3/memories/add/", {"messages": [message], "expiration_date": "2027-01-01"}),
        ("PUT", "/v1/batch/", {"memories": "x"}),
    ]


@pytest.mark.slow
def test_what_is_not_understood_is_refused(compat: Mem0Routes, refusals: list[tuple[str, str, Any]]) -> None:
    for method, path, body in refusals:
        assert compat.send(method, path, body).status_code == 400, (path, body)
    large = Mem0Routes(compat.url, "wrong").send("POST", "/v3/memories/", ["x" * 5_000_000])
    assert large.status_code == 401
    assert compat.send("POST", "/v3/memories/", ["x" * 5_000_000]).status_code == 413
    assert compat.send("GET", "/v1/ping/", Host="evil.example").status_code == 421
