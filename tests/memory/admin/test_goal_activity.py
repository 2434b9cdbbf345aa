"""A goal opens with its activity: the work done for it in all conversations, in order of time, in pages."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client

from memory.admin import goal_activity
from memory.extraction.turn_slots import Action, Outcome, Reasoning, Slots
from memory.models import Account, CompressionLevel, Goal, Link, Memory, ToolInvocation, TurnSlot
from memory.owner import Owner
from memory.reasoning import Provenance, ReasoningTier
from memory.services.tools import InvocationDraft, record_invocation
from memory_project.ids import uuid7
from tests.memory import compressed
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import page_url, queries_of, shown
from tests.memory.episodes import NOW
from tests.memory.goals import aim, finish
from tests.memory.records import add_record
from tests.memory.stories import archive, link_produced, make_artifact, merge, whole_slots
from tests.memory.turns import talk

HOUR = timedelta(hours=1)
TRACE = "first I thought of the valve"


def activity_of(client: Client, goal: Goal, query: str = "") -> Any:
    return client.get(f"{page_url('goal', goal.pk)}{query}").context["activity"]


def page_of(client: Client, goal: Goal) -> str:
    return shown(client.get(page_url("goal", goal.pk)))


def outline(activity: Any) -> list[str]:
    """Name each card in a word or two."""
    return [
        f"turn {card.turn.number} of {card.turn.place}" if card.turn
        else card.work.level if card.work
        else card.artifact.uri if card.artifact
        else card.event.label
        for card in activity.cards
    ]  # fmt: skip


@pytest.fixture
def goal(owner: Owner) -> Goal:
    return aim(owner, "Mend the pump.")


def work(owner: Owner, goal: Goal, number: int = 0, **fields: Any) -> Any:
    """A record for the goal, `number` hours after it was set."""
    place = fields.pop("conversation_id", f"chat {number}")
    given = {"now": NOW + number * HOUR, "goal_id": goal.pk, "slots": whole_slots(f"pump {number}"), **fields}
    return add_record(owner, place, **given).record


def use_tool(owner: Owner, record: Any, **fields: Any) -> ToolInvocation:
    draft = InvocationDraft(tool_name="order", conversation_id=record.conversation_id, **fields)
    use = record_invocation(owner, draft, now=NOW)
    ToolInvocation.objects.filter(pk=use.pk).update(record=record)
    return use


def test_goal_activity_is_in_order_of_time_across_conversations(staff: Client, owner: Owner, goal: Goal) -> None:
    for number in (3, 1, 2):
        work(owner, goal, number)
    work(owner, aim(owner, "Paint the fence."), 4)
    finish(owner, goal, now=NOW + 5 * HOUR)

    assert outline(activity_of(staff, goal)) == [
        "Goal set", "turn 0 of chat 1", "turn 0 of chat 2", "turn 0 of chat 3", "Completed",
    ]  # fmt: skip


def test_a_turn_shows_its_slots_with_their_structured_data(staff: Client, owner: Owner, goal: Goal) -> None:
    work(owner, goal)

    page = page_of(staff, goal)

    for text in ("Somebody asks for pump 0.", "Decided: replace pump 0 (because it leaks)", "Rejected: patch it",
                 "structured rationale", "runtime projection", "Ordered pump 0.", "Calls order", "no. 7", "OPS-12",
                 "What became of pump 0: succeeded."):  # fmt: skip
        assert text in page


def test_slots_are_shown_in_the_order_of_a_turn(staff: Client, owner: Owner, goal: Goal) -> None:
    work(owner, goal)

    (card,) = [card.turn for card in activity_of(staff, goal).cards if card.turn]

    assert [slot.name for slot in card.slots] == ["Observation", "Reasoning", "Action", "Outcome"]


def test_a_raw_trace_is_mentioned_but_never_shown(staff: Client, account: Account, owner: Owner, goal: Goal) -> None:
    Account.objects.filter(pk=account.pk).update(reasoning_tier="raw_trace")
    reasoning = Reasoning(tier=ReasoningTier.RAW_TRACE, trace=TRACE, provenance=Provenance.PROVIDER_TRACE)
    record = work(owner, goal, slots=Slots(reasoning=reasoning, action=Action(text="Looked.")))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE reasoning_traces SET trace = 'damaged'::bytea")

    for page in (page_of(staff, goal), shown(staff.get(page_url("turnrecord", record.pk)))):
        assert "A raw trace of" in page
        assert "sealed" in page
        assert TRACE not in page


def test_reasoning_deeper_than_the_account_policy_is_marked(
    staff: Client, account: Account, owner: Owner, goal: Goal
) -> None:
    work(owner, goal)
    before = page_of(staff, goal)
    Account.objects.filter(pk=account.pk).update(reasoning_tier="none")

    assert "deeper than the account&#x27;s policy returns" not in before
    assert "deeper than the account&#x27;s policy returns" in page_of(staff, goal)


def test_tool_uses_are_listed_without_their_encrypted_input(staff: Client, owner: Owner, goal: Goal) -> None:
    use = use_tool(owner, work(owner, goal), tool_input={"q": "blue door"}, success=False, latency_ms=1_234)

    page = page_of(staff, goal)

    assert page_url("toolinvocation", use.pk) in page
    assert "failed" in page
    assert "1,234 ms" in page
    assert "blue door" not in page


def test_artifacts_are_shown_with_their_revision_where_they_were_produced(
    staff: Client, owner: Owner, goal: Goal
) -> None:
    record = work(owner, goal, 1)
    make_artifact(owner, "docs/pump.md", source_record=record, for_goal=goal, revision=2, label="v2")
    make_artifact(owner, "docs/bill.pdf", for_goal=goal, now=NOW + 2 * HOUR)

    activity = activity_of(staff, goal)

    assert outline(activity) == ["Goal set", "turn 0 of chat 1", "docs/bill.pdf"]
    assert [(each.uri, each.revision) for each in activity.cards[1].turn.produced] == [
        ("docs/pump.md", "revision 2 (v2)")
    ]


def test_a_turn_names_the_artifacts_and_evidence_it_used(staff: Client, owner: Owner, goal: Goal) -> None:
    plan, other = make_artifact(owner, "docs/plan.md"), aim(owner, "Keep the cellar dry.")

    work(owner, goal, used=[plan.pk], evidence=[other.pk])

    (card,) = [card.turn for card in activity_of(staff, goal).cards if card.turn]
    assert [each.uri for each in card.used] == ["docs/plan.md"]
    assert [(each.kind, each.text) for each in card.evidence] == [("goal", "Keep the cellar dry.")]


UNSAFE = (
    ["javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "/etc/pump.conf", "https:pump", "http://a b/",
     "https://pump.example/\u202egpj", "file:///etc/passwd", " https://pump.example", "https://[broken",
     "http://pump.example\\@evil.example/", "https://chief:pw@pump.example/", "https://pump.example/a\\b"]
)  # fmt: skip


def test_only_safe_web_addresses_become_links(staff: Client, owner: Owner, goal: Goal) -> None:
    unsafe = [make_artifact(owner, uri, for_goal=goal) for uri in UNSAFE]
    safe = make_artifact(owner, "https://pump.example/plan", for_goal=goal)

    activity = page_of(staff, goal)
    for page in (activity, shown(staff.get(page_url("artifact", safe.pk)))):
        assert '<a href="https://pump.example/plan" rel="noopener noreferrer nofollow">' in page
    for page in (activity, *(shown(staff.get(page_url("artifact", row.pk))) for row in unsafe)):
        assert [uri for uri in UNSAFE if f'href="{uri}' in page] == []


def test_merged_turns_are_one_card_that_links_to_the_turns(staff: Client, owner: Owner, goal: Goal) -> None:
    records = [work(owner, goal, number, conversation_id="long") for number in (1, 2)]
    episode = merge(owner, goal, records)

    activity, page = activity_of(staff, goal), page_of(staff, goal)

    assert outline(activity) == ["Goal set", "merged"]
    assert [line.text for line in activity.cards[1].work.lines] == [
        f"What became of pump {n}: succeeded." for n in (1, 2)
    ]
    assert f"{page_url('workepisode', episode.pk)}#turns" in page


def test_an_archived_episode_unfolds_to_the_merged_one(staff: Client, owner: Owner, goal: Goal) -> None:
    merged = merge(owner, goal, [work(owner, goal)], "All about the pump.")
    archived = archive(owner, merged)
    plan = make_artifact(owner, "docs/plan.md")
    link_produced(owner, archived.pk, plan)

    (card,) = [card.work for card in activity_of(staff, goal).cards if card.work]

    assert (card.id, card.text.text, card.source.text.text) == (archived.pk, "Pump replaced.", "All about the pump.")
    assert [each.uri for each in card.produced] == ["docs/plan.md"]
    assert "All about the pump." in page_of(staff, goal)


def test_a_shortened_slot_is_shown_with_its_original_text(staff: Client, owner: Owner, goal: Goal) -> None:
    record = work(owner, goal)
    objects = TurnSlot.objects
    raw = objects.get(record=record, slot="observation")
    Memory.objects.filter(pk=raw.pk).update(archived=True)
    raw.pk = uuid7()
    raw._state.adding, raw.level, raw.text, raw.identity = True, CompressionLevel.SLOT_SUMMARIZED, "Pump?", "short"
    raw.archived = False
    raw.save(force_insert=True)

    (card,) = [card.turn for card in activity_of(staff, goal).cards if card.turn]

    (slot,) = [slot for slot in card.slots if slot.name == "Observation"]
    assert (slot.blocks[0].text, slot.original[0].text) == ("Pump?", "Somebody asks for pump 0.")
    assert "Original" in page_of(staff, goal)


@pytest.mark.usefixtures("embedding_server")
def test_a_card_compressed_by_the_job_unfolds_to_the_original_turns(staff: Client, owner: Owner, goal: Goal) -> None:
    old = compressed.work(owner, 14, goal_id=goal.pk)
    compressed.compress(compressed.LATER)
    compressed.compress(compressed.MUCH_LATER)

    (card,) = [card.work for card in activity_of(staff, goal).cards if card.work]
    page = shown(staff.get(page_url("workepisode", card.id)))

    assert (card.level, card.numbers, card.source.level, len(card.lines)) == ("archived", "turns 0–3", "merged", 4)
    assert "t_13" in page_of(staff, goal)
    for recorded in old[:4]:
        assert f"the import of table t_{recorded.record.number} failed" in page.lower()
    # three slots a turn: a decision gets no shorter
    assert page.count("Original") == 12


def test_goal_activity_includes_deadlines_blockers_and_subgoals(staff: Client, owner: Owner) -> None:
    permit = aim(owner, "Get a permit.")
    goal = aim(owner, "Mend the pump.", deadline=NOW + HOUR, blocked_by=[permit.pk])
    aim(owner, "Buy a seal.", parent_id=goal.pk)

    page = page_of(staff, goal)

    assert outline(activity_of(staff, goal)) == ["Goal set", "Deadline passed", "Blocked by", "Subgoal added"]
    for text in ("overdue", "Get a permit.", "Buy a seal.", "Blocked by"):
        assert text in page


def test_an_activity_comes_in_pages_the_latest_first(
    staff: Client, owner: Owner, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goal_activity, "PAGE_ENTRIES", 2)
    for number in (1, 2, 3, 4):
        work(owner, goal, number)

    last = activity_of(staff, goal)
    middle = activity_of(staff, goal, last.earlier)
    first = activity_of(staff, goal, middle.earlier)

    assert [[outline(page)] for page in (first, middle, last)] == [
        [["Goal set"]],
        [["turn 0 of chat 1", "turn 0 of chat 2"]],
        [["turn 0 of chat 3", "turn 0 of chat 4"]],
    ]
    assert outline(activity_of(staff, goal, middle.later)) == outline(last)
    assert outline(activity_of(staff, goal, "?beginning=1")) == ["Goal set", "turn 0 of chat 1"]
    assert (first.earlier, last.later) == ("", "")


@pytest.mark.parametrize("query", ["?before=x", "?before=2026-01-01_x", "?after=2026-01-01T00:00:00_", "?before=%00"])
def test_an_invalid_page_cursor_is_no_error(staff: Client, goal: Goal, query: str) -> None:
    assert outline(activity_of(staff, goal, query)) == ["Goal set"]


def fill(owner: Owner, goal: Goal, numbers: range) -> None:
    """Store activity of every kind for the goal."""
    for number in numbers:
        record = work(owner, goal, number, conversation_id=f"busy {number}")
        use_tool(owner, record)
        plan = make_artifact(owner, f"plans/{number}.md", source_record=record)
        work(owner, goal, number, conversation_id=f"idle {number}", used=[plan.pk])
        archive(owner, merge(owner, goal, [work(owner, goal, number, conversation_id=f"done {number}")]))
        make_artifact(owner, f"bills/{number}.md", for_goal=goal)
        aim(owner, f"part {number}", parent_id=goal.pk)


@pytest.mark.slow
def test_an_activity_costs_as_many_queries_for_many_cards_as_for_few(staff: Client, owner: Owner, goal: Goal) -> None:
    fill(owner, goal, range(2))
    few = queries_of(staff, page_url("goal", goal.pk))

    fill(owner, goal, range(2, 9))

    assert len(activity_of(staff, goal).cards) > 40
    assert queries_of(staff, page_url("goal", goal.pk)) == few <= 25


def test_a_page_loads_only_the_beginnings_of_long_slots(staff: Client, owner: Owner, goal: Goal) -> None:
    long = "\u202e" + "x" * 200_000
    work(owner, goal, slots=Slots(action=Action(text=long, data={"log": long}), outcome=Outcome(status="failed")))

    page = page_of(staff, goal)

    assert len(page) < 60_000
    assert "Read the whole slot" in page


def test_whatever_was_said_is_shown_as_text(staff: Client, owner: Owner, goal: Goal) -> None:
    talk(owner, 1, conversation_id=HOSTILE[:90])
    record = work(owner, goal, slots=whole_slots(HOSTILE), conversation_id=HOSTILE[:90])
    use_tool(owner, record, task_type="x")
    artifact = make_artifact(owner, HOSTILE, source_record=record, title=HOSTILE, digest=HOSTILE, label=HOSTILE[:90])
    episode = merge(owner, goal, [work(owner, goal, 1, slots=whole_slots(HOSTILE))], HOSTILE, data={HOSTILE: [HOSTILE]})

    rows = [("goal", goal.pk), ("turnrecord", record.pk), ("artifact", artifact.pk), ("workepisode", episode.pk)]
    for page in (shown(staff.get(page_url(model, row_id))) for model, row_id in rows):
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "⟦U+202E⟧" in page


SAID = {
    "view_turnrecord": "Turn 0",
    "view_turnslot": "Somebody asks",
    "view_toolinvocation": "1,234 ms",
    "view_artifact": "docs/pump.md",
    "view_workepisode": "The pump was replaced.",
}


@pytest.mark.parametrize("granted", [[], ["view_turnrecord"], ["view_turnrecord", "view_turnslot"], list(SAID)])
def test_each_kind_of_card_requires_permission_to_view_it(
    newcomer: Client, owner: Owner, goal: Goal, granted: list[str]
) -> None:
    record = work(owner, goal)
    use_tool(owner, record, latency_ms=1_234)
    make_artifact(owner, "docs/pump.md", source_record=record)
    merge(owner, goal, [work(owner, goal, 1)])
    allow("newcomer", "view_goal", *granted)

    page = page_of(newcomer, goal)

    assert {name for name, text in SAID.items() if text in page} == set(granted)


def test_goal_activity_never_includes_work_of_another_account(
    staff: Client, owner: Owner, goal: Goal, stranger: Account
) -> None:
    other = Owner(account_id=stranger.pk, agent_id="other")
    work(other, aim(other, "Theirs."), conversation_id="theirs")

    assert outline(activity_of(staff, goal)) == ["Goal set"]
    assert isinstance(goal.pk, UUID)


def test_an_event_whose_link_is_gone_is_left_out(staff: Client, owner: Owner, goal: Goal) -> None:
    part = aim(owner, "Buy a seal.", parent_id=goal.pk)
    Link.objects.filter(source_id=part.pk).delete()

    assert outline(activity_of(staff, goal)) == ["Goal set"]
