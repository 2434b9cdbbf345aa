"""Reviews of facts that contradict each other: stored, not believed, and decided by staff."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import Account, AuditEntry, Fact, FactReview, Link
from memory.owner import Owner
from memory.services.facts.review import ValidityTimes, decide_review, open_review
from memory.services.facts.store import list_facts, read_fact_history
from memory.services.facts.supersede import correct_fact, reject_fact, retract_fact
from memory.services.facts.tombstones import add_tombstone
from memory.services.memories.correct import mark_memories
from memory.services.memories.links import REPLACES
from memory.services.replaced_evidence import WHOLE_TURN
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, claims, day, fact_draft, know, learn_claim, reread, versions_of
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

MUNICH = "Ana lives in Munich."
Status = FactReview.Status


@pytest.fixture
def staff(owner: Owner) -> Owner:
    return Owner(account_id=owner.account_id, actor="staff:eve")


@pytest.fixture
def old(owner: Owner) -> Fact:
    return know(owner)


@pytest.fixture
def review(owner: Owner, old: Fact) -> FactReview:
    return ask(owner, old)


def ask(owner: Owner, old: Fact, claim: str = MUNICH, **fields: Any) -> FactReview:
    draft = fact_draft(claim, **fields)
    return open_review(owner, old=old, draft=draft, similarity=0.7, embedded=NOTHING, now=day(1))


def decide(staff: Owner, review: FactReview, decision: FactReview.Status, **fields: Any) -> FactReview:
    return decide_review(staff, review.id, decision=decision, now=day(2), **fields)


def new_of(owner: Owner, review: FactReview) -> Fact:
    rows = Fact.objects
    fact: Fact = rows.get(pk=review.new_fact_id)
    return fact


def test_a_pending_fact_is_stored_and_not_believed(owner: Owner, old: Fact, review: FactReview) -> None:
    pending = new_of(owner, review)

    assert (pending.status, pending.recorded_at, versions_of(pending)) == ("pending", None, [])
    assert claims(owner, now=day(1)) == claims(owner, now=day(1), known_at=day(1)) == [CLAIM]
    assert [fact.text for fact in list_facts(owner, status="pending", now=day(1))] == [MUNICH]
    assert (review.old_fact_id, review.similarity, review.status) == (old.id, 0.7, "open")


def test_a_pending_fact_has_its_evidence(owner: Owner, old: Fact) -> None:
    ana, source = entity_of(owner, "Ana"), say(owner, turn("I moved.")).turns[0]

    pending = new_of(owner, ask(owner, old, entity_ids=[ana.id], turn_ids=[source.id]))

    history = read_fact_history(pending)
    assert (history.entities, history.turns, pending.conversation_id) == ([ana.id], [source.id], "c1")


def test_the_same_draft_opens_one_review(owner: Owner, old: Fact, review: FactReview) -> None:
    other = know(owner, "Ana lives in Bern.")

    assert ask(owner, old).id == review.id
    assert ask(owner, other).new_fact_id == review.new_fact_id
    assert list(FactReview.objects.order_by("id").values_list("old_fact_id", flat=True)) == [old.id, other.id]


def test_a_rejected_claim_opens_no_review(owner: Owner, old: Fact) -> None:
    reject_fact(owner, know(owner, MUNICH).id, now=NOW)

    with pytest.raises(Conflict, match="was rejected"):
        ask(owner, old)

    assert not FactReview.objects.exists()


def test_a_pending_fact_is_neither_retracted_nor_rejected_nor_corrected(owner: Owner, review: FactReview) -> None:
    fact_id = review.new_fact_id

    for change in (retract_fact, reject_fact):
        with pytest.raises(Conflict, match="pending"):
            change(owner, fact_id, now=NOW)
    with pytest.raises(Conflict, match="pending"):
        correct_fact(owner, fact_id, changes={"confidence": 0.5}, embedded=NOTHING, now=NOW)


@pytest.mark.parametrize(("changed_at", "began"), [(None, day(1)), (day(-3), day(-3))])
def test_an_accepted_fact_supersedes_the_old_one(
    owner: Owner, staff: Owner, old: Fact, review: FactReview, changed_at: Any, began: Any
) -> None:
    before = began - timedelta(hours=1)

    decided = decide(staff, review, Status.ACCEPTED_NEW, changed_at=changed_at)

    assert (decided.status, decided.decided_by, decided.decided_at) == ("accepted_new", "staff:eve", day(2))
    new = new_of(owner, review)
    assert (new.status, new.valid_from, reread(owner, old).valid_to) == ("active", began, began)
    assert (claims(owner, now=day(2)), claims(owner, now=day(2), as_of=before)) == ([MUNICH], [CLAIM])
    assert claims(owner, as_of=day(2), known_at=day(1)) == [CLAIM]
    assert [version.reason for version in versions_of(new)] == ["accepted"]
    assert read_fact_history(new).supersedes == [old.id]
    assert not learn_claim(owner, MUNICH).is_new


def test_an_accepted_fact_keeps_its_own_start(owner: Owner, staff: Owner, old: Fact) -> None:
    review = ask(owner, old, valid_from=day(-1))

    decide(staff, review, Status.ACCEPTED_NEW)

    assert new_of(owner, review).valid_from == reread(owner, old).valid_to == day(-1)


def test_a_new_fact_that_is_given_up_is_retracted_without_a_version(
    owner: Owner, staff: Owner, old: Fact, review: FactReview
) -> None:
    decide(staff, review, Status.KEPT_OLD)

    given_up = new_of(owner, review)
    assert (given_up.status, given_up.recorded_at, versions_of(given_up)) == ("retracted", None, [])
    assert claims(owner, now=day(2)) == [CLAIM]
    assert ask(owner, old).id != review.id


def test_both_may_be_true_at_their_times(owner: Owner, staff: Owner, old: Fact, review: FactReview) -> None:
    spans = ValidityTimes(old_valid_to=day(-2), new_valid_from=day(-1))

    decide(staff, review, Status.BOTH_TRUE, times=spans)

    claims_by_day = {number: claims(owner, now=day(2), as_of=day(number)) for number in (-3, -2, -1)}
    assert claims_by_day == {-3: [CLAIM], -2: [], -1: [MUNICH]}
    assert [version.reason for version in versions_of(old)] == ["learned", "corrected"]
    assert reread(owner, old).status == "active"


def test_both_may_be_true_at_the_same_time(owner: Owner, staff: Owner, review: FactReview) -> None:
    decide(staff, review, Status.BOTH_TRUE)

    assert claims(owner, now=day(2)) == [CLAIM, MUNICH]


def test_validity_times_that_end_before_they_begin_are_refused(owner: Owner, staff: Owner) -> None:
    review = ask(owner, know(owner, "Ana lives in Bern.", valid_from=day(0)), valid_to=day(1))

    for spans in (ValidityTimes(old_valid_to=day(-1)), ValidityTimes(new_valid_from=day(1))):
        with pytest.raises(Unprocessable):
            decide(staff, review, Status.BOTH_TRUE, times=spans)

    assert new_of(owner, review).status == "pending"


def test_a_review_is_decided_once(staff: Owner, review: FactReview) -> None:
    decide(staff, review, Status.KEPT_OLD)

    with pytest.raises(Conflict, match="decided already"):
        decide(staff, review, Status.ACCEPTED_NEW)


def test_open_is_not_a_decision(staff: Owner, review: FactReview) -> None:
    with pytest.raises(Conflict, match="a decision is"):
        decide(staff, review, Status.OPEN)


def test_one_new_fact_may_supersede_several_old_ones(owner: Owner, staff: Owner, old: Fact, review: FactReview) -> None:
    second = ask(owner, know(owner, "Ana lives in Bern."))

    for each in (review, second):
        decide(staff, each, Status.ACCEPTED_NEW)

    assert claims(owner, now=day(2)) == [MUNICH]


def test_a_fact_given_up_in_one_review_cannot_be_accepted_in_another(
    owner: Owner, staff: Owner, review: FactReview
) -> None:
    second = ask(owner, know(owner, "Ana lives in Bern."))
    decide(staff, review, Status.KEPT_OLD)

    with pytest.raises(Conflict, match="retracted by now"):
        decide(staff, second, Status.ACCEPTED_NEW)
    decide(staff, second, Status.KEPT_OLD)


def test_keeping_the_old_fact_retracts_a_new_one_accepted_in_another_review(
    owner: Owner, staff: Owner, review: FactReview
) -> None:
    second = ask(owner, know(owner, "Ana lives in Bern."))
    decide(staff, review, Status.ACCEPTED_NEW)

    decide(staff, second, Status.KEPT_OLD)

    assert claims(owner, now=day(2)) == ["Ana lives in Bern."]


def test_an_old_fact_that_is_no_longer_active_stays_as_it_is(
    owner: Owner, staff: Owner, old: Fact, review: FactReview
) -> None:
    retract_fact(owner, old.id, now=day(1))

    decide(staff, review, Status.ACCEPTED_NEW)

    assert (reread(owner, old).status, claims(owner, now=day(2))) == ("retracted", [MUNICH])


def test_a_claim_learned_meanwhile_is_not_believed_twice(owner: Owner, staff: Owner, review: FactReview) -> None:
    know(owner, MUNICH)

    with pytest.raises(Conflict, match="claims the same"):
        decide(staff, review, Status.ACCEPTED_NEW)

    assert FactReview.objects.get().status == "open"


def test_a_claim_rejected_meanwhile_cannot_be_accepted(owner: Owner, staff: Owner, review: FactReview) -> None:
    reject_fact(owner, know(owner, "ana lives in munich", valid_to=day(9)).id, now=day(1))

    with pytest.raises(Conflict, match="the new fact is rejected by now"):
        decide(staff, review, Status.ACCEPTED_NEW)
    decide(staff, review, Status.KEPT_OLD)

    assert (claims(owner, now=day(2)), new_of(owner, review).status) == ([CLAIM], "rejected")


def test_a_claim_that_a_tombstone_matches_by_now_cannot_be_accepted(owner: Owner, staff: Owner, old: Fact) -> None:
    ana, other = entity_of(owner, "Ana"), entity_of(owner, "Ana Lima")
    review = ask(owner, old, entity_ids=[other.id])
    reject_fact(owner, know(owner, MUNICH, entity_ids=[ana.id]).id, now=day(1))
    add_tombstone(owner, MUNICH, ["Ana Lima"], now=day(1))

    with pytest.raises(Conflict, match="was rejected"):
        decide(staff, review, Status.ACCEPTED_NEW)

    assert FactReview.objects.get().status == "open"


@pytest.mark.parametrize("mark", ["archive", "quarantine"])
def test_a_hidden_old_fact_ends_when_the_new_one_is_accepted(
    owner: Owner, staff: Owner, old: Fact, review: FactReview, mark: str
) -> None:
    mark_memories(owner, [old.id], mark=mark, now=day(1))

    with pytest.raises(Conflict, match="archived, quarantined or expired"):
        decide(staff, review, Status.BOTH_TRUE)
    decide(staff, review, Status.ACCEPTED_NEW)

    mark_memories(owner, [old.id], mark={"archive": "unarchive", "quarantine": "release"}[mark], now=day(2))
    assert (reread(owner, old).status, claims(owner, now=day(2))) == ("superseded", [MUNICH])


@pytest.mark.parametrize("mark", ["archive", "quarantine"])
def test_a_new_fact_may_be_given_up_next_to_a_hidden_old_one(
    owner: Owner, staff: Owner, old: Fact, review: FactReview, mark: str
) -> None:
    mark_memories(owner, [old.id, review.new_fact_id], mark=mark, now=day(1))

    decide(staff, review, Status.KEPT_OLD)

    assert new_of(owner, review).status == "retracted"


def test_accepting_restores_a_hidden_new_fact_unless_it_is_quarantined(
    owner: Owner, staff: Owner, review: FactReview
) -> None:
    mark_memories(owner, [review.new_fact_id], mark="quarantine", now=day(1))
    with pytest.raises(Conflict, match="in quarantine"):
        decide(staff, review, Status.ACCEPTED_NEW)
    mark_memories(owner, [review.new_fact_id], mark="release", now=day(1))
    mark_memories(owner, [review.new_fact_id], mark="archive", now=day(1))

    decide(staff, review, Status.ACCEPTED_NEW)

    assert claims(owner, now=day(2)) == [MUNICH]


def test_reviews_of_other_accounts_are_not_found(stranger: Account, review: FactReview, staff: Owner) -> None:
    with pytest.raises(NotFound):
        decide(Owner(account_id=stranger.id), review, Status.KEPT_OLD)
    with pytest.raises(NotFound):
        decide_review(staff, uuid4(), decision=Status.KEPT_OLD, now=NOW)


def test_a_decision_is_audited(staff: Owner, old: Fact, review: FactReview) -> None:
    decide(staff, review, Status.KEPT_OLD)

    entry = AuditEntry.objects.get(operation="review")
    assert (entry.actor, entry.affected_ids) == ("staff:eve", [str(review.new_fact_id), str(old.id)])


def test_an_accepted_fact_belongs_to_the_user(owner: Owner, staff: Owner) -> None:
    of_ana = replace(owner, user_id="ana", channel="atlas")
    review = ask(of_ana, know(of_ana))

    decide(staff, review, Status.ACCEPTED_NEW)

    assert claims(of_ana, now=day(2)) == [MUNICH]
    assert not learn_claim(of_ana, MUNICH, now=day(2)).is_new


def test_a_review_costs_as_many_queries_as_stated(
    owner: Owner, staff: Owner, old: Fact, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(10):
        review = ask(owner, old)
    with django_assert_num_queries(19):
        decide(staff, review, Status.ACCEPTED_NEW)


@pytest.mark.django_db(transaction=True)
def test_only_one_of_two_concurrent_decisions_wins(staff: Owner, review: FactReview, start_concurrently: Start) -> None:
    with transaction.atomic():
        decide(staff, review, Status.KEPT_OLD)
        other = start_concurrently(lambda: over_own_connection(lambda: decide(staff, review, Status.ACCEPTED_NEW)))

    with pytest.raises(Conflict, match="decided already"):
        other.result(PATIENCE_SECONDS)


def test_the_turn_behind_an_accepted_fact_replaces_the_turn_behind_the_old_one(owner: Owner, staff: Owner) -> None:
    before, later = say(owner, turn(CLAIM, timestamp=day(-5)), turn(MUNICH, timestamp=day(-1))).turns
    old = know(owner, turn_ids=[before.id])
    review = ask(owner, old, turn_ids=[later.id])

    decide(staff, review, Status.ACCEPTED_NEW)

    link = Link.objects.get(type=REPLACES)
    assert (link.source_id, link.target_id, link.weight) == (later.id, before.id, WHOLE_TURN)
