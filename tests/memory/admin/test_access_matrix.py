"""The access page of an account: what each agent may do with pools and contexts, and API keys, which are rotated."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memory.admin import access_matrix
from memory.admin.access_matrix import MAX_AGENTS
from memory.models import Account, Agent, ApiKey, AuditEntry, PersistentContext, StaffLimit, Team, TeamMember
from memory.models.access import AccessControl
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE, issue_key
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import choose, list_url, page_url, queries_of, shown
from tests.memory.admin.test_lists import INLINE
from tests.memory.contexts import context_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def url(account: Account) -> str:
    return page_url("account", account.pk, "access")


def grant(context: PersistentContext, **grants: Any) -> None:
    PersistentContext.objects.filter(pk=context.pk).update(access_control=AccessControl(**grants).model_dump())


def cells(response: Any) -> dict[str, dict[str, str]]:
    matrix = response.context["matrix"]
    return {row.name: dict(zip(matrix.agents, row.cells, strict=True)) for row in matrix.rows}


def secret_of(page: str) -> str:
    return page.partition('<pre class="secret">')[2].partition("<")[0]


def test_the_matrix_says_what_each_agent_may_do(staff: Client, owner: Owner, url: str) -> None:
    grant(context_of(owner, "notes"), read=["ben"], write=["eve"])
    grant(context_of(owner, "news"), public_read=True)

    assert cells(staff.get(url)) == {
        "notes": {"assistant": "owns", "ben": "reads", "eve": "writes"},
        "news": {"assistant": "owns", "ben": "reads", "eve": "reads"},
    }


def test_agents_that_no_row_names_have_a_column_too(staff: Client, account: Account, owner: Owner, url: str) -> None:
    team = Team.objects.create(account=account, name="kitchen")
    TeamMember.objects.create(account=account, team=team, agent_id="cook")
    Agent.objects.create(account=account, agent_id="waiter")
    opened, closed = context_of(owner, "open"), context_of(owner, "closed")
    PersistentContext.objects.filter(pk=opened.pk).update(scope="account")
    PersistentContext.objects.filter(pk=closed.pk).update(scope="team", team=team)

    page = staff.get(url)

    assert cells(page) == {
        "open": {"assistant": "owns", "cook": "reads", "waiter": "reads"},
        "closed": {"assistant": "", "cook": "writes", "waiter": ""},
    }
    assert {row.name: row.others for row in page.context["matrix"].rows} == {"open": "reads", "closed": ""}
    assert "Any other agent" in shown(page)


def test_an_agent_has_the_access_of_its_team_however_many_are_in_it(
    staff: Client, account: Account, owner: Owner, url: str
) -> None:
    team = Team.objects.create(account=account, name="kitchen")
    names = [*(f"cook-{number}" for number in range(10_000)), "chef", "assistant"]
    TeamMember.objects.bulk_create(TeamMember(account=account, team=team, agent_id=name) for name in names)
    closed = context_of(owner, "closed")
    PersistentContext.objects.filter(pk=closed.pk).update(scope="team", team=team, agent_id="")

    page = staff.get(url)

    shown_cells = cells(page)["closed"]
    assert set(shown_cells.values()) == {"writes"}
    assert {"assistant", "chef"} <= set(shown_cells)
    assert (len(shown_cells), page.context["matrix"].is_cut) == (MAX_AGENTS, True)


def test_rows_lead_to_the_pages_where_grants_are_changed(staff: Client, owner: Owner, url: str) -> None:
    context = context_of(owner, "notes")

    assert page_url("persistentcontext", context.pk) in shown(staff.get(url))
    assert url in shown(staff.get(page_url("account", owner.account_id)))


def test_keys_show_their_scopes_bindings_and_last_use(staff: Client, account: Account, url: str) -> None:
    issue_key(account, scopes=READ_WRITE, agent_id="assistant", user_id="ana", name="laptop")

    [key] = staff.get(url).context["keys"]

    assert (key.name, key.binding, key.scopes, key.state) == ("laptop", "assistant, ana", "read, write", "valid")
    assert ">never<" in shown(staff.get(url))


def test_a_valid_key_is_shown_however_many_have_ended(
    staff: Client, account: Account, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_matrix, "MAX_KEYS", 2)
    now = datetime.now(UTC)
    for name, revoked_at, expires_at in (
        ("old", None, None), ("expiring", None, now + timedelta(days=1)), ("expired", None, now - timedelta(days=1)),
        ("revoked", now, None),
    ):  # fmt: skip
        key = issue_key(account, scopes=READ_WRITE, name=name).key
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=revoked_at, expires_at=expires_at)

    page = staff.get(url)

    assert [key.name for key in page.context["keys"]] == ["expiring", "old"]
    assert "Only 2 keys are shown" in shown(page)
    monkeypatch.setattr(access_matrix, "MAX_KEYS", 4)
    assert "keys are shown" not in shown(staff.get(url))


def test_a_key_is_revoked_from_there_with_a_reason(staff: Client, account: Account, url: str) -> None:
    key = issue_key(account, scopes=READ_WRITE).key

    choose(staff, list_url("apikey"), "revoke", key.pk)

    assert staff.get(url).context["keys"][0].state == "revoked"


@pytest.mark.parametrize(("hours", "is_revoked"), [(0, True), (24, False)])
def test_a_rotated_key_has_the_same_rights_and_is_shown_once(
    staff: Client, account: Account, hours: int, is_revoked: bool
) -> None:
    old = issue_key(account, scopes=READ_WRITE, agent_id="assistant", user_id="ana", name="laptop").key

    page = shown(staff.post(page_url("apikey", old.pk, "rotate"), {"overlap": hours}))

    new = ApiKey.objects.exclude(pk=old.pk).get()
    old.refresh_from_db()
    assert new.secret_hash == ApiKey.hash_secret(secret_of(page))
    assert [new.scopes, new.agent_id, new.user_id, new.name] == [["read", "write"], "assistant", "ana", "laptop"]
    assert (old.revoked_at is not None) == is_revoked
    if not is_revoked:
        assert old.expires_at is not None
        assert timedelta(hours=23) < old.expires_at - datetime.now(UTC) <= timedelta(hours=24)
    entry = AuditEntry.objects.get(operation="rotate")
    assert (entry.actor, entry.affected_ids) == ("staff:chief", [str(old.pk), str(new.pk)])
    assert secret_of(page) not in shown(staff.get(page_url("apikey", new.pk)))


def test_a_key_that_is_not_valid_is_not_rotated(staff: Client, account: Account) -> None:
    key = issue_key(account, scopes=READ_WRITE, expires_at=datetime.now(UTC) - timedelta(days=1)).key

    page = staff.post(page_url("apikey", key.pk, "rotate"), {"overlap": 0}, follow=True)

    assert "Not rotated. The key is not valid any more" in shown(page)
    assert ApiKey.objects.count() == 1


def test_a_key_that_is_rotated_twice_is_replaced_once(staff: Client, account: Account) -> None:
    old = issue_key(account, scopes=READ_WRITE).key

    pages = [staff.post(page_url("apikey", old.pk, "rotate"), {"overlap": 24}, follow=True) for _ in range(2)]

    new = ApiKey.objects.exclude(pk=old.pk).get()
    assert new.expires_at is None
    assert "Not rotated. The key was rotated already" in shown(pages[1])
    assert secret_of(shown(staff.post(page_url("apikey", new.pk, "rotate"), {"overlap": 24})))


def test_a_wrong_overlap_rotates_nothing(staff: Client, account: Account) -> None:
    key = issue_key(account, scopes=READ_WRITE).key

    assert "Select a valid choice" in shown(staff.post(page_url("apikey", key.pk, "rotate"), {"overlap": "9"}))
    assert ApiKey.objects.count() == 1


def test_viewers_see_neither_buttons_nor_what_they_may_not_see(
    newcomer: Client, account: Account, owner: Owner, url: str
) -> None:
    key = issue_key(account, scopes=READ_WRITE).key
    context_of(owner, "notes")
    assert newcomer.get(url).status_code == 403
    allow("newcomer", "view_account")
    assert "notes" not in shown(newcomer.get(url))
    assert "API keys" not in shown(newcomer.get(url))
    allow("newcomer", "view_apikey", "view_persistentcontext")

    page = shown(newcomer.get(url))

    assert "notes" in page
    assert key.prefix in page
    assert "Revoke…" not in page
    assert "Rotate…" not in page
    assert newcomer.post(page_url("apikey", key.pk, "rotate"), {"overlap": 0}).status_code == 403


def test_other_accounts_do_not_exist(newcomer: Client, account: Account, stranger: Account, url: str) -> None:
    allow("newcomer", "view_account", "view_apikey", "add_apikey", "change_apikey")
    StaffLimit.objects.create(user=User.objects.get(username="newcomer"), account_ids=[stranger.pk])
    key = issue_key(account, scopes=READ_WRITE).key

    assert newcomer.get(url).status_code == 404
    assert newcomer.post(page_url("apikey", key.pk, "rotate"), {"overlap": 0}).status_code == 404


def test_hostile_names_are_escaped(staff: Client, account: Account, url: str) -> None:
    hostile = Owner(account_id=account.pk, agent_id=HOSTILE[:80])
    context_of(hostile, HOSTILE[:100])
    issue_key(account, scopes=READ_WRITE, name=HOSTILE[:90])

    page = shown(staff.get(url))

    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert INLINE.findall(page) == []


def test_the_number_of_queries_is_fixed(staff: Client, account: Account, owner: Owner, url: str) -> None:
    context_of(owner, "first")
    few = queries_of(staff, url)
    for number in range(9):
        grant(context_of(owner, f"context {number}"), read=[f"a{number}"])
        issue_key(account, scopes=READ_WRITE)

    assert queries_of(staff, url) == few <= 16
