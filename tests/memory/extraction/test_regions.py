"""Places with their regions, and addresses: "Portland, Oregon", "9 High Street, Bath"."""

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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I live at Flat 2, 9 High Street, Bath.", ["The user lives at Flat 2, 9 High Street, Bath"]),
        (
            "My address is 14 Cardigan Lane, Leeds, LS6 3AB.",
            ["The user's address is 14 Cardigan Lane, Leeds, LS6 3AB"],
        ),
        (
            "My address is 350 Fifth Avenue, New York, NY 10118.",
            ["The user's address is 350 Fifth Avenue, New York, NY 10118"],
        ),
        ("My address is Rose Cottage, Mill Lane, Otley.", ["The user's address is Rose Cottage, Mill Lane, Otley"]),
        ("My address: 14 Cardigan Lane, Leeds, LS6 3AB", ["The user's address: 14 Cardigan Lane, Leeds, LS6 3AB"]),
        ("My mum lives at 22 Oak Avenue, Hull.", ["The user's mum lives at 22 Oak Avenue, Hull"]),
        ("We moved to 3 Elm Road, York last month.", ["The user moved to 3 Elm Road, York in April 2023"]),
        (
            "I live at 9 High Street, Bath and work at Acme.",
            ["The user lives at 9 High Street, Bath", "The user works at Acme"],
        ),
        (
            "I live at 14 Cardigan Lane, Leeds, and I work at Acme.",
            ["The user lives at 14 Cardigan Lane, Leeds", "The user works at Acme"],
        ),
        (
            "I live at 14 Cardigan Lane, Ana lives at 9 Elm Road.",
            ["The user lives at 14 Cardigan Lane"],
        ),
        ("I live at home, Tom is out.", ["The user lives at home"]),
    ],
)
def test_an_address_is_kept_whole(text: str, found: list[str]) -> None:
    assert claims(text) == found


@pytest.mark.parametrize(
    ("known", "text", "ends"),
    [
        ("The user lives at 14 Cardigan Lane, Leeds", "I live at 3 Elm Road, York.", (1,)),
        ("The user lives at 14 Cardigan Lane, Leeds", "My address is Flat 1, 3 Elm Road, York.", (1,)),
        ("The user's address is 14 Cardigan Lane, Leeds", "I live at 3 Elm Road, York.", (1,)),
        ("The user's address is 14 Cardigan Lane, Leeds", "My address is 3 Elm Road, York.", (1,)),
        ("The user lives in London", "I live at 3 Elm Road, Edinburgh.", (1,)),
        ("The user lives at 3 Elm Road, Edinburgh", "I live in London now.", (1,)),
        ("The user lives at 14 Cardigan Lane, Leeds", "I live at Flat 2, 14 Cardigan Lane, LS6 3AB.", ()),
        ("The user lives in Headingley", "I live at 14 Cardigan Lane, Leeds.", ()),
        ("The user lives at 14 Cardigan Lane, Leeds", "I live in England.", ()),
        ("The user lives at 14 Cardigan Lane, Leeds", "My mum lives at 3 Elm Road, York.", ()),
        ("The user lives at 14 Cardigan Lane, Leeds", "My work address is 3 Elm Road, York.", ()),
        ("The user's email address is ana@example.org", "My address is 3 Elm Road, York.", ()),
    ],
)
def test_another_address_ends_the_former_one(known: str, text: str, ends: tuple[int, ...]) -> None:
    assert only(said(text, known=[known])).contradicts == ends
