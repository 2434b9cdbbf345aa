"""DELETE of conversations, turns, episodes, facts, contexts and agents; erasures by filter; `/subjects`."""

from dataclasses import replace

import pytest

from memory.models import (
    Agent,
    Conversation,
    Entity,
    EpisodicMemory,
    Erasure,
    Fact,
    FactVersion,
    IdempotentRequest,
    Memory,
    Turn,
    UserProfile,
)
from memory.owner import Owner
from memory.services.custody.subjects import continue_erasure
from memory.services.memories.links import DERIVED_FROM, NewLink, insert_links
from tests.api_client import ServiceClient
from tests.memory.custody import later
from tests.memory.episodes import draft, store
from tests.memory.facts import know
from tests.memory.turns import say, turn

pytestmark = pytest.mark.usefixtures("empty_redis")


def derive(owner: Owner, fact: Fact, *turns: Turn) -> None:
    insert_links(owner.account_id, [NewLink(source_id=fact.id, type=DERIVED_FROM, target_id=each.id) for each in turns])


def test_a_conversation_is_erased_with_what_was_derived_from_it_alone(api: ServiceClient, owner: Owner) -> None:
    (one,), (two,) = (say(owner, turn(text), conversation_id=text).turns for text in ("one", "two"))
    alone, shared = know(owner, "Alone."), know(owner, "Shared.")
    derive(owner, alone, one)
    derive(owner, shared, one, two)
    store(owner, draft("One.", conversation_id="one"))

    assert api.delete("/conversations/one").status_code == 204

    assert [each.text for each in Memory.objects.order_by("text")] == ["Shared.", "two"]
    assert api.get("/conversations/one").status_code == 404
    assert api.delete("/conversations/one").status_code == 404


def test_a_note_stays_with_the_name_of_its_erased_conversation(api: ServiceClient, owner: Owner) -> None:
    say(owner, turn("Hello."), conversation_id="c1")
    told = {"agent_id": "assistant", "text": "Door code 55", "conversation_id": "c1"}
    note = api.post("/memories", told).json()["id"]

    assert api.delete("/conversations/c1").status_code == 204

    listed = api.get("/memories?agent_id=assistant&conversation_id=c1").json()["results"]
    assert [each["id"] for each in listed] == [note]
    assert api.delete(f"/memories/{note}?agent_id=assistant").status_code == 204


def test_only_the_agent_that_started_a_conversation_erases_it(
    api: ServiceClient, bound_api: ServiceClient, owner: Owner
) -> None:
    colleague = replace(owner, agent_id="colleague")
    say(colleague, turn("Hello."), conversation_id="c1")
    assert bound_api.delete("/conversations/c1").status_code == 404
    say(owner, turn("Hello."), conversation_id="c1")
    assert bound_api.delete("/conversations/c1").status_code == 403

    assert api.delete("/conversations/c1?agent_id=colleague").status_code == 204


def test_nothing_is_written_to_a_conversation_that_is_being_erased(api: ServiceClient, owner: Owner) -> None:
    say(owner, turn("Hello."))
    Conversation.objects.update(erasing=True)
    body = {"agent_id": "assistant", "turns": [{"role": "user", "content": "late"}]}

    answers = [api.post("/conversations/c1/turns", body), api.post("/conversations/c1/thoughts", {"thought": "late"})]

    assert [each.status_code for each in answers] == [409, 409]


def test_an_erased_turn_keeps_its_place_and_says_nothing(api: ServiceClient, owner: Owner) -> None:
    first, second = say(owner, turn("I like figs."), turn("So do I.")).turns
    derive(owner, know(owner, "Likes figs."), first)
    derive(owner, know(owner, "Both like figs."), first, second)

    assert api.delete(f"/conversations/c1/turns/{first.id}").status_code == 204

    turns = api.get("/conversations/c1/turns").json()["results"]
    assert [(each["index"], each["content"]) for each in turns] == [(0, "[erased]"), (1, "So do I.")]
    assert [fact.text for fact in Fact.objects.all()] == ["Both like figs."]
    assert api.post("/recall", {"agent_id": "assistant", "query": "figs"}).json()["results"][0]["kind"] == "fact"
    assert api.delete(f"/conversations/c1/turns/{first.id}").status_code == 404
    assert api.delete(f"/conversations/c1/turns/{second.id}").status_code == 204


