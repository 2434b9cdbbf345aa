"""The playground: what an agent would get and why, without changing anything."""

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from ledger import store as ledger
from memory.admin.groups import update_groups
from memory.models import Account, AuditEntry, Memory, ModelUsage, StaffLimit
from memory.owner import Owner
from memory.services.facts.learn import FactDraft
from memory.services.facts.supersede import supersede_fact
from memory.services.memories.correct import mark_memories
from memory.services.prompt_context.left_out import Omission
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef, client, conversation_key
from memory_project.staff import StaffGroup
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import page_url, shown
from tests.memory.admin.test_lists import INLINE
from tests.memory.episodes import NOTHING, NOW, draft, store
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

URL = "/admin/playground/"


def ask(browser: Client, account: Account, query: str = "Where does Ana live?", **asked: Any) -> Any:
    given = {"account": account.pk, "agent": "assistant", "query": query, "max_tokens": 800, "top_k": 10, **asked}
    return browser.get(URL, given)


def answer_of(response: Any, number: int = 0) -> Any:
    assert response.context["form"].errors == {}
    return response.context["answers"][number]


def omissions(response: Any) -> dict[str, list[Omission]]:
    rows = answer_of(response).left_out
    return {row.memory.text: [reason.omission for reason in row.memory.reasons] for row in rows}


def test_a_result_shows_its_signals_and_reasons_and_the_packed_text(
    staff: Client, account: Account, owner: Owner
) -> None:
    know(owner, "Ana lives in Berlin.")

    answer = answer_of(page := ask(staff, account))

    [card] = answer.results
    assert (card.rank, card.text, card.is_packed) == (1, "Ana lives in Berlin.", True)
    assert dict(card.signals)["bm25"] > 0
    assert "shares words with the question" in card.candidate.reasons
    assert "Ana lives in Berlin." in answer.text
    assert answer.context.tokens <= 800
    assert {"embed", "gather", "rank", "pack"} <= {stage.name for stage in answer.stages}
    assert "Shares words with the question." in shown(page)


def test_asking_changes_nothing(staff: Client, account: Account, owner: Owner) -> None:
    fact = know(owner, "Ana lives in Berlin.")
    WorkingMemory(owner).set("monday", {"scratchpad": "note"})
    ref = ConversationRef(account_id=account.pk, conversation_id="monday")
    client().expire(conversation_key("working_memory", ref), 50)
    before = [list(model._default_manager.order_by("pk").values()) for model in (Memory, AuditEntry, ModelUsage)]

    answer = answer_of(ask(staff, account, conversation="monday"))

    assert "note" in answer.text
    assert [
        list(model._default_manager.order_by("pk").values()) for model in (Memory, AuditEntry, ModelUsage)
    ] == before
    assert client().ttl(conversation_key("working_memory", ref)) <= 50
    assert ledger.check(ref, fact.item_key) is None


def test_duplicates_are_listed_with_their_own_texts(staff: Client, account: Account, owner: Owner) -> None:
    texts = {"The archive is here", "the archive is here!"}
    store(owner, *[draft(text) for text in texts])

    answer = answer_of(ask(staff, account, "Where is the archive?"))

    [result] = answer.results
    [row] = [row for row in answer.left_out if row.memory.reasons[0].omission is Omission.DUPLICATE]
    assert {result.text, row.text} == texts
    assert str(row.memory.id) in row.url


def test_what_the_ledger_holds_is_left_out_and_named(staff: Client, account: Account, owner: Owner) -> None:
    fact = know(owner, "Ana lives in Berlin.")
    ledger.mark(ConversationRef(account_id=account.pk, conversation_id="monday"), fact.item_key)

    omitted = ask(staff, account, conversation="monday")
    again = ask(staff, account, conversation="monday", ledger="show")

    assert omissions(omitted) == {"Ana lives in Berlin.": [Omission.LEDGER]}
    assert [card.text for card in answer_of(again).results] == ["Ana lives in Berlin."]


def test_superseded_facts_are_named_with_what_replaced_them(staff: Client, account: Account, owner: Owner) -> None:
    old = know(owner, "Ana lives in Berlin.")
    new = supersede_fact(owner, old.pk, FactDraft(claim="Ana lives in Lisbon."), embedded=NOTHING, now=timezone.now())

    page = ask(staff, account)

    assert [card.text for card in answer_of(page).results] == ["Ana lives in Lisbon."]
    assert omissions(page) == {"Ana lives in Berlin.": [Omission.SUPERSEDED]}
    assert page_url("memory", new.pk, "why") in shown(page)


