"""Pools, edited by staff: data as JSON, version checks, expiry; and the rows of workflow runs' pools."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.models import AccessControl, Account, AuditEntry, BlackboardPosting, MemoryPool, ToolCacheEntry, WorkflowRun
from memory.owner import Owner
from memory.services.pools.data import cache_result, post_to_blackboard, write_data
from memory.services.pools.manage import PoolDraft, create_pool
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import add_url, choose, form_values, list_url, page_url, shown
from tests.memory.pools import make_team


def now() -> datetime:
    return datetime.now(UTC)


def make(owner: Owner, pool_id: str = "board", **fields: Any) -> MemoryPool:
    return create_pool(owner, PoolDraft(pool_id=pool_id, **fields), now=now())


def make_run_pool(owner: Owner, pool_type: str) -> MemoryPool:
    run = WorkflowRun.objects.create(account_id=owner.account_id, workflow_run_id="run", started_at=now())
    return MemoryPool.objects.create(
        account_id=owner.account_id, pool_id="of a run", pool_type=pool_type, scope="account", workflow_run=run
    )


@pytest.fixture
def pool(owner: Owner) -> MemoryPool:
    return make(owner, data={"a": 1})


def typed(client: Client, pool: MemoryPool, **edits: Any) -> dict[str, Any]:
    """Return what a browser would send of the page as it is now, with these edits."""
    return form_values(client.get(page_url("memorypool", pool.id))) | edits


def save(client: Client, pool: MemoryPool, values: dict[str, Any]) -> Any:
    return client.post(page_url("memorypool", pool.id), values, follow=True)


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def test_data_is_edited_as_json_and_audited(staff: Client, pool: MemoryPool) -> None:
    save(staff, pool, typed(staff, pool, data='{"n": 12345678901234567890, "f": 1.0, "s": "1", "z": null}'))

    pool.refresh_from_db()
    assert json.dumps(pool.data) == '{"n": 12345678901234567890, "f": 1.0, "s": "1", "z": null}'
    assert (pool.version, pool.entry_count, pool.write_count) == (2, 4, 1)
    assert (last_entry().actor, last_entry().memory_type) == ("staff:chief", "pool")


def test_saving_a_page_without_edits_changes_nothing(staff: Client, owner: Owner) -> None:
    pool = make(owner, data={"b": 1, "a": [1.0, {}]}, expires_at=now() + timedelta(hours=1))
    entries = AuditEntry.objects.count()

    save(staff, pool, typed(staff, pool))

    pool.refresh_from_db()
    assert (pool.version, AuditEntry.objects.count()) == (1, entries)


def test_the_history_does_not_name_fields_that_were_not_edited(staff: Client, pool: MemoryPool) -> None:
    values = {name: value for name, value in typed(staff, pool, data='{"a": 2}').items() if name != "agent_id"}

    save(staff, pool, values)

    assert "Owner" not in LogEntry.objects.latest("id").get_change_message()


def test_a_changed_order_of_keys_is_an_edit(staff: Client, owner: Owner) -> None:
    pool = make(owner, data={"b": 1, "a": 2})

    save(staff, pool, typed(staff, pool, data='{"a": 2, "b": 1}'))

    pool.refresh_from_db()
    assert list(pool.data) == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{"a": 1,\r\n "b": }', "line 2, column 7"),
        ('{"a": NaN}', "not valid JSON"),
        ("[1]", "must be an object"),
        ("null", "must be an object"),
        ("", "must be an object"),
        ('{"a": "\\u0000"}', "NUL"),
        ('{"a":' * 100 + "1" + "}" * 100, "64 levels deep"),
    ],
)
def test_data_that_the_api_would_refuse_is_refused_and_stays_in_the_form(
    staff: Client, pool: MemoryPool, data: str, expected: str
) -> None:
    page = save(staff, pool, typed(staff, pool, data=data))

    form = page.context["adminform"].form
    assert expected in str(form.errors["data"])
    assert "".join(form["data"].value().split()) == "".join(data.split())
    assert MemoryPool.objects.get().version == 1


def test_data_over_the_limit_of_a_pool_is_refused_and_stays_in_the_form(staff: Client, pool: MemoryPool) -> None:
    data = json.dumps({"text": "x" * 2_000_000})

    page = save(staff, pool, typed(staff, pool, data=data))

    assert "are allowed; nothing was stored" in shown(page)
    assert json.loads(page.context["adminform"].form["data"].value()) == json.loads(data)


def test_saving_an_outdated_page_shows_a_conflict_and_keeps_what_was_typed(
    staff: Client, owner: Owner, pool: MemoryPool
) -> None:
    values = typed(staff, pool, data='{"mine": 1}')
    write_data(owner, "board", data={"theirs": 2}, expected=None, now=now())

    page = save(staff, pool, values)

    pool.refresh_from_db()
    assert pool.data == {"theirs": 2}
    assert "Not saved. It was changed since you read it and is at version 2 now" in shown(page)
    assert json.loads(page.context["adminform"].form["data"].value()) == {"mine": 1}
    assert "&quot;theirs&quot;: 2" in shown(page)


def test_staff_may_overwrite_a_conflicting_version_after_seeing_it(
    staff: Client, owner: Owner, pool: MemoryPool
) -> None:
    values = typed(staff, pool, data='{"mine": 1}')
    write_data(owner, "board", data={"theirs": 2}, expected=None, now=now())
    refused = save(staff, pool, values)

    save(staff, pool, form_values(refused))

    pool.refresh_from_db()
    assert (pool.data, pool.version) == ({"mine": 1}, 3)


def test_data_and_end_are_saved_together_or_not_at_all(staff: Client, pool: MemoryPool) -> None:
    values = typed(staff, pool, data='{"b": 2}', expires_at_0="2001-01-01", expires_at_1="00:00:00")

    page = save(staff, pool, values)

    pool.refresh_from_db()
    assert (pool.data, pool.version) == ({"a": 1}, 1)
    assert "expires_at must be in the future" in shown(page)


def test_a_pool_is_added_for_an_agent_of_a_team(staff: Client, account: Account) -> None:
    team = make_team(account, agents=["assistant"])
    values = form_values(staff.get(add_url("memorypool"))) | {
        "account": account.id,
        "pool_id": "a/b %2F",
        "pool_type": "team_shared",
        "scope": "",
        "agent_id": "assistant",
        "team": team.id,
        "data": '{"a": 1}',
    }

    staff.post(add_url("memorypool"), values)

    pool = MemoryPool.objects.get()
    assert (pool.pool_id, pool.scope, pool.agent_id, pool.team_id) == ("a/b %2F", "team", "assistant", team.id)
    assert pool.data == {"a": 1}
    assert (last_entry().operation, last_entry().actor) == ("create", "staff:chief")


def test_a_pool_of_an_id_that_is_taken_is_refused_with_a_sentence(
    staff: Client, account: Account, pool: MemoryPool
) -> None:
    values = form_values(staff.get(add_url("memorypool"))) | {"account": account.id, "pool_id": "board"}

    page = staff.post(add_url("memorypool"), values | {"data": '{"kept": true}'})

    assert "The account already has a pool with this id" in shown(page)
    assert '"kept": true' in page.context["adminform"].form["data"].value()


def test_the_id_of_an_expired_pool_can_be_used_again(staff: Client, account: Account, pool: MemoryPool) -> None:
    MemoryPool.objects.update(expires_at=now())
    values = form_values(staff.get(add_url("memorypool"))) | {"account": account.id, "pool_id": "board", "data": "{}"}

    staff.post(add_url("memorypool"), values)

    assert MemoryPool.objects.get().id != pool.id


def test_selected_pools_expire(staff: Client, owner: Owner, pool: MemoryPool) -> None:
    choose(staff, list_url("memorypool"), "expire", pool.id)

    pool.refresh_from_db()
    assert pool.is_expired(now() + timedelta(seconds=2))
    assert last_entry().operation == "update"


@pytest.mark.parametrize("is_expired", [False, True])
def test_a_pool_is_deleted_expired_or_not(staff: Client, pool: MemoryPool, is_expired: bool) -> None:
    if is_expired:
        MemoryPool.objects.update(expires_at=now())

    staff.post(page_url("memorypool", pool.id, "delete"), {"post": "yes"})

    assert not MemoryPool.objects.exists()
    assert (last_entry().operation, last_entry().actor) == ("delete", "staff:chief")


def test_an_expired_pool_is_read_only(staff: Client, pool: MemoryPool) -> None:
    values = typed(staff, pool, data='{"b": 2}')
    MemoryPool.objects.update(expires_at=now())

    page = staff.get(page_url("memorypool", pool.id))

    assert "<textarea" not in shown(page)
    assert save(staff, pool, values).status_code == 403
    assert MemoryPool.objects.get().data == {"a": 1}


def test_a_list_of_pools_loads_no_data(staff: Client, pool: MemoryPool) -> None:
    with CaptureQueriesContext(connection) as captured:
        page = staff.get(list_url("memorypool"))

    assert page.context["cl"].result_count == 1
    assert not [query for query in captured if '"memory_pools"."data"' in query["sql"]]


@pytest.mark.parametrize(("expiry", "found"), [("live", 2), ("expired", 1), ("never", 1), ("nonsense", 3)])
def test_pools_are_filtered_by_expiry(staff: Client, owner: Owner, expiry: str, found: int) -> None:
    make(owner, "for good")
    make(owner, "for an hour", expires_at=now() + timedelta(hours=1))
    MemoryPool.objects.filter(pk=make(owner, "gone").pk).update(expires_at=now())

    assert staff.get(list_url("memorypool", expiry=expiry)).context["cl"].result_count == found


def test_whatever_a_pool_holds_is_shown_as_text(staff: Client, newcomer: Client, owner: Owner) -> None:
    pool = make(owner, HOSTILE[:90], data={HOSTILE: HOSTILE}, access_control=AccessControl(read=[HOSTILE[:90]]))
    allow("newcomer", "view_memorypool")
    pages = [page_url("memorypool", pool.id, page) for page in ("change", "delete", "history")]

    for client in (staff, newcomer):
        for url in (list_url("memorypool"), *pages[: 1 if client is newcomer else 3]):
            page = shown(client.get(url))
            assert "<script>alert" not in page
            assert "<img src=x" not in page
    assert "\u202e" not in shown(newcomer.get(pages[0])).split("Content</h2>")[1].split("Access</h2>")[0]


def test_the_view_permission_alone_allows_no_changes(newcomer: Client, pool: MemoryPool) -> None:
    allow("newcomer", "view_memorypool")

    page = newcomer.get(page_url("memorypool", pool.id))

    assert "&quot;a&quot;: 1" in shown(page)
    assert "<textarea" not in shown(page)
    assert save(newcomer, pool, {"data": "{}", "seen_version": "1"}).status_code == 403
    choose(newcomer, list_url("memorypool"), "expire", pool.id)
    assert MemoryPool.objects.get().version == 1


def test_postings_are_read_in_their_order_and_never_changed(staff: Client, owner: Owner) -> None:
    board = make_run_pool(owner, "blackboard")
    for number in range(3):
        post_to_blackboard(
            Owner(account_id=owner.account_id, actor="t"), "of a run", content={"n": number, "s": HOSTILE}, now=now()
        )

    url = list_url("blackboardposting", account=owner.account_id, pool__id__exact=board.id)
    listed = staff.get(url)

    rows = listed.context["cl"].result_list
    assert [row.position for row in rows] == [0, 1, 2]
    assert "<script>alert" not in shown(listed) + shown(staff.get(page_url("blackboardposting", rows[0].pk)))
    assert staff.post(page_url("blackboardposting", rows[0].pk, "delete"), {"post": "yes"}).status_code == 403
    assert "3 postings" in shown(staff.get(page_url("memorypool", board.id)))


@pytest.mark.parametrize("is_expired", [False, True])
def test_a_cached_result_is_shown_with_its_expiry_and_deleted(staff: Client, owner: Owner, is_expired: bool) -> None:
    make_run_pool(owner, "tool_cache")
    since = now() - timedelta(hours=2 if is_expired else 0)
    account = Owner(account_id=owner.account_id, actor="test")
    entry = cache_result(account, "of a run", "weather", value={"<b>": 1}, now=since)

    page = shown(staff.get(page_url("toolcacheentry", entry.pk)))
    staff.post(page_url("toolcacheentry", entry.pk, "delete"), {"post": "yes"})

    assert ("(expired)" in page, "&lt;b&gt;" in page) == (is_expired, True)
    assert not ToolCacheEntry.objects.exists()
    assert (last_entry().operation, last_entry().actor) == ("delete", "staff:chief")


def test_deleting_rows_of_an_ended_run_is_refused_with_the_reason(staff: Client, owner: Owner) -> None:
    make_run_pool(owner, "tool_cache")
    entry = cache_result(Owner(account_id=owner.account_id), "of a run", "weather", value=1, now=now())
    WorkflowRun.objects.update(status="completed", ended_at=now())

    alone = staff.post(page_url("toolcacheentry", entry.pk, "delete"), {"post": "yes"}, follow=True)
    selected = choose(staff, list_url("toolcacheentry"), "delete_selected", entry.pk, post="yes")

    assert all("run has ended" in shown(page) for page in (alone, selected))
    assert ToolCacheEntry.objects.exists()
    assert not BlackboardPosting.objects.exists()
