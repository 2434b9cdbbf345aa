"""The shipped groups, and the limit to accounts on a user's page."""

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client

from memory.admin.groups import update_groups
from memory.models import Account, StaffLimit
from memory_project.staff import AccountLimitedAdmin
from tests.memory.admin.pages import add_url, form_values, list_url, page_url, shown


@pytest.fixture
def groups(db: None) -> None:
    for name in ("memory", "ledger", "auth"):
        update_groups(apps.get_app_config(name))


def permissions_of(group: str) -> set[str]:
    rows = Group.objects.get(name=group).permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in rows}


def browser_of(*groups: str) -> Client:
    user = User.objects.create_user("pat", is_staff=True)
    user.groups.set(Group.objects.filter(name__in=groups))
    client = Client()
    client.force_login(user)
    return client


OF_USERS = ("auth", "otp_totp")
"""Apps whose pages are of users, which superusers alone see."""


def test_every_page_of_accounts_is_seen_by_all_groups(groups: None) -> None:
    models = [model._meta for model, pages in admin.site._registry.items() if model._meta.app_label not in OF_USERS]
    views = {f"{meta.app_label}.view_{meta.model_name}" for meta in models}

    assert all(isinstance(pages, AccountLimitedAdmin) for model, pages in admin.site._registry.items()
               if model._meta.app_label not in OF_USERS)  # fmt: skip
    assert permissions_of("viewer") == views
    assert views <= permissions_of("curator") & permissions_of("operator")


def test_curators_correct_memories_and_operators_manage_keys_jobs_and_accounts(groups: None) -> None:
    curator, operator = permissions_of("curator"), permissions_of("operator")

    assert {"memory.change_fact", "memory.delete_memory", "memory.change_factreview"} <= curator - operator
    assert {"memory.add_apikey", "memory.add_jobrun", "memory.change_account"} <= operator - curator
    assert not [name for name in curator | operator if name.startswith(("auth.", "admin."))]


def test_groups_are_extended_and_nothing_is_taken_from_them(groups: None) -> None:
    viewer, before = Group.objects.get(name="viewer"), permissions_of("viewer")
    viewer.permissions.remove(viewer.permissions.order_by("pk")[0])
    extra = Group.objects.get(name="operator").permissions.get(codename="add_apikey")
    viewer.permissions.add(extra)

    update_groups(apps.get_app_config("memory"))
    update_groups(apps.get_app_config("ledger"))

    assert permissions_of("viewer") == before | {"memory.add_apikey"}


def test_a_migrated_database_has_the_groups(db: None) -> None:
    assert set(Group.objects.values_list("name", flat=True)) == {"viewer", "curator", "operator"}


def test_a_viewer_looks_and_changes_nothing(groups: None, account: Account) -> None:
    client = browser_of("viewer")

    assert client.get(page_url("account", account.pk)).status_code == 200
    assert client.post(page_url("account", account.pk), {"name": "other"}).status_code == 403
    assert client.get(add_url("apikey")).status_code == 403


def test_a_superuser_limits_a_user_to_accounts_by_name(staff: Client, account: Account, stranger: Account) -> None:
    user = User.objects.create_user("pat", is_staff=True)
    address = page_url("user", user.pk, app="auth")
    values = form_values(staff.get(address))
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}

    def save(**typed: str) -> str:
        return shown(staff.post(address, values | joined | typed, follow=True))

    assert "no account with this name: nobody" in save(limited="on", limited_to="workshop\nnobody")
    assert "Check this box as well" in save(limited_to="workshop")
    save(limited="on", limited_to="strangers\n workshop \n")
    assert StaffLimit.objects.get(user=user).account_ids == sorted([account.pk, stranger.pk])
    assert "strangers\nworkshop" in shown(staff.get(address))
    save(limited="on", limited_to="")
    assert StaffLimit.objects.get(user=user).account_ids == []
    save(limited_to="")
    assert not StaffLimit.objects.filter(user=user).exists()


def test_lists_of_users_and_groups_open(staff: Client, groups: None) -> None:
    assert staff.get(list_url("user", app="auth")).status_code == 200
    assert staff.get(list_url("group", app="auth")).status_code == 200