def test_a_question_about_the_past_finds_what_was_true_then(staff: Client, account: Account, owner: Owner) -> None:
    old = know(owner, "Ana lives in Berlin.")
    supersede_fact(owner, old.pk, FactDraft(claim="Ana lives in Lisbon."), embedded=NOTHING, now=timezone.now())
    yesterday = f"{timezone.now() - timedelta(days=1):%Y-%m-%d %H:%M}"

    page = ask(staff, account, as_of=yesterday)

    assert [card.text for card in answer_of(page).results] == ["Ana lives in Berlin."]
    assert omissions(page) == {"Ana lives in Lisbon.": [Omission.NOT_TRUE]}


def test_memories_of_others_are_named_with_whose_they_are(staff: Client, account: Account, owner: Owner) -> None:
    know(Owner(account_id=account.pk, agent_id="rival"), "Ana lives in Berlin.")
    know(Owner(account_id=account.pk, agent_id="assistant", channel="atlas"), "Ana lives in Rome.")
    know(Owner(account_id=account.pk, agent_id="assistant", user_id="eve"), "Ana lives in Oslo.")

    page = ask(staff, account, user="ana")

    assert answer_of(page).results == []
    assert omissions(page) == {
        "Ana lives in Berlin.": [Omission.ISOLATION],
        "Ana lives in Rome.": [Omission.CHANNEL],
        "Ana lives in Oslo.": [Omission.ISOLATION],
    }
    assert "It is private to the agent rival." in shown(page)
    assert "It belongs to the user eve." in shown(page)


@pytest.mark.parametrize(
    ("mark", "omission"),
    [("archive", Omission.ARCHIVED), ("quarantine", Omission.QUARANTINED), ("bury", Omission.BURIED)],
)
def test_marked_memories_are_named_with_their_mark(
    staff: Client, account: Account, owner: Owner, mark: str, omission: Omission
) -> None:
    fact = know(owner, "Ana lives in Berlin.")
    mark_memories(owner, [fact.pk], mark=mark, now=NOW)

    assert omissions(ask(staff, account)) == {"Ana lives in Berlin.": [omission]}


def test_expired_memories_are_named(staff: Client, account: Account, owner: Owner) -> None:
    fact = know(owner, "Ana lives in Berlin.")
    Memory.objects.filter(pk=fact.pk).update(expires_at=timezone.now() - timedelta(hours=1))

    assert omissions(ask(staff, account)) == {"Ana lives in Berlin.": [Omission.EXPIRED]}


def test_results_without_room_in_the_budget_are_named(staff: Client, account: Account, owner: Owner) -> None:
    long = f"Ana lives in Berlin, {'and she likes it there ' * 30}."
    know(owner, long)
    know(owner, "Ana lives on the third floor.")

    page = ask(staff, account, max_tokens=100)

    assert omissions(page) == {long[:300]: [Omission.BUDGET]}
    assert [card.is_packed for card in sorted(answer_of(page).results, key=lambda card: card.text)] == [False, True]


def test_memories_behind_the_last_result_are_named_with_their_place(
    staff: Client, account: Account, owner: Owner
) -> None:
    for city in ("Berlin", "Rome"):
        know(owner, f"Ana lives in {city}.")

    page = ask(staff, account, top_k=1)

    assert list(omissions(page).values()) == [[Omission.RANK]]
    assert "It came in place 2, and 1 results were wanted." in shown(page)


def test_two_plans_are_shown_side_by_side(staff: Client, account: Account, owner: Owner) -> None:
    know(owner, "Ana lives in Berlin.")

    page = ask(staff, account, compare="on", techniques_2="lexical -lineage", mode_2="deep", posture_2="audit")

    first, second = page.context["answers"]
    assert [card.other_rank for card in (*first.results, *second.results)] == [1, 1]
    assert second.settings == "posture audit, mode deep, lexical, -lineage"
    assert second.context.usage.stages_ms["embed"] < 1
    assert "same place in the other plan" in shown(page)


