"""Change lists: every model has one, and its queries do not grow with its rows."""

import re
from datetime import timedelta

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.models import (
    Account,
    Agent,
    Vector,
)
from memory_project.admin_lists import MAX_COUNTED, BoundedPaginator
from tests.memory.admin.pages import add_url, list_url, page_url, queries_of, shown
from tests.memory.admin.rows import MAKERS, make_episodes
from tests.memory.audits import entered
from tests.memory.episodes import NOW

INLINE = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>|<style|<[^>]*\s(?:style|on[a-z]+)=", re.IGNORECASE)

MODELS = sorted(
    (model._meta.app_label, str(model._meta.model_name))
    for model in admin.site._registry
    if model._meta.app_label in ("memory", "ledger")
)

VARIED = {"memory", "conversation", "fact", "goal", "injection", "memorypool", "apikey", "turnrecord"}
each_model_at_length = pytest.mark.parametrize(
    ("app", "model"),
    [pytest.param(app, model, marks=() if model in VARIED else pytest.mark.slow) for app, model in MODELS],
)
"""All pages share what such tests try: a varied lot tries it first, and the rest are slow tests."""


@pytest.mark.slow
@pytest.mark.parametrize(("app", "model"), MODELS)
def test_a_list_takes_as_many_queries_for_many_rows_as_for_few(
    staff: Client, account: Account, app: str, model: str
) -> None:
    MAKERS[model](account, range(3))
    few = queries_of(staff, list_url(model, app=app))

    MAKERS[model](account, range(3, 24))
    many = queries_of(staff, list_url(model, app=app))

    assert many == few <= 12


@pytest.mark.parametrize(("app", "model"), MODELS)
def test_a_list_can_be_searched(staff: Client, account: Account, app: str, model: str) -> None:
    MAKERS[model](account, range(3))

    response = staff.get(list_url(model, app=app, q="anything 'at' \\all & 🙂"))

    assert response.status_code == 200


@pytest.mark.parametrize(("app", "model"), MODELS)
def test_a_list_ignores_an_invalid_order(staff: Client, app: str, model: str) -> None:
    assert staff.get(list_url(model, app=app, o="1.-2.99"), follow=True).status_code == 200


@each_model_at_length
def test_a_list_ignores_invalid_query_parameters(staff: Client, account: Account, app: str, model: str) -> None:
    for query in ({"account": "nonsense"}, {"q": "\x00"}, {"account": "more"}, {"p": "99999"}, {"o": "1.-2.99"}):
        response = staff.get(list_url(model, app=app, **query), follow=True)

        assert response.status_code == 200


@each_model_at_length
def test_pages_keep_to_the_content_security_policy(staff: Client, account: Account, app: str, model: str) -> None:
    MAKERS[model](account, range(2))
    page = staff.get(list_url(model, app=app))
    row = page.context["cl"].result_list[0]

    for response in (page, staff.get(page_url(model, row.pk, app=app))):
        assert response.headers["Content-Security-Policy"].startswith("default-src 'self'")
        assert not INLINE.findall(shown(response))


@pytest.mark.parametrize("model", ["account", "agent", "team"])
def test_a_page_for_adding_shows_nothing_where_the_database_has_a_default(staff: Client, model: str) -> None:
    page = staff.get(add_url(model))

    assert page.status_code == 200
    assert "Created at" in shown(page)
    assert "DatabaseDefault" not in shown(page)


@pytest.mark.parametrize(("app", "model"), MODELS)
def test_lists_require_permission(newcomer: Client, app: str, model: str) -> None:
    assert newcomer.get(list_url(model, app=app)).status_code == 403


@pytest.mark.parametrize("model", ["memory", "episodicmemory", "vector", "auditentry", "agent", "team", "apikey"])
def test_a_list_can_be_filtered_by_account(staff: Client, account: Account, stranger: Account, model: str) -> None:
    MAKERS[model](account, range(2))
    MAKERS[model](stranger, range(10, 13))

    response = staff.get(list_url(model, account=stranger.id))

    assert response.context["cl"].result_count == 3


def test_the_audit_log_shows_the_last_week_by_default(staff: Client, account: Account) -> None:
    entered(account, NOW - timedelta(days=400))

    lately = staff.get(list_url("auditentry")).context["cl"].result_count
    ever = staff.get(list_url("auditentry", since="ever")).context["cl"].result_count

    assert (lately, ever) == (0, 1)


def test_vectors_are_listed_and_shown_without_their_numbers(staff: Client, account: Account) -> None:
    make_episodes(account, range(1))
    vector = Vector.objects.get()

    with CaptureQueriesContext(connection) as captured:
        staff.get(list_url("vector"))
        page = staff.get(f"{list_url('vector')}{vector.id}/change/")

    assert page.status_code == 200
    assert not [query for query in captured if '"memory_vectors"."vector"' in query["sql"]]
    assert "HalfVector" not in shown(page)


def test_a_long_list_is_counted_to_a_limit_only(account: Account) -> None:
    rows = Agent.objects.order_by("id")
    with CaptureQueriesContext(connection) as captured:
        paginator = BoundedPaginator(rows, 50)
        paginator.count  # noqa: B018 - asks the database

    assert f"LIMIT {MAX_COUNTED + 1}" in captured[0]["sql"]
    assert not paginator.is_bounded


def test_the_admin_is_found_without_its_slash(staff: Client) -> None:
    assert staff.get("/admin", follow=True).redirect_chain == [("/admin/", 302)]
