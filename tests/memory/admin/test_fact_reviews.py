"""The review queue: two facts that contradict each other, side by side, and what staff decide."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory.models import AuditEntry, Fact, FactReview, Turn
from memory.owner import Owner
from memory.services.facts.review import open_review
from memory.services.facts.supersede import reject_fact
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import list_url, page_url, queries_of, shown
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, fact_draft, know
from tests.memory.turns import say, turn

NEW_CLAIM = "Ana lives in Rome."


def contradict(owner: Owner, old_claim: str = CLAIM, new_claim: str = NEW_CLAIM, **fields: Any) -> FactReview:
    old = know(owner, old_claim)
    draft = fact_draft(new_claim, **fields)
    return open_review(owner, old=old, draft=draft, similarity=0.93, embedded=NOTHING, now=NOW)


@pytest.fixture
def review(owner: Owner) -> FactReview:
    say(owner, turn("We live in Rome by now."))
    turn_ids = list(Turn.objects.values_list("pk", flat=True))
    return contradict(owner, turn_ids=turn_ids, entity_ids=[entity_of(owner).pk])


def decide(client: Client, review: FactReview, decision: str, **data: Any) -> Any:
    return client.post(page_url("factreview", review.pk), {"action": decision, **data}, follow=True)


def statuses() -> dict[str, str]:
    rows = Fact.objects
    return dict(rows.values_list("text", "status"))


def fact_of(claim: str) -> Any:
    return Fact.objects.get(text=claim)


def test_both_claims_are_compared_with_their_sources(staff: Client, review: FactReview) -> None:
    response = staff.get(page_url("factreview", review.pk))

    page = shown(response)
    assert all(expected in page for expected in (CLAIM, NEW_CLAIM, "We live in Rome by now.", "Ana Lima", "0.930"))
    assert "<del>Berlin</del>" in page
    assert "<ins>Rome</ins>" in page


def test_the_new_fact_is_accepted_from_a_date_on(staff: Client, review: FactReview) -> None:
    decide(staff, review, "accepted_new", changed_at="2026-05-20 10:00")

    changed_at = datetime(2026, 5, 20, 10, tzinfo=UTC)
    assert statuses() == {CLAIM: "superseded", NEW_CLAIM: "active"}
    assert (fact_of(CLAIM).valid_to, fact_of(NEW_CLAIM).valid_from) == (changed_at, changed_at)
    review.refresh_from_db()
    assert (review.status, review.decided_by) == ("accepted_new", "staff:chief")
    assert AuditEntry.objects.filter(actor="staff:chief", operation="review").exists()


def test_keeping_the_old_fact_retracts_the_new_one(staff: Client, review: FactReview) -> None:
    decide(staff, review, "kept_old")

    assert statuses() == {CLAIM: "active", NEW_CLAIM: "retracted"}


def test_both_facts_are_kept_each_in_its_period(staff: Client, review: FactReview) -> None:
    decide(staff, review, "both_true", old_valid_to="2026-05-20", new_valid_from="2026-05-20")

    moment = datetime(2026, 5, 20, tzinfo=UTC)
    assert statuses() == {CLAIM: "active", NEW_CLAIM: "active"}
    assert (fact_of(CLAIM).valid_to, fact_of(NEW_CLAIM).valid_from) == (moment, moment)


def test_an_invalid_time_is_refused_and_shown_as_it_was_typed(staff: Client, review: FactReview) -> None:
    response = decide(staff, review, "accepted_new", changed_at="last spring")

    assert "last spring" in shown(response)
    assert statuses() == {CLAIM: "active", NEW_CLAIM: "pending"}


def test_a_decided_review_has_no_buttons_and_is_not_decided_again(staff: Client, review: FactReview) -> None:
    decide(staff, review, "kept_old")

    response = decide(staff, review, "accepted_new")

    assert "the review is decided already" in shown(response).lower()
    assert "Keep the old fact" not in shown(response)
    assert statuses() == {CLAIM: "active", NEW_CLAIM: "retracted"}


def test_an_unknown_decision_is_404(staff: Client, review: FactReview) -> None:
    assert decide(staff, review, "open").status_code == 404


def test_the_list_shows_open_reviews_by_default(staff: Client, owner: Owner, review: FactReview) -> None:
    decided = contradict(owner, "The pump leaks.", "The pump is dry.")
    decide(staff, decided, "kept_old")

    found = [
        [row.pk for row in staff.get(list_url("factreview", **asked)).context["cl"].result_list]
        for asked in ({}, {"decision": "kept_old"}, {"decision": "any"})
    ]

    assert found == [[review.pk], [decided.pk], [decided.pk, review.pk]]
    assert 'class="field-similarity_text">0.930<' in shown(staff.get(list_url("factreview")))


def contradictions_on_home(page: str) -> list[str]:
    return re.findall(r"contradictions to decide</dt><dd><a href=\S+>(\d+)</a>", page)


def test_the_admin_index_counts_open_reviews(staff: Client, newcomer: Client, review: FactReview) -> None:
    waiting, unseen = (shown(client.get(reverse("admin:index"))) for client in (staff, newcomer))
    decide(staff, review, "kept_old")

    assert contradictions_on_home(waiting) == ["1"]
    assert "contradiction" not in unseen
    assert contradictions_on_home(shown(staff.get(reverse("admin:index")))) == ["0"]
    assert "open fact reviews" in shown(staff.get(list_url("factreview")))


def test_a_review_whose_old_fact_was_rejected_meanwhile_can_be_decided(
    staff: Client, owner: Owner, review: FactReview
) -> None:
    reject_fact(owner, review.old_fact_id, now=NOW + timedelta(days=1))

    decide(staff, review, "accepted_new")

    assert statuses() == {CLAIM: "rejected", NEW_CLAIM: "active"}


def test_a_page_costs_few_queries(staff: Client, review: FactReview) -> None:
    assert queries_of(staff, page_url("factreview", review.pk)) <= 8


def test_whatever_facts_say_is_shown_as_text(staff: Client, owner: Owner) -> None:
    say(owner, turn(HOSTILE))
    turn_ids = list(Turn.objects.values_list("pk", flat=True))
    review = contradict(owner, HOSTILE, f"not {HOSTILE}", turn_ids=turn_ids)

    for url in (list_url("factreview"), page_url("factreview", review.pk)):
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page


def test_the_list_shows_claims_only_with_permission_to_view_facts(newcomer: Client, review: FactReview) -> None:
    allow("newcomer", "view_factreview")
    blind = shown(newcomer.get(list_url("factreview")))
    allow("newcomer", "view_fact")
    seeing = shown(newcomer.get(list_url("factreview")))

    assert not any(claim in blind for claim in (CLAIM, NEW_CLAIM))
    assert page_url("factreview", review.pk) in blind
    assert all(claim in seeing for claim in (CLAIM, NEW_CLAIM))


def test_a_review_names_entities_only_with_permission_to_view_entities(newcomer: Client, review: FactReview) -> None:
    allow("newcomer", "view_factreview", "view_fact")
    blind = shown(newcomer.get(page_url("factreview", review.pk)))
    allow("newcomer", "view_entity")

    assert "Ana Lima" not in blind
    assert "Ana Lima" in shown(newcomer.get(page_url("factreview", review.pk)))


def test_the_view_permission_alone_does_not_allow_decisions(newcomer: Client, review: FactReview) -> None:
    allow("newcomer", "view_factreview")
    blind = shown(newcomer.get(page_url("factreview", review.pk)))
    allow("newcomer", "view_fact")

    assert "You may not read facts" in blind
    assert NEW_CLAIM not in blind
    assert NEW_CLAIM in shown(newcomer.get(page_url("factreview", review.pk)))
    assert decide(newcomer, review, "kept_old").status_code == 403
    assert statuses()[NEW_CLAIM] == "pending"