def test_episodes_of_a_conversation_are_erased_one_by_one_or_all(bound_api: ServiceClient, owner: Owner) -> None:
    episodes = [store(owner, draft(text, conversation_id="c1"))[0] for text in ("One.", "Two.", "Three.")]

    assert bound_api.delete(f"/episodic/c1?episode_id={episodes[0].id}").status_code == 204
    assert {each.text for each in EpisodicMemory.objects.all()} == {"Two.", "Three."}
    assert bound_api.delete("/episodic/c1").status_code == 204
    assert not EpisodicMemory.objects.exists()
    assert bound_api.delete(f"/episodic/c1?episode_id={episodes[0].id}").status_code == 404


def test_a_fact_is_retracted_or_erased_with_its_versions_and_kept_answers(api: ServiceClient) -> None:
    told = {"claim": "Ana likes figs.", "user_id": "ana"}
    fact_id = api.post("/facts", told, HTTP_IDEMPOTENCY_KEY="k1").json()["id"]

    assert api.delete(f"/facts/{fact_id}").status_code == 204
    assert FactVersion.objects.exists()
    assert api.delete(f"/facts/{fact_id}?erase=true").status_code == 204

    assert not any(model.objects.exists() for model in (Fact, FactVersion, IdempotentRequest))


def test_a_fact_of_another_agent_is_not_erased(bound_api: ServiceClient, owner: Owner) -> None:
    fact = know(replace(owner, agent_id="colleague", user_id="ana"), "Likes figs.")

    assert bound_api.delete(f"/facts/{fact.id}?erase=true").status_code == 404
    assert Fact.objects.exists()


def test_a_context_is_erased_with_its_entries(api: ServiceClient, bound_api: ServiceClient) -> None:
    context_id = api.post("/contexts", {"agent_id": "planner", "name": "plans", "scope": "account"}).json()["id"]
    api.post(f"/contexts/{context_id}/entries", {"content": "Go."})
    assert bound_api.delete(f"/contexts/{context_id}").status_code == 403

    assert api.delete(f"/contexts/{context_id}").status_code == 204

    assert not Memory.objects.exists()
    assert api.get(f"/contexts/{context_id}").status_code == 404


def test_an_agent_is_erased_with_what_is_its_alone(api: ServiceClient, owner: Owner) -> None:
    for agent_id in ("planner", "assistant"):
        know(replace(owner, agent_id=agent_id), f"Of {agent_id}.")
        know(replace(owner, agent_id=agent_id, user_id="ana"), f"Of ana, by {agent_id}.")
        api.post("/agents", {"agent_id": agent_id})
        api.put(f"/agents/{agent_id}/working-memory/k", {"value": "secret"})

    assert api.delete("/agents/planner").status_code == 204

    assert {fact.text for fact in Fact.objects.all()} == {
        "Of assistant.",
        "Of ana, by assistant.",
        "Of ana, by planner.",
    }
    assert set(Agent.objects.values_list("agent_id", flat=True)) == {"assistant"}
    assert api.get("/agents/planner/working-memory/k").status_code == 404
    assert api.get("/agents/assistant/working-memory/k").status_code == 200


def test_a_filter_is_previewed_and_then_erased_by_a_job(api: ServiceClient, owner: Owner) -> None:
    for user_id, channel in (("ana", "work"), ("ana", "home"), ("ben", "work")):
        know(replace(owner, user_id=user_id, channel=channel), f"{user_id} at {channel}.")
    wanted = {"user_id": "ana", "channel": "work"}

    preview = api.post("/erasures", wanted | {"dry_run": True})
    asked = api.post("/erasures", wanted)
    erasure_id = asked.json()["erasure"]["id"]
    for _ in range(10):
        continue_erasure(owner.account_id, erasure_id, now=later())

    assert (preview.status_code, preview.json()) == (200, {"counts": {"fact": 1}, "erasure": None})
    assert asked.status_code == 202
    assert {fact.text for fact in Fact.objects.all()} == {"ana at home.", "ben at work."}
    assert api.get(f"/erasures/{erasure_id}").json()["status"] == "completed"


def test_a_filter_of_an_agent_erases_only_what_it_may_change(bound_api: ServiceClient, owner: Owner) -> None:
    know(owner, "Mine.")
    know(replace(owner, agent_id=""), "The account's.")

    preview = bound_api.post("/erasures", {"channel": "_global", "dry_run": True})

    assert preview.json()["counts"] == {"fact": 1}


