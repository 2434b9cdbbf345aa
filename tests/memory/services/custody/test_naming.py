"""Finding a user id in texts of others."""

import pytest

from memory.services.custody.naming import Naming


@pytest.mark.parametrize(
    ("user_id", "text", "is_named"),
    [
        ("user-4821", "Ask user-4821 about it.", True),
        ("user-4821", "Ask user-48210 about it.", False),
        ("ana@example.org", "<ana@example.org>", True),
        ("ana", "Ask ana about it.", False),
        ("ana", "ana", True),
        ("1", "1 of 3", False),
    ],
)
def test_ids_are_found_where_they_stand_alone(user_id: str, text: str, *, is_named: bool) -> None:
    assert Naming(user_id).is_in(text) is is_named


def test_json_loses_values_and_members_that_name_the_user() -> None:
    value = {"ana": {"mood": "fine"}, "by": ["ana", "ben"], "note": "ana is here", "count": 1}

    assert Naming("ana").without(value) == {"by": ["[erased]", "ben"], "note": "ana is here", "count": 1}
