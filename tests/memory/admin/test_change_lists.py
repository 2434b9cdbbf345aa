"""Lists without rows: they say why, and offer nothing to do with rows."""

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import Account
from tests.memory.admin.pages import list_url, shown
from tests.memory.admin.rows import make_facts

pytestmark = pytest.mark.django_db

ACTIONS = 'name="action"'


def test_a_search_that_finds_nothing_says_so(staff: Client, account: Account) -> None:
    make_facts(account, range(1))

    page = shown(staff.get(list_url("fact", q="nothing")))

    assert "No facts match the search and the filters." in page
    assert ACTIONS not in page
    assert ACTIONS in shown(staff.get(list_url("fact")))


def test_an_empty_list_of_the_chosen_account_names_it_as_the_reason(
    staff: Client, account: Account, stranger: Account
) -> None:
    make_facts(stranger, range(1))
    staff.post(reverse("switcher:switch"), {"account": account.pk})

    assert "There are no facts in the chosen account yet." in shown(staff.get(list_url("fact")))


def test_a_list_that_shows_a_week_does_not_say_that_there_was_never_anything(staff: Client) -> None:
    assert "There are no audit entries of the past 7 days." in shown(staff.get(list_url("auditentry")))


def test_no_account_is_preselected_where_there_are_several(staff: Client, account: Account, stranger: Account) -> None:
    page = shown(staff.get(reverse("remember:page")))

    assert '<option value="" selected>choose…</option>' in page
