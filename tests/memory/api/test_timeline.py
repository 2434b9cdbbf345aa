"""`/timeline`: pages of memories by time, filtered, hidden from others; invalid parameters are named."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.agent_memory import AgentMemory
from memory.models import Kind, Memory
from memory.owner import Owner
from memory.retrieval.timeline import TimelineFilter
from tests.api_client import ServiceClient
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW, draft, store
from tests.memory.facts import know
from tests.memory.procedures import learn
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

MINE = "/timeline?agent_id=assistant"


def listed(api: ServiceClient, query: str = "") -> list[str]:
    answer = api.get(f"{MINE}{query}")
    assert answer.status_code == 200, answer.json()
    return [row["summary"] for row in answer.json()["results"]]


@pytest.fixture
def past(owner: Owner) -> None:
    """Store a turn, an episode, a strategy, a fact and an entry, an hour apart."""
    say(owner, turn("turn"), now=NOW - timedelta(hours=4))
    store(owner, draft("episode"), now=NOW - timedelta(hours=3))
    learn(owner, "strategy")
    Memory.objects.filter(kind="strategy").update(event_time=NOW - timedelta(hours=2), text="strategy")
    know(owner, "fact", now=NOW - timedelta(hours=1))
    keep(owner, context_of(owner), entry("entry", importance=0.75, metadata={"page": 3}))


@pytest.mark.usefixtures("past")
def test_memories_of_all_kinds_are_listed_newest_first(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    api.get(MINE)  # the key is noted as used

    with django_assert_num_queries(4):
        row = api.get(MINE).json()["results"][0]

    assert listed(api) == ["entry", "fact", "strategy", "episode", "turn"]
    assert listed(api, "&ordering=event_time") == ["turn", "episode", "strategy", "fact", "entry"]
    said: dict[str, Any] = {"memory_type": "context_entry", "summary": "entry", "truncated": False, "importance": 0.75}
    said |= {"status": None}
    said |= {"access_count": 0, "last_accessed": None, "channel": "_global", "archived": False, "user_id": ""}
    said |= {"metadata": {"page": 3}, "conversation_id": "", "agent_id": "assistant"}
    said |= {"event_time": "2026-05-04T12:00:00Z", "item_key": f"context_entry:{row['id']}"}
    assert row == said | {"id": row["id"]}


@pytest.mark.usefixtures("past")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("&memory_type=turn,fact", ["fact", "turn"]),
        ("&memory_type=episodic", ["episode", "turn"]),
        ("&memory_type=semantic", ["entry", "fact"]),
        ("&memory_type=procedural,turn", ["strategy", "turn"]),
        ("&since=2026-05-04T11:00:00Z", ["entry", "fact"]),
        ("&until=2026-05-04T11:00:00%2B02:00", ["turn"]),
        ("&conversation_id=c1", ["episode", "turn"]),
        ("&channel=garden", []),
        ("&archived=true", []),
        ("&include_archived=true&memory_type=fact", ["fact"]),
        ("&include_archived=false&archived=true", []),
        ("&user_id=ana&memory_type=fact,episode", ["fact", "episode"]),
    ],
)
def test_the_timeline_is_filtered_by_every_parameter(api: ServiceClient, query: str, expected: list[str]) -> None:
    assert listed(api, query) == expected


@pytest.mark.usefixtures("past")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("&archived=true", ["turn"]),
        ("&archived=false", ["fact"]),
        ("&include_archived=true", ["fact", "turn"]),
        ("&include_archived=true&archived=true", ["fact", "turn"]),
        ("&archived=any", ["fact", "turn"]),
    ],
    ids=["archived", "others", "both", "both whatever else is said", "the former word for both"],
)
def test_archived_memories_are_listed_alone_or_among_the_others(
    api: ServiceClient, query: str, expected: list[str]
) -> None:
    Memory.objects.filter(kind="turn").update(archived=True)

    assert listed(api, f"&memory_type=turn,fact{query}") == expected


@pytest.mark.parametrize("ordering", ["event_time", "-event_time"])
def test_pages_in_either_order_neither_skip_nor_repeat(owner: Owner, api: ServiceClient, ordering: str) -> None:
    say(owner, *[turn(f"turn {number}") for number in range(5)])
    store(owner, draft("episode"))
    everything = listed(api, f"&ordering={ordering}")
    url, seen, pages = f"{MINE}&ordering={ordering}&page_size=2", [], []

    while url:
        pages.append(api.get(url).json())
        seen += [row["summary"] for row in pages[-1]["results"]]
        url = pages[-1]["next"] and pages[-1]["next"].split("/api/v1", 1)[1]
    back = api.get(pages[-1]["previous"].split("/api/v1", 1)[1]).json()

    assert (seen, len(seen)) == (everything, 6)
    assert back["results"] == pages[1]["results"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("memory_type=working", "memory_type"),
        ("memory_type=", "memory_type"),
        ("memory_type=turn,", "memory_type"),
        ("archived=yes", "archived"),
        ("include_archived=any", "include_archived"),
        ("since=2026-05-04", "since"),
        ("until=2026-05-04T12:00:00", "until"),
        ("ordering=importance", "ordering"),
        ("conversation_id=%0A", "conversation_id"),
        ("channel=", "channel"),
        ("page_size=0", "page_size"),
        ("cursor=x", "cursor"),
        ("cursor=WzAsICIyMDI2LTA1LTA0VDEyOjAwOjAwIiwgIngiXQ", "cursor"),
        ("kind=turn", "kind"),
    ],
)
def test_an_invalid_parameter_is_named_in_the_refusal(api: ServiceClient, query: str, field: str) -> None:
    answer = api.get(f"/timeline?{query}")

    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


@pytest.mark.usefixtures("past")
def test_other_agents_and_accounts_see_nothing(
    owner: Owner, api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    assert [len(api.get(url).json()["results"]) for url in ("/timeline", "/timeline?agent_id=colleague")] == [5, 0]
    assert stranger_api.get("/timeline?conversation_id=c1&include_archived=true").json()["results"] == []
    assert bound_api.get("/timeline?agent_id=colleague").status_code == 403


@pytest.mark.usefixtures("past")
def test_the_python_api_returns_the_same_timeline(owner: Owner) -> None:
    semantic = TimelineFilter(kinds=[Kind.FACT, Kind.CONTEXT_ENTRY])
    [latest] = AgentMemory(owner).timeline(semantic, limit=1)
    [before] = AgentMemory(owner).timeline(semantic, limit=1, beyond=(latest.event_time, latest.id))

    assert (latest.summary, before.summary) == ("entry", "fact")
    assert len(AgentMemory(owner).timeline()) == 5
