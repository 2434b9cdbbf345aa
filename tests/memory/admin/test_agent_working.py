"""An agent's working memory, which is stored in Redis, is viewed and edited from the agent's page."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memory.models import Account, Agent, AuditEntry, SavedWorkingMemory
from memory.owner import Owner
from memory.tiers.agent_working import WorkingMemoryService
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import list_url, page_url, shown
from tests.memory.episodes import NOW
from tests.round_trips import counted_commands

pytestmark = pytest.mark.usefixtures("empty_redis")

ODD = "a/b {c} %2F : é"


@pytest.fixture
def agent(account: Account) -> Agent:
    return Agent.objects.create(account=account, agent_id="assistant")


@pytest.fixture
def memory(owner: Owner, empty_redis: None) -> WorkingMemoryService:
    """The agent's own."""
    service = WorkingMemoryService(owner)
    service.store("n", 1.0, 100)
    service.store("pad", "<b>buy</b> \u202e", 100)
    return service


def address(agent: Agent, page: str = "working-memory/values", **query: str) -> str:
    url = reverse(f"admin:memory_agent_{page}", args=[agent.pk])
    return f"{url}?{urlencode(query)}" if query else url


def send(client: Client, agent: Agent, action: str, place: dict[str, str] | None = None, **data: Any) -> Any:
    return client.post(address(agent, **(place or {})), {"action": action, **data}, follow=True)


def places(client: Client, agent: Agent, **query: str) -> list[str]:
    return [name for name, _ in client.get(address(agent, "working-memory", **query)).context["memories"]]


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def test_the_agents_page_links_to_its_working_memory(staff: Client, agent: Agent) -> None:
    assert address(agent, "working-memory") in shown(staff.get(page_url("agent", agent.id)))


def test_working_memories_of_the_agent_are_listed_and_open(
    staff: Client, owner: Owner, agent: Agent, memory: WorkingMemoryService
) -> None:
    WorkingMemoryService(owner, task_id=ODD).store("n", 1)
    WorkingMemoryService(owner, task_id="t", workflow_run_id="r").store("n", 1)
    WorkingMemoryService(Owner(account_id=owner.account_id, agent_id="other"), task_id="theirs").store("n", 1)

    page = staff.get(address(agent, "working-memory"))

    names, urls = zip(*page.context["memories"], strict=True)
    assert names == ("general", f"task {ODD}", "task t, workflow run r")
    assert [len(staff.get(url).context["rows"]) for url in urls] == [2, 1, 1]


def test_working_memory_of_an_agent_in_another_account_is_not_shown(
    staff: Client, stranger: Account, memory: WorkingMemoryService
) -> None:
    namesake = Agent.objects.create(account=stranger, agent_id="assistant")

    assert places(staff, namesake) == ["general"]
    assert staff.get(address(namesake)).context["rows"] == []


def test_a_working_memory_is_opened_by_task_and_run(staff: Client, agent: Agent) -> None:
    page = staff.get(address(agent, "working-memory", task=ODD, run="r"), follow=True)

    assert page.redirect_chain == [(address(agent, task=ODD, run="r"), 302)]


def test_values_are_shown_escaped_with_the_time_they_have_left(
    staff: Client, agent: Agent, memory: WorkingMemoryService
) -> None:
    page = staff.get(address(agent))

    assert [(row.name, row.value) for row in page.context["rows"]] == [
        ("n", "1.0"),
        ("pad", '"<b>buy</b> \\u202e"'),
    ]
    assert all(95 <= row.ttl_seconds <= 100 for row in page.context["rows"])
    assert "<b>buy" not in shown(page)


def test_a_value_is_corrected_and_audited(staff: Client, agent: Agent, memory: WorkingMemoryService) -> None:
    send(staff, agent, "save", name="n", value='{"a": [1, "1", null]}', ttl_seconds="20")

    stored = memory.find("n")
    assert stored is not None
    assert stored.value == {"a": [1, "1", None]}
    # it had a hundred
    assert 0 < stored.ttl_seconds <= 20
    entry = last_entry()
    assert (entry.actor, entry.agent_id, entry.memory_type) == ("staff:chief", "assistant", "working")
    assert (entry.operation, entry.affected_ids) == ("update", ["n"])


def test_a_value_is_set_where_it_was_opened_and_nowhere_else(
    staff: Client, owner: Owner, agent: Agent, memory: WorkingMemoryService
) -> None:
    send(staff, agent, "add", {"task": "t"}, name="new", value="null", ttl_seconds="60")

    assert WorkingMemoryService(owner, task_id="t").keys() == ["new"]
    assert memory.keys() == ["n", "pad"]


@pytest.mark.parametrize(
    "edits",
    [
        {"value": ""},
        {"value": "{"},
        {"value": "NaN"},
        {"value": f'"{"x" * 70_000}"'},
        {"name": ""},
        {"name": "a\x00b"},
        {"name": "x" * 201},
        {"ttl_seconds": "0"},
        {"ttl_seconds": "604801"},
        {"ttl_seconds": "soon"},
    ],
)
def test_an_invalid_value_is_refused_and_stays_in_the_form(
    staff: Client, agent: Agent, edits: dict[str, str], owner: Owner
) -> None:
    typed: dict[str, Any] = {"name": "new", "value": "[7]", "ttl_seconds": "60"} | edits

    page = send(staff, agent, "add", **typed)

    assert "Nothing was changed" in shown(page)
    assert page.context["form"]["value"].value() is not None
    assert WorkingMemoryService(owner).keys() == []
    assert not AuditEntry.objects.exists()


