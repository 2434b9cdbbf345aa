"""Lines that begin with a label and a colon: the speaker's own words in some, in others somebody else's."""

import pytest

from tests.memory.extraction.spoken import claims


@pytest.mark.parametrize(
    ("text", "speaker", "found"),
    [
        ("Rui: I live in Porto.", "Rui", ["Rui lives in Porto"]),
        ("I live in Porto.", "Rui", ["Rui lives in Porto"]),
        ("Ana: I live in Porto.", "Rui", []),
        ("Rui: I live in Porto.", "", []),
    ],
    ids=["own name in front", "no name in front", "a quotation of somebody else", "somebody who is not known to speak"],
)
def test_a_line_of_a_transcript_is_read_as_what_its_own_speaker_says(text: str, speaker: str, found: list[str]) -> None:
    assert claims(text, speaker=speaker) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I changed jobs: I work for Globex now.", ["The user works for Globex"]),
        ("We've switched bakers: we now buy from Casa Pão.", ["The user buys from Casa Pão"]),
        ("Big news: I live in Leeds now.", ["The user lives in Leeds"]),
        ("Today: the big migration. The pool size is 45.", ["The pool size is 45"]),
        ("Plans for this week: rest. The pool size is 45.", ["The pool size is 45"]),
        (
            "We dropped Redis: the jobs run in PostgreSQL now.",
            ["The user dropped Redis", "The jobs run in PostgreSQL"],
        ),
        ("My husband: I live in Leeds now.", []),
        ("Bob today: I live in Leeds now. The pool size is 45.", []),
        ("I told him: I live in Leeds.", []),
        ("I wrote in the story: I live on the moon.", []),
    ],
)
def test_a_change_may_be_announced_before_a_colon_and_speech_of_others_stays_unread(
    text: str, found: list[str]
) -> None:
    assert claims(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("My son's reading age is 9.", ["The user's son's reading age is 9"]),
        ("My grandma's training group meets on Mondays.", ["The user's grandma's training group meets on Mondays"]),
        ("My brother's training for a marathon.", ["The user's brother is training for a marathon"]),
        ("My sister's learning Dutch and is happy.", ["The user's sister is learning Dutch"]),
    ],
)
def test_what_somebody_is_doing_is_told_from_a_thing_of_theirs(text: str, found: list[str]) -> None:
    assert claims(text) == found
