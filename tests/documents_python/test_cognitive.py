"""The Python of the cognitive memory, as a user would type it."""

from dataclasses import replace

import pytest

from memory.agent_memory import AgentMemory
from memory.documented.cognitive import (
    ConsolidationWorker,
    EntityDraft,
    EpisodicMemory,
    FactDraft,
    MemoryAuditLogger,
    MemoryRetriever,
    ProceduralMemory,
    RecallLayer,
    SemanticMemory,
    WorkingMemory,
)
from memory.documented.tiers import EmbeddingService
from memory.errors import Unprocessable
from memory.models import AuditEntry, Memory
from memory.owner import Owner

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


def test_episodic_memory_stores_and_finds_turns(owner: Owner) -> None:
    episodic = EpisodicMemory(owner)
    turn = {"conversation_id": "c1", "role": "user", "content": "We fly to Madeira."}
    episodic.store_turn(turn)
    episodic.store_turn_log({**turn, "content": "On 4 May."}, channel="_global")
    query_embedding = EmbeddingService().embed("We fly to Madeira.")

    [hit] = episodic.vector_search(query_embedding, 1, "ana", ["trips", "_global"], 24)

    assert hit.text == "We fly to Madeira."
    assert [each.text for each in episodic.get_conversation("c1")] == ["We fly to Madeira.", "On 4 May."]
    assert len(episodic.get_recent_turns("ana", ["_global"], 1, 10)) == 2


def test_semantic_memory_stores_entities_facts_and_relationships(owner: Owner) -> None:
    semantic = SemanticMemory(owner)
    ana = semantic.upsert_entity(EntityDraft(name="Ana", type="person"), channel="trips").entity
    lisbon = semantic.upsert_entity(EntityDraft(name="Lisbon", type="place"), channel="trips").entity
    fact = semantic.store_fact(FactDraft(claim="Ana lives in Lisbon.", entity_ids=[ana.id]), channel="trips").fact
    in_trips = SemanticMemory(replace(owner, channel="trips"))
    in_trips.create_relationship(ana.id, lisbon.id, "LOCATED_IN", {"since": 2020})
    graph = in_trips.get_entity_graph([ana.id], 2)
    copy = in_trips.promote_to_global(fact.id, "asked for")
    [found, *_] = in_trips.vector_search_facts(EmbeddingService().embed("Ana lives in Lisbon."), 10, ["trips"], 0.5)
    [person, *_] = in_trips.vector_search_entities("Ana", top_k=1, channels=["trips"])

    assert {edge.type for edge in graph.edges} >= {"LOCATED_IN", "ABOUT"}
    assert (copy.channel, copy.text) == ("_global", "Ana lives in Lisbon.")
    assert (found.claim, person.name) == ("Ana lives in Lisbon.", "Ana")


def test_procedural_memory_records_tools_and_learns_strategies(owner: Owner, memory: AgentMemory) -> None:
    procedural = ProceduralMemory(owner)
    turn = memory.store_turn("c1", {"role": "user", "content": "Find a flight."})
    procedural.record_invocation("c1", turn.id, "search", {"to": "FNC"}, {"hits": 2}, True, 120, "_global")
    strategy = procedural.learn_strategy("search, then book", "flights", ["search", "book"], "c1", True, "_global")
    procedural.reinforce_strategy(strategy.id, True)

    [stats] = procedural.get_tool_stats()
    [found] = procedural.find_strategies("search, then book", None, 1)

    assert (stats.tool_name, stats.usage_count, stats.avg_latency_ms) == ("search", 1, 120.0)
    assert (found.description, found.success_count) == ("search, then book", 2)


def test_working_memory_holds_the_session(memory: AgentMemory) -> None:
    working: WorkingMemory = memory.session("c1")
    working.add_turn({"role": "user", "content": "hello"})
    working.set("seat", "window", ttl_seconds=60)
    working.set_active_goal("g1", "book a flight")
    working.push_thought("ask for dates")

    assert [turn.text for turn in working.get_recent_turns(5)] == ["hello"]
    assert (working.get("seat"), working.get_context()) == ("window", {"seat": "window"})
    assert working.get_active_goal() == {"goal_id": "g1", "goal_description": "book a flight"}
    assert [each["thought"] for each in working.get_thoughts(3)] == ["ask for dates"]
    working.delete("seat")
    working.clear_session()
    assert (working.get("seat"), working.get_active_goal()) == (None, None)


