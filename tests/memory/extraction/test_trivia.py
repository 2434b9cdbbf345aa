"""Claims that are left out because nobody will ask for them, or because they do not say what they are about."""

import pytest

from memory.extraction.rules.trivia import is_trivial


@pytest.mark.parametrize(
    "claim",
    [
        "Their latency is 9 seconds",
        "The id is int8",
        "The user's pod is in ImagePullBackOff",
        "The report job crashes on empty files",
        "Upper Mill is five times too low",
        "The user had Norbank on the phone on 4 March 2026",
        "The user found the letter",
        "The user has 3",
        "The user has nobody to ask",
        "The user starts on 20 April 2026, Monday",
        "The user decided on WHEN",
    ],
)
def test_what_names_nothing_or_is_over_soon_is_trivial(claim: str) -> None:
    assert is_trivial(claim)


@pytest.mark.parametrize(
    "claim",
    [
        "The user's dog Bolt died",
        "The user has 3 children",
        "The user starts at Norbank on 20 April 2026",
        "The user decided on AWS",
        "The order id is a UUID",
        "The user found the letter of their grandmother",
        "The user had surgery on the left knee",
    ],
)
def test_what_lasts_and_names_what_it_is_about_is_not(claim: str) -> None:
    assert not is_trivial(claim)
