"""The LangGraph store on the service, beyond what langgraph's own tests ask for."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from agent_memory_client import Client
from agent_memory_integrations.langgraph import AgentMemoryStore
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

SPACE = ("users", "anton")


def test_large_batches_are_several_requests(client: Client) -> None:
    store = AgentMemoryStore(client, index=False)
    store.batch([PutOp(SPACE, f"k{number}", {"n": number}) for number in range(1_001)])

    reads = [GetOp(SPACE, f"k{number}") for number in range(1_001)]
    searches = [SearchOp(SPACE, limit=100)] * 60
    found = store.batch([*reads, *searches, *[ListNamespacesOp()] * 60, GetOp(SPACE, "k1000")])

    assert [each.value["n"] for each in (*found[:1_001], found[-1])] == [*range(1_001), 1_000]  # type: ignore[union-attr]
    assert {len(each) for each in found[1_001:1_061]} == {100}  # type: ignore[arg-type]
    assert found[1_061:-1] == [[SPACE]] * 60


def test_a_key_that_cannot_be_is_none(client: Client) -> None:
    store = AgentMemoryStore(client)
    store.put(SPACE, "k%" * 46, {"n": 1})

    found = store.batch([GetOp(SPACE, "k%" * 47), GetOp(SPACE, ""), GetOp(SPACE, "k%" * 46), GetOp(SPACE, "x" * 300)])

    assert [each is None for each in found] == [True, True, False, True]


def test_items_are_not_of_the_user_that_the_client_names(client: Client, url: str, api_key: str) -> None:
    AgentMemoryStore(client).put(SPACE, "seat", {"text": "Anton wants an aisle seat."})

    with Client(url, api_key, agent_id="assistant") as account:
        [context] = account.list_contexts(name="langgraph")
        [entry] = account.list_context_entries(context.id)
    assert entry.user_id == ""


def test_a_store_goes_on_after_its_context_was_deleted(client: Client) -> None:
    store = AgentMemoryStore(client)
    uses: list[Any] = [
        lambda: store.get(("users", "ana"), "seat"),
        lambda: store.search(("users",)),
        lambda: store.put(("users", "ana"), "food", {"text": "Ana eats no meat."}),
    ]

    found = []
    for use in uses:
        store.put(("users", "ana"), "seat", {"text": "Ana wants a window seat."})
        [context] = client.list_contexts(name="langgraph")
        client.delete_context(context.id)
        found.append(use())

    assert found == [None, [], None]
    assert [item.key for item in store.search(("users",))] == ["food"]


async def embed_words(texts: Sequence[str]) -> list[list[float]]:
    return [[float("seat" in text), float("meat" in text), 1.0] for text in texts]


def test_an_asynchronous_embed_is_awaited(client: Client) -> None:
    store = AgentMemoryStore(client, index={"embed": embed_words, "dims": 3, "fields": ["text"]})
    food, unseen = {"text": "Anton eats no meat."}, {"text": "Anton buys meat."}

    asyncio.run(store.aput(SPACE, "seat", {"text": "Anton wants an aisle seat."}))
    asyncio.run(store.abatch([PutOp(SPACE, "food", food), PutOp(SPACE, "unseen", unseen, index=False)]))

    found = asyncio.run(store.asearch(SPACE, query="Which meat?", limit=2))
    assert [each.key for each in found] == ["food", "seat"]
    assert found[0].score == pytest.approx(1.0)
    with pytest.raises(ValueError, match="async"):
        store.search(SPACE, query="Which meat?")
    assert len(store.search(SPACE)) == 3
