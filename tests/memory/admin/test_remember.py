"""Memories that staff add by hand, through the services of their kinds."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from memory.models import Account, AuditEntry, Fact, Kind, Memory, Team, TeamMember
from tests.memory.admin.pages import shown

pytestmark = pytest.mark.django_db

ADDRESS = "/admin/remember/"

TYPED: dict[str, dict[str, Any]] = {
    Kind.FACT: {"claim": "Ana lives in Bern.", "confidence": "0.9", "temporal": "current"},
    Kind.NOTE: {"text": "Ana lives in Bern.", "importance": "0.7"},
    Kind.GOAL: {"description": "Ana lives in Bern.", "priority": "3"},
    Kind.ENTITY: {"name": "Ana Lima", "type": "person", "aliases": '["Ana"]', "description": "Ana lives in Bern."},
    Kind.STRATEGY: {"description": "Ana lives in Bern.", "tool_sequence": "search\nbook"},
    Kind.LEARNING: {"insight": "Ana lives in Bern.", "team": "desk"},
}


def remember(client: Client, kind: str, account: Account, **more: str) -> Any:
    data = {"account": str(account.id), **TYPED[kind], **more}
    return client.post(f"{ADDRESS}?kind={kind}", data, follow=True)


@pytest.mark.parametrize("kind", TYPED)
def test_each_kind_is_added_with_its_reason_and_opened(staff: Client, account: Account, kind: str) -> None:
    team = Team.objects.create(account=account, name="desk")
    TeamMember.objects.create(account=account, team=team, agent_id="assistant")

    page = remember(staff, kind, account, agent="assistant", user="ana", _reason="She called.")

    stored = Memory.objects.get(kind=kind)
    assert "Ana lives in Bern." in stored.text
    assert (stored.agent_id, stored.user_id, stored.source) == ("assistant", "ana", "staff")
    assert page.redirect_chain[-1][0].endswith(f"/{stored.pk}/change/")
    entries = AuditEntry.objects.filter(actor="staff:chief", affected_ids__contains=[str(stored.pk)])
    assert {entry.metadata["reason"] for entry in entries} == {"She called."}


def test_the_audit_log_keeps_what_was_added(staff: Client, account: Account) -> None:
    remember(staff, Kind.FACT, account)

    fact = Fact.objects.get()
    changes = [entry.metadata.get("changes", {}).get(str(fact.pk), {}) for entry in AuditEntry.objects.all()]
    assert [each["text"] for each in changes if "text" in each] == [[None, "Ana lives in Bern."]]


def test_what_a_service_refuses_is_said_on_the_form(staff: Client, account: Account) -> None:
    page = shown(remember(staff, Kind.NOTE, account, expires_at="2020-01-01 10:00"))

    assert "Nothing was stored." in page
    assert "Ana lives in Bern." in page
    assert not Memory.objects.exists()


def test_a_learning_needs_a_team_of_the_account(staff: Client, account: Account) -> None:
    Team.objects.create(account=Account.objects.create(name="other"), name="desk")

    page = shown(remember(staff, Kind.LEARNING, account))

    assert "The account has no team of this name." in page


def test_limited_staff_add_nothing_to_other_accounts(limited: Client) -> None:
    other = Account.objects.create(name="other")

    remember(limited, Kind.FACT, other)

    assert not Memory.objects.exists()


def test_kinds_that_one_may_not_add_are_not_offered(newcomer: Client, account: Account) -> None:
    assert newcomer.get(ADDRESS).status_code == 403
    User.objects.get(username="newcomer").user_permissions.add(Permission.objects.get(codename="add_goal"))

    remember(newcomer, Kind.FACT, account)

    assert newcomer.get(ADDRESS).context["kinds"] == [("goal", "goal")]
    assert not Memory.objects.exists()
