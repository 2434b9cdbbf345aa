"""Lists without rows: they say why, and offer nothing to do with rows."""

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import Account, FactReview
from memory.owner import Owner
from memory.services.facts.review import decide_review
from tests.memory.admin.pages import list_url, shown
from tests.memory.admin.rows import make_facts
from tests.memory.admin.test_fact_reviews import contradict

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


def test_a_list_of_open_reviews_leads_to_the_decided_ones(staff: Client, owner: Owner) -> None:
    review = contradict(owner)
    decide_review(owner, review.pk, decision=FactReview.Status.BOTH_TRUE, now=datetime.now(UTC))

    empty = shown(staff.get(list_url("factreview")))

    assert "There are no open fact reviews." in empty
    assert empty.count('<a href="?decision=any"') >= 2
    assert review.pk in [row.pk for row in staff.get(list_url("factreview", decision="any")).context["cl"].result_list]


def test_no_usage_of_models_is_said_in_a_sentence(staff: Client) -> None:
    assert "There are no rows of model usage of the past 7 days." in shown(staff.get(list_url("modelusage")))
    assert "No rows of model usage match the search" in shown(staff.get(list_url("modelusage", q="nothing")))


def test_no_account_is_preselected_where_there_are_several(staff: Client, account: Account, stranger: Account) -> None:
    page = shown(staff.get(reverse("remember:page")))

    assert '<option value="" selected>choose…</option>' in page
