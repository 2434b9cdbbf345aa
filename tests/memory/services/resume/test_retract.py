"""Tests for retractions: retracted items are dropped, items that merely resemble them are kept."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from memory.extraction.work_notes import NoteKind
from memory.services.resume.items import EPOCH, NOTES, PacketItem, PacketSection
from memory.services.resume.retract import drop_retracted
from memory.services.resume.snippets import RECORDED_REASON, SentenceContext, items_of_turns
from memory_project.ids import uuid7
from tests.memory.services.resume.test_last_outcome import make_turns


def make_item(number: int, text: str, note: NoteKind = NoteKind.DECISION) -> PacketItem:
    """Return an item that was recorded as such, one a day."""
    at = EPOCH + timedelta(days=number)
    return PacketItem(
        section=PacketSection.EVIDENCE,
        item_type=note.value,
        text=text,
        weight=1.0,
        position=(NOTES, at, number, 0),
        id=uuid7(),
        event_time=at,
        reasons=[RECORDED_REASON],
    )


def kept_texts(*texts: str | PacketItem) -> Sequence[str]:
    items = [make_item(number, each) if isinstance(each, str) else each for number, each in enumerate(texts)]
    return [item.text for item in drop_retracted(items)]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("Buy the blue pump.", "Buy the red one instead of the blue pump."),
        ("A loan at 3 %.", "A loan at 5 %, in place of 3 %."),
        ("Order from Fontana.", "Fontana is given up, Brandt delivers sooner."),
        ("Water for 20 minutes a day.", "Water for 35 minutes a day, it was too dry."),
        ("Batches of 50,000 rows.", "Batches of 5,000 rows; this replaces 50,000."),
        ("Alert above 0.5 % of the budget.", "Alert above 0.1 % of the budget instead of 0.5 %."),
        ("Plant by plan v2.0.", "Plant by plan v2.1 instead of v2.0."),
        ("Run the script b.sql.", "Run the script a.sql instead of b.sql."),
        ("Water 1,500 roses.", "Water 2,000 rather than 1,500 roses."),
        ("Date: let's go with Thursday 11 March 2027.", "Fine, we move to 18 March 2027 and take hall 2."),
        ("The party is on 2027-03-11.", "We move the party to April 2."),
        ("The loan is for 12 months.", "Make it 18 months for the loan."),
    ],
    ids=[
        "named",
        "number",
        "given up",
        "another amount",
        "replaced",
        "decimals",
        "versions",
        "files",
        "thousands",
        "moved",
        "other forms of dates",
        "made",
    ],
)
def test_a_later_decision_retracts_the_one_it_undoes(first: str, later: str) -> None:
    assert kept_texts(first, later) == [later]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("Order 12 pumps for Bonn.", "Order 14 pumps for Ghent."),
        ("Paint room 12 in March.", "Paint room 14 in March."),
        ("Buy the blue pump.", "Do not paint the fence."),
        ("Buy the red pump instead of the blue pump.", "Buy the blue hose."),
        ("Plant the roses on 11 March.", "We move the party to 18 March."),
        ("Order 12 pumps for Bonn.", "Now order 14 pumps for Ghent."),
        ("The party is on 11 March.", "Move the party to the garden, still on 11 March."),
        ("Tax at most 0.5 % of it.", "Open the valve by 0.1 instead of 0.5 turns."),
    ],
    ids=[
        "other places",
        "other rooms",
        "other things",
        "nothing undone",
        "another date of something else",
        "now elsewhere",
        "the same date",
        "the same number of something else",
    ],
)
def test_decisions_about_different_things_are_both_kept(first: str, later: str) -> None:
    assert kept_texts(first, later) == [first, later]


@pytest.mark.parametrize(
    ("earlier", "later", "is_kept"),
    [
        ("The first release is due on 4 December.", "The release moved to 11 December.", False),
        ("The first release is due on 4 December.", "The release moved to 4 December.", True),
        ("The first release is due on 4 December.", "The demo moved to 11 December.", True),
    ],
)
@pytest.mark.parametrize("item_type", ["constraint", "fact"])
def test_a_rule_with_a_date_holds_until_the_date_moves(
    item_type: str, earlier: str, later: str, *, is_kept: bool
) -> None:
    rule = replace(make_item(0, earlier), item_type=item_type)

    assert (earlier in kept_texts(rule, make_item(1, later))) is is_kept
    assert earlier in kept_texts(make_item(0, later), replace(make_item(1, earlier), item_type=item_type))


def test_repeats_of_a_retracted_item_are_dropped_too() -> None:
    agent_item = make_item(0, "I would go for the blue pump.", NoteKind.DECISION)
    assert kept_texts(agent_item, "Buy the blue pump.", "Forget the blue pump.") == ["Forget the blue pump."]


def test_an_open_item_is_kept_until_a_result_resolves_it() -> None:
    waits = make_item(0, "Waiting for the new spade.", NoteKind.BLOCKER)
    assert kept_texts(waits, make_item(1, "The new spade has not come yet.", NoteKind.RESULT))[0] == waits.text
    assert waits.text not in kept_texts(waits, make_item(1, "The new spade has come.", NoteKind.RESULT))


def texts_kept_of(*said: str) -> list[str]:
    """Return the sentences of turns that are not retracted."""
    items = items_of_turns(make_turns(*said), SentenceContext())
    return [item.text for item in drop_retracted(items)]


@pytest.mark.parametrize(
    ("rule", "later", "is_kept"),
    [
        ("Always squash commits.", "Do not squash commits any more.", False),
        ("Always squash commits.", "btw don't squash any more, use merge commits.", False),
        ("Always squash commits.", "We no longer squash commits.", False),
        ("Always squash commits.", "The hooks don't squash commits any more.", True),
        ("Always use tabs.", "Do not use spaces any more.", True),
        ("Never push to main.", "Don't push any more today.", True),
        ("Always test before you push.", "Don't push any more.", True),
        ("Let's use Kafka for the export.", "On second thought, let's go with RabbitMQ instead.", False),
        ("Let's paint the fence.", "On second thought, let's go with RabbitMQ instead.", True),
        ("Let's use Kafka for the export.", "Let's go with RabbitMQ.", True),
    ],
)
def test_a_withdrawn_rule_is_dropped(rule: str, later: str, *, is_kept: bool) -> None:
    assert (rule in texts_kept_of(f"user: {rule}", f"user: {later}")) is is_kept


def test_a_second_thought_takes_back_only_the_choice_that_it_can_mean() -> None:
    choices = ["Let's use Kafka for the export.", "Let's use Redis for the cache."]
    said = [f"user: {each}" for each in choices]

    unclear = texts_kept_of(*said, "user: On second thought, let's go with RabbitMQ instead.")
    clear = texts_kept_of(*said, "user: On second thought, let's go with RabbitMQ for the export instead.")

    assert (unclear[:2], clear[0]) == (choices, choices[1])


@pytest.mark.parametrize(
    ("waits", "later", "is_kept"),
    [
        ("I am blocked: I need the client secret from the security team.", "I have the client secret.", False),
        ("I need the client secret.", "The client secret is in the vault now.", False),
        ("The release job is blocked by the missing npm token.", "The npm token is in the org secrets.", False),
        ("I still need 200 GB of disk before I can continue.", "I have freed 300 GB of disk.", False),
        ("I still need 200 GB of disk before I can continue.", "I have freed 100 GB of disk.", True),
        ("I am blocked: I need the database password.", "I have the database now.", True),
        ("I am blocked: I need the database password.", "I do not have the database password yet.", True),
        ("The release job is blocked by the missing npm token.", "The npm cache is in the org secrets.", True),
        ("Waiting for the review by Petra.", "Petra approved it.", False),
        ("Waiting for the review by Petra.", "Petra approved the budget.", True),
        ("Waiting for the review by Petra.", "Anna approved it.", True),
        (
            "I am waiting for the answer of Vipps to ticket 55.",
            "vipps answered: it is signed with the other key",
            False,
        ),
        ("I am waiting for the answer of Vipps to ticket 55.", "vipps answered: it is not signed", False),
        ("I am waiting for the answer of Vipps to ticket 55.", "The bank answered: it is signed.", True),
        ("I am waiting for the approval of Petra.", "Petra answered: not before Monday.", True),
        ("Blocked: Vipps has not answered the ticket.", "vipps answered.", False),
        ("Blocked: Vipps has not answered the ticket.", "the bank answered.", True),
        ("Blocked: the relay refuses the host.", "the relay accepts the host now", False),
        ("Blocked: the relay refuses the host.", "the relay accepts the printer now", True),
        ("Blocked: the relay refuses the host.", "the relay does not accept the host now", True),
        ("Blocked by the missing whitelist entry of the relay.", "relay is whitelisted now", False),
        ("I am waiting for the vault secret.", "I put the secret into the vault", False),
        ("I am waiting for the vault secret.", "I put the report into the vault", True),
        ("We agreed to use the relay for the host.", "The relay accepts the host now.", True),
        ("We must not touch the orders table until the audit is over.", "The audit is over since this morning.", False),
        ("We must not touch the orders table until the audit is over.", "The audit is not over since today.", True),
        ("We must not touch the orders table until the audit is over.", "The audit of the shop is over.", True),
    ],
)
def test_an_open_end_is_dropped_once_there_is_what_it_waits_for(waits: str, later: str, *, is_kept: bool) -> None:
    assert (waits in texts_kept_of(f"assistant: {waits}", f"user: {later}")) is is_kept


def test_an_open_end_that_answers_a_question_is_dropped_once_there_is_what_it_waits_for() -> None:
    asked = ("user: how far are the callbacks?", "assistant: I need the client secret.")

    other = texts_kept_of(*asked, "user: I have the database password.")
    given = texts_kept_of(*asked, "user: I have the client secret.")

    assert [any("I need the client secret" in each for each in kept) for kept in (other, given)] == [True, False]


@pytest.mark.parametrize(
    ("said", "later", "is_kept"),
    [
        ("go live is Monday the 7th of December.", "I moved go-live to Monday 14 December.", False),
        (
            "We release the booking site on Monday 7 December.",
            "I moved the release of the booking site to Monday 14 December.",
            False,
        ),
        ("go live is Monday the 7th of December.", "I moved the board demo to Monday 14 December.", True),
        ("go live is Monday the 7th of December.", "I moved my desk to room 14.", True),
    ],
)
def test_a_date_is_dropped_once_it_was_moved(said: str, later: str, *, is_kept: bool) -> None:
    assert (said in texts_kept_of(f"user: {said}", f"user: {later}")) is is_kept


@pytest.mark.parametrize(
    ("decided", "fact", "is_kept"),
    [
        ("go live is Monday the 7th of December.", "Go live is on 14 December 2026", False),
        (
            "We decided to release the site on 7 December.",
            "The release of the site was moved to 14 December 2026",
            False,
        ),
        ("go live is Monday the 7th of December.", "Go live is on 7 December 2026", True),
        ("go live is Monday the 7th of December.", "The board demo is on 14 December 2026", True),
        ("We release the shop on Monday 7 December.", "The release of the site is on 14 December 2026", True),
    ],
)
def test_a_decided_date_is_dropped_once_a_later_fact_has_another(decided: str, fact: str, *, is_kept: bool) -> None:
    items = items_of_turns(make_turns(f"user: {decided}"), SentenceContext())
    known, earlier = (replace(make_item(days, fact), item_type="fact") for days in (1, -1))

    assert [len(drop_retracted([*items, each])) > 1 for each in (known, earlier)] == [is_kept, True]
