"""Facts of clients that contradict believed ones: superseded, kept next to them, reviewed, or refused."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.errors import Conflict
from memory.models import Account, Fact, FactReview
from memory.owner import Owner
from memory.services.facts.contradict import learn_consistent_fact
from memory.services.facts.learn import LearnedFact
from memory.services.facts.store import visible_facts
from memory.services.facts.supersede import reject_fact
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import claims, day, fact_draft, know, learn_claim, reread

pytestmark = pytest.mark.django_db

PORTO, LISBON = "Ana lives in Porto", "Ana lives in Lisbon"


def post(owner: Owner, claim: str, *, on_contradiction: str = "", **fields: Any) -> LearnedFact:
    draft = fact_draft(claim, **fields)
    return learn_consistent_fact(owner, draft, on_contradiction=on_contradiction, embedded=NOTHING, now=NOW)


def test_a_contradicting_fact_supersedes_the_former_by_default(owner: Owner) -> None:
    old = know(owner, PORTO)

    new = post(owner, LISBON, valid_from=day(-1)).fact

    assert (reread(owner, old).status, reread(owner, old).valid_to) == ("superseded", day(-1))
    assert claims(owner) == [new.text] == [LISBON]


def test_a_claim_and_its_denial_supersede_each_other(owner: Owner) -> None:
    sequence = ("Ana is allergic to nuts", "Ana isn't allergic to nuts after all", "Ana is allergic to nuts")
    for place, claim in enumerate(sequence):
        post(owner, claim, event_time=day(place - 3))

        assert claims(owner) == [claim]


@pytest.mark.parametrize("times", [{"event_time": day(-9)}, {"valid_from": day(-9)}])
def test_what_was_true_earlier_ends_where_the_known_fact_begins(owner: Owner, times: dict[str, Any]) -> None:
    later: dict[str, Any] = dict.fromkeys(times, day(-1))
    known = post(owner, PORTO, **later).fact

    earlier = post(owner, LISBON, **times).fact

    assert (earlier.valid_from, earlier.valid_to) == (day(-9), reread(owner, known).valid_from) == (day(-9), day(-1))
    assert [fact.text for fact in visible_facts(owner, now=NOW)] == [PORTO]
    assert [fact.text for fact in visible_facts(owner, now=NOW, as_of=day(-5))] == [LISBON]


def test_an_earlier_statement_is_no_conflict_where_old_facts_are_preferred(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "CONTRADICTIONS", "prefer_old")
    post(owner, PORTO, event_time=day(-1))

    assert post(owner, LISBON, event_time=day(-9)).fact.valid_to == day(-1)


def test_both_are_kept_if_the_client_says_so(owner: Owner) -> None:
    know(owner, PORTO)

    post(owner, LISBON, on_contradiction="keep_both")

    assert claims(owner) == [PORTO, LISBON]


def test_staff_decides_if_the_client_asks_for_a_review(owner: Owner) -> None:
    old = know(owner, PORTO)

    new = post(owner, LISBON, on_contradiction="review")

    review = FactReview.objects.get()
    assert (new.fact.status, new.is_new, claims(owner)) == ("pending", True, [PORTO])
    assert (review.old_fact_id, review.new_fact_id) == (old.id, new.fact.id)


def test_the_account_decides_otherwise(owner: Owner, account: Account) -> None:
    know(owner, PORTO)
    Account.objects.filter(id=account.id).update(contradictions="prefer_old")

    with pytest.raises(Conflict, match="on_contradiction"):
        post(owner, LISBON)

    post(owner, LISBON, on_contradiction="supersede")
    assert claims(owner) == [LISBON]


def test_the_account_comes_before_the_installation(
    owner: Owner, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "CONTRADICTIONS", "prefer_old")
    Account.objects.filter(id=account.id).update(contradictions="flag_review")
    know(owner, PORTO)

    post(owner, LISBON)

    assert FactReview.objects.count() == 1


@pytest.mark.parametrize(
    ("claim", "fields"),
    [
        ("Ana's sister lives in Lisbon", {}),
        ("Ana lives in Portugal", {}),
        (LISBON, {"temporal": "future", "valid_from": day(9)}),
        (LISBON, {"temporal": "past", "valid_from": day(-900), "valid_to": day(-800)}),
        (LISBON, {"certainty": "uncertain"}),
        (LISBON, {"valid_from": day(-900)}),
        ("Ana moved to Lisbon as a child", {}),
        ("Ana moved to Lisbon in 2001", {}),
        ("Ana moved to Lisbon ten years ago", {}),
        ("Ana moved to Marketing", {}),
        ("Ana moved to Team Blue", {}),
        ("Ana moved to Lisbon", {"temporal": "past"}),
    ],
)
def test_a_fact_that_may_hold_as_well_is_learned_next_to_the_other(
    owner: Owner, claim: str, fields: dict[str, Any]
) -> None:
    know(owner, PORTO, valid_from=day(-100))

    post(owner, claim, **fields)

    assert Fact.objects.filter(status="active").count() == 2


@pytest.mark.parametrize("move", ["Ana moved to Lisbon", "Ana moved to York", "Ana moved to Las Palmas, Spain"])
def test_a_move_without_a_time_ends_the_former_residence(owner: Owner, move: str) -> None:
    before = know(owner, PORTO, valid_from=day(-100))

    new = post(owner, move).fact

    assert claims(owner) == [move]
    assert (reread(owner, before).status, reread(owner, before).valid_to) == ("superseded", new.valid_from)


@pytest.mark.parametrize(
    ("known", "claim"),
    [
        ("The user's rent is £950", "The user's rent is £995"),
        ("The user's dentist appointment is on 12 November", "The user's dentist appointment is on 26 November"),
        ("The user's phone is 07700 900123", "The user's number is 07700 900456"),
        ("The user's favourite colour is blue", "The user's favorite color is green"),
        ("The user lives in Leeds", "The user moved to York"),
    ],
)
def test_a_claim_in_other_words_supersedes_what_it_contradicts(owner: Owner, known: str, claim: str) -> None:
    know(owner, known)

    post(owner, claim, on_contradiction="supersede")

    assert claims(owner) == [claim]


def test_other_holders_and_channels_are_not_asked(owner: Owner) -> None:
    others: list[dict[str, Any]] = [{"user_id": "u1"}, {"agent_id": "other"}, {"channel": "rust"}]
    for other in others:
        know(replace(owner, **other), PORTO)

    post(owner, LISBON)

    assert Fact.objects.filter(status="active").count() == 4


def test_a_fact_of_the_global_channel_gives_way_to_one_of_a_project(owner: Owner) -> None:
    know(owner, PORTO)

    new = post(replace(owner, channel="rust"), LISBON).fact

    assert (new.channel, claims(owner)) == ("_global", [LISBON])


def test_a_known_claim_is_confirmed(owner: Owner) -> None:
    know(owner, PORTO)

    assert not post(owner, f"{PORTO}.").is_new


def test_looking_for_contradictions_costs_two_statements(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(8):
        learn_claim(owner, "Ana lives in Braga.")
    with django_assert_num_queries(12):  # two of them the savepoint's
        post(owner, "Bo lives in Braga.")


@pytest.mark.parametrize("again", ["Ana resides in Porto.", "Ana lives in Porto now"])
def test_a_paraphrase_of_a_rejected_claim_is_refused(owner: Owner, again: str) -> None:
    reject_fact(owner, know(owner, PORTO).id, now=NOW)

    with pytest.raises(Conflict, match="rejected"):
        post(owner, again)


@pytest.mark.parametrize("other", [LISBON, "Ana no longer lives in Porto", "Bo lives in Porto", "Ana moved to Porto"])
def test_another_claim_than_the_rejected_one_is_learned(owner: Owner, other: str) -> None:
    reject_fact(owner, know(owner, PORTO).id, now=NOW)

    assert post(owner, other).is_new


def test_believed_paraphrases_are_rejected_together(owner: Owner) -> None:
    one, other = know(owner, PORTO), know(owner, "Ana resides in Porto")

    reject_fact(owner, one.id, now=NOW)

    assert reread(owner, other).status == "rejected"


def test_a_fact_begins_when_it_was_said_unless_it_says_otherwise(owner: Owner) -> None:
    said = know(owner, PORTO, said_at=day(-5))
    stated = know(owner, "Ana works at Acme", said_at=day(-5), valid_from=day(-50))
    over = know(owner, "Ana sang", temporal="past", said_at=day(-5), valid_to=day(-10))

    assert (said.valid_from, said.valid_from_source, said.stated_from) == (day(-5), "said", None)
    assert (stated.valid_from, stated.valid_from_source, stated.stated_from) == (day(-50), "stated", day(-50))
    assert (over.valid_from, over.valid_from_source) == (None, None)
    assert claims(owner, as_of=day(-5) - timedelta(seconds=1)) == ["Ana works at Acme"]


def test_a_past_fact_said_twice_is_one_fact_since_its_first_mention(owner: Owner) -> None:
    first = know(owner, "Ana used to sing", temporal="past", said_at=day(-5))
    again = learn_claim(owner, "Ana used to sing", temporal="past", said_at=day(-9))

    assert (again.is_new, again.fact.id, again.fact.valid_from) == (False, first.id, day(-9))


def test_a_start_that_is_stated_later_replaces_the_time_when_it_was_said(owner: Owner) -> None:
    know(owner, PORTO, said_at=day(-5))
    again = know(owner, PORTO, said_at=day(-1), valid_from=day(-90))

    assert (again.valid_from, again.valid_from_source) == (day(-90), "stated")


def test_what_supersedes_a_globalized_fact_is_known_in_every_channel(owner: Owner) -> None:
    rust = replace(owner, channel="rust")
    know(owner, PORTO)
    know(rust, PORTO, now=day(1))

    new = learn_consistent_fact(rust, fact_draft(LISBON), embedded=NOTHING, now=day(2)).fact

    assert new.channel == "_global"
    assert (claims(owner, now=day(2)), claims(rust, now=day(2))) == ([LISBON], [LISBON])


@pytest.mark.django_db(transaction=True)
def test_a_fact_erased_while_it_comes_under_review_is_a_conflict(owner: Owner, start_concurrently: Start) -> None:
    old = know(owner, PORTO)
    with transaction.atomic():
        Fact.objects.filter(id=old.id).delete()
        learner = start_concurrently(lambda: post(owner, LISBON, on_contradiction="review"))

    with pytest.raises(Conflict, match="try again"):
        learner.result(PATIENCE_SECONDS)
    assert not Fact.objects.exists()
