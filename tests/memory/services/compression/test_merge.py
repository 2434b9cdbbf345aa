"""Adjacent records of one goal become a work episode that stands for them."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.extraction.survivors import facts_in
from memory.extraction.turn_slots import Action, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, Artifact, Memory, TurnRecord, TurnSlot
from memory.models.writer import delete_memory_rows
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.compression.compress import CompressionTask
from memory.services.compression.merge import MergeInput, read_merge_inputs, store_work_episode
from memory.services.conversations.staff_edits import delete_conversation
from memory.services.memories.links import DERIVED_FROM, PRODUCED, WORKS_ON
from memory.services.memories.store import store_memories
from tests.language_model_server import MODEL, Asked, LanguageModelServer
from tests.memory.compressed import LATER, compress, episodes, levels, slots_of, targets, work
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim, finish
from tests.memory.records import add_record

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


@pytest.fixture(autouse=True)
def _none_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)


WALK = " ".join(f"The lamp in hall {hall} was lit and is number {hall}." for hall in range(20))


def make_artifact(owner: Owner, uri: str, **fields: Any) -> Artifact:
    row = Artifact(kind="artifact", text=uri, uri=uri, event_time=NOW, **fields)
    store_memories(owner, [row], embedded=NOTHING, own={}, now=NOW)
    return row


def spans() -> list[tuple[int, int]]:
    return [(episode.first_number, episode.last_number) for episode in episodes()]


def decide(owner: Owner, what: str, *, rejected: str = "", **fields: Any) -> None:
    points = Rationale(decisions=[Point(what=what)], rejected=[Point(what=rejected)] if rejected else [])
    reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=points)
    add_record(owner, slots=Slots(reasoning=reasoning, action=Action(text=WALK)), **fields)


def task_of(piece: MergeInput) -> CompressionTask:
    return CompressionTask(account_id=piece.records[0].account_id, record_ids=[record.id for record in piece.records])


def read_input(owner: Owner, count: int = 2, **fields: Any) -> MergeInput:
    records = [recorded.record.id for recorded in work(owner, count, **fields)]
    TurnRecord.objects.update(level=1)
    TurnSlot.objects.update(level=1)
    [piece] = read_merge_inputs(CompressionTask(account_id=owner.account_id, record_ids=records))
    return piece


def store(piece: MergeInput) -> bool:
    """Store the episode and return whether it was stored."""
    return store_work_episode(piece, ["Ran." for _ in piece.passages], source="extractive", now=LATER) is not None


def test_an_episode_stands_for_adjacent_records(owner: Owner) -> None:
    goal = aim(owner, "Bring the import back.")
    work(owner, 2, goal_id=goal.id)

    compress()

    [episode] = episodes()
    assert episode.text.splitlines()[:3] == [
        "Goal: Bring the import back.",
        "Decided: retry table t_0 in batches of 500 (because the lock timed out)",
        "Decided: retry table t_1 in batches of 500 (because the lock timed out)",
    ]
    assert (episode.level, episode.status, episode.first_number, episode.last_number) == (2, "succeeded", 0, 1)
    assert episode.data["outcome"].startswith("Table t_1 has all of its 81,204 rows.")
    assert (episode.data["tools"], episode.compressor) == (["import_table"], "extractive")


def test_facts_of_outcomes_and_decisions_survive(owner: Owner) -> None:
    recorded = work(owner, 12)
    source_text = " ".join(
        slot.text for each in recorded for slot in each.slots if slot.slot in ("outcome", "reasoning")
    )

    compress()

    text = "\n".join(episode.text for episode in episodes())
    assert [fact for fact in facts_in(source_text) if fact not in text] == []


def test_its_sources_are_archived_and_linked(owner: Owner) -> None:
    goal = aim(owner)
    recorded = work(owner, 2, goal_id=goal.id)

    compress()

    [episode] = episodes()
    slots = [slot for each in recorded for slot in slots_of(each.record.id)]
    assert all(slot.archived for slot in slots)
    assert targets(episode.id, DERIVED_FROM) == sorted(slot.id for slot in slots if slot.level == 1)
    assert targets(episode.id, WORKS_ON) == [goal.id]
    rows = TurnRecord.objects.values_list("level", "tokens", "episode_id").distinct()
    assert list(rows) == [(2, 0, episode.id)]


def test_the_report_has_tokens_before_and_after(owner: Owner) -> None:
    work(owner, 3)

    run = compress()

    [episode] = episodes()
    assert (run.changed, run.figures["slots"], run.figures["merged"]) == (4, 9, 3)
    assert run.figures["tokens_after"] < run.figures["tokens_before"]
    assert episode.token_count < episode.raw_tokens / 2


def test_records_of_another_goal_lie_between_two_episodes(owner: Owner) -> None:
    goal, other = aim(owner), aim(owner, "Prune the roses.")
    for number, goal_id in enumerate((goal.id, goal.id, other.id, goal.id, None, None)):
        work(owner, 1, start=number, goal_id=goal_id)

    compress()

    assert spans() == [(0, 1), (2, 2), (3, 3), (4, 5)]


def test_a_number_that_was_deleted_leaves_no_gap(owner: Owner) -> None:
    work(owner, 3)
    TurnRecord.objects.filter(number=1).delete()

    compress()

    assert spans() == [(0, 2)]


def test_produced_artifacts_are_named_in_and_linked_to_the_episode(owner: Owner) -> None:
    made, named = make_artifact(owner, "/srv/orders.csv"), make_artifact(owner, "/srv/log.txt", title="The log")
    work(owner, 2, produced=[made.id, named.id])

    compress()

    [episode] = episodes()
    assert sorted(episode.data["produced"]) == ["/srv/orders.csv", "The log (/srv/log.txt)"]
    assert targets(episode.id, PRODUCED) == sorted([made.id, named.id])


def test_a_decision_that_a_later_record_takes_back_is_a_correction(owner: Owner) -> None:
    decide(owner, "retry in batches of 500")
    decide(owner, "ask Ana", rejected="retry in batches of 500")

    compress()

    [episode] = episodes()
    assert episode.data["decisions"] == ["ask Ana"]
    assert episode.data["corrections"] == ["retry in batches of 500 (taken back)"]


@pytest.mark.parametrize(("tier", "is_told"), [("structured_rationale", True), ("none", False)])
def test_reasoning_is_included_as_deep_as_the_account_allows_then(
    owner: Owner, account: Account, tier: str, is_told: bool
) -> None:
    decide(owner, "ask Ana", rejected="ask Rosa")
    Account.objects.filter(id=account.id).update(reasoning_tier=tier)

    compress()

    [episode] = episodes()
    assert ("ask Ana" in episode.text, "ask Rosa" in episode.text) == (is_told, is_told)
    assert episode.tier == tier


def test_open_records_of_a_closed_goal_are_merged_immediately(owner: Owner) -> None:
    goal = aim(owner)
    work(owner, 1, goal_id=goal.id)
    add_record(owner, slots=Slots(action=Action(text="Asked."), outcome=Outcome(status="open")), goal_id=goal.id)
    finish(owner, goal)

    compress(NOW)

    assert [(episode.status, episode.last_number) for episode in episodes()] == [("open", 1)]


def test_records_younger_than_the_setting_are_not_merged(owner: Owner) -> None:
    work(owner, 2, now=LATER - timedelta(days=10))

    compress()

    assert (levels(), episodes()) == ([1, 1], [])


def test_quarantined_slots_are_left_out_and_left_alone(owner: Owner) -> None:
    recorded, _ = work(owner, 2)
    Memory.objects.filter(id=recorded.slots[-1].id).update(quarantined=True)

    compress()

    [episode] = episodes()
    assert "t_0 has" not in episode.text
    assert not Memory.objects.get(id=recorded.slots[-1].id).archived


@pytest.mark.parametrize("changed", ["quarantined", "recorded", "deleted"])
def test_records_changed_since_they_were_read_are_left_for_the_next_run(owner: Owner, changed: str) -> None:
    piece = read_input(owner)
    if changed == "quarantined":
        Memory.objects.filter(id=piece.slots[0].id).update(quarantined=True)
    elif changed == "recorded":
        TurnRecord.objects.filter(id=piece.records[0].id).update(version=7)
    else:
        TurnRecord.objects.filter(id=piece.records[0].id).delete()

    assert not store(piece)
    assert episodes() == []


@pytest.mark.parametrize("named", ["goal", "artifact"])
@pytest.mark.parametrize("changed", ["text", "quarantined", "deleted"])
def test_no_episode_is_stored_if_its_goal_or_artifact_changed_since_it_was_read(
    owner: Owner, named: str, changed: str
) -> None:
    goal, plan = aim(owner), make_artifact(owner, "/srv/plan.md")
    piece = read_input(owner, goal_id=goal.id, produced=[plan.id])
    row = Memory.objects.filter(id=goal.id if named == "goal" else plan.id)
    if changed == "deleted":
        delete_memory_rows(row.get().account_id, [row.get().id])
    else:
        row.update(quarantined=changed == "quarantined", version=7)

    assert not store(piece)
    assert episodes() == []


def test_work_on_a_goal_that_was_deleted_is_merged_without_it(owner: Owner) -> None:
    goal = aim(owner)
    piece = read_input(owner, goal_id=goal.id)
    delete_memory_rows(owner.account_id, [goal.id])

    [again] = read_merge_inputs(task_of(piece))

    assert store(again)
    assert [episode.for_goal_id for episode in episodes()] == [None]


def test_a_conversation_deleted_meanwhile_breaks_nothing(owner: Owner) -> None:
    piece = read_input(owner)
    delete_conversation(owner, "chat-1")

    assert not store(piece)


def test_long_runs_become_several_episodes(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "WORK_EPISODE_TOKENS", 150)
    work(owner, 8)

    compress()

    assert len(spans()) > 1
    assert [number for first, last in spans() for number in range(first, last + 1)] == list(range(8))


def test_a_second_run_changes_nothing(owner: Owner) -> None:
    work(owner, 3)
    compress()

    run = compress()

    assert (run.examined, run.changed, len(episodes())) == (0, 0, 1)


def test_a_model_shortens_the_text_of_the_work(
    owner: Owner, language_model_server: LanguageModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "WORK_EPISODE_TOKENS", 220)
    read_input(owner)
    language_model_server.write = answer_shortly

    compress()

    [episode] = episodes()
    assert (episode.compressor, episode.text.count("Done: It ran.")) == (MODEL, 2)


def answer_shortly(asked: Asked) -> Any:
    return {"passages": [{"number": number, "text": "It ran."} for number in range(30)]}


def test_statements_do_not_depend_on_the_records(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    piece = read_input(owner, 9, goal_id=aim(owner).id)

    with django_assert_num_queries(7):
        read_merge_inputs(task_of(piece))
    with django_assert_num_queries(15):
        assert store(piece)


def test_records_that_would_not_get_shorter_are_set_aside(owner: Owner) -> None:
    add_record(owner, slots=Slots(action=Action(text="Asked Ana."), outcome=Outcome(status="succeeded", text="Yes.")))

    compress()
    run = compress()

    assert (levels(), episodes(), run.examined) == ([1], [], 0)


def test_records_set_aside_are_merged_with_later_ones(owner: Owner) -> None:
    goal = aim(owner)
    add_record(owner, slots=Slots(action=Action(text="Asked Ana.")), goal_id=goal.id)
    compress()
    work(owner, 2, start=1, goal_id=goal.id)

    compress()

    assert (levels(), spans()) == ([2, 2, 2], [(0, 2)])


def test_a_record_with_all_slots_in_quarantine_is_examined_only_once(owner: Owner) -> None:
    [recorded] = work(owner, 1)
    Memory.objects.filter(id__in=[slot.id for slot in recorded.slots]).update(quarantined=True)

    compress()
    run = compress()

    assert (run.examined, episodes()) == (0, [])
