"""The job that finds contradictions stored before: ended or reviewed, batch by batch, and nothing on a dry run."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction

from memory.maintenance import Batch, BatchReport
from memory.maintenance.fact_jobs import find_contradictions
from memory.models import Account, Fact, FactReview, Link
from memory.owner import Owner
from memory.services.facts.repair import find_disputed_keys
from memory.services.facts.supersede import correct_fact, retract_fact
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import claims, day, know, versions_of

pytestmark = pytest.mark.django_db

TOWNS = ("Porto", "Lisbon", "Braga")


def run_to_the_end(batch: Batch) -> dict[str, int]:
    """Return the figures of all batches, added up."""
    report: BatchReport | None = None
    figures: dict[str, int] = {}
    while report is None or report.cursor:
        report = find_contradictions(now=NOW, batch=replace(batch, cursor=report.cursor if report else ""))
        for name, count in report.figures.items():
            figures[name] = figures.get(name, 0) + count
    return figures


def live_in_towns(owner: Owner, *, is_read: bool = True) -> None:
    for number, town in enumerate(TOWNS):
        know(owner, f"Ana lives in {town}", event_time=day(number - 10), said_at=day(number - 10))
    if not is_read:
        Fact.objects.update(attribute=None)


def test_facts_that_stand_side_by_side_are_ended_by_the_last_one(owner: Owner) -> None:
    live_in_towns(owner, is_read=False)

    figures = run_to_the_end(Batch(size=2))

    assert claims(owner) == ["Ana lives in Braga"]
    assert figures == {"attributes": 3, "contradictions": 2, "facts_superseded": 2}
    assert Link.objects.filter(type="SUPERSEDES").count() == 2
    assert Fact.objects.get(text="Ana lives in Porto").valid_to == day(-9)


@pytest.mark.parametrize(
    ("first", "second", "ended"),
    [
        ("The release is on 4 December 2030", "The release slips to 19 December 2030", 1),
        ("The release is on 4 December 2030", "The user postponed the release to 19 December 2030", 1),
        ("The meeting is on 4 December 2030", "The meeting is on 19 December 2030", 0),
    ],
)
def test_a_planned_date_is_ended_by_the_next_one(owner: Owner, first: str, second: str, ended: int) -> None:
    for number, text in enumerate((first, second)):
        at = day(number - 10)
        know(owner, text, event_time=at, said_at=at, temporal="future", valid_to=day(5000))

    figures = run_to_the_end(Batch(size=2))

    assert figures.get("facts_superseded", 0) == ended
    assert len(claims(owner)) == 2 - ended


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ana is allergic to peanuts", "Ana is not allergic to peanuts"),
        ("Ana isn't allergic to peanuts", "Ana is allergic to peanuts"),
        ("Ana eats fish", "Ana doesn't eat fish anymore"),
    ],
)
@pytest.mark.parametrize("channels", [("_global", "_global"), ("atlas", "atlas"), ("_global", "atlas")])
def test_of_a_claim_and_its_denial_the_later_one_stays(
    owner: Owner, first: str, second: str, channels: tuple[str, str]
) -> None:
    old = know(replace(owner, channel=channels[0]), first, event_time=day(-9), said_at=day(-9))
    new = know(replace(owner, channel=channels[1]), second)
    know(replace(owner, user_id="u1"), first)
    assert {old.attribute, new.attribute} == {""}

    assert run_to_the_end(Batch(size=2, dry_run=True)) == {"denials": 1}
    assert run_to_the_end(Batch(size=2)) == {"denials": 1, "facts_superseded": 1}

    assert list(Fact.objects.filter(status="superseded").values_list("id", flat=True)) == [old.id]
    assert run_to_the_end(Batch(size=2)) == {}


def test_a_second_run_finds_nothing(owner: Owner) -> None:
    live_in_towns(owner)
    run_to_the_end(Batch(size=100))

    assert run_to_the_end(Batch(size=100)) == {}


def test_a_dry_run_counts_and_changes_nothing(owner: Owner) -> None:
    live_in_towns(owner)

    assert run_to_the_end(Batch(size=100, dry_run=True)) == {"contradictions": 2}
    assert len(claims(owner)) == 3


def test_an_account_that_does_not_prefer_new_facts_gets_each_review_once(owner: Owner, account: Account) -> None:
    Account.objects.filter(id=account.id).update(contradictions="flag_review")
    live_in_towns(owner)

    first, second = run_to_the_end(Batch(size=100)), run_to_the_end(Batch(size=100))

    assert (len(claims(owner)), FactReview.objects.count()) == (3, first["reviews"])
    assert "reviews" not in second


def test_facts_that_may_both_hold_stay(owner: Owner) -> None:
    know(owner, "Ana lives in Portugal")
    know(owner, "Ana lives in Porto")
    know(replace(owner, user_id="u1"), "Ana lives in Braga")
    know(owner, "The meeting is on 4 May", event_time=NOW - timedelta(days=30))
    know(owner, "The meeting is on 11 May")

    assert run_to_the_end(Batch(size=100)) == {}


def test_a_run_of_an_account_leaves_the_others_alone(owner: Owner, stranger: Account) -> None:
    live_in_towns(owner)
    live_in_towns(replace(owner, account_id=stranger.id))

    assert run_to_the_end(Batch(size=100, account_id=stranger.id))["facts_superseded"] == 2
    assert len(claims(owner)) == 3


@pytest.mark.django_db(transaction=True)
def test_a_fact_that_is_retracted_meanwhile_stays_retracted(owner: Owner, start_concurrently: Start) -> None:
    old = know(owner, "Ana lives in Lisbon", event_time=day(-9), said_at=day(-9))
    know(owner, "Ana lives in Porto")
    with transaction.atomic():
        retract_fact(owner, old.id, now=NOW)
        job = start_concurrently(lambda: run_to_the_end(Batch(size=100)))

    assert job.result(PATIENCE_SECONDS) == {}
    left = Fact.objects.get(id=old.id)
    assert (left.status, left.retracted_at) == ("retracted", NOW)
    assert [version.retracted_at for version in versions_of(old)] == [NOW]


@pytest.mark.django_db(transaction=True)
def test_a_fact_that_is_corrected_meanwhile_keeps_its_correction(owner: Owner, start_concurrently: Start) -> None:
    old = know(owner, "Ana lives in Lisbon", event_time=day(-9), said_at=day(-9))
    know(owner, "Ana lives in Porto")
    with transaction.atomic():
        correct_fact(owner, old.id, changes={"claim": "Rosa lives in Lisbon"}, embedded=NOTHING, now=NOW)
        job = start_concurrently(lambda: run_to_the_end(Batch(size=100)))

    assert job.result(PATIENCE_SECONDS) == {}
    assert sorted(claims(owner)) == ["Ana lives in Porto", "Rosa lives in Lisbon"]


def test_a_page_is_compared_with_the_facts_of_its_own_holders_only(owner: Owner) -> None:
    page = [know(replace(owner, user_id="u1"), "Ana lives in Porto")]
    for town in TOWNS:
        know(replace(owner, user_id="u2"), f"Ana lives in {town}")
        know(replace(owner, agent_id="other"), f"Ana lives in {town}")

    assert find_disputed_keys(page, now=NOW) == []


def test_a_key_is_found_from_one_of_its_facts_whichever_agent_learned_the_others(owner: Owner) -> None:
    of_user = replace(owner, user_id="u1")
    first = know(of_user, "Ana lives in Porto")
    know(replace(of_user, agent_id="other"), "Ana lives in Lisbon")

    [key] = find_disputed_keys([first], now=NOW)
    assert (key.user_id, key.agent_id, key.attribute) == ("u1", "", first.attribute)