def test_a_filter_without_a_condition_is_refused(api: ServiceClient) -> None:
    assert api.post("/erasures", {}).status_code == 422


def test_a_user_is_erased_readmitted_and_the_receipt_verified(api: ServiceClient, owner: Owner) -> None:
    api.patch("/profiles/ana", {"preferences": {"fruit": "fig"}})
    know(replace(owner, user_id="ana"), "Likes figs.")
    assert api.get("/subjects/ana").json()["counts"]["user_profiles"] == 1

    asked = api.delete("/subjects/ana?reason=asked")
    while (erasure := continue_erasure(owner.account_id, asked.json()["id"], now=later())).status != "completed":
        assert api.patch("/profiles/ana", {"preferences": {"fruit": "pear"}}).status_code == 409

    seen = api.get("/subjects/ana/erasure").json()
    receipt = {"receipt": seen["receipt"], "signature": seen["signature"]}
    assert (asked.status_code, seen["status"], seen["id"]) == (202, "completed", str(erasure.id))
    assert api.post("/erasures/verify", receipt).json() == {"valid": True}
    assert api.post("/erasures/verify", receipt | {"signature": "x"}).json() == {"valid": False}
    assert not any(model.objects.exists() for model in (UserProfile, Fact, Entity))
    assert api.get("/facts?user_id=ana").status_code == 409
    assert api.post("/subjects/ana/readmit").status_code == 204
    assert api.get("/facts?user_id=ana").status_code == 200


def test_the_receipt_counts_tool_invocations_and_turn_records_as_the_preview_does(
    api: ServiceClient, owner: Owner
) -> None:
    said = {"agent_id": "assistant", "user_id": "ana", "conversation_id": "c1"}
    for _ in range(2):
        api.post("/tool-invocations", {**said, "tool_name": "grep"})
    api.post("/turn-records", {**said, "action": "Looked."})
    names = ("tool_invocations", "turn_records", "conversations")
    before = api.get("/subjects/ana").json()["counts"]

    asked = api.delete("/subjects/ana?reason=asked")
    while continue_erasure(owner.account_id, asked.json()["id"], now=later()).status != "completed":
        pass

    counts = api.get("/subjects/ana/erasure").json()["receipt"]["counts"]
    assert [before[name] for name in names] == [counts[name] for name in names] == [2, 1, 1]


def test_a_dry_run_of_erasing_a_user_is_refused_with_the_way_to_count(api: ServiceClient) -> None:
    refused = api.delete("/subjects/ana?dry_run=true")

    assert refused.status_code == 400
    assert "GET /subjects/{user_id}" in refused.content.decode()
    assert not Erasure.objects.exists()


def test_a_key_of_an_agent_cannot_erase_users(bound_api: ServiceClient) -> None:
    assert bound_api.delete("/subjects/ana").status_code == 403
    assert bound_api.delete("/agents/assistant").status_code == 403


def test_a_deletion_is_previewed_with_what_was_derived(api: ServiceClient, owner: Owner) -> None:
    (one,), (two,) = (say(owner, turn(text), conversation_id=text).turns for text in ("one", "two"))
    alone, shared = know(owner, "Alone."), know(owner, "Shared.")
    derive(owner, alone, one)
    derive(owner, shared, one, two)
    store(owner, draft("One.", conversation_id="one"))

    of_turn = api.get(f"/erasures/preview?memory_id={one.id}").json()
    of_conversation = api.get("/erasures/preview?conversation_id=one").json()

    assert (of_turn["counts"], of_turn["derived"]) == ({"turn": 1}, {"fact": 1})
    assert of_turn["derived_ids"] == [str(alone.id)]
    assert (of_conversation["counts"], of_conversation["derived"]) == ({"turn": 1, "episode": 1}, {"fact": 1})
    assert Memory.objects.count() == 5


def test_a_preview_is_of_one_thing_that_the_caller_sees(
    api: ServiceClient, stranger_api: ServiceClient, owner: Owner
) -> None:
    (one,) = say(owner, turn("one"), conversation_id="one").turns

    assert stranger_api.get(f"/erasures/preview?memory_id={one.id}").status_code == 404
    assert stranger_api.get("/erasures/preview?conversation_id=one").status_code == 404
    assert api.get("/erasures/preview").status_code == 400
    assert api.get(f"/erasures/preview?conversation_id=one&memory_id={one.id}").status_code == 400
