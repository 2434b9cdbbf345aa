"""Notes and episodes that replace earlier ones, and notes that turns replace."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.models import Link, Memory
from memory.owner import Owner
from memory.retrieval.queries import Query
from memory.scoring import SURE_REPLACEMENT
from memory.services.embedding.embed import embed_texts
from memory.services.embedding.queue import embed_pending
from memory.services.memories.correct import erase_memories
from memory.services.memories.links import REPLACES, NewLink
from memory.services.notes import NoteDraft, change_note, store_note
from memory.services.recall.recall import RecallRequest, recall
from memory.services.replacements import keep_ends
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.turns import store_turns
from tests.api_client import ServiceClient
from tests.memory.episodes import NOW
from tests.memory.notes import jot
from tests.memory.turns import turn

BEFORE, NOW_TRUE = "The user lives in Porto.", "The user moved to Braga and lives there now."
DAYS_AGO_6, DAY_AGO = NOW - timedelta(days=6), NOW - timedelta(days=1)
pytestmark = pytest.mark.django_db


def links() -> dict[tuple[str, str], float]:
    rows = Link.objects.filter(type="REPLACES").select_related("source", "target")
    return {(row.source.text, row.target.text): row.weight for row in rows}


def ask(owner: Owner, text: str) -> list[tuple[str, object]]:
    """Return texts of the results and what superseded them, best first."""
    results = recall(owner, RecallRequest(query=Query(text=text)), now=NOW).results
    return [(each.text, each.superseded_by) for each in results]


def test_a_later_note_comes_before_the_one_that_it_replaces_which_says_so(owner: Owner) -> None:
    jot(owner, BEFORE, event_time=DAYS_AGO_6)
    newer = jot(owner, NOW_TRUE, event_time=DAY_AGO)

    assert links()[NOW_TRUE, BEFORE] >= SURE_REPLACEMENT
    assert ask(owner, "Where does the user live?") == [(NOW_TRUE, None), (BEFORE, newer.id)]


def test_notes_of_one_minute_replace_each_other_as_well(owner: Owner) -> None:
    jot(owner, BEFORE, event_time=NOW - timedelta(seconds=30))
    jot(owner, NOW_TRUE, event_time=NOW)

    assert list(links()) == [(NOW_TRUE, BEFORE)]


def test_a_turn_replaces_an_earlier_note_and_a_note_an_earlier_turn(owner: Owner) -> None:
    said = "My standup is at half past nine."
    jot(owner, BEFORE, event_time=DAYS_AGO_6)
    store_turns(owner, "mon", drafts=[turn(said, timestamp=DAYS_AGO_6)], embedded=embed_texts([said]), now=NOW)
    later = "I moved to Braga last week and live there now."
    store_turns(owner, "sat", drafts=[turn(later, timestamp=DAY_AGO)], embedded=embed_texts([later]), now=NOW)
    moved = jot(owner, "The user's standup was moved to ten o'clock.", event_time=DAY_AGO)

    assert {pair for pair, weight in links().items() if weight >= SURE_REPLACEMENT} == {
        (later, BEFORE),
        (moved.text, said),
    }


@pytest.mark.parametrize("other", [{"agent_id": "scout"}, {"user_id": "zoe"}, {"channel": "garden"}])
def test_notes_of_other_agents_users_and_channels_are_not_compared(owner: Owner, other: dict[str, str]) -> None:
    jot(replace(owner, **other), BEFORE, event_time=DAYS_AGO_6)  # type: ignore[arg-type]
    jot(owner, NOW_TRUE, event_time=DAY_AGO)

    assert links() == {}


def test_a_note_with_another_text_is_compared_again(owner: Owner) -> None:
    jot(owner, BEFORE, event_time=DAYS_AGO_6)
    newer = jot(owner, NOW_TRUE, event_time=DAY_AGO)
    text = "The cello needs a new string before the concert."

    change_note(owner, newer.id, changes={"text": text}, embedded=embed_texts([text]), now=NOW)
    assert links() == {}

    change_note(owner, newer.id, changes={"text": NOW_TRUE}, embedded=embed_texts([]), now=NOW)
    assert links() == {}
    embed_pending(now=NOW + timedelta(minutes=1), limit=10)
    assert list(links()) == [(NOW_TRUE, BEFORE)]


def test_a_later_episode_replaces_an_earlier_one(owner: Owner) -> None:
    before, now_true = "The release is planned for 12 June.", "The release was postponed to 3 July."
    for summary, conversation_id, at in [(before, "mon", DAYS_AGO_6), (now_true, "sat", DAY_AGO)]:
        draft = EpisodeDraft(conversation_id=conversation_id, summary=summary, event_time=at)
        store_episodes(owner, drafts=[draft], embedded=embed_texts([summary]), now=NOW)

    assert links()[now_true, before] >= SURE_REPLACEMENT
    assert [text for text, _ in ask(owner, "When is the release?")] == [now_true, before]


def test_what_is_remembered_over_http_is_answered_as_it_is_now(bound_api: ServiceClient) -> None:
    for text, event_time in [(BEFORE, "2026-05-01T09:00:00Z"), (NOW_TRUE, "2026-05-06T09:00:00Z")]:
        stored = bound_api.post("/memories", {"text": text, "event_time": event_time, "user_id": "ana"})
        assert stored.status_code == 201, stored.json()

    found = bound_api.post("/recall", {"query": "Where does the user live?", "user_id": "ana"}).json()["results"]

    newer = Memory.objects.get(text=NOW_TRUE)
    assert [(each["text"], each["superseded_by"]) for each in found] == [(NOW_TRUE, None), (BEFORE, str(newer.id))]


def test_a_note_of_another_time_is_compared_again(owner: Owner) -> None:
    first = jot(owner, "The staging database runs on port 5432.", event_time=DAYS_AGO_6)
    second = jot(owner, "The staging database runs on port 5433.", event_time=DAY_AGO)
    assert list(links()) == [(second.text, first.text)]

    change_note(owner, first.id, changes={"event_time": NOW}, embedded=embed_texts([]), now=NOW)
    assert list(links()) == [(first.text, second.text)]

    text = "The staging database runs on port 5434."
    changes = {"event_time": DAYS_AGO_6, "text": text}
    change_note(owner, first.id, changes=changes, embedded=embed_texts([text]), now=NOW)
    assert list(links()) == [(second.text, text)]


def test_a_new_text_that_waits_for_its_vector_replaces_nothing(owner: Owner) -> None:
    jot(owner, BEFORE, event_time=DAYS_AGO_6)
    newer = jot(owner, NOW_TRUE, event_time=DAY_AGO)

    change_note(owner, newer.id, changes={"text": "The user likes tea."}, embedded=embed_texts([]), now=NOW)

    assert links() == {}


def test_of_two_notes_of_one_time_the_one_that_was_stored_later_replaces_the_other(owner: Owner) -> None:
    texts = ["The staging database runs on port 5432.", "The staging database runs on port 5433."]
    nothing = embed_texts([])
    first, second = (store_note(owner, NoteDraft(text=text), embedded=nothing, now=NOW) for text in texts)

    embed_pending(now=NOW + timedelta(minutes=1), limit=10)

    assert list(links()) == [(second.text, first.text)]


def test_a_link_to_a_memory_that_is_gone_is_left_out(owner: Owner) -> None:
    older, newer = jot(owner, BEFORE), jot(owner, "Bread is sold at noon.")
    link = NewLink(source_id=newer.id, type=REPLACES, target_id=older.id, weight=0.7)

    assert keep_ends(owner.account_id, [link]) == [link]
    erase_memories(owner, [older.id])
    assert keep_ends(owner.account_id, [link]) == []


def test_notes_built_alike_about_different_things_leave_each_other_alone(owner: Owner) -> None:
    for text in ("Invoice 1042 is due on 3 May.", "Invoice 1043 is due on 17 May."):
        jot(owner, text)

    assert links() == {}
    assert ask(owner, "When is invoice 1042 due?")[0] == ("Invoice 1042 is due on 3 May.", None)
