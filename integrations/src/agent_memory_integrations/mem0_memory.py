"""The shape of mem0's open-source `Memory` and `AsyncMemory`, answered by `/compat/mem0`: a changed import is enough.

from agent_memory_integrations.mem0_memory import Memory

memory = Memory()
memory.add("I am allergic to nuts.", user_id="alex")
memory.search("What can Alex not eat?", filters={"user_id": "alex"})
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from uuid import UUID

import httpx2
from agent_memory_client.calls import encode_segment
from agent_memory_client.config import read_key

DEFAULT_URL = "http://127.0.0.1:8004/compat/mem0"
ENTITY_IDS = ("user_id", "agent_id", "run_id")
Answer = dict[str, Any]
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Memory:
    """mem0's memory, kept by the service.

    What is None comes from the environment: AGENT_MEMORY_MEM0_URL is the address of `/compat/mem0`, and
    AGENT_MEMORY_API_KEY the key. Refusals are ValueError with the reason, as mem0's own are; other failures are those
    of httpx2.
    """

    def __init__(self, config: Any = None, *, url: str | None = None, api_key: str | None = None) -> None:
        # the models and stores of a configuration are those of the service
        self.config = config
        key = read_key(api_key or os.environ["AGENT_MEMORY_API_KEY"])
        self.url = (url or os.environ.get("AGENT_MEMORY_MEM0_URL", DEFAULT_URL)).rstrip("/")
        self._http = httpx2.Client(headers={"Authorization": f"Token {key}"}, timeout=60.0)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory. The configuration is kept and not used."""
        return cls(dict(config_dict))

    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: str | None = None,
        infer: bool = True,
    ) -> Answer:
        """Store messages; with `infer=False`, each as a memory by itself."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        listed = [messages] if isinstance(messages, Mapping) else list(messages)
        body = {"messages": [dict(each) for each in listed], "infer": infer, "metadata": metadata}
        body |= {"expiration_date": expiration_date, "user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        check_entities(body)
        return self._send("POST", "/v3/memories/add/", {name: each for name, each in body.items() if each is not None})

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float = 0.1,
        explain: bool = False,
    ) -> Answer:
        """Return memories by similarity. `filters` names a user, an agent or a run."""
        check_entities(filters or {})
        body = {"query": query, "top_k": top_k, "filters": dict(filters or {})}
        return self._send("POST", "/v3/memories/search/", body | {"threshold": threshold, "explain": explain})

    def get(self, memory_id: str) -> Answer | None:
        """Return a memory, or None."""
        response = self._http.get(self.url + make_path(memory_id))
        return None if response.status_code == 404 else read_answer(response)

    def get_all(self, *, filters: Mapping[str, Any] | None = None, top_k: int = 20) -> Answer:
        """Return the latest memories. `filters` names a user, an agent or a run."""
        check_entities(filters or {})
        found = self._send("POST", f"/v3/memories/?page_size={top_k}", {"filters": dict(filters or {})})
        return {"results": found["results"]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        data: str | None = None,
    ) -> Answer:
        """Change a memory. Of a fact, the answer has a new `id`, for which the old one stands."""
        body = {"text": data if text is None else text, "metadata": metadata}
        given = {name: each for name, each in body.items() if each is not None}
        changed = self._send("PUT", make_path(memory_id), given)
        return {"message": "Memory updated successfully!", "id": changed["id"], "memory": changed["memory"]}

    def delete(self, memory_id: str) -> Answer:
        """Delete a memory."""
        return self._send("DELETE", make_path(memory_id))

    def delete_all(self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None) -> Answer:
        """Delete all memories of a user, an agent, or a run: of one of them."""
        named = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        check_entities(named)
        given = {name.removesuffix("_id"): each for name, each in named.items() if each}
        if len(given) > 1:
            raise ValueError("delete_all takes one of user_id, agent_id and run_id.")
        [(kind, name)] = given.items()
        return self._send("DELETE", f"/v2/entities/{kind}/{encode_segment(name)}/")

    def history(self, memory_id: str) -> list[Answer]:
        """Return how a memory came to be."""
        changes: Any = self._send("GET", f"{make_path(memory_id)}history/")
        return list(changes)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        return read_answer(self._http.request(method, self.url + path, json=body))


def run_in_thread(
    method: Callable[Concatenate[Memory, Parameters], Result],
) -> Callable[Concatenate["AsyncMemory", Parameters], Coroutine[Any, Any, Result]]:
    """Return a method that awaits the one of `Memory`, which runs in a thread."""

    @wraps(method)
    async def call(self: "AsyncMemory", /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return await asyncio.to_thread(method, self.memory, *args, **kwargs)

    return call


class AsyncMemory:
    """The methods of `Memory`, to be awaited. As in mem0, `from_config` and `close` are not."""

    def __init__(self, config: Any = None, *, url: str | None = None, api_key: str | None = None) -> None:
        self.memory = Memory(config, url=url, api_key=api_key)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory. The configuration is kept and not used."""
        return cls(dict(config_dict))

    @property
    def config(self) -> Any:
        return self.memory.config

    add = run_in_thread(Memory.add)
    search = run_in_thread(Memory.search)
    get = run_in_thread(Memory.get)
    get_all = run_in_thread(Memory.get_all)
    update = run_in_thread(Memory.update)
    delete = run_in_thread(Memory.delete)
    delete_all = run_in_thread(Memory.delete_all)
    history = run_in_thread(Memory.history)

    def close(self) -> None:
        """Close the connections."""
        self.memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.close()


def check_entities(named: Mapping[str, Any]) -> None:
    """Raise ValueError where nobody is named, as mem0 does."""
    # the service says why it takes no OR and NOT
    if not any(named.get(name) for name in (*ENTITY_IDS, "AND", "OR", "NOT")):
        raise ValueError("Name at least one of: user_id, agent_id, run_id.")


def make_path(memory_id: str) -> str:
    """Return the path of a memory. Raises ValueError for what is no id: in a path, it could name something else."""
    try:
        return f"/v1/memories/{UUID(str(memory_id))}/"
    except ValueError as err:
        raise ValueError(f"{memory_id!r} is not the id of a memory, which is a UUID.") from err


def read_answer(response: httpx2.Response) -> Answer:
    """Return the JSON of a response. Raises ValueError for a refusal."""
    if 400 <= response.status_code < 500:
        raise ValueError(f"{response.status_code}: {read_reason(response)}")
    response.raise_for_status()
    answer: Answer = response.json()
    return answer


def read_reason(response: httpx2.Response) -> str:
    """Return why a request was refused; the phrase of its status where the answer is not one of the service."""
    try:
        answer = response.json()
    except ValueError:
        return response.reason_phrase
    return str(answer.get("detail", "")) if isinstance(answer, dict) else response.reason_phrase