def test_values_are_removed_one_by_one_and_then_all(staff: Client, agent: Agent, memory: WorkingMemoryService) -> None:
    send(staff, agent, "remove", name="n")
    left = memory.keys()
    send(staff, agent, "clear")

    assert (left, memory.keys()) == (["pad"], [])
    assert [entry.operation for entry in AuditEntry.objects.order_by("id")] == ["delete", "clear"]


def test_working_memory_is_saved_in_the_database_and_loaded_again(
    staff: Client, agent: Agent, memory: WorkingMemoryService
) -> None:
    send(staff, agent, "persist")
    memory.clear()
    send(staff, agent, "load")

    assert memory.retrieve("n") == 1.0
    saved = SavedWorkingMemory.objects.get()
    assert page_url("savedworkingmemory", saved.id) in shown(staff.get(address(agent, "working-memory")))
    assert {entry.actor for entry in AuditEntry.objects.all()} == {"staff:chief"}


def test_loading_a_never_saved_working_memory_shows_a_message(staff: Client, agent: Agent) -> None:
    assert "This working memory has never been saved" in shown(send(staff, agent, "load"))


def test_many_values_take_a_bounded_number_of_round_trips_and_are_filtered_by_name(
    staff: Client, agent: Agent, owner: Owner
) -> None:
    for number in range(120):
        WorkingMemoryService(owner).store(f"value {number}", number)
    # loads the scripts
    staff.get(address(agent))

    with counted_commands() as commands:
        whole = staff.get(address(agent))
    narrow = staff.get(address(agent, named="value 119"))

    assert "50 of 120 are shown" in shown(whole)
    assert len(commands) <= 51
    assert [row.name for row in narrow.context["rows"]] == ["value 119"]


def test_a_saved_working_memory_is_shown_as_text_and_deleted(staff: Client, account: Account) -> None:
    values = {HOSTILE: {"json": '"<script>alert(1)</script>"', "ttl_ms": 1500}}
    saved = SavedWorkingMemory.objects.create(account=account, agent_id=HOSTILE[:90], values=values, saved_at=NOW)

    pages = shown(staff.get(page_url("savedworkingmemory", saved.id))) + shown(
        staff.get(list_url("savedworkingmemory"))
    )
    staff.post(page_url("savedworkingmemory", saved.id, "delete"), {"post": "yes"})

    assert "<script>alert" not in pages
    assert "1.5" in pages
    assert not SavedWorkingMemory.objects.exists()
    assert (last_entry().operation, last_entry().actor) == ("delete", "staff:chief")


def test_hostile_names_are_shown_as_text(staff: Client, account: Account) -> None:
    agent = Agent.objects.create(account=account, agent_id=HOSTILE[:90])
    owner = Owner(account_id=account.id, agent_id=agent.agent_id)
    WorkingMemoryService(owner, task_id=HOSTILE[:90]).store(HOSTILE, HOSTILE)

    for url in (address(agent, "working-memory"), address(agent, task=HOSTILE[:90])):
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page


def test_pages_need_permission_to_look(newcomer: Client, agent: Agent) -> None:
    allow("newcomer", "view_agent", "change_agent")

    assert newcomer.get(address(agent, "working-memory")).status_code == 403
    assert newcomer.get(address(agent)).status_code == 403
    assert send(newcomer, agent, "clear").status_code == 403


def test_the_view_permission_alone_allows_no_changes(
    newcomer: Client, agent: Agent, memory: WorkingMemoryService
) -> None:
    allow("newcomer", "view_savedworkingmemory")

    page = newcomer.get(address(agent))

    assert "<textarea" not in shown(page)
    assert send(newcomer, agent, "clear").status_code == 403
    assert memory.keys() == ["n", "pad"]


def test_a_form_from_elsewhere_is_refused(chief: User, agent: Agent, memory: WorkingMemoryService) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(chief)

    assert send(client, agent, "clear").status_code == 403
    assert memory.keys() == ["n", "pad"]


@pytest.mark.parametrize("query", [{"task": "x" * 101}, {"run": "\x00"}, {"cursor": "-1"}, {"cursor": "9" * 30}])
def test_nonsense_in_the_address_is_no_error(staff: Client, agent: Agent, query: dict[str, str]) -> None:
    for page in ("working-memory", "working-memory/values"):
        assert staff.get(address(agent, page, **query), follow=True).status_code == 200


def test_an_unknown_agent_or_action_is_404(staff: Client, agent: Agent) -> None:
    assert staff.get(reverse("admin:memory_agent_working-memory", args=["nonsense"])).status_code == 404
    assert send(staff, agent, "explode").status_code == 404


def test_without_redis_a_page_says_so(staff: Client, agent: Agent, dead_redis: None) -> None:
    pages = [
        staff.get(address(agent, "working-memory")),
        staff.get(address(agent)),
        send(staff, agent, "add", name="n", value="1", ttl_seconds="1"),
    ]

    assert [page.status_code for page in pages] == [503, 503, 503]
    assert not AuditEntry.objects.exists()
