"""The menu of all pages: every list in one group, and nothing that the user may not open."""

import re
from uuid import UUID

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from memory.admin.navigation import GROUPS, LABELS
from memory.models import Account
from tests.memory.admin.pages import list_url, page_url, shown

pytestmark = pytest.mark.django_db


def menu_of(page: str) -> str:
    return page.partition('<nav id="console-menu"')[2].partition("</nav>")[0]


def test_every_list_is_in_one_group() -> None:
    listed = [item for items in GROUPS.values() for item in items if isinstance(item, str)]

    assert sorted(listed) == sorted(model._meta.label_lower for model in admin.site._registry)
    assert set(LABELS) <= set(listed)


def test_all_pages_have_the_menu_and_the_search_box(staff: Client) -> None:
    for address in (reverse("admin:index"), list_url("fact"), reverse("totp:page"), reverse("search:page")):
        page = shown(staff.get(address))

        assert re.findall(r'class="group"(?: open)?><summary>([^<]+)', menu_of(page)) == list(GROUPS)
        assert page.count('id="console-search"') == 1
        assert page.count("Times are in UTC.") == 1


def test_the_group_of_the_current_page_is_open(staff: Client) -> None:
    menu = menu_of(shown(staff.get(list_url("fact"))))

    assert re.findall(r'class="group" open><summary>([^<]+)', menu) == ["Knowledge"]
    assert re.findall(r'<a href="([^"]+)" aria-current="page">', menu) == [list_url("fact")]


def test_the_menu_has_only_what_one_may_open(newcomer: Client) -> None:
    User.objects.get(username="newcomer").user_permissions.add(Permission.objects.get(codename="view_fact"))

    menu = menu_of(shown(newcomer.get(reverse("admin:index"))))

    assert re.findall(r"<summary>([^<]+)", menu) == ["Menu", "Knowledge", "Access"]
    assert list_url("fact") in menu
    assert list_url("entity") not in menu


@pytest.mark.parametrize("address", ["/admin/memory/nonsense/", page_url("fact", UUID(int=7)), "/admin/a<script>/"])
def test_an_address_without_a_page_is_answered_in_the_frame_of_the_console(
    staff: Client, account: Account, address: str
) -> None:
    staff.post(reverse("switcher:switch"), {"account": account.pk})

    response = staff.get(address, headers={"Accept": "text/html"})

    page = shown(response)
    assert response.status_code == 404
    assert "There is nothing at this address that you may see." in page
    assert (bool(menu_of(page)), "<script>/" in page) == (True, False)
    assert ("affected=00000000-0000-0000-0000-000000000007" in page) == ("fact" in address)


def test_a_refused_page_says_who_can_help(newcomer: Client) -> None:
    response = newcomer.get(list_url("fact"))
    page = shown(response)

    assert response.status_code == 403

    assert "A superuser can give you the right." in page
    assert menu_of(page)


def test_visitors_get_no_frame_with_an_error(client: Client) -> None:
    page = client.get("/nonsense/", headers={"Accept": "text/html"})

    assert (page.status_code, "console-menu" in page.content.decode()) == (404, False)


def test_visitors_see_no_menu_and_no_search_box(client: Client) -> None:
    page = shown(client.get(reverse("admin:login")))

    assert "console-search" not in page
    assert 'class="group"' not in page
