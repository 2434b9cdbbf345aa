"""The Python of the three-layer service, as a user would type it."""

import pytest

from memory.documented.services import StorageService
from memory.documented.three_layer import EpisodicMemory, RedisManager, WorkingMemory
from memory.owner import Owner
from memory.services.summaries.store import EpisodeDraft
from memory_project.redis import ConversationRef, client, conversation_key
from tests.documents_python.conftest import run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


def test_working_memory_gets_sets_and_deletes(owner: Owner) -> None:
    async def work() -> None:
        working = WorkingMemory(owner)
        await working.set("c1", {"well_api": "42-317", "entity_id": "w7", "entity_type_key": "well"})
        await working.set("c1", {"entity_id": "w8"})
        assert await working.get("c1") == {"well_api": "42-317", "entity_id": "w8", "entity_type_key": "well"}

        await working.delete("c1", ["well_api"])
        assert await working.get("c1") == {"entity_id": "w8", "entity_type_key": "well"}

        await working.delete("c1", None)
        assert await working.get("c1") == {}

    run(work)


def test_working_memory_keeps_a_scratchpad_and_entities(owner: Owner) -> None:
    async def work() -> None:
        working = WorkingMemory(owner)
        assert await working.get_scratchpad("c1") is None
        assert await working.get_entities("c1") == []

        await working.set_scratchpad("c1", "compare both wells")
        await working.set_entities("c1", [{"type": "well", "id": "w7", "name": "Seven"}])
        assert await working.get_scratchpad("c1") == "compare both wells"
        assert await working.get_entities("c1") == [{"type": "well", "id": "w7", "name": "Seven"}]

        await working.delete("c1")
        assert await working.get_scratchpad("c1") is None

    run(work)


def test_a_write_over_the_limit_is_stored_and_raises_a_value_error(owner: Owner) -> None:
    async def work() -> None:
        working = WorkingMemory(owner)
        with pytest.raises(ValueError, match="bytes"):
            await working.set("c1", {"scratchpad": "x" * 65_536})
        assert await working.get_scratchpad("c1") == "x" * 65_536

    run(work)


def test_hget_on_the_documented_key_finds_a_field_of_the_account(owner: Owner) -> None:
    account = Owner(account_id=owner.account_id)

    async def work() -> None:
        await WorkingMemory(account).set("c1", {"entity_id": "w8"})

    run(work)

    key = conversation_key("working_memory", ConversationRef(account_id=owner.account_id, conversation_id="c1"))
    assert key.endswith("working_memory:{c1}")
    assert client().hget(key, "entity_id") == '"w8"'
    assert 86_000 < client().ttl(key) <= 86_400


def test_the_redis_manager_keeps_texts_and_the_ledger(owner: Owner) -> None:
    async def work() -> None:
        manager = RedisManager(owner)
        await manager.set("greeting", "hello", ex=60)
        assert await manager.get("greeting") == "hello"
        await manager.delete("greeting")
        assert await manager.get("greeting") is None

        assert not await manager.ledger_has("c1", "skill:spacing-calculation")
        await manager.ledger_mark("c1", "skill:spacing-calculation")
        await manager.ledger_mark("c1", "entity:w7", value="injected")
        assert await manager.ledger_has("c1", "skill:spacing-calculation")
        assert await manager.ledger_get_all("c1") == {"skill:spacing-calculation": "1", "entity:w7": "injected"}
        assert manager._ledger_key("c1").endswith("skill:ledger:{c1}")
        assert client().hexists(manager._ledger_key("c1"), "entity:w7")

    run(work)


def test_a_summary_is_found_by_its_meaning(owner: Owner) -> None:
    storage = StorageService(owner=owner)
    storage.store_experience(EpisodeDraft(conversation_id="c1", summary="Filed the exception for the ranch."))

    [found] = storage.recall_experiences("Filed the exception for the ranch.", top_k=3).hits

    assert (found.summary, round(found.similarity or 0, 2)) == ("Filed the exception for the ranch.", 1.0)
    assert EpisodicMemory.objects.get().text == found.summary
