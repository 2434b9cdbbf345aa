"""Secrets in what callers in Python change: masked before it is compared or stored, whatever service takes it."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.agent_memory import AgentMemory
from memory.extraction.messages import ChatMessage
from memory.extraction.turn_slots import Observation, Slots
from memory.masking import mask_value
from memory.models import Account, Fact, Memory, Turn
from memory.owner import Owner
from memory.redaction import MASK
from memory.services.artifacts.change import change_artifact
from memory.services.contexts.entries import EntryEdit, update_entry_content
from memory.services.contexts.manage import change_context
from memory.services.contexts.snapshots import create_snapshot
from memory.services.conversations.lifecycle import ConversationDefaults, change_conversation, create_conversation
from memory.services.entities.change import EntityChanges, change_entity
from memory.services.facts.supersede import correct_fact, supersede_fact
from memory.services.goals.plan import change_goal, complete_goal
from memory.services.notes import change_note
from memory.services.pools.data import cache_result, merge_data, post_to_blackboard, write_data
from memory.services.pools.manage import PoolDraft, create_pool
from memory.services.pools.workflow_runs import RunDraft, change_run, create_run_pool, start_run
from memory.services.profiles import ProfileChanges, learn_preferences, write_profile
from memory.services.tools import InvocationDraft, open_invocation, sealed_invocations
from memory.services.turns import TurnDraft, store_turns
from tests.memory import artifacts
from tests.memory.contexts import context_of, entry, keep
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import fact_draft, know
from tests.memory.goals import aim
from tests.memory.notes import jot
from tests.memory.procedures import everything_stored, learn
from tests.memory.records import add_record

KEY = "sk-proj-Zq81mPv0aLk39TtYwB27nXcR5dEfGh"
TEXT = f"The key is {KEY}."
NOTE = {"note": TEXT}

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


@pytest.fixture
def memory(account: Account) -> AgentMemory:
    Account.objects.filter(id=account.id).update(secrets="mask")
    return AgentMemory.open(account.name, agent_id="planner", user_id="ana")


@pytest.fixture
def owner(memory: AgentMemory) -> Owner:
    return memory.owner


def change_facts(owner: Owner) -> None:
    correct_fact(owner, know(owner, "Ana has no key.").id, changes={"claim": TEXT}, embedded=NOTHING, now=NOW)
    supersede_fact(owner, know(owner, "Ana has a lock.").id, fact_draft(TEXT + "!"), embedded=NOTHING, now=NOW)


def change_entries(owner: Owner) -> None:
    context = context_of(owner)
    for draft in (entry("Nothing.", key="note"), entry(TEXT, key="note", value=NOTE, metadata=NOTE)):
        [row] = keep(owner, context, draft)
    edit = EntryEdit(content=f"{TEXT} Really.", value=NOTE, attributes={"metadata": NOTE})
    update_entry_content(owner, row.id, edit=edit, embedded=NOTHING, now=NOW)


def change_entities(owner: Owner) -> None:
    entity = entity_of(owner, "Vault")
    entity_of(owner, "Vault", aliases=[f"Vault {KEY}"], description=TEXT, properties=NOTE)
    changes = EntityChanges(aliases=[f"Safe {KEY}"], description=f"{TEXT} Really.", properties=NOTE)
    change_entity(owner, entity.id, changes=changes, embedded=NOTHING, now=NOW)


def change_strategies(owner: Owner) -> None:
    learn(owner, "Open it.")
    learn(owner, "Open it.", context_pattern=TEXT)


def change_goals(owner: Owner) -> None:
    goal = aim(owner, "Open the vault.")
    change_goal(owner, goal.id, changes={"description": TEXT, "metadata": NOTE}, embedded=NOTHING, now=NOW)
    complete_goal(owner, goal.id, status="completed", result=TEXT, now=NOW)


def change_artifacts(owner: Owner) -> None:
    artifact = artifacts.kept(owner)
    changes = {"title": TEXT, "description": TEXT, "metadata": NOTE}
    change_artifact(owner, artifact.id, changes=changes, embedded=NOTHING, now=NOW)


def change_notes(owner: Owner) -> None:
    changes = {"text": TEXT, "metadata": NOTE}
    change_note(owner, jot(owner, "Nothing.").id, changes=changes, embedded=NOTHING, now=NOW)


def change_profiles(owner: Owner) -> None:
    write_profile(owner, "ana", ProfileChanges(preferences=NOTE, expertise_areas=[TEXT], metadata=NOTE), now=NOW)
    provenance: dict[str, Any] = {"fact_id": None, "turn_ids": [], "at": NOW.isoformat()}
    learn_preferences(owner, "ana", {"vault": TEXT}, provenance=provenance, now=NOW)


def change_contexts(owner: Owner) -> None:
    context = context_of(owner, TEXT, description=TEXT, metadata=NOTE)
    change_context(
        owner, context.id, changes={"description": f"{TEXT} Really.", "metadata": NOTE}, expected=None, now=NOW
    )
    create_snapshot(owner, context.id, name=TEXT, now=NOW)


def change_conversations(owner: Owner) -> None:
    create_conversation(owner, "c1", defaults=ConversationDefaults(title=TEXT, metadata=NOTE), now=NOW)
    change_conversation(owner, "c1", changes={"title": f"{TEXT} Really.", "metadata": NOTE}, now=NOW)


def change_runs(owner: Owner) -> None:
    start_run(owner, RunDraft(workflow_run_id="r1", metadata=NOTE), now=NOW)
    change_run(owner, "r1", changes={"metadata": {"other": TEXT}}, now=NOW)


def change_pools(owner: Owner) -> None:
    create_pool(owner, PoolDraft(pool_id="p1", data=NOTE), now=NOW)
    write_data(owner, "p1", path="", data={"other": TEXT}, expected=None, now=NOW)
    merge_data(owner, "p1", path="", data={"third": TEXT}, expected=None, now=NOW)


def change_records(owner: Owner) -> None:
    add_record(owner, slots=Slots(observation=Observation(text=TEXT)), metadata=NOTE)


@pytest.mark.parametrize(
    "change",
    [
        *(change_facts, change_entries, change_entities, change_strategies, change_goals, change_artifacts),
        *(change_notes, change_profiles, change_contexts, change_conversations, change_runs, change_pools),
        change_records,
    ],
)
def test_what_callers_in_python_change_is_masked(owner: Owner, change: Callable[[Owner], None]) -> None:
    change(owner)

    stored = everything_stored()
    assert MASK in stored
    assert KEY not in stored


def test_a_blackboard_and_a_tool_cache_are_masked(owner: Owner) -> None:
    start_run(owner, RunDraft(workflow_run_id="r1"), now=NOW)
    for kind in ("blackboard", "tool_cache"):
        create_run_pool(owner, "r1", PoolDraft(pool_id=kind, pool_type=kind), now=NOW)

    post_to_blackboard(owner, "blackboard", content=NOTE, now=NOW)
    cache_result(owner, "tool_cache", "key", value=NOTE, now=NOW)

    assert everything_stored().count(MASK) >= 2
    assert KEY not in everything_stored()


def test_what_tools_got_and_returned_is_masked_before_it_is_sealed(memory: AgentMemory) -> None:
    draft = InvocationDraft(
        conversation_id="c1", tool_name="open", tool_input=NOTE, tool_output=[TEXT], error_message=TEXT
    )
    memory.record_invocation(draft)

    opened = open_invocation(sealed_invocations(memory.owner).get())
    assert KEY not in repr(opened)
    assert repr(opened).count(MASK) >= 2


def test_a_turn_that_is_sent_again_is_the_masked_one(memory: AgentMemory) -> None:
    message = {"role": "user", "content": TEXT, "client_id": "m1", "index": 0}
    first = memory.store_turn("c1", message)

    again = memory.store_turn("c1", message)

    assert (again.id, Turn.objects.count()) == (first.id, 1)
    assert again.text == f"The key is {MASK}."


def test_a_masked_fact_that_is_learned_again_is_one_fact(memory: AgentMemory, owner: Owner) -> None:
    know(owner, TEXT)
    know(owner, f"The key is {MASK}.")

    assert Fact.objects.count() == 1


def test_a_vector_that_the_client_made_of_a_masked_text_is_dropped(owner: Owner) -> None:
    note = keep(owner, context_of(owner), entry(TEXT, key="note", angle=0.1))[0]

    assert Memory.objects.get(id=note.id).embed_after is not None


ADDRESS = "https://docs.example.com/document/d/1aZq81mPv0aLk39TtYwB27nXcR5dEfGh/edit"
AGENT = "V1StGXR8_Z5jdHi6B-myT"


def test_what_identifies_is_never_masked(owner: Owner) -> None:
    given = {
        "uri": ADDRESS, "digest": "sha256-47DEQpj8HBSaTImW5JCeuQeRkm5NMpJWZG3hSuFU", "continues": AGENT,
        "agents": [AGENT, AGENT], "access_control": {"readers": [AGENT]},
    }  # fmt: skip

    assert mask_value(given) == given
    assert mask_value({"uri": "postgres://ana:hunter22@db/x?sig=abcdef"}) == {
        "uri": f"postgres://ana:{MASK}@db/x?sig={MASK}"
    }


def test_names_that_are_secrets_are_told_apart_and_names_may_be_numbers() -> None:
    other = KEY[::-1].replace("-", "x")
    masked = mask_value({KEY: 1, f"sk-proj-{other}": 2, 1: TEXT})

    assert sorted(masked.values(), key=str) == [1, 2, f"The key is {MASK}."]
    assert KEY not in str(masked)


def test_a_turn_from_before_the_account_masked_is_recognized(account: Account) -> None:
    before = AgentMemory.open(account.name, agent_id="planner", user_id="ana")
    drafts = [TurnDraft(message=ChatMessage(role="user", text=TEXT), client_id="m1")]
    [stored] = store_turns(before.owner, "c1", drafts=drafts, embedded=NOTHING, now=NOW).turns
    Account.objects.filter(id=account.id).update(secrets="mask")
    after = AgentMemory.open(account.name, agent_id="planner", user_id="ana")

    [again] = store_turns(after.owner, "c1", drafts=drafts, embedded=NOTHING, now=NOW).turns

    assert again.id == stored.id
