"""Grants of a pool: edited as a table of agents, audited, and never changed by accident."""

from typing import Any

import pytest
from django.test import Client

from memory.admin.grants import MAX_GRANT_ROWS
from memory.models import AccessControl, Account, Agent, AuditEntry, MemoryPool
from memory.owner import Owner
from memory.services.pools.manage import grant_access
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import form_values, page_url, shown
from tests.memory.pools import NOW, make_pool

NAME = "access_control"


@pytest.fixture
def pool(owner: Owner) -> MemoryPool:
    """A pool with grants for ana (read), ben (write) and cy (both)."""
    return make_pool(owner, access_control=AccessControl(read=["ana", "cy"], write=["ben", "cy"]))


def page_of(client: Client, pool: MemoryPool) -> Any:
    return client.get(page_url("memorypool", pool.id))


def save(client: Client, pool: MemoryPool, *unchecked: str, **edits: Any) -> Any:
    """Save the page with some boxes of the table edited, as `row_box`, or unchecked."""
    values = form_values(page_of(client, pool)) | {f"{NAME}-{box.replace('_', '-')}": v for box, v in edits.items()}
    for box in unchecked:
        del values[f"{NAME}-{box.replace('_', '-')}"]
    return client.post(page_url("memorypool", pool.id), values, follow=True)


def stored() -> dict[str, Any]:
    control: dict[str, Any] = MemoryPool.objects.get().access_control
    return control


def test_saving_the_table_as_it_is_changes_nothing(staff: Client, pool: MemoryPool) -> None:
    entries = AuditEntry.objects.count()

    save(staff, pool)

    assert stored() == pool.access_control
    assert AuditEntry.objects.count() == entries


def test_granting_access_to_an_agent_is_audited(staff: Client, pool: MemoryPool) -> None:
    save(staff, pool, **{"3_agent": "dan", "3_read": "on"})

    assert stored() == {"read": ["ana", "cy", "dan"], "write": ["ben", "cy"], "public_read": False}
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.actor, entry.operation, entry.memory_type) == ("staff:chief", "update", "pool")
    assert entry.affected_ids == [str(pool.id)]
    assert MemoryPool.objects.get().version == 2


def test_granting_write_access_needs_no_separate_read_checkbox(staff: Client, pool: MemoryPool) -> None:
    save(staff, pool, **{"3_agent": "dan", "3_write": "on"})

    assert stored()["write"] == ["ben", "cy", "dan"]


def test_revoking_write_access_keeps_read_access(staff: Client, pool: MemoryPool) -> None:
    save(staff, pool, "1_write", "2_write")

    assert stored() == {"read": ["ana", "ben", "cy"], "write": [], "public_read": False}


def test_an_agent_is_removed(staff: Client, pool: MemoryPool) -> None:
    save(staff, pool, **{"2_remove": "on"})

    assert stored() == {"read": ["ana"], "write": ["ben"], "public_read": False}


def test_an_agent_with_no_checked_box_loses_access(staff: Client, pool: MemoryPool) -> None:
    save(staff, pool, "0_read")

    assert stored()["read"] == ["cy"]


def test_public_reading_has_its_own_checkbox(staff: Client, pool: MemoryPool) -> None:
    save(staff, pool, public="on")
    is_open = stored()["public_read"]
    save(staff, pool, "public")

    assert (is_open, stored()["public_read"]) == (True, False)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"3_agent": "dan"}, "Choose what dan may do."),
        ({"3_agent": "ana", "3_read": "on"}, "Each agent may have only one row."),
        ({"3_agent": "x" * 101, "3_read": "on"}, "at most 100 characters"),
        ({"3_agent": "a\nb", "3_read": "on"}, "Control characters"),
        ({"3_agent": "a\x00b", "3_read": "on"}, "Null characters"),
    ],
)
def test_an_invalid_grant_is_refused_and_stays_in_the_table(
    staff: Client, pool: MemoryPool, edits: dict[str, str], expected: str
) -> None:
    page = save(staff, pool, **edits)

    form = page.context["adminform"].form
    assert expected in str(form.errors[NAME])
    assert form[NAME].value().rows[3].agent_id == edits["3_agent"]
    assert stored() == pool.access_control