def test_goals_live_from_add_to_complete(memory: AgentMemory) -> None:
    goal = memory.add_goal("book a flight", priority=2)

    assert memory.get_goal(goal.id).goal.status == "active"
    assert memory.complete_goal(goal.id, "completed", "booked").goal.result == "booked"


def test_the_retriever_includes_the_types_that_are_asked_for(owner: Owner, memory: AgentMemory) -> None:
    memory.store_turn("c1", {"role": "user", "content": "Ana lives in Lisbon."})
    memory.learn_fact(FactDraft(claim="Ana lives in Lisbon.", certainty="explicit"))
    retriever = MemoryRetriever(owner)

    everything = retriever.retrieve("Where does Ana live?", "ana", ["_global"], 10)
    facts = retriever.retrieve("Where does Ana live?", include_episodic=False, include_procedural=False)

    assert everything.turns
    assert everything.facts
    assert {result.kind for result in facts.results} == {"fact"}
    with pytest.raises(Unprocessable, match="nothing is included"):
        retriever.retrieve("?", include_episodic=False, include_semantic=False, include_procedural=False)


def test_the_recall_layer_measures_its_techniques(owner: Owner, memory: AgentMemory) -> None:
    memory.learn_fact(FactDraft(claim="Ana lives in Lisbon.", certainty="explicit"))

    bundle = RecallLayer(owner, techniques=["hybrid"]).retrieve("Where does Ana live?")

    assert [fact.text for fact in bundle.facts] == ["Ana lives in Lisbon."]
    assert {"lexical", "vector"} <= {metric.technique for metric in bundle.metrics}


def test_the_worker_lists_the_documented_jobs() -> None:
    jobs = ConsolidationWorker().jobs

    assert {name: job["interval_minutes"] for name, job in jobs.items()} == {
        "consolidate": 15,
        "patterns": 60,
        "decay": 1_440,
        "cleanup": 1_440,
        "promote": 60,
        "audit_partitions": 1_440,
    }
    run = jobs["decay"]["func"]()  # type: ignore[operator,misc]  # of a mapping with two kinds of values
    assert run.status == "completed"


def test_the_audit_logger_writes_entries(owner: Owner) -> None:
    logger = MemoryAuditLogger(owner)
    logger.log_write("store", "semantic", "trips", ["f1"], {"why": "asked"})
    logger.log_promotion(Memory().id, "trips", "prominent", {"confidence": 0.85})
    logger.log_read("where?", ["trips", "_global"], 3, 12)

    written, promoted = AuditEntry.objects.order_by("id")

    assert (written.operation, written.source_channel, written.affected_ids) == ("store", "trips", ["f1"])
    assert (promoted.operation, promoted.promoted_from_channel) == ("promote", "trips")
    assert promoted.config_snapshot["confidence"] == 0.85


AUDIT_COLUMNS = {
    "id", "timestamp", "operation", "memory_type", "user_id", "session_id", "conversation_id", "source_channel",
    "target_channels", "query_text", "result_count", "latency_ms", "success", "error_message", "promoted_from_channel",
    "promotion_confidence", "promotion_access_count", "promotion_conversation_count", "config_snapshot", "metadata",
}  # fmt: skip
THRESHOLDS = {"promote_confidence": 0.85, "promote_access_count": 5, "promote_conversations": 2}


def test_each_audit_entry_has_the_documented_columns_and_the_thresholds_in_force(
    owner: Owner, memory: AgentMemory
) -> None:
    memory.learn_fact(FactDraft(claim="Lisbon is the capital of Portugal.", confidence=0.9))
    entries = list(AuditEntry.objects.filter(account_id=owner.account_id))

    assert {field.column for field in AuditEntry._meta.concrete_fields} >= AUDIT_COLUMNS
    assert entries
    assert all(THRESHOLDS.items() <= entry.config_snapshot.items() for entry in entries)
    assert {entry.config_snapshot["audit_level"] for entry in entries} == {"writes"}
