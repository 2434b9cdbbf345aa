"""The words of statements: whether a text says more than claims do."""

import pytest

from memory.extraction.statement_words import says_no_more

CLAIM = "The user's address is 12 Rose Street"


@pytest.mark.parametrize(
    ("text", "claim", "is_no_more"),
    [
        ("My address is 12 Rose Street.", CLAIM, True),
        ("By the way, my address is 12 Rose Street.", CLAIM, True),
        ("Ich wohne in der Rosenstraße 12.", CLAIM, True),
        ("Vivo en Oporto y trabajo en casa, claro.", "The user lives in Porto", True),
        ("I have been with Brightwave since last summer.", "The user works at Brightwave", True),
        ("My address is 12 Rose Street and the spare key is under the blue pot.", CLAIM, False),
        ("My address is 12 Rose Street, the spare key is under the blue pot.", CLAIM, False),
        ("I'm vegan and pregnant.", "The user is vegan", False),
        ("I'm vegan, and pregnant.", "The user is vegan", False),
        ("My address is 12 Rose Street and the key is under the pot, but what about you?", CLAIM, False),
        ("My address is 12 Rose Street, and yours?", CLAIM, True),
        ("I pay 540 pounds rent, bills included.", "The user pays 540 pounds rent", True),
        ("I pay 540 pounds rent, and bills on top.", "The user pays 540 pounds rent", False),
        ("I pay 540 pounds a month in rent, 35 for water.", "The user pays 540 pounds a month in rent", False),
        ("I live in Porto, my sister in Braga.", "The user lives in Porto", False),
        ("I work at Brightwave. Parking there is really horrible.", "The user works at Brightwave", False),
    ],
)
def test_a_text_says_no_more_than_claims(text: str, claim: str, *, is_no_more: bool) -> None:
    assert says_no_more(text, [claim]) is is_no_more
