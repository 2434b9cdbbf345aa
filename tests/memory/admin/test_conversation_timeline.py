"""The timeline of a conversation: everything that happened in it in one order, in pages of a fixed cost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from ledger.models import Injection
from memory.admin import conversation_timeline
from memory.admin.conversation_timeline import PAGE_EVENTS
from memory.models import Account, Conversation, Memory
from memory.owner import Owner
from memory.services.tools import InvocationDraft, record_invocations
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import page_url, queries_of, shown
from tests.memory.admin.test_lists import INLINE
from tests.memory.audits import entered
from tests.memory.facts import know
from tests.memory.summaries import remember_summary
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

LATER = datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def url(owner: Owner) -> str:
    talk(owner, 2, conversation_id="monday")
    return page_url("conversation", Conversation.objects.get().pk, "timeline")


def inject(account: Account, item_key: str, *, at: datetime = LATER, number: int = 1) -> None:
    Injection.objects.create(
        account=account, conversation_id="monday", item_key=item_key, agent_id="assistant", event="marked", at=at,
        stream_id=f"{number:041d}",
    )  # fmt: skip


def events(browser: Client, url: str, **query: Any) -> list[Any]:
    return list(browser.get(url, query).context["events"])


def test_turns_memories_injections_tools_recalls_and_jobs_are_in_one_order(
    staff: Client, account: Account, owner: Owner, url: str
) -> None:
    remember_summary(owner, "They booked a flight.", conversation_id="monday")
    fact = Memory.objects.get(pk=know(owner, "Ana lives in Berlin.").pk)
    inject(account, fact.item_key)
    draft = InvocationDraft(
        conversation_id="monday",
        tool_name="search",
        success=False,
        latency_ms=1_200,
        timestamp=LATER + timedelta(minutes=1),
    )
    record_invocations(owner, [draft], now=LATER)
    for minutes, columns in ((2, {"operation": "retrieve", "query_text": "Where?"}), (3, {"actor": "job:summarize"})):
        entered(account, LATER + timedelta(minutes=minutes), conversation_id="monday", result_count=3, **columns)

    found = events(staff, url)

    assert [event.at for event in found] == sorted(event.at for event in found)
    titles = [event.title for event in found]
    assert titles[:2] == ["Turn 0", "Turn 1"]
    assert titles[-4:] == ["Injected fact", "Tool search", "Recall", "Store episodic"]
    assert "They booked a flight." in [event.text for event in found]
    assert [event.text for event in found[-4:]] == [
        "Ana lives in Berlin.", "failed after 1,200 ms", "Where?. 3 results", "3 results",
    ]  # fmt: skip


def test_injections_show_the_text_of_the_memory_and_lead_to_it(
    staff: Client, account: Account, owner: Owner, url: str
) -> None:
    fact = Memory.objects.get(pk=know(owner, "Ana lives in Berlin.").pk)
    inject(account, fact.item_key)
    inject(account, "skill:mend", number=2)

    page = shown(staff.get(url, {"type": "injection"}))

    assert f'<a href="{page_url("memory", fact.pk, "why")}">Injected fact</a>' in page
    assert "Ana lives in Berlin." in page
    assert '<p class="said" dir="auto">skill:mend</p>' in page
    assert "Turn 0" not in page


def test_pages_continue_where_the_one_before_ended(staff: Client, account: Account, owner: Owner, url: str) -> None:
    for number in range(PAGE_EVENTS + 5):
        inject(account, f"skill:{number:03d}", number=number)

    first = staff.get(url)
    second = staff.get(f"{url}?{first.context['next_query']}")

    keys = [event.item_key for page in (first, second) for event in page.context["events"] if event.item_key]
    assert len(first.context["events"]) == PAGE_EVENTS
    assert sorted(keys) == [f"skill:{number:03d}" for number in range(PAGE_EVENTS + 5)]
    assert second.context["next_query"] == ""


def test_a_page_ends_where_the_examined_entries_end_and_leaves_nothing_out(
    staff: Client, account: Account, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_timeline, "MAX_ENTRIES_EXAMINED", 10)
    for minutes in range(25):
        entered(account, LATER + timedelta(minutes=minutes), conversation_id="another", operation="retrieve")
    ours = {"conversation_id": "monday", "query_text": "Where?"}
    entered(account, LATER + timedelta(minutes=30), operation="retrieve", **ours)
    entered(account, LATER + timedelta(minutes=31), actor="job:summarize", conversation_id="monday")
    inject(account, "skill:mend", at=LATER + timedelta(minutes=32))

    titles, query, pages = [], "", 0
    while query or not pages:
        page = staff.get(f"{url}?{query}")
        titles += [event.title for event in page.context["events"]]
        query, pages = page.context["next_query"], pages + 1

    assert titles == ["Turn 0", "Turn 1", "Recall", "Store episodic", "Injected"]
    assert 3 <= pages <= 5


def test_work_is_examined_in_the_order_of_an_index(
    staff: Client, account: Account, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_timeline, "MAX_ENTRIES_EXAMINED", 3)
    for minutes in range(5):
        entered(account, LATER + timedelta(minutes=minutes))
    entered(account, LATER + timedelta(minutes=9), actor="job:summarize", conversation_id="monday")

    page = staff.get(url, {"type": "work"})

    assert page.context["events"] == []
    assert page.context["next_query"]
    assert "Later ones follow." in shown(page)


def test_injections_name_the_kind_alone_to_those_who_may_not_view_memories(
    newcomer: Client, account: Account, owner: Owner, url: str
) -> None:
    fact = Memory.objects.get(pk=know(owner, "Ana lives in Berlin.").pk)
    inject(account, fact.item_key)
    allow("newcomer", "view_conversation", "view_injection")

    (event,) = events(newcomer, url)

    assert (event.title, event.text, event.url) == ("Injected fact", "", "")


@pytest.mark.parametrize(
    "after", ["x", "~", "2026-99-99~x", "2026-01-01T00:00:00~00000000-0000-0000-0000-000000000000"]
)
def test_a_wrong_cursor_or_type_is_ignored(staff: Client, url: str, after: str) -> None:
    assert [event.title for event in events(staff, url, after=after, type="odd")] == ["Turn 0", "Turn 1"]


def test_events_that_the_user_may_not_see_are_left_out(
    newcomer: Client, account: Account, owner: Owner, url: str
) -> None:
    inject(account, "skill:mend")
    assert newcomer.get(url).status_code == 403
    allow("newcomer", "view_conversation", "view_injection")

    assert [event.title for event in events(newcomer, url)] == ["Injected"]
    assert [event.title for event in events(newcomer, url, type="turn")] == ["Injected"]


def test_hostile_texts_are_escaped(staff: Client, account: Account, url: str) -> None:
    inject(account, HOSTILE)
    Memory.objects.update(text=HOSTILE)

    page = shown(staff.get(url))

    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert INLINE.findall(page) == []


def test_the_number_of_queries_is_fixed(staff: Client, account: Account, owner: Owner, url: str) -> None:
    inject(account, f"fact:{know(owner).pk}")
    few = queries_of(staff, url)
    for number in range(9):
        inject(account, f"fact:{know(owner, f'claim {number}').pk}", number=number + 10)

    assert queries_of(staff, url) == few <= 20


def test_the_transcript_links_to_it(staff: Client, url: str) -> None:
    assert url in shown(staff.get(page_url("conversation", Conversation.objects.get().pk)))
