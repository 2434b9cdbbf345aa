"""Templates: what texts have in common that differ only in numbers, dates, quoted values and names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.retrieval.templates import MAX_TEMPLATE_CHARACTERS, template_of
from tests.memory.pace import takes_the_square


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The wifi password is 0042.", "The wifi password is 1337."),
        ("I ran 5 km on 3 May.", "I ran 12.5 km on 30 June."),
        ("Please call Ana about it.", "Please call Ben Miller about it."),
        ("The code word is “swordfish” today", "The code word is “marlin” today"),
        ("Ticket A-17 was closed by Eve", "Ticket B-9f was closed by Mallory"),
        ("We meet at the office on Monday", "We meet at the office on 2024-05-06"),
        ("THE WIFI PASSWORD IS 0042", "THE WIFI PASSWORD IS 1337"),
        ("The Wifi Password Is 0042", "The Wifi Password Is 1337"),
        ("昨天我跑了5公里", "昨天我跑了12公里"),
        ("Я пробежал 5 км утром", "Я пробежал 12 км утром"),
    ],
)
def test_texts_that_differ_in_values_share_a_template(one: str, other: str) -> None:
    assert template_of(one) == template_of(other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I bought a lamp for 20 euros.", "I bought a chair for 20 euros."),
        ("I bought apples, then went home.", "I bought pears, then went home."),
        ("I do like the 3 cats", "I don't like the 3 cats"),
        ("Never restart server 3 at night", "Always restart server 3 at night"),
        ("昨天我跑了5公里", "昨天我走了5公里"),
    ],
)
def test_texts_that_differ_in_words_do_not(one: str, other: str) -> None:
    assert template_of(one) != template_of(other)


@pytest.mark.parametrize(
    "text", ["", "42", "Ana Miller", "OK, 5!", "3 May 2024", "5公里", "x y " * MAX_TEMPLATE_CHARACTERS]
)
def test_texts_without_enough_constant_words_have_no_template(text: str) -> None:
    assert template_of(text) is None


@pytest.mark.parametrize("unit", ["“a", '"', "a'b ", "1x", "跑"])
def test_a_template_is_found_in_linear_time(unit: str) -> None:
    uncached = template_of.__wrapped__

    assert not takes_the_square(uncached, lambda length: (unit * length)[:length], MAX_TEMPLATE_CHARACTERS // 8)


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_asked_for_its_template(text: str) -> None:
    template_of(text)
