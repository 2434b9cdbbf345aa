"""The shape of rules: a verb, the words that must follow it, the attribute that it states, and its allowed forms.

The rules themselves are in `states` and `events`. To add one, add it there, and add to `test_rules.py` a sentence that
it must read and one that it must not read.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from memory.extraction.rules.names import NAME
from memory.extraction.rules.verbs import Form

A_THING = r"(?:an?|the|my|our|some|two|three|four|five|six|seven|eight|nine|ten|several|many|\d+) [\w'$-]|[A-Z]\w"
"""Pattern of an object: a noun after an article or a number, or a name. It excludes idioms such as "took care of"."""

HAPPENED = frozenset({Form.PAST, Form.PERFECT, Form.FUTURE, Form.INTENT})
DONE = HAPPENED | {Form.PROGRESSIVE, Form.LASTING}
HABIT = DONE | {Form.PRESENT, Form.USED_TO, Form.NO_LONGER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule for a verb. `needs` matches the beginning of the words that follow, and `refuses` must not match it.

    The group `prep` of `needs` is a preposition; a name after it has the `type`, and the `relationship` to the subject.
    """

    verb: str
    needs: re.Pattern[str]
    attribute: str
    forms: frozenset[Form]
    type: str = ""
    relationship: str = ""
    refuses: re.Pattern[str] | None = None
    is_state: bool = False


def rule(
    verb: str,
    needs: str,
    attribute: str = "event",
    forms: frozenset[Form] = DONE,
    *,
    refuses: str = "",
    makes: tuple[str, str] = ("", ""),
) -> Rule:
    return Rule(
        verb=verb,
        needs=re.compile(f"(?:{needs})"),
        attribute=attribute,
        forms=forms,
        refuses=re.compile(f"(?:{refuses})") if refuses else None,
        type=makes[0],
        relationship=makes[1],
    )


def state(verb: str, needs: str, attribute: str, *, refuses: str = "", makes: tuple[str, str] = ("", "")) -> Rule:
    """Return a rule for a state, which is true since or until a date, unlike an event, which happened on it."""
    return replace(rule(verb, needs, attribute, HABIT, refuses=refuses, makes=makes), is_state=True)


PLACE, ORGANIZATION = ("place", "LOCATED_IN"), ("organization", "WORKS_FOR")
CAPITAL = rf"(?={NAME})"
MADE = r"(?:an?|my|our|my first|my own|the|some) \w"


def verbs(words: str) -> list[str]:
    """Return the verbs of a text, for rules that several verbs share."""
    return words.split()


def by_verb(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """Group rules by verb in their order. The first rule of a verb that fits reads the clause."""
    grouped: dict[str, list[Rule]] = {}
    for each in rules:
        grouped.setdefault(each.verb, []).append(each)
    return grouped
