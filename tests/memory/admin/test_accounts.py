"""Accounts, agents, teams and keys, kept by staff and audited."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import Account, Agent, ApiKey, AuditEntry, IdempotentRequest, Team, TeamMember
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.memory.admin.pages import add_url, choose, form_values, list_url, page_url, shown


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def members(*agent_ids: str, total: int = 0) -> dict[str, Any]:
    """Return what the form of a team's members sends."""
    names = {f"members-{number}-agent_id": agent_id for number, agent_id in enumerate(agent_ids)}
    return {"members-TOTAL_FORMS": len(agent_ids), "members-INITIAL_FORMS": total} | names


def test_an_account_is_added_and_audited(staff: Client) -> None:
    staff.post(add_url("account"), form_values(staff.get(add_url("account"))) | {"name": "garden"})

    entry = last_entry()
    assert (entry.account_id, entry.operation, entry.actor) == (Account.objects.get().id, "create", "staff:chief")


def test_an_accounts_language_is_chosen_once(staff: Client) -> None:
    values = form_values(staff.get(add_url("account"))) | {"name": "garten"}
    staff.post(add_url("account"), values | {"language": "german"})
    account = Account.objects.get()

    page = staff.get(page_url("account", account.id))
    staff.post(page_url("account", account.id), values | {"language": "english"})

    account.refresh_from_db()
    assert account.language == "german"
    assert "manage.py set_language" in shown(page)
    assert "german" in shown(staff.get(list_url("account")))


def test_how_much_reasoning_an_account_keeps_is_set_and_audited(staff: Client, account: Account) -> None:
    url = page_url("account", account.id)

    # the hidden field that a browser sends for a default that is generated for each form
    values = form_values(staff.get(url)) | {"initial-settings": "{}"}

    staff.post(url, values | {"reasoning_tier": "raw_trace", "raw_trace_tokens": 500})

    account.refresh_from_db()
    assert (account.reasoning_tier, account.raw_trace_tokens) == ("raw_trace", 500)
    (entry,) = AuditEntry.objects.all()
    assert (entry.actor, entry.operation, entry.memory_type) == ("staff:chief", "update", "account")


@pytest.mark.parametrize("policy", [{"reasoning_tier": "all"}, {"raw_trace_tokens": -1}, {"raw_trace_tokens": 10**9}])
def test_an_invalid_reasoning_policy_is_refused(staff: Client, account: Account, policy: dict[str, Any]) -> None:
    url = page_url("account", account.id)

    response = staff.post(url, form_values(staff.get(url)) | policy)

    assert response.context["adminform"].form.errors
    assert not AuditEntry.objects.exists()


def test_a_name_and_a_policy_are_changed_in_one_request(staff: Client, account: Account) -> None:
    url = page_url("account", account.id)

    staff.post(url, form_values(staff.get(url)) | {"name": "garden", "reasoning_tier": "none"})

    account.refresh_from_db()
    assert (account.name, account.reasoning_tier) == ("garden", "none")
    assert AuditEntry.objects.count() == 2


def test_lowering_the_reasoning_tier_deletes_stored_idempotent_responses(
    staff: Client, account: Account, api: ServiceClient
) -> None:
    api.post("/recall", {"agent_id": "assistant", "query": "Why?"}, HTTP_IDEMPOTENCY_KEY="k1")
    url = page_url("account", account.id)

    staff.post(url, form_values(staff.get(url)) | {"reasoning_tier": "none"})

    assert not IdempotentRequest.objects.exists()


def test_an_account_cannot_be_deleted_in_the_admin(staff: Client, account: Account) -> None:
    assert staff.post(page_url("account", account.id, "delete"), {"post": "yes"}).status_code == 403
    assert Account.objects.filter(id=account.id).exists()


@pytest.mark.parametrize("value", ['{"a": NaN}', '{"a": "\\u0000"}', "[]", "{" * 5_000])
def test_settings_are_an_object_in_json(staff: Client, account: Account, value: str) -> None:
    response = staff.post(page_url("account", account.id), {"name": "workshop", "settings": value})

    assert response.status_code == 200
    assert response.context["adminform"].form.errors["settings"]


def test_an_agent_keeps_its_id(staff: Client, account: Account) -> None:
    agent = Agent.objects.create(account=account, agent_id="assistant")

    staff.post(page_url("agent", agent.id), {"agent_id": "other", "description": "Waters the garden."})

    agent.refresh_from_db()
    assert (agent.agent_id, agent.description) == ("assistant", "Waters the garden.")
    assert last_entry().operation == "update"


@pytest.mark.parametrize("agent_id", ["", "x" * 101, "a\nb", "a\x00b"])
def test_an_agent_has_an_id_that_clients_could_send(staff: Client, account: Account, agent_id: str) -> None:
    staff.post(add_url("agent"), {"account": account.id, "agent_id": agent_id, "description": ""})

    assert not Agent.objects.exists()


def test_adding_an_existing_agent_is_refused(staff: Client, account: Account) -> None:
    Agent.objects.create(account=account, agent_id="assistant")

    response = staff.post(
        add_url("agent"), {"account": account.id, "agent_id": "assistant", "description": ""}, follow=True
    )

    assert response.status_code == 200
    assert Agent.objects.count() == 1


