"""Staff who are limited to accounts: no page of the admin shows anything of other accounts."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memory.models import Account, ApiKey, JobRun, Link, Memory, PersistentContext, StaffLimit
from memory_project.ids import uuid7
from tests.memory.admin.pages import add_url, choose, list_url, page_url, shown
from tests.memory.admin.rows import MAKERS, make_contexts, make_episodes
from tests.memory.admin.test_lists import MODELS, each_model_at_length

OWN, FOREIGN = range(3), range(88_770_001, 88_770_003)
CANARY = "8877000"
REGISTERED = {
    (model._meta.app_label, str(model._meta.model_name)): (model, pages)
    for model, pages in admin.site._registry.items()
}
QUERIES = {"conversation": "c", "task": "t", "left": "1", "right": "2", "account": ""}
"""Parameters that pages of our own ask for."""
DJANGOS_PAGES = {"changelist", "add", "history", "delete", "change"}


@pytest.fixture
def stranger(db: None) -> Account:
    return Account.objects.create(name=f"crew {CANARY}")


def ids_of(app: str, model: str, account: Account) -> list[Any]:
    """Return the ids of an account's rows; for pages of accounts, those of all accounts but the workshop."""
    rows = REGISTERED[app, model][0]._base_manager.all()
    if issubclass(rows.model, Account):
        return list(rows.exclude(name="workshop").values_list("pk", flat=True))
    return list(rows.filter(account_id=account.pk).values_list("pk", flat=True))


def page_addresses(app: str, model: str, row_id: object) -> Iterator[str]:
    """Yield the addresses of all pages of a model for one row, those of our own included."""
    yield from (address for address, _ in named_addresses(app, model, row_id))


def named_addresses(app: str, model: str, row_id: object) -> Iterator[tuple[str, bool]]:
    """Yield the addresses of all pages of a model for one row, and whether each page is our own."""
    root = reverse(f"admin:{app}_{model}_changelist")
    for pattern in REGISTERED[app, model][1].get_urls():
        is_own = str(pattern.name).removeprefix(f"{app}_{model}_") not in DJANGOS_PAGES
        yield root + str(pattern.pattern).replace("<path:object_id>", str(row_id)), is_own


def canaries_in(response: Any, *others: object, echoed: str = "") -> list[str]:
    """Return what a page shows of other accounts, leaving out what the request itself said."""
    text = shown(response).replace(echoed, "") if echoed else shown(response)
    return [canary for canary in map(str, (CANARY, *others)) if canary in text]


@pytest.mark.parametrize(("app", "model"), MODELS)
def test_no_page_shows_rows_of_other_accounts(
    limited: Client, staff: Client, account: Account, stranger: Account, app: str, model: str
) -> None:
    MAKERS[model](account, OWN)
    MAKERS[model](stranger, FOREIGN)
    foreign = ids_of(app, model, stranger)
    own = [account.pk] if "account" in model else ids_of(app, model, account)
    hidden = [stranger.pk, *foreign]

    assert foreign
    assert own
    assert canaries_in(staff.get(list_url(model, app=app)), *hidden)
    for query in ({}, {"account": stranger.pk}, {"q": CANARY}, {"q": foreign[0]}, {"since": "ever", "all": ""}):
        page = limited.get(list_url(model, app=app, **query), follow=True)
        assert page.status_code == 200
        assert canaries_in(page, *set(hidden) - set(query.values()), echoed="".join(map(str, query.values()))) == []
    for address, is_own in named_addresses(app, model, own[0]):
        for asked in ({}, QUERIES | {"account": str(stranger.pk)}) if is_own else ({},):
            assert canaries_in(limited.get(address, asked), *foreign, echoed=str(stranger.pk)) == [], address


@each_model_at_length
def test_a_row_of_another_account_is_answered_like_one_that_does_not_exist(
    limited: Client, account: Account, stranger: Account, app: str, model: str
) -> None:
    MAKERS[model](stranger, FOREIGN)
    foreign = ids_of(app, model, stranger)[0]
    unknown = uuid7() if "-" in str(foreign) else 10**9

    for address, other in zip(page_addresses(app, model, foreign), page_addresses(app, model, unknown), strict=True):
        if address == other:
            continue
        for method in (limited.get, limited.post):
            answer = method(address, QUERIES, follow=True)
            expected = method(other, QUERIES, follow=True)
            assert answer.status_code == expected.status_code
            assert answer.status_code in (403, 404), address
            assert without_tokens(answer, foreign) == without_tokens(expected, unknown)


def without_tokens(response: Any, row_id: object) -> str:
    """Return the page without what differs each time: the token of forms and the id of the request."""
    text = shown(response).replace(str(row_id), "ID").replace(response.headers["X-Request-Id"], "")
    return re.sub(r'value="[A-Za-z0-9]{64}"', "", text)


