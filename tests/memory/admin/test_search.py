"""The search for everything: by id, by name, by words and by meaning, within what one may see."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.admin import search
from memory.admin.search import cut_snippet
from memory.models import Account, Memory, UserProfile
from memory.owner import Owner
from memory.retrieval.hidden import MIN_SIMILARITY
from memory.services.embedding.embed import embed_texts
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.facts.supersede import retract_fact
from memory_project.ids import uuid7
from tests.memory.admin.pages import page_url, queries_of, shown
from tests.memory.admin.rows import MAKERS
from tests.memory.admin.test_lists import MODELS
from tests.memory.entities import entity_of
from tests.memory.episodes import NOW, draft, store
from tests.memory.facts import know
from tests.memory.turns import talk

pytestmark = pytest.mark.django_db

URL = "/admin/search/"


def find(client: Client, question: object) -> str:
    return shown(client.get(URL, {"q": str(question)}, follow=True))


def enter(client: Client, account: Account) -> None:
    """Choose an account for all pages."""
    client.post(reverse("switcher:switch"), {"account": account.id})


def groups_of(response: Any) -> dict[str, list[str]]:
    """Return the texts that were found, by the name of their list."""
    found = [*response.context["names"], *response.context["words"]]
    return {group.name: ["".join(part.text for part in row.parts) for row in group.rows] for group in found}


OWN_IDS = [
    (app, model)
    for app, model in MODELS
    if model not in ("auditentry", "ledgeraccount", "valueaccount", "workingmemoryaccount")
]


@pytest.mark.parametrize(("app", "model"), OWN_IDS)
def test_an_id_leads_to_its_page(staff: Client, account: Account, app: str, model: str) -> None:
    MAKERS[model](account, range(1))
    pages = next(pages for rows, pages in admin.site._registry.items() if rows._meta.label_lower == f"{app}.{model}")
    row_id = pages.model._default_manager.order_by("pk").values_list("pk", flat=True)[0]

    page = staff.get(URL, {"q": f" {row_id} "}, follow=True)

    assert page.status_code == 200
    assert page.redirect_chain[-1][0].endswith(f"/{row_id}/change/")


def test_an_id_leads_to_the_page_of_its_kind(staff: Client, account: Account) -> None:
    fact = know(Owner(account_id=account.id, agent_id="assistant"), "The oven is hot.")

    assert staff.get(URL, {"q": str(fact.pk)}).headers["Location"] == page_url("fact", fact.pk)


def test_conversations_and_profiles_are_found_by_their_names(staff: Client, account: Account, owner: Owner) -> None:
    talk(owner, 1, conversation_id="ana")
    UserProfile.objects.create(account=account, user_id="ana")
    enter(staff, account)

    found = groups_of(staff.get(URL, {"q": "ana"}))

    assert (found["Conversations"], found["User profiles"]) == (["ana"], ["ana"])


def test_an_unknown_id_is_said_to_be_unknown(staff: Client) -> None:
    assert "Nothing that you may see has the id" in find(staff, uuid7())


def test_words_find_memories_of_all_kinds_and_names(staff: Client, account: Account) -> None:
    owner = Owner(account_id=account.id, agent_id="baker")
    know(owner, "The oven is hot.")
    store(owner, draft("We bought an oven."))
    talk(owner, 1)
    enter(staff, account)

    response = staff.get(URL, {"q": "oven"})
    by_name = groups_of(staff.get(URL, {"q": "baker"}))

    assert groups_of(response) == {"Facts": ["The oven is hot."], "Episodes": ["We bought an oven."]}
    assert "The <mark>oven</mark> is hot." in shown(response)
    assert by_name["Conversations"]
    assert groups_of(staff.get(URL, {"q": "worksh"}))["Accounts"] == ["workshop"]


def test_words_find_what_is_over_or_not_believed_with_its_state_and_its_user(
    staff: Client, account: Account, owner: Owner
) -> None:
    ana, now = replace(owner, user_id="ana"), timezone.now()
    know(ana, "The oven is hot.")
    know(ana, "The oven is warm.", valid_from=now - timedelta(days=9), valid_to=now - timedelta(days=2))
    know(ana, "The oven is new.", valid_from=now + timedelta(days=9))
    wrong = know(ana, "The oven is red.")
    retract_fact(ana, wrong.pk, now=now)
    note = store(replace(owner, user_id="<b>ben</b>"), draft("An oven is old."))[0]
    Memory.objects.filter(pk=note.pk).update(buried=True)
    enter(staff, account)

    response = staff.get(URL, {"q": "oven"})

    rows = [row for group in response.context["words"] for row in group.rows]
    assert {"".join(part.text for part in row.parts): row.state for row in rows} == {
        "The oven is hot.": "",
        "The oven is warm.": "ended",
        "The oven is new.": "not yet true",
        "The oven is red.": "retracted",
        "An oven is old.": "buried",
    }
    assert "user ana, agent assistant" in shown(response)
    assert "user &lt;b&gt;ben" in shown(response)


def test_what_is_similar_in_meaning_is_listed_by_its_similarity(staff: Client, account: Account, owner: Owner) -> None:
    texts = ["The pump in the garden leaks.", "The garden has a pump.", "The bakery needs almond flour."]
    embedded = embed_texts(texts)
    for text in texts:
        learn_fact(owner, FactDraft(claim=text), embedded=embedded, now=NOW)
    enter(staff, account)

    meant = staff.get(URL, {"q": "Does the pump in the garden leak?"}).context["meant"]
    strange = staff.get(URL, {"q": "zzzqqqxx"}).context["meant"]

    shares = [float(row.note.rpartition(" ")[2]) for row in meant]
    assert shares == sorted(shares, reverse=True)
    assert (len(shares), shares[-1] >= MIN_SIMILARITY) == (2, True)
    assert strange == []


def test_the_newest_of_many_are_shown_with_a_link_to_all(staff: Client, account: Account) -> None:
    store(Owner(account_id=account.id, agent_id="assistant"), *[draft(f"oven {number}") for number in range(9)])
    enter(staff, account)

    page = staff.get(URL, {"q": "oven"})

    assert len(groups_of(page)["Episodes"]) == search.MAX_OF_A_KIND
    (group,) = page.context["words"]
    assert staff.get(group.more_url).context["cl"].result_count == 9


def test_the_only_account_needs_no_choice(staff: Client, account: Account) -> None:
    know(Owner(account_id=account.id, agent_id="assistant"), "The workshop is warm.")

    response = staff.get(URL, {"q": "workshop"})

    assert groups_of(response)["Facts"] == ["The workshop is warm."]
    assert "Choose an account" not in shown(response)


def test_without_an_account_only_small_tables_are_searched(staff: Client, account: Account, stranger: Account) -> None:
    owner = Owner(account_id=account.id, agent_id="workshop")
    know(owner, "The workshop is warm.")
    talk(owner, 1)

    response = staff.get(URL, {"q": "workshop"})

    assert groups_of(response) == {"Accounts": ["workshop"]}
    assert "Choose an account at the top of the page to search for everything else" in shown(response)


def test_meaning_needs_an_account_and_counts_nothing_as_read(
    staff: Client, account: Account, stranger: Account
) -> None:
    fact = know(Owner(account_id=account.id, agent_id="assistant"), "The oven is hot.")
    before = Memory.objects.values_list("access_count", "last_accessed").get(pk=fact.pk)

    everywhere = find(staff, "oven temperature")
    enter(staff, account)
    inside = find(staff, "Is the oven hot?")

    assert "Choose an account at the top of the page" in everywhere
    assert "<mark>oven</mark> <mark>is</mark> <mark>hot</mark>." in inside.partition("By meaning")[2]
    assert Memory.objects.values_list("access_count", "last_accessed").get(pk=fact.pk) == before


@pytest.mark.parametrize(("app", "model"), OWN_IDS)
def test_ids_of_other_accounts_are_unknown_to_limited_staff(
    limited: Client, stranger: Account, app: str, model: str
) -> None:
    MAKERS[model](stranger, range(1))
    pages = next(pages for rows, pages in admin.site._registry.items() if rows._meta.label_lower == f"{app}.{model}")

    for row_id in pages.model._default_manager.order_by("pk").values_list("pk", flat=True)[:2]:
        if pages.model is Account and row_id != stranger.pk:
            continue
        page = limited.get(URL, {"q": row_id})
        assert page.status_code == 200, row_id
        assert page.context["addresses"] == []


def test_nothing_of_other_accounts_is_found(limited: Client, account: Account, stranger: Account) -> None:
    owner = Owner(account_id=stranger.id, agent_id="baker")
    know(owner, "The oven is hot.")
    entity_of(owner, "Oven")
    talk(owner, 1)

    for question in ("oven", "baker", "c", "strangers", "Is the oven hot?"):
        response = limited.get(URL, {"q": question})
        assert groups_of(response) == {}, question
        assert not response.context["meant"]


def test_kinds_that_one_may_not_view_are_not_found(newcomer: Client, account: Account) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    fact, _ = know(owner, "The oven is hot."), store(owner, draft("We bought an oven."))
    User.objects.get(username="newcomer").user_permissions.add(
        Permission.objects.get(codename="view_episodicmemory"), Permission.objects.get(codename="view_memory")
    )
    enter(newcomer, account)

    assert groups_of(newcomer.get(URL, {"q": "oven"})) == {"Episodes": ["We bought an oven."]}
    assert newcomer.get(URL, {"q": str(fact.pk)}).context["addresses"] == []


@pytest.mark.parametrize("question", ["", "  ", "\x00", "a" * 3_000, "'; DROP TABLE x; --", "(((", "%_\\", "🙂", "the"])
def test_any_text_may_be_searched_for(staff: Client, account: Account, question: str) -> None:
    store(Owner(account_id=account.id, agent_id="assistant"), draft("the <b>bold</b> one"))
    enter(staff, account)

    assert staff.get(URL, {"q": question}).status_code == 200
    assert "<b>bold" not in find(staff, "bold")


def test_a_search_takes_the_same_queries_for_any_number_of_rows(staff: Client, account: Account) -> None:
    owner = Owner(account_id=account.id, agent_id="assistant")
    enter(staff, account)

    def search_again() -> int:
        know(owner, "The oven is hot.")
        store(owner, draft("We bought an oven."))
        return queries_of(staff, f"{URL}?q=oven")

    assert search_again() == search_again() <= 35


def test_visitors_search_for_nothing(client: Client) -> None:
    assert client.get(URL, {"q": "oven"}).status_code == 302


def test_a_snippet_shows_the_words_of_the_question() -> None:
    parts = cut_snippet(f"{'far ' * 100}the Oven\n is hot \u202e{'and on ' * 100}", "oven HOT")

    text = "".join(part.text for part in parts)
    assert [part.text for part in parts if part.is_match] == ["Oven", "hot"]
    assert text.startswith("…")
    assert text.endswith("…")
    assert "⟦U+202E⟧" in text
    assert len(text) < 200
