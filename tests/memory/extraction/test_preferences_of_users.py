"""Users say of themselves what goes into their profile: tastes, wishes, and what does harm if it is forgotten."""

import pytest

from tests.memory.extraction.spoken import said


@pytest.mark.parametrize(
    ("text", "preferences"),
    [
        ("I like jazz.", {"jazz": "likes"}),
        ("Keep your answers short, please.", {"keep answers short": "wants"}),
        ("I'm vegan.", {"vegan": "yes"}),
        ("I'm allergic to nuts and shellfish.", {"allergic to nuts and shellfish": "yes"}),
        ("I have a severe allergy to peanuts.", {"a severe allergy to peanuts": "yes"}),
        ("I'm lactose intolerant.", {"lactose intolerant": "yes"}),
        ("I'm coeliac.", {"coeliac": "yes"}),
        ("I'm diabetic.", {"diabetic": "yes"}),
        ("I'm not vegan anymore.", {}),
        ("I used to be vegan.", {}),
        ("I'm not allergic to nuts.", {}),
        ("My sister is allergic to nuts.", {}),
        ("My son has a dairy intolerance.", {}),
        ("I'm tired.", {}),
        ("I have a meeting on Friday.", {}),
    ],
)
def test_what_is_said_of_oneself_is_a_preference(text: str, preferences: dict[str, str]) -> None:
    assert {each.topic: each.value for each in said(text).preferences} == preferences


def test_an_assistants_words_are_no_preference_of_the_user() -> None:
    assert said("I'm allergic to nuts.", role="assistant").preferences == ()