@each_model_at_length
def test_actions_do_nothing_to_rows_of_other_accounts(
    limited: Client, stranger: Account, rf: Any, member: User, app: str, model: str
) -> None:
    MAKERS[model](stranger, FOREIGN)
    rows, pages = REGISTERED[app, model]
    request = rf.get("/")
    request.user = member
    before = list(rows._base_manager.order_by("pk").values())

    for name in [*pages.get_actions(request), "delete_selected"]:
        page = choose(limited, list_url(model, app=app), name, *ids_of(app, model, stranger), follow=False)
        assert CANARY not in shown(page)

    # with the messages of all actions
    assert CANARY not in shown(limited.get(list_url(model, app=app), follow=True))
    assert list(rows._base_manager.order_by("pk").values()) == before


@pytest.mark.parametrize(("app", "model"), MODELS)
def test_choices_offer_nothing_of_other_accounts(
    limited: Client, account: Account, stranger: Account, app: str, model: str
) -> None:
    make_contexts(stranger, FOREIGN)
    pages = REGISTERED[app, model][1]
    address = reverse("admin:autocomplete")

    for field in pages.autocomplete_fields:
        query = {"app_label": app, "model_name": model, "field_name": field}
        for term in ("", "c", CANARY):
            assert canaries_in(limited.get(address, query | {"term": term}), stranger.pk) == []
    page = limited.get(reverse(f"admin:{app}_{model}_add"))
    assert page.status_code in (200, 403)
    assert canaries_in(page, stranger.pk) == []


@pytest.mark.parametrize("model", ["contextentry", "contextsnapshot"])
def test_a_box_for_an_id_does_not_name_a_context_of_another_account(
    limited: Client, stranger: Account, model: str
) -> None:
    (context, *_) = make_contexts(stranger, FOREIGN)

    page = limited.post(add_url(model), {"context": context.pk, "text": "t", "name": "n"})

    assert page.status_code == 200
    assert canaries_in(page) == []
    assert PersistentContext.objects.get(pk=context.pk).name not in shown(page)


def test_nothing_is_added_to_another_account(limited: Client, account: Account, stranger: Account) -> None:
    make_episodes(stranger, FOREIGN)
    ends = list(Memory.objects.filter(account=stranger).values_list("pk", flat=True))[:2]

    limited.post(add_url("apikey"), {"account": stranger.pk, "name": "n", "scopes": ["read"]})
    for job in ({"account": stranger.pk}, {}):
        limited.post(add_url("jobrun"), {"job": "embed", **job})
    link = {"source_memory": ends[0], "target_memory": ends[1], "type": "KNOWS", "weight": 1, "properties": "{}"}
    refused = shown(limited.post(add_url("link"), link))

    assert not ApiKey.objects.filter(account=stranger).exists()
    assert not JobRun.objects.exists()
    assert not Link.objects.exists()
    assert "that exist" in refused


def test_runs_for_all_accounts_are_hidden_from_limited_staff(limited: Client, account: Account) -> None:
    JobRun.objects.create(job="embed", account=None)
    JobRun.objects.create(job="embed", account=account)

    assert limited.get(list_url("jobrun")).context["cl"].result_count == 1


def test_pages_of_the_whole_installation_are_closed_to_limited_staff(limited: Client, member: User) -> None:
    member.user_permissions.set([])
    member.save()
    lists = [
        list_url(model, app=app) for model, app in (("user", "auth"), ("group", "auth"), ("totpdevice", "otp_totp"))
    ]
    for address in lists:
        assert limited.get(address).status_code == 403
    index = shown(limited.get("/admin/"))

    assert "whole installation" not in index
    assert "alert" not in index


def test_limited_staff_neither_add_nor_rename_accounts(limited: Client, account: Account, stranger: Account) -> None:
    page = limited.get(page_url("account", account.pk))

    assert limited.get(add_url("account")).status_code == 403
    assert "name" not in page.context["adminform"].form.fields


def test_a_limit_without_accounts_shows_nothing(limited: Client, member: User, account: Account) -> None:
    StaffLimit.objects.filter(user=member).update(account_ids=[])
    make_episodes(account, OWN)

    assert limited.get(list_url("memory")).context["cl"].result_count == 0


def test_a_superuser_is_not_limited(staff: Client, chief: User, account: Account, stranger: Account) -> None:
    StaffLimit.objects.create(user=chief, account_ids=[])

    assert staff.get(list_url("account")).context["cl"].result_count == 2


def test_all_pages_keep_to_the_account_that_was_chosen(staff: Client, account: Account, stranger: Account) -> None:
    make_episodes(account, OWN)
    make_episodes(stranger, FOREIGN)
    staff.post("/admin/account/", {"account": account.pk})
    chosen = staff.get(list_url("memory")).context["cl"].result_count
    foreign = Memory.objects.filter(account=stranger).first()
    assert foreign is not None

    assert chosen == len(OWN)
    assert staff.get(page_url("memory", foreign.pk)).status_code == 404
    staff.post("/admin/account/", {"account": ""})
    assert staff.get(list_url("memory")).context["cl"].result_count == len(OWN) + len(FOREIGN)


def test_limited_staff_cannot_switch_to_another_account(limited: Client, stranger: Account) -> None:
    answers = [limited.post("/admin/account/", {"account": id_}).status_code for id_ in (stranger.pk, uuid7(), "x")]

    assert answers == [404, 404, 404]
    assert limited.get("/admin/account/").status_code == 405