def test_read_access_cannot_be_revoked_from_an_agent_that_may_write(staff: Client, pool: MemoryPool) -> None:
    page = save(staff, pool, "1_read")

    assert "An agent that may write may also read" in shown(page)
    assert stored() == pool.access_control


def test_a_grant_made_meanwhile_is_not_lost(staff: Client, owner: Owner, pool: MemoryPool) -> None:
    values = form_values(page_of(staff, pool)) | {f"{NAME}-3-agent": "dan", f"{NAME}-3-read": "on"}
    grant_access(owner, "board", agent_id="eve", level="read", expected=None, now=NOW)  # type: ignore[arg-type]

    page = staff.post(page_url("memorypool", pool.id), values)

    assert stored()["read"] == ["ana", "cy", "eve"]
    assert "now: read it again" in shown(page)
    assert page.context["adminform"].form[NAME].value().rows[3].agent_id == "dan"


def test_agents_of_the_account_are_offered(
    staff: Client, account: Account, stranger: Account, pool: MemoryPool
) -> None:
    Agent.objects.create(account=account, agent_id="ana")
    Agent.objects.create(account=stranger, agent_id="foreigner")

    page = shown(page_of(staff, pool))

    assert '<option value="ana">' in page
    assert "foreigner" not in page


def test_agents_that_never_wrote_are_marked(staff: Client, account: Account, pool: MemoryPool) -> None:
    Agent.objects.create(account=account, agent_id="ana")

    assert shown(page_of(staff, pool)).count("unknown agent") == 2


def test_more_agents_than_a_table_takes_are_edited_as_json(staff: Client, owner: Owner) -> None:
    names = [f"agent {n:04}" for n in range(MAX_GRANT_ROWS + 1)]
    pool = make_pool(owner, access_control=AccessControl(read=names))
    values = form_values(page_of(staff, pool))

    values[f"{NAME}-json"] = '{"read": ["ana"], "write": [], "public_read": true}'
    staff.post(page_url("memorypool", pool.id), values)

    assert stored() == {"read": ["ana"], "write": [], "public_read": True}


@pytest.mark.parametrize("typed", ["", "{", "[]", '{"read": [1]}', '{"all": true}', '{"read": ["a\\nb"]}'])
def test_invalid_access_control_json_is_refused(staff: Client, owner: Owner, typed: str) -> None:
    names = [f"agent {n:04}" for n in range(MAX_GRANT_ROWS + 1)]
    pool = make_pool(owner, access_control=AccessControl(read=names))

    page = save(staff, pool, json=typed)

    assert page.context["adminform"].form.errors[NAME]
    assert stored()["read"] == names


@pytest.mark.parametrize("rows", ["-1", "x", "9" * 30, "²"])
def test_a_nonsensical_number_of_rows_is_no_error(staff: Client, pool: MemoryPool, rows: str) -> None:
    assert save(staff, pool, rows=rows).status_code == 200


def test_names_of_agents_are_shown_as_text(staff: Client, newcomer: Client, owner: Owner) -> None:
    pool = make_pool(owner, access_control=AccessControl(read=[HOSTILE[:70]]))
    allow("newcomer", "view_memorypool")

    for page in (shown(page_of(staff, pool)), shown(page_of(newcomer, pool))):
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page


def test_the_view_permission_shows_grants_without_a_form(newcomer: Client, pool: MemoryPool) -> None:
    allow("newcomer", "view_memorypool")

    page = shown(page_of(newcomer, pool))

    assert page.count("read and write") == 2
    assert f"{NAME}-rows" not in page


def test_a_page_costs_as_many_queries_for_many_agents_as_for_few(
    staff: Client, account: Account, pool: MemoryPool, django_assert_max_num_queries: Any
) -> None:
    Agent.objects.bulk_create(Agent(account=account, agent_id=f"a{n}") for n in range(300))
    MemoryPool.objects.update(access_control=AccessControl(read=[f"a{n}" for n in range(90)]).model_dump())

    with django_assert_max_num_queries(8):
        assert page_of(staff, pool).status_code == 200
