"""Wishes and diets that a user takes back leave the profile."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.models import UserProfile
from memory.owner import Owner
from tests.memory.episodes import NOW
from tests.memory.knowledge import TURN_TIME, extract_all, say_sentences

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.mark.parametrize(
    ("first", "second", "preferences"),
    [
        ("Please always answer me in bullet points.", "Actually drop the bullets.", {"bullets": "avoids"}),
        ("Never use emojis when you write to me.", "You know what, emojis are fine after all.", {}),
        ("I'm vegetarian, have been since college.", "Confession: I eat meat again, my iron was low.", {}),
        ("Never use emojis when you write to me.", "The bullets are fine now.", {"use emojis": "avoids"}),
    ],
)
def test_what_is_taken_back_leaves_the_profile(
    owner: Owner, first: str, second: str, preferences: dict[str, str]
) -> None:
    user = replace(owner, user_id="u1")
    say_sentences(user, first, name="", conversation_id="c1")
    extract_all(NOW)
    say_sentences(user, second, name="", conversation_id="c2", at=TURN_TIME + timedelta(days=30))

    extract_all(NOW)

    assert UserProfile.objects.get().preferences == preferences
