"""mem0's own client, in an environment of its own, against `/compat/mem0`."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.integrations.environments import make_environment
from tests.integrations.test_mcp import mcp_port as mcp_port
from tests.integrations.test_mcp import mcp_url as mcp_url

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

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
client.delete_all(user_id="alex")
assert client.get_all(filters={"user_id": "alex"})["results"] == []
try:
    MemoryClient(api_key="wrong", host=os.environ["HOST"])
    raise SystemExit("a wrong key was accepted")
except ValueError:
    pass
"""


def test_the_quick_start_of_mem0_runs_unmodified(mcp_url: str, api_key: str, tmp_path: Path) -> None:
    python = make_environment("mem0", "mem0ai==2.2.0")
    environ = {"KEY": api_key, "HOST": mcp_url.replace("/mcp", "/compat/mem0")}
    # its telemetry would leave the machine, and its files would be written to the home folder
    private = {"MEM0_TELEMETRY": "False", "HOME": str(tmp_path), "MEM0_DIR": str(tmp_path)}

    done = subprocess.run(
        [str(python), "-c", QUICK_START],
        env={"PATH": os.environ["PATH"], **environ, **private},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3_000:]
