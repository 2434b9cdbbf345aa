"""The page "Why do you know this?": sources, author, versions, replacements, readers and injections of a memory."""

from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from ledger.models import Injection
from memory.models import Account, AuditEntry, Conversation, Link, Memory, StaffLimit, Turn
from memory.owner import Owner
from memory.services.facts.learn import FactDraft
from memory.services.facts.supersede import supersede_fact
from memory_project.ids import uuid7
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import page_url, queries_of, shown
from tests.memory.admin.test_lists import INLINE
from tests.memory.audits import entered
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOTHING
from tests.memory.facts import know
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


def link(account: Account, source: UUID, target: UUID, type: str = "DERIVED_FROM") -> None:  # noqa: A002
    Link.objects.create(account=account, source_id=source, target_id=target, type=type)


def inject(account: Account, memory: Memory, conversation: str, *, number: int = 1) -> None:
    Injection.objects.create(
        account=account, conversation_id=conversation, item_key=memory.item_key, agent_id="assistant",
        event="marked", at=timezone.now(), stream_id=f"{number:041d}",
    )  # fmt: skip


def why(browser: Client, memory_id: object) -> str:
    response = browser.get(page_url("memory", memory_id, "why"))
    assert response.status_code == 200
    return shown(response)


def test_the_turns_that_a_memory_is_derived_from_are_quoted(staff: Client, account: Account, owner: Owner) -> None:
    talk(owner, 2)
    turn = Turn.objects.order_by("index").first()
    assert turn is not None
    fact = know(owner, "Ana lives in Berlin.")
    link(account, fact.pk, turn.pk)

    page = why(staff, fact.pk)

    assert f"<blockquote>\n  <header><bdi>{turn.role}</bdi>" in page
    assert turn.text in page
    assert page_url("conversation", turn.log_id) in page


def test_author_and_actor_are_named(staff: Client, account: Account) -> None:
    fact = know(Owner(account_id=account.pk, agent_id="assistant", user_id="ana", actor="key:mem_1"))

    page = why(staff, fact.pk)

    assert "<dt>Agent</dt><dd><bdi>assistant</bdi></dd>" in page
    assert "<dt>User</dt><dd><bdi>ana</bdi></dd>" in page
    assert "by <bdi>key:mem_1</bdi>" in page


def test_versions_and_what_replaced_it_are_shown(staff: Client, owner: Owner) -> None:
    old = know(owner, "Ana lives in Berlin.")
    new = supersede_fact(owner, old.pk, FactDraft(claim="Ana lives in Rome."), embedded=NOTHING, now=timezone.now())

    of_old, of_new = why(staff, old.pk), why(staff, new.pk)

    replaced = of_old[of_old.index("What replaced it") :]
    assert page_url("memory", new.pk, "why") in replaced
    assert "Nothing replaced it." in of_new
    assert page_url("memory", old.pk, "why") in of_new[of_new.index("What it replaced") :]
    assert "believed from" in of_old


def test_what_was_derived_from_it_leads_on(staff: Client, account: Account, owner: Owner) -> None:
    source, derived = know(owner, "Ana moved to Berlin."), know(owner, "Ana lives in Berlin.")
    link(account, derived.pk, source.pk)

    page = why(staff, source.pk)

    assert page_url("memory", derived.pk, "why") in page[page.index("What was derived from it") :]
    assert page_url("memory", source.pk, "why") in why(staff, derived.pk)


def test_readers_are_named_from_the_access_log_and_the_audit_log(staff: Client, account: Account, owner: Owner) -> None:
    [noted] = keep(owner, context_of(owner), entry("The boiler is in the cellar."))
    entered(account, timezone.now(), operation="retrieve", memory_type="all", affected_ids=[str(noted.pk)])

    page = why(staff, noted.pk)

    reads = page[page.index("Who read it") :]
    assert "by <bdi>assistant</bdi>" in reads
    assert ">Recalled</a>" in reads


def test_injections_lead_to_their_conversations(staff: Client, account: Account, owner: Owner) -> None:
    talk(owner, 1, conversation_id="monday")
    fact = know(owner)
    row = Memory.objects.get(pk=fact.pk)
    inject(account, row, "monday")
    inject(account, row, "gone", number=2)
    conversation = Conversation.objects.get(conversation_id="monday")

    page = why(staff, fact.pk)

    injections = page[page.index("Where it was injected") :]
    assert f'marked in <a href="{page_url("conversation", conversation.pk)}"><bdi>monday</bdi></a>' in injections
    assert "marked in <bdi>gone</bdi>" in injections


def test_a_memory_about_which_nothing_is_known_says_so(staff: Client, owner: Owner) -> None:
    page = why(staff, know(owner).pk)

    for sentence in ("It is derived from no stored memory", "Nothing replaced it.", "Nothing was derived from it."):
        assert sentence in page
    assert "It has not been read yet." in page
    assert "It was never put into a prompt" in page


def test_every_page_of_a_memory_links_to_it(staff: Client, owner: Owner) -> None:
    fact = know(owner)

    for model in ("memory", "fact"):
        assert page_url("memory", fact.pk, "why") in shown(staff.get(page_url(model, fact.pk)))


def test_hostile_texts_are_escaped(staff: Client, account: Account) -> None:
    hostile = Owner(account_id=account.pk, agent_id="assistant", user_id="<script>u", actor="<script>a")
    facts = [know(hostile, f"Ana is {HOSTILE} {number}") for number in range(2)]
    link(account, facts[0].pk, facts[1].pk)

    page = why(staff, facts[0].pk)

    assert "<script>alert" not in page
    assert "<script>u" not in page
    assert "<script>a<" not in page
    assert "\u202e" not in page
    assert INLINE.findall(page) == []


def test_texts_that_the_user_may_not_read_are_not_shown(newcomer: Client, account: Account, owner: Owner) -> None:
    talk(owner, 1, start=77)
    turn, fact, other = Turn.objects.get(), know(owner, "Ana lives in Berlin."), know(owner, "Ana moved.")
    link(account, fact.pk, turn.pk)
    link(account, fact.pk, other.pk)
    assert newcomer.get(page_url("memory", fact.pk, "why")).status_code == 403
    allow("newcomer", "view_memory")

    page = why(newcomer, fact.pk)

    assert turn.text not in page
    assert "Ana moved." not in page
    assert "You may not read turns." in page


def test_memories_of_other_accounts_do_not_exist(newcomer: Client, account: Account, stranger: Account) -> None:
    allow("newcomer", "view_memory")
    StaffLimit.objects.create(user=User.objects.get(username="newcomer"), account_ids=[account.pk])
    foreign = know(Owner(account_id=stranger.pk, agent_id="assistant"))

    assert newcomer.get(page_url("memory", foreign.pk, "why")).status_code == 404
    assert newcomer.get(page_url("memory", uuid7(), "why")).status_code == 404


def test_the_number_of_queries_is_fixed(staff: Client, account: Account, owner: Owner) -> None:
    fact = know(owner)
    few = queries_of(staff, page_url("memory", fact.pk, "why"))
    for number in range(9):
        link(account, fact.pk, know(owner, f"source {number}").pk)
        link(account, know(owner, f"derived {number}").pk, fact.pk)
        inject(account, Memory.objects.get(pk=fact.pk), "c", number=number)

    assert queries_of(staff, page_url("memory", fact.pk, "why")) <= few + 1
    assert AuditEntry.objects.exists()
    assert few <= 20
