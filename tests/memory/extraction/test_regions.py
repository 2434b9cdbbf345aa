"""Places with their regions: "Portland, Oregon"."""

import pytest

from tests.memory.extraction.spoken import claims, only, said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I live in Portland, Oregon.", ["The user lives in Portland, Oregon"]),
        (
            "I live in Portland, Oregon and work at Acme.",
            ["The user lives in Portland, Oregon", "The user works at Acme"],
        ),
        ("I'm based in Austin, Texas.", ["The user is based in Austin, Texas"]),
        ("I'm from Portland, Maine.", ["The user is from Portland, Maine"]),
        ("I was born in Rome, Italy.", ["The user was born in Rome, Italy"]),
        ("I moved to Paris, France last week.", ["The user moved to Paris, France in the week of 8 May 2023"]),
        ("I moved to Portland, Oregon, last year.", ["The user moved to Portland, Oregon in 2022"]),
        ("My sister Eva moved to Paris, France.", ["The user's sister is Eva", "Eva moved to Paris, France"]),
        ("I live in Porto, Ana lives in Lisbon.", ["The user lives in Porto"]),
        ("I went to Paris, France won the cup.", ["The user went to Paris"]),
        ("I live in Berlin, near the station.", ["The user lives in Berlin"]),
    ],
)
def test_the_region_of_a_place_is_a_part_of_it(text: str, found: list[str]) -> None:
    assert claims(text) == found


@pytest.mark.parametrize(
    ("known", "text", "ends"),
    [
        ("The user lives in Portland, Oregon", "I live in Portland.", ()),
        ("The user lives in Portland", "I live in Portland, Oregon.", ()),
        ("The user lives in Portland, Oregon", "I live in Portland, Maine.", (1,)),
        ("The user lives in Portland, Oregon", "I live in Salem, Oregon.", (1,)),
        ("The user lives in Portland, Oregon", "I live in Porto now.", (1,)),
    ],
)
def test_another_place_ends_the_former_one(known: str, text: str, ends: tuple[int, ...]) -> None:
    assert only(said(text, known=[known])).contradicts == ends