def test_the_request_is_shown_as_curl_and_python_without_a_key(staff: Client, account: Account) -> None:
    answer = answer_of(ask(staff, account, "What's up?", conversation="monday", techniques="vector"))

    assert "$AGENT_MEMORY_API_KEY" in answer.curl
    assert "/api/v1/context" in answer.curl
    assert "What'\"'\"'s up?" in answer.curl
    assert "mem_" not in answer.curl + answer.python
    compile(answer.python, "example", "exec")
    assert "techniques=['vector']" in answer.python


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("techniques", "magic"), ("techniques_2", "episodes"), ("top_k", 0), ("max_tokens", 1),
        ("as_of", "soon"), ("agent", ""), ("query", " "), ("query", "x" * 2_001), ("mode", "odd"),
        ("user", "a\x00b"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(staff: Client, account: Account, field: str, value: Any) -> None:
    page = staff.get(
        URL, {"account": account.pk, "agent": "a", "query": "q", "max_tokens": 800, "top_k": 1, field: value}
    )

    assert page.status_code == 200
    assert list(page.context["form"].errors) == [field]
    assert page.context["answers"] == []


def test_hostile_memories_and_questions_are_escaped(staff: Client, account: Account, owner: Owner) -> None:
    know(owner, f"Ana lives in {HOSTILE}")

    asked = ask(staff, account, f"Where does Ana live? {HOSTILE}")
    page = shown(asked)

    [card] = answer_of(asked).results
    assert "⟦U+202E⟧" in card.text
    assert "\\u202e" in answer_of(asked).curl
    assert "<script>alert" not in page
    assert "<img" not in page
    assert INLINE.findall(page) == []


def test_only_curators_see_the_buttons_that_change(account: Account, owner: Owner) -> None:
    update_groups(apps.get_app_config("memory"))
    know(owner, "Ana lives in Berlin.")
    pages = {}
    for group in (StaffGroup.VIEWER, StaffGroup.CURATOR):
        user = User.objects.create_user(group.value, is_staff=True)
        user.groups.set(Group.objects.filter(name=group.value))
        browser = Client()
        browser.force_login(user)
        pages[group] = shown(ask(browser, account))

    assert "Ana lives in Berlin." in pages[StaffGroup.VIEWER]
    assert ">Bury…</button>" not in pages[StaffGroup.VIEWER]
    assert ">Bury…</button>" in pages[StaffGroup.CURATOR]


@pytest.mark.parametrize("action", ["bury", "pin", "boost"])
def test_a_button_asks_for_a_reason_and_then_acts(staff: Client, account: Account, owner: Owner, action: str) -> None:
    fact = know(owner, "Ana lives in Berlin.")
    url, sent = reverse("admin:memory_memory_changelist"), {"action": action, "_selected_action": str(fact.pk)}

    asked = shown(staff.post(url, sent))
    staff.post(url, {**sent, "post": "yes", "reason": "said so"})

    row = Memory.objects.get(pk=fact.pk)
    assert 'name="reason"' in asked
    assert {"bury": row.buried, "pin": row.pinned, "boost": row.salience == 1.0}[action]


def test_staff_without_permission_and_those_limited_to_other_accounts_see_nothing(
    newcomer: Client, account: Account, stranger: Account
) -> None:
    assert newcomer.get(URL).status_code == 403
    allow("newcomer", "view_memory")
    StaffLimit.objects.create(user=User.objects.get(username="newcomer"), account_ids=[account.pk])

    page = newcomer.get(URL)

    assert "workshop" in shown(page)
    assert "strangers" not in shown(page)
    assert ask(newcomer, stranger).context["form"].errors


def test_the_account_that_a_link_names_is_offered_among_many(staff: Client, account: Account) -> None:
    Account.objects.bulk_create(Account(name=f"a{number:03d}") for number in range(60))

    page = staff.get(URL, {"account": str(account.pk)})

    assert f'<option value="{account.pk}" selected>workshop</option>' in shown(page)
    assert len(page.context["form"].fields["account"].widget.choices) == 52


def test_working_memory_is_left_out_for_those_who_may_not_see_it(
    newcomer: Client, account: Account, owner: Owner
) -> None:
    WorkingMemory(owner).set("monday", {"scratchpad": "a private note"})
    allow("newcomer", "view_memory")

    assert "a private note" not in shown(ask(newcomer, account, conversation="monday"))


def test_the_number_of_queries_does_not_grow_with_the_results(staff: Client, account: Account, owner: Owner) -> None:
    counts = []
    for number in range(8):
        know(owner, f"Ana lives in Berlin since {number}.")
        if number in (0, 1, 7):
            with CaptureQueriesContext(connection) as captured:
                ask(staff, account)
            counts.append(len(captured))

    assert counts[1] == counts[2] <= 25


def test_the_form_is_answered_with_its_own_defaults(staff: Client, account: Account, owner: Owner) -> None:
    know(owner, "Likes tea.")
    defaults = {name: staff.get(URL).context["form"][name].value() for name in ("max_tokens", "top_k")}

    page = staff.get(URL, {**defaults, "account": account.pk, "agent": "assistant", "query": "tea", "posture": ""})

    assert not page.context["form"].errors
    assert "Likes tea." in shown(page)
