"""Preferences that users state about themselves, which go into their profile.

These are tastes ("coffee: likes"), wishes ("keep answers short: wants"), and what does harm if it is forgotten: a diet,
allergies, intolerances and illnesses that depend on food.
"""

import re
from collections.abc import Mapping

from memory.extraction.rules.attributes import read_meaning
from memory.extraction.rules.statements import Statement

HELD = "yes"
"""The value of what is true of a user without a degree."""
_HARMFUL = re.compile(
    r"(?:allergic to .+|(?:[a-z]+[ -])?intolerant(?: to .+)?|(?:a )?(?:c(?:o)?eliac|diabetic|teetotal(?:ler)?)"
    r"|(?:an? |any )?(?:[a-z]+[ -]){0,2}(?:allergy|intolerance)(?: to .+)?)"
)


def preference_of(statement: Statement) -> Mapping[str, str]:
    """Return the preference that a statement about its speaker makes, by topic; none for other statements."""
    if not statement.is_own:
        return {}
    if statement.liking:
        return {statement.topic: statement.liking}
    meaning = read_meaning(statement.claim).parts
    if meaning is not None and meaning.attribute == "diet":
        return {} if meaning.is_end else {meaning.value: HELD}
    verb, _, words = statement.claim.removeprefix(f"{statement.subject} ").partition(" ")
    return {words: HELD} if verb in ("is", "has") and _HARMFUL.fullmatch(words) else {}
