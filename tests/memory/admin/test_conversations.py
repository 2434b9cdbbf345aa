"""Conversations are listed with their failing work, and open as a transcript with related rows."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ledger import store as ledger
from memory.admin.columns import why_url
from memory.models import Account, Conversation, EpisodicMemory, Turn
from memory.owner import Owner
from memory.services.conversations.lifecycle import ConversationDefaults
from memory.services.turns import store_turns
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import session_ref
from memory.tiers.working import WorkingMemory
from memory_project import redis
from memory_project.redis import ConversationRef
from tests.memory.admin.chats import HOSTILE, allow, called, sent
from tests.memory.admin.pages import list_url, page_url, shown
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.facts import know
from tests.memory.records import add_record
from tests.memory.turns import say, talk

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def conversation(owner: Owner) -> Conversation:
    """Four turns, number 1 a tool call and number 2 its result."""
    drafts = [
        sent("When was the pump\n  bought?", name="Ana"),
        sent(None, role="assistant", model="gpt-x", tool_calls=[called("search", '{"query":"pump","top":3}')]),
        sent('{"found":[{"year":2025}]}', role="tool", tool_call_id="call_1"),
        sent("In March 2025.", role="assistant"),
    ]
    return say(owner, *drafts).conversation


def transcript(client: Client, conversation: Conversation, **query: Any) -> Any:
    return client.get(page_url("conversation", conversation.id), query)


def listed(client: Client, **query: Any) -> list[str]:
    response = client.get(list_url("conversation", **query))
    return [row.conversation_id for row in response.context["cl"].result_list]


def pieces(response: Any, index: int) -> list[tuple[str, str]]:
    (found,) = [each for each in response.context["turns"] if each.index == index]
    return [(piece.label, piece.text) for piece in found.blocks]


def test_the_list_shows_participants_turns_and_failing_work(staff: Client, conversation: Conversation) -> None:
    Conversation.objects.update(
        title="The pump", user_id="ana", summarize_after=NOW, summary_error="provider_refused", summary_attempts=2
    )
    Conversation.objects.update(extracted_count=3, extract_error="invalid_answer", extract_attempts=5)

    page = shown(staff.get(list_url("conversation")))

    for expected in ("The pump (c1)", "workshop", "assistant", "ana, _global", "4, last 2026-05-04 12:00", "open"):
        assert expected in page
    assert "none, failing: provider_refused (2×)" in page
    assert "3 of 4 turns, failing: invalid_answer (5×)" in page


PARKED = {
    "summary_error": "provider_reply_invalid",
    "summary_parked_at": NOW,
    "extract_error": "IntegrityError",
    "extract_attempts": 8,
    "extract_parked_at": NOW,
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"state": "open"}, {"plain", "unread", "parked"}),
        ({"state": "ended"}, {"failing", "archived"}),
        ({"archived__exact": "1"}, {"archived"}),
        ({"summary": "failing"}, {"failing"}),
        ({"summary": "queued"}, {"failing"}),
        ({"summary": "none"}, {"plain", "failing"}),
        ({"summary": "nonsense"}, {"plain", "unread", "failing", "archived", "parked"}),
        ({"extraction": "failing"}, {"unread"}),
        ({"extraction": "waiting"}, {"unread", "plain"}),
        ({"extraction": "parked"}, {"parked"}),
        ({"summary": "parked"}, {"parked"}),
    ],
)
def test_the_list_is_filtered_by_state_summary_and_extraction(
    staff: Client, account: Account, query: dict[str, str], found: set[str]
) -> None:
    rows: dict[str, dict[str, Any]] = {
        "archived": {"archived": True, "ended_at": NOW, "turn_count": 9, "summarized_count": 9},
        "failing": {"summary_error": "provider_unavailable", "summarize_after": NOW, "ended_at": NOW},
        "parked": PARKED | {"summarized_count": 1, "turn_count": 1},
        "plain": {"extract_after": NOW},
        "unread": {"extract_error": "provider_refused", "extract_after": NOW, "summarized_count": 1, "turn_count": 1},
    }
    for name, columns in rows.items():
        Conversation.objects.create(account=account, conversation_id=name, started_at=NOW, **columns)

    assert set(listed(staff, **query)) == found


@pytest.mark.parametrize(
    ("asked", "found"), [("a/b 1", 1), ("ana", 1), ("assistant", 1), ("critic", 1), ("a/b", 0), ("an", 0)]
)
def test_conversations_are_found_by_id_user_or_agent_in_full(
    staff: Client, account: Account, stranger: Account, asked: str, found: int
) -> None:
    talk(Owner(account_id=account.id, agent_id="assistant", user_id="ana"), 1, conversation_id="a/b 1")
    talk(Owner(account_id=account.id, agent_id="critic"), 1, conversation_id="a/b 1", start=1)
    talk(Owner(account_id=stranger.id, agent_id="other"), 1, conversation_id="elsewhere")

    assert len(listed(staff, q=asked)) == found


def test_a_transcript_is_read_in_order_with_speakers_and_whitespace(staff: Client, conversation: Conversation) -> None:
    response = transcript(staff, conversation)

    assert [each.index for each in response.context["turns"]] == [0, 1, 2, 3]
    assert pieces(response, 0) == [("", "When was the pump\n  bought?")]
    page = shown(response)
    assert '<div class="said" dir="auto">When was the pump\n  bought?</div>' in page
    assert '<bdi class="speaker">Ana</bdi>' in page
    assert "gpt-x" in page
    assert "Monday, 4 May 2026" in page


def test_tool_calls_and_their_results_are_folded_as_pretty_json(staff: Client, conversation: Conversation) -> None:
    response = transcript(staff, conversation)

    assert pieces(response, 1) == [("Calls search call_1", '{\n  "query": "pump",\n  "top": 3\n}')]
    ((label, result),) = pieces(response, 2)
    assert label == "Result call_1"
    assert json.loads(result) == {"found": [{"year": 2025}]}
    assert shown(response).count("<details>\n  <summary>") == 2


def test_parts_of_a_message_are_named(staff: Client, owner: Owner) -> None:
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}}]

    response = transcript(staff, say(owner, sent(parts)).conversation)

    assert pieces(response, 0)[0] == ("", "Look:")
    assert pieces(response, 0)[1][0] == "image_url"
    assert "<img" not in shown(response)


def test_tool_arguments_that_are_not_plain_json_are_still_shown(staff: Client, owner: Owner) -> None:
    hostile = ["not json", "[" * 100_000, '{"a":1,"a":2}', '{"a": "\\ud800 \\u0000"}', "9" * 5_000]
    hostile += ["NaN", '"text"', "1e999", ""]
    calls = [called("search", arguments, call_id=f"call{number}") for number, arguments in enumerate(hostile)]
    stored = say(owner, *[sent(None, role="assistant", tool_calls=[call]) for call in calls])

    response = transcript(staff, stored.conversation)

    assert response.status_code == 200
    assert len(response.context["turns"]) == len(hostile)
    for turn in stored.turns:
        assert shown(staff.get(page_url("turn", turn.pk)))


def test_whatever_was_said_is_shown_as_text(staff: Client, account: Account) -> None:
    writer = Owner(account_id=account.id, agent_id=HOSTILE, user_id=HOSTILE)
    call = called(HOSTILE, json.dumps({HOSTILE: 1}), call_id=HOSTILE)
    message = {"name": HOSTILE, "tool_calls": [call], "annotations": [{HOSTILE: HOSTILE}]}
    drafts = [sent(HOSTILE, role="assistant", model=HOSTILE, **message), sent(HOSTILE, role="tool")]
    opening = ConversationDefaults(title=HOSTILE, metadata={HOSTILE: HOSTILE})
    stored = store_turns(writer, HOSTILE, drafts=drafts, embedded=NOTHING, now=NOW, defaults=opening).conversation
    store(writer, draft(HOSTILE, conversation_id=HOSTILE))
    SessionMemory(session_ref(stored)).push_thought({HOSTILE: HOSTILE}, HOSTILE, NOW)
    SessionMemory(session_ref(stored)).set_active_goal(HOSTILE, HOSTILE)
    WorkingMemory(writer).set(HOSTILE, {HOSTILE: HOSTILE})
    ledger.mark(ConversationRef(account_id=account.id, conversation_id=HOSTILE), HOSTILE, HOSTILE)

    page = shown(transcript(staff, stored))

    assert page.count("⟦U+202E⟧tfel") > 20
    for harm in ("<script>alert", "<img src", "\u202e", "\u200b"):
        assert harm not in page.partition('<div class="conversation">')[2].partition("<form")[0]
        assert harm not in shown(staff.get(list_url("conversation"))).partition("result_list")[2]
    assert "<script>alert" not in page


def test_a_line_says_how_far_the_summary_reaches(staff: Client, conversation: Conversation) -> None:
    Conversation.objects.update(summarized_count=2)

    page = shown(transcript(staff, conversation))

    assert page.count("Summarized up to here") == 1
    assert page.index('id="turn-1"') < page.index("Summarized up to here") < page.index('id="turn-2"')


PAGES: list[tuple[dict[str, object], int, int]] = [
    ({}, 150, 249),
    ({"from": 0}, 0, 99),
    ({"from": 100}, 100, 199),
    ({"from": 249}, 150, 249),
    ({"turn": 40}, 35, 134),
    ({"turn": 3}, 0, 99),
    ({"turn": "99999999"}, 150, 249),
    ({"from": "-1"}, 150, 249),
    ({"from": "x", "turn": "²"}, 150, 249),
    ({"from": "9" * 40}, 150, 249),
]
"""Queries, and the first and the last turn of the page that each shows of 250 turns."""


def test_a_long_conversation_is_read_by_pages_from_its_end(staff: Client, owner: Owner) -> None:
    long = talk(owner, 250).conversation

    for query, first, last in PAGES:
        read = transcript(staff, long, **query).context["turns"]

        assert (read[0].index, read[-1].index, len(read)) == (first, last, 100), query


def test_pages_lead_to_the_first_the_earlier_the_later_and_the_last(staff: Client, owner: Owner) -> None:
    long = talk(owner, 250).conversation

    first, middle, last = (shown(transcript(staff, long, **{"from": start})) for start in (0, 70, 150))

    assert ("Earlier" in first, '?from=100">Later' in first, '?from=150">Last' in first) == (False, True, True)
    assert ('?from=0">Earlier' in middle, '?from=150">Later' in middle) == (True, True)
    assert ('?from=0">First' in last, '?from=50">Earlier' in last, "Later" in last) == (True, True, False)


def test_a_page_takes_as_many_queries_for_many_turns_as_for_few(staff: Client, owner: Owner) -> None:
    few, many = talk(owner, 3, conversation_id="few"), talk(owner, 150, conversation_id="many")
    counts = []

    for stored in (few, many):
        # a ledger that this Redis has never seen is restored from its journal first
        transcript(staff, stored.conversation)
        with CaptureQueriesContext(connection) as captured:
            transcript(staff, stored.conversation)
        counts.append(len(captured))

    assert counts[0] == counts[1] <= 12


def test_messages_lead_to_the_structured_turns_about_them(staff: Client, owner: Owner) -> None:
    long = talk(owner, 150).conversation
    early = add_record(owner, "c1", first_index=0, last_index=9).record
    late = add_record(owner, "c1", first_index=95, last_index=120).record
    unplaced = add_record(owner, "c1").record

    first, last = (shown(transcript(staff, long, **query)) for query in ({"from": 0}, {"from": 100}))

    seen = [[page_url("turnrecord", record.pk) in page for record in (early, late, unplaced)] for page in (first, last)]
    assert seen == [[True, True, True], [False, True, True]]
    assert "messages 95–120" in last
    assert f"{list_url('turnrecord')}?log={long.pk}" in last


def test_a_page_loads_only_the_beginnings_of_long_turns(staff: Client, owner: Owner) -> None:
    parts = [{"type": "image_url", "image_url": {"url": "x" * 900_000}}]
    stored = say(owner, sent("\u202e" + "x" * 1_000_000), sent([*parts, {"type": "text", "text": "y"}]))

    page = shown(transcript(staff, stored.conversation))

    assert len(page) < 60_000
    assert page.count("Read the whole turn") == 2


def test_the_transcript_page_lists_its_episodes_newest_first(staff: Client, owner: Owner) -> None:
    talked = talk(owner, 2).conversation
    (old,) = store(owner, draft("They spoke of a pump."))
    (new,) = store(owner, draft("They bought the pump."))
    episodes = EpisodicMemory.objects
    episodes.filter(pk=new.pk).update(
        source="summary", metadata={"summarizer": "gpt-x", "last_index": 1}, key_decisions=["buy it", {"by": "May"}]
    )
    episodes.filter(pk=old.pk).update(archived=True)

    response = transcript(staff, talked)

    first, second = response.context["episodes"]
    assert (first.text, first.source) == ("They bought the pump.", "summary, gpt-x, turns 0–1")
    assert first.details == [("Decisions", ["buy it", '{\n  "by": "May"\n}'])]
    assert second.row.archived
    assert ", archived" in shown(response)


def test_the_transcript_page_shows_live_session_working_memory_and_ledger(
    staff: Client, owner: Owner, conversation: Conversation
) -> None:
    session, place = (
        SessionMemory(session_ref(conversation)),
        ConversationRef(account_id=owner.account_id, conversation_id="c1"),
    )
    session.set_active_goal("g1", "Buy a pump")
    session.push_thought("It is old.", "assistant", NOW)
    WorkingMemory(owner).set("c1", {"scratchpad": "ask Ben"})
    ledger.mark(place, "episode:1", "injected")

    live = transcript(staff, conversation).context["live"]

    assert (live.goal.name, live.goal.text) == ("g1", "Buy a pump")
    assert [(each.text, each.writer) for each in live.thoughts] == [("It is old.", "assistant")]
    assert [(each.name, each.text, each.writer) for each in live.fields] == [("scratchpad", '"ask Ben"', "assistant")]
    assert [(each.name, each.text) for each in live.items] == [("episode:1", "injected")]


def test_injected_items_are_shown_with_their_text_to_those_who_may_read_memories(
    staff: Client, newcomer: Client, owner: Owner, conversation: Conversation
) -> None:
    fact = know(owner, "The <b>pump</b> leaks.")
    ledger.mark(ConversationRef(account_id=owner.account_id, conversation_id="c1"), fact.item_key, "injected")
    allow("newcomer", "view_conversation", "view_ledgeraccount")

    (item,) = transcript(staff, conversation).context["live"].items
    (unread,) = transcript(newcomer, conversation).context["live"].items

    assert (item.name, item.text, item.url) == ("The <b>pump</b> leaks.", "fact, injected", why_url(fact.pk))
    assert "The &lt;b&gt;pump&lt;/b&gt; leaks." in shown(transcript(staff, conversation))
    assert (unread.name, unread.url) == (fact.item_key, "")


def test_a_conversation_links_to_the_ones_before_and_after_it(staff: Client, owner: Owner) -> None:
    first, second = talk(owner, 1, conversation_id="first"), talk(owner, 1, conversation_id="second")
    Conversation.objects.filter(id=second.conversation.id).update(continues="first")

    before, after = shown(transcript(staff, first.conversation)), shown(transcript(staff, second.conversation))

    assert page_url("conversation", second.conversation.id) in before
    assert page_url("conversation", first.conversation.id) in after


def test_without_redis_the_transcript_is_still_shown(
    staff: Client, conversation: Conversation, settings: Any, request: pytest.FixtureRequest
) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    forget_clients()
    request.addfinalizer(forget_clients)

    response = transcript(staff, conversation)

    assert response.status_code == 200
    assert len(response.context["turns"]) == 4
    assert "stored in Redis, which does not answer" in shown(response)


@pytest.mark.parametrize(
    ("granted", "seen"),
    [
        ((), ()),
        (("view_turn",), ("In March 2025",)),
        (("view_episodicmemory",), ("Summaries and episodes",)),
        (("view_workingmemoryaccount",), ("Working memory</h2>",)),
        (("view_ledgeraccount",), ("Injected items</h2>",)),
        (("view_turnrecord",), ("Structured turns</h2>",)),
    ],
)
def test_each_section_requires_permission_to_view_its_rows(
    newcomer: Client, conversation: Conversation, granted: tuple[str, ...], seen: tuple[str, ...]
) -> None:
    allow("newcomer", "view_conversation", *granted)

    page = shown(transcript(newcomer, conversation))

    sections = (
        "In March 2025", "Summaries and episodes", "Working memory</h2>", "Injected items</h2>",
        "Structured turns</h2>",
    )  # fmt: skip
    assert tuple(section for section in sections if section in page) == seen
    assert "<button" not in page.partition('<div class="conversation">')[2]


def test_opening_a_conversation_requires_permission(newcomer: Client, conversation: Conversation) -> None:
    assert transcript(newcomer, conversation).status_code == 403
    assert newcomer.get(page_url("conversation", conversation.id, "delete")).status_code == 403


@pytest.mark.parametrize("row_id", ["nonsense", "01990000-0000-7000-8000-000000000000"])
def test_an_unknown_conversation_is_404(staff: Client, row_id: str) -> None:
    assert staff.get(page_url("conversation", row_id)).status_code == 404


def test_a_conversation_without_turns_says_so(staff: Client, account: Account) -> None:
    empty = Conversation.objects.create(account=account, conversation_id="empty", started_at=NOW)

    assert "The conversation has no turns yet" in shown(transcript(staff, empty))
    assert not Turn.objects.exists()


def forget_clients() -> None:
    redis.client.cache_clear()
    redis.script.cache_clear()