def test_a_team_is_added_with_its_members(staff: Client, account: Account) -> None:
    staff.post(add_url("team"), {"account": account.id, "name": "night shift"} | members("ana", "ben", ""))

    team = Team.objects.get()
    assert sorted(team.members.values_list("agent_id", flat=True)) == ["ana", "ben"]
    assert set(AuditEntry.objects.values_list("operation", flat=True)) == {"create", "add_member"}


def test_members_are_removed_from_their_team(staff: Client, account: Account) -> None:
    team = Team.objects.create(account=account, name="night shift")
    member = TeamMember.objects.create(account=account, team=team, agent_id="ana")

    values = members("ana", total=1) | {"members-0-id": member.id, "members-0-team": team.id, "members-0-DELETE": "on"}
    staff.post(page_url("team", team.id), {"name": "night shift"} | values)

    assert not TeamMember.objects.exists()
    assert last_entry().operation == "remove_member"


def test_a_new_key_is_shown_once_and_stored_nowhere(staff: Client, account: Account) -> None:
    values = form_values(staff.get(add_url("apikey"))) | {"account": account.id, "name": "laptop", "scopes": ["read"]}

    page = staff.post(add_url("apikey"), values)

    key = ApiKey.objects.get()
    secret = shown(page).split('<pre class="secret">')[1].split("</pre>")[0]
    assert ApiKey.hash_secret(secret) == key.secret_hash
    assert (key.scopes, key.name) == (["read"], "laptop")
    assert secret not in str(page.cookies) + str(dict(staff.session))
    assert secret not in shown(staff.get(list_url("apikey"))) + shown(staff.get(page_url("apikey", key.id)))
    assert (last_entry().operation, last_entry().actor) == ("create", "staff:chief")


def test_the_form_of_a_new_key_has_the_account_that_is_chosen_at_the_top(staff: Client, account: Account) -> None:
    Account.objects.create(name="other")
    before = form_values(staff.get(add_url("apikey")))
    staff.post(reverse("switcher:switch"), {"account": account.pk})

    page = staff.get(add_url("apikey"))

    assert (before.get("account", ""), form_values(page)["account"]) == ("", account.pk)
    assert account.name in shown(page)


def test_no_key_is_issued_without_a_name(staff: Client, account: Account) -> None:
    values = form_values(staff.get(add_url("apikey"))) | {"account": account.id}

    page = staff.post(add_url("apikey"), values)

    assert list(page.context["adminform"].form.errors) == ["name"]
    assert not ApiKey.objects.exists()


def test_a_key_without_a_name_is_still_changed(staff: Client, account: Account) -> None:
    key = issue_key(account, scopes=READ_ONLY).key

    staff.post(page_url("apikey", key.id), form_values(staff.get(page_url("apikey", key.id))) | {"scopes": ["write"]})

    key.refresh_from_db()
    assert key.scopes == ["write"]


def test_the_hash_of_a_key_is_on_no_page(staff: Client, account: Account) -> None:
    key = issue_key(account, scopes=READ_ONLY).key

    pages = [list_url("apikey"), *[page_url("apikey", key.id, page) for page in ("change", "history")]]

    assert not [url for url in pages if key.secret_hash in shown(staff.get(url))]


def test_a_key_is_bound_to_a_user_when_it_is_made(staff: Client, account: Account) -> None:
    values = form_values(staff.get(add_url("apikey"))) | {"account": account.id, "name": "phone", "user_id": "ana"}

    refused = shown(staff.post(add_url("apikey"), values | {"scopes": ["read", "operate"]}))
    page = shown(staff.post(add_url("apikey"), values | {"scopes": ["read"]}))

    key = ApiKey.objects.get()
    assert "cannot have the scope operate" in refused
    assert "for the user ana" in page
    staff.post(page_url("apikey", key.id), {"name": "", "scopes": ["read", "operate"], "user_id": "ben"})
    key.refresh_from_db()
    assert (key.user_id, key.scopes) == ("ana", ["read"])


def test_scopes_are_chosen_by_checkboxes(staff: Client, account: Account) -> None:
    key = issue_key(account, scopes=READ_ONLY).key
    values = form_values(staff.get(page_url("apikey", key.id)))

    staff.post(page_url("apikey", key.id), values | {"scopes": ["read", "operate"]})

    key.refresh_from_db()
    assert key.scopes == ["read", "operate"]
    assert last_entry().memory_type == "api_key"


def test_revoking_a_key_from_the_list_is_audited(staff: Client, account: Account) -> None:
    key = issue_key(account, scopes=READ_ONLY).key

    choose(staff, list_url("apikey"), "revoke", key.id)

    key.refresh_from_db()
    assert key.revoked_at is not None
    assert last_entry().operation == "revoke"


def test_the_page_of_an_account_leads_to_its_lists(staff: Client, account: Account) -> None:
    page = shown(staff.get(page_url("account", account.id)))

    for model in ("conversation", "entity", "fact", "factreview", "facttombstone", "goal", "tool", "toolinvocation",
                  "strategy", "strategyuse", "userprofile", "turnrecord", "turnslot", "workepisode",
                  "artifact"):  # fmt: skip
        url = list_url(model, account=account.id)
        assert url in page
        assert staff.get(url).status_code == 200
