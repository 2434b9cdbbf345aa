"""What says the same in a packet, and which of two is told."""

from datetime import timedelta
from typing import Any

import pytest

from memory.services.resume.pack import says_all
from memory.services.resume.pieces import EPOCH, NOTES, Piece, Section
from memory.services.resume.render import lay_out_packet
from memory.tokens import estimate_tokens


def piece(text: str, *, says: str = "decision", at: int = 0, weight: float = 1.0, **others: Any) -> Piece:
    when = EPOCH + timedelta(days=at)
    place = (NOTES, when, at, 0)
    return Piece(section=Section.EVIDENCE, says=says, text=text, weight=weight, place=place, **others)


@pytest.mark.parametrize(
    ("told", "other"),
    [
        ("Send the monthly invoice copy to Anna.", "Send the monthly invoice copy to Berta."),
        ("The export must touch table audit_log at noon.", "The export must not touch table audit_log."),
        ("Publish the list after Ilse signs.", "Don't publish the list after Ilse signs."),
        ("Anna is on the long mailing list.", "Berta is on the long mailing list."),
        ("Take the copy of Ömer to the archive.", "Take the copy of Łukasz to the archive."),
        ("Order 40 chairs for the great hall.", "Order 60 chairs for the great hall."),
        ("Write the report to out/a.csv each night.", "Write the report to out/b.csv each night."),
    ],
)
def test_what_denies_or_names_something_else_is_not_the_same(told: str, other: str) -> None:
    assert not says_all(piece(told), piece(other))


@pytest.mark.parametrize(
    ("told", "other"),
    [
        ("Go with the red roses by the wall.", "We go with the red roses by the wall."),
        ("Send the invoice copy to Anna on Monday.", "Please send the copy of the invoice to Anna."),
        ("We don't touch table audit_log at night.", "The table audit_log, don't touch it."),
    ],
)
def test_the_same_in_other_words_is(told: str, other: str) -> None:
    assert says_all(piece(told), piece(other))


@pytest.mark.parametrize(("says", "is_told"), [("decision", True), ("said", False), ("blocker", True)])
def test_only_plain_talk_is_said_by_what_is_of_another_kind(says: str, *, is_told: bool) -> None:
    offer = piece("The hall at the lake costs 900 a day.", says="result")
    assert says_all(offer, piece("The hall costs 900 a day.", says=says)) is not is_told


def test_what_stands_apart_is_said_by_the_same_words_only() -> None:
    blocker = piece("Ilse has signed off the list.", says="blocker", is_apart=True)

    assert not says_all(piece("Ilse has signed off that list.", says="blocker"), blocker)
    assert says_all(piece("Ilse has signed off the list!", says="blocker"), blocker)


def texts(*pieces: Piece) -> list[str]:
    return [each.text for each in lay_out_packet(pieces, 1_000, count=estimate_tokens).pieces]


def test_the_users_words_take_the_place_of_the_agents() -> None:
    agent = piece("We take the red roses by the wall.", weight=9.0, at=1)
    assert texts(agent, piece("Take the red roses by the wall.", by="user")) == ["Take the red roses by the wall."]


def test_what_was_said_later_takes_the_place_of_what_was_said_before() -> None:
    early = piece("Take the red roses by the wall.", weight=9.0)
    assert texts(early, piece("We take the red roses by the wall.", at=1)) == ["We take the red roses by the wall."]


def test_what_was_recorded_keeps_its_place() -> None:
    recorded = piece("Take the red roses by the wall.", is_recorded=True)
    assert texts(recorded, piece("We take the red roses by the wall.", by="user", at=1)) == [recorded.text]


def test_doubles_are_not_counted_as_left_out() -> None:
    same = [piece("Take the red roses by the wall.", at=number) for number in range(5)]
    long = piece("An entirely different matter " * 90, says="said", weight=0.1)

    laid = lay_out_packet([*same, long], 300, count=estimate_tokens)

    assert len(laid.pieces) == 1
    assert laid.left_out == [long]
