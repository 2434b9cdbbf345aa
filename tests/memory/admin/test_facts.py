"""Facts in the admin: their history of beliefs, and the actions of staff."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import Account, AuditEntry, Fact, FactTombstone, FactVersion, Turn, Vector
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.facts.supersede import correct_fact, supersede_fact
from memory.services.memories.links import SUPERSEDES, NewLink, insert_links
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, day, fact_draft, know
from tests.memory.turns import say, turn


def said(owner: Owner, text: str = "I moved to Berlin last spring.") -> Turn:
    say(owner, turn(text))
    return Turn.objects.get(text=text)


@pytest.fixture
def fact(owner: Owner) -> Fact:
    """A fact about Ana with a turn as its evidence."""
    return know(owner, entity_ids=[entity_of(owner).pk], turn_ids=[said(owner).pk], certainty="implied", angle=0.1)


def stored(fact: Fact) -> Any:
    return Fact.objects.get(pk=fact.pk)


def save(client: Client, fact: Fact, **edits: Any) -> Any:
    url = page_url("fact", fact.pk)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def do(client: Client, fact: Fact, action: str, **data: Any) -> Any:
    return client.post(page_url("fact", fact.pk), {"action": action, **data}, follow=True)


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def test_a_page_shows_the_source_turn_and_the_entity_of_a_fact(staff: Client, fact: Fact) -> None:
    page = shown(staff.get(page_url("fact", fact.pk)))

    assert "I moved to Berlin last spring." in page
    assert "?turn=0#turn-0" in page
    assert "Ana Lima" in page
    assert "0.85 (implied)" in page


def test_correcting_a_fact_creates_its_next_belief(staff: Client, fact: Fact) -> None:
    save(staff, fact, text="Ana lives in Bern.", confidence="0.5")

    row = stored(fact)
    assert (row.text, row.confidence, row.belief_number, row.embed_after is not None) == (
        "Ana lives in Bern.",
        0.5,
        2,
        True,
    )
    assert not Vector.objects.filter(memory_id=fact.pk).exists()
    versions = FactVersion.objects.order_by("number").values_list("claim", "reason", "actor")
    assert list(versions)[1] == ("Ana lives in Bern.", "corrected", "staff:chief")
    assert (last_entry().actor, last_entry().operation) == ("staff:chief", "correct")


def test_salience_is_corrected_together_with_a_new_belief(staff: Client, fact: Fact) -> None:
    save(staff, fact, salience="0.9", confidence="0.4")

    row = stored(fact)
    assert (row.salience, row.confidence, row.belief_number) == (0.9, 0.4, 2)


def test_saving_without_an_edit_creates_no_belief(staff: Client, fact: Fact) -> None:
    save(staff, fact)

    assert (stored(fact).belief_number, stored(fact).version) == (1, 1)


def test_messages_name_a_fact_by_its_claim(staff: Client, owner: Owner) -> None:
    hostile = know(owner, f"{HOSTILE} rests.", angle=0.2)

    message = shown(save(staff, hostile, salience="0.3")).partition('class="messagelist"')[2].partition("</ul>")[0]

    assert "rests.</bdi></a>” was changed" in message
    assert (HOSTILE in message, f"fact {hostile.pk}" in message) == (False, False)


def test_a_fact_that_changed_meanwhile_is_not_corrected(staff: Client, owner: Owner, fact: Fact) -> None:
    values = form_values(staff.get(page_url("fact", fact.pk)))
    correct_fact(owner, fact.pk, changes={"confidence": 0.1}, embedded=NOTHING, now=day(1))

    response = staff.post(page_url("fact", fact.pk), values | {"text": "Ana lives in Rome."})

    assert "Not saved" in shown(response)
    assert stored(fact).text == CLAIM


@pytest.mark.parametrize(
    "edits",
    [
        {"confidence": "1.2"},
        {"text": "   "},
        {"text": "x" * 10_001},
        {"temporal": "someday"},
        {"valid_from_0": "2026-05-02", "valid_from_1": "00:00", "valid_to_0": "2026-05-01", "valid_to_1": "00:00"},
    ],
)
def test_an_invalid_edit_of_a_fact_is_refused(staff: Client, fact: Fact, edits: dict[str, str]) -> None:
    response = save(staff, fact, **edits)

    assert response.status_code == 200
    assert (stored(fact).text, stored(fact).belief_number) == (CLAIM, 1)


def test_the_generic_memory_page_does_not_change_the_claim_of_a_fact(staff: Client, fact: Fact) -> None:
    url = page_url("memory", fact.pk)

    response = staff.post(url, form_values(staff.get(url)) | {"text": "Ana lives in Rome."})

    assert "not corrected here: text" in shown(response)
    assert stored(fact).text == CLAIM


def test_history_shows_every_belief_and_why(staff: Client, owner: Owner, fact: Fact) -> None:
    correct_fact(owner, fact.pk, changes={"claim": "Ana lives in Bern."}, embedded=NOTHING, now=day(1))
    correct_fact(owner, fact.pk, changes={"confidence": 0.5}, embedded=NOTHING, now=day(2))

    history = staff.get(page_url("fact", fact.pk)).context["history"]

    beliefs = [(version.row.number, version.row.reason, version.claim) for version in history.versions]
    assert beliefs == [(3, "corrected", ""), (2, "corrected", "Ana lives in Bern."), (1, "learned", CLAIM)]


def test_a_superseded_fact_can_only_be_retracted_or_rejected(staff: Client, owner: Owner, fact: Fact) -> None:
    supersede_fact(owner, fact.pk, fact_draft("Ana lives in Rome."), embedded=NOTHING, now=day(1))

    page = shown(staff.get(page_url("fact", fact.pk)))

    offered = [
        name for name in ("supersede", "globalize", "retract", "reject") if f'name="action" value="{name}"' in page
    ]
    assert offered == ["retract", "reject"]
    do(staff, fact, "reject")
    assert stored(fact).status == "rejected"


def test_a_fact_is_superseded_when_the_world_has_changed(staff: Client, fact: Fact) -> None:
    do(
        staff,
        fact,
        "supersede",
        claim="Ana lives in Rome.",
        confidence="0.9",
        temporal="current",
        valid_from="2026-05-20",
    )

    rows = Fact.objects
    new = rows.get(status="active")
    assert (new.text, new.source, new.valid_from) == ("Ana lives in Rome.", "staff", datetime(2026, 5, 20, tzinfo=UTC))
    assert (stored(fact).status, stored(fact).valid_to) == ("superseded", new.valid_from)
    assert Vector.objects.filter(memory_id=new.pk).exists()
    assert CLAIM in shown(staff.get(page_url("fact", new.pk)))
    assert "Was superseded by" in shown(staff.get(page_url("fact", fact.pk)))


def test_a_fact_names_the_turn_that_replaced_it(staff: Client, owner: Owner, fact: Fact) -> None:
    replacing = said(owner, "Rome, since you ask.")
    insert_links(owner.account_id, [NewLink(source_id=replacing.pk, type=SUPERSEDES, target_id=fact.pk)])

    page = shown(staff.get(page_url("fact", fact.pk)))

    assert "Rome, since you ask." in page
    assert reverse("admin:memory_memory_why", args=[replacing.pk]) in page


def test_a_page_says_that_what_a_fact_superseded_is_believed_again(staff: Client, fact: Fact) -> None:
    page = shown(staff.get(page_url("fact", fact.pk)))
    asked = [
        shown(choose(staff, list_url("fact"), f"{name}_selected", fact.pk, post="")) for name in ("retract", "reject")
    ]

    assert page.count("superseded is believed again") == 2
    assert all("superseded is believed again" in each for each in asked)


def test_lists_say_that_a_fact_is_retracted(staff: Client, fact: Fact) -> None:
    pages = ("fact", "memory")
    before = [shown(staff.get(list_url(page))) for page in pages]

    do(staff, fact, "retract")

    assert all('class="field-state">live<' in page for page in before)
    listed = [shown(staff.get(list_url(page))) for page in pages]
    assert all('class="field-state">retracted<' in page for page in listed)
    assert 'class="field-temporal_text">-<' in listed[0]
    assert "retracted" in shown(staff.get(page_url("memory", fact.pk))).partition("State")[2][:200]


@pytest.mark.parametrize(
    ("times", "state"),
    [
        ({}, "live"),
        ({"valid_from": day(-9), "valid_to": day(9_000)}, "live"),
        ({"valid_from": day(-9), "valid_to": day(-1)}, "ended"),
        ({"valid_from": day(9_000)}, "not yet true"),
    ],
)
def test_pages_and_lists_say_how_a_fact_stands_now(
    staff: Client, owner: Owner, times: dict[str, Any], state: str
) -> None:
    entity = entity_of(owner)
    row = know(owner, entity_ids=[entity.pk], angle=0.1, **times)

    lists = [shown(staff.get(list_url(page))) for page in ("fact", "memory")]
    page = shown(staff.get(page_url("fact", row.pk)))
    about = staff.get(page_url("entity", entity.pk)).context["facts"]

    named = "active" if state == "live" else state
    assert all(f'class="field-state">{state}<' in each for each in lists)
    assert f'<span class="status">{named.capitalize()}</span>' in page
    assert [each.state for each in about] == [named]
    assert ('class="field-temporal_text">Current<' in lists[0]) == (state == "live")


def test_a_retracted_fact_says_who_retracted_it_and_why(staff: Client, newcomer: Client, fact: Fact) -> None:
    do(staff, fact, "retract", _reason="She moved to Rome.")

    allow("newcomer", "view_fact")
    pages = [shown(staff.get(page_url("fact", fact.pk))), shown(staff.get(page_url("memory", fact.pk, "why")))]
    assert [page.count("by <bdi>staff:chief</bdi>: <bdi>She moved to Rome.</bdi>") for page in pages] == [1, 1]
    assert "She moved to Rome." not in shown(newcomer.get(page_url("fact", fact.pk)))


def test_a_retracted_fact_can_be_learned_again(staff: Client, owner: Owner, fact: Fact) -> None:
    do(staff, fact, "retract")

    assert stored(fact).status == "retracted"
    assert last_entry().operation == "retract"
    assert know(owner, now=datetime.now(UTC)).pk != fact.pk


def test_a_fact_is_rejected_and_its_tombstone_lifted(staff: Client, fact: Fact) -> None:
    do(staff, fact, "reject")
    tombstone = FactTombstone.objects.get()
    choose(staff, list_url("facttombstone"), "lift", tombstone.pk)

    assert stored(fact).status == "rejected"
    assert tombstone.rejected_by == "staff:chief"
    assert not FactTombstone.objects.exists()
    assert (last_entry().actor, last_entry().operation) == ("staff:chief", "lift")


def test_a_tombstone_shows_its_match_count_but_not_the_claim(staff: Client, fact: Fact) -> None:
    do(staff, fact, "reject")
    FactTombstone.objects.update(met_count=3)

    page = shown(staff.get(page_url("facttombstone", FactTombstone.objects.get().pk)))

    assert "3×" in page
    assert "Berlin" not in page


def test_a_tombstone_is_lifted_on_its_page(staff: Client, fact: Fact) -> None:
    do(staff, fact, "reject")

    staff.post(page_url("facttombstone", FactTombstone.objects.get().pk, "delete"), {"post": "yes"})

    assert not FactTombstone.objects.exists()


def test_rejecting_selected_facts_names_those_it_cannot_reject(staff: Client, owner: Owner, fact: Fact) -> None:
    other = know(owner, "Ana has a boat.")
    do(staff, other, "retract")

    response = choose(staff, list_url("fact"), "reject_selected", fact.pk, other.pk)

    assert (stored(fact).status, stored(other).status) == ("rejected", "retracted")
    assert "Rejected 1 fact." in shown(response)
    assert "The fact is retracted, and not believed" in shown(response)


def test_a_fact_is_promoted_with_a_reason(staff: Client, account: Account) -> None:
    owner = Owner(account_id=account.id, user_id="ana", agent_id="assistant", channel="garden")
    fact = know(owner)

    do(staff, fact, "globalize", reason="Holds everywhere.")

    copy = Fact.objects.get(channel="_global")
    page = shown(staff.get(page_url("fact", copy.pk)))
    assert "Promoted from" in page
    assert "Holds everywhere." in page


@pytest.mark.parametrize("end", ["2026-05-01", "2026-05-02"])
def test_an_end_that_is_not_after_the_beginning_is_marked(staff: Client, fact: Fact, end: str) -> None:
    times = {"valid_from_0": "2026-05-02", "valid_from_1": "00:00", "valid_to_0": end, "valid_to_1": "00:00"}

    response = save(staff, fact, **times)

    assert response.context["adminform"].form.errors == {"valid_to": ["The end must be after the beginning."]}
    assert stored(fact).valid_to is None


def test_the_claim_of_a_retracted_fact_is_not_corrected(staff: Client, fact: Fact) -> None:
    do(staff, fact, "retract")

    save(staff, fact, text="Ana lives in Rome.", salience="0.3")

    assert (stored(fact).text, stored(fact).salience) == (CLAIM, 0.3)
    assert "Supersede" not in shown(staff.get(page_url("fact", fact.pk)))


def test_a_refused_action_is_shown_as_it_was_typed(staff: Client, fact: Fact) -> None:
    response = do(staff, fact, "supersede", claim="Ana lives in Rome.", confidence="7", temporal="current")

    page = shown(response)
    assert "Ana lives in Rome." in page
    assert '<details class="object-action" open>' in page
    assert stored(fact).status == "active"


def test_the_list_is_filtered_by_truth(staff: Client, owner: Owner, fact: Fact) -> None:
    now = datetime.now(UTC)
    know(owner, "Ana will sail.", now=now, valid_from=now + timedelta(days=9))
    supersede_fact(owner, fact.pk, fact_draft("Ana lives in Rome."), embedded=NOTHING, now=now)

    found = {
        truth: [row.text for row in Fact.objects.filter(pk__in=[row.pk for row in listed(staff, truth)])]
        for truth in ("now", "past", "future")
    }

    assert found == {"now": ["Ana lives in Rome."], "past": [CLAIM], "future": ["Ana will sail."]}


def listed(client: Client, truth: str) -> Any:
    return client.get(list_url("fact", truth=truth)).context["cl"].result_list


def test_facts_are_found_by_meaning(staff: Client, account: Account, owner: Owner) -> None:
    claims = ["The pump in the garden leaks.", "The bakery needs almond flour."]
    embedded = embed_texts(claims)
    for claim in claims:
        learn_fact(owner, FactDraft(claim=claim), embedded=embedded, now=NOW)

    response = staff.get(list_url("fact", account=account.id, meaning=claims[0]))

    assert response.context["cl"].result_list[0].text == claims[0]


def test_pages_and_lists_cost_as_many_queries_for_many_as_for_few(staff: Client, owner: Owner, fact: Fact) -> None:
    url = page_url("fact", fact.pk)
    few = queries_of(staff, url)

    for number in range(1, 5):
        entity, evidence = entity_of(owner, f"person {number}"), said(owner, f"Berlin, {number}")
        know(owner, entity_ids=[entity.pk], turn_ids=[evidence.pk], now=day(number), confidence=0.9 + number / 100)

    assert queries_of(staff, url) == few <= 15


def test_whatever_a_fact_says_is_shown_as_text(staff: Client, owner: Owner) -> None:
    entity, evidence = entity_of(owner, HOSTILE[:90]), said(owner, HOSTILE)
    fact = know(owner, HOSTILE, entity_ids=[entity.pk], turn_ids=[evidence.pk])
    do(staff, fact, "supersede", claim=f"{HOSTILE} no more", confidence="1", temporal="current")

    for url in (list_url("fact"), page_url("fact", fact.pk)):
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page


def test_the_view_permission_for_facts_shows_no_turns_and_allows_no_changes(newcomer: Client, fact: Fact) -> None:
    allow("newcomer", "view_fact")

    page = shown(newcomer.get(page_url("fact", fact.pk)))

    assert CLAIM in page
    assert "You may not read turns" in page
    assert "Ana Lima" not in page
    assert do(newcomer, fact, "reject").status_code == 403
    assert stored(fact).status == "active"


def test_pages_of_facts_require_permission(newcomer: Client, fact: Fact) -> None:
    assert newcomer.get(page_url("fact", fact.pk)).status_code == 403
    assert do(newcomer, fact, "retract").status_code == 403
