"""Values from the environment: read once, when the settings load, and nonsense is told in one sentence.

Nothing here needs Django: `make up` reads the settings before it starts anything.
"""

import os
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

WHOLE = re.compile(r"-?[0-9]{1,18}")
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


class SettingError(ValueError):
    """The text is a whole sentence: which variable, and what it may be."""


def whole_number(name: str, default: int, *, low: int, high: int) -> int:
    """The variable `name`, from `low` to `high`."""
    text = os.environ.get(name, str(default)).strip()
    if not WHOLE.fullmatch(text) or not low <= int(text) <= high:
        raise SettingError(f"{name} must be a whole number from {low} to {high}, not {text!r}.")
    return int(text)


def seconds(name: str, default: float, *, low: float, high: float) -> float:
    """The variable `name`, fractions allowed."""
    return number(name, default, low=low, high=high, what="a number of seconds")


def number(name: str, default: float, *, low: float, high: float, what: str = "a number") -> float:
    """The variable `name`, fractions allowed; `what` it is called where it is refused."""
    text = os.environ.get(name, str(default)).strip()
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    # nan is in no range
    if not low <= value <= high:
        raise SettingError(f"{name} must be {what} from {low} to {high}, not {text!r}.")
    return value


def flag(name: str) -> bool:
    """Whether the variable `name` is on; off by default."""
    text = os.environ.get(name, "").strip().lower()
    if text not in TRUE | FALSE:
        raise SettingError(f"{name} must be true or false, not {text!r}.")
    return text in TRUE


def choice(name: str, default: str, options: Sequence[str]) -> str:
    """The variable `name`, which is one of the options."""
    text = os.environ.get(name, default).strip()
    if text not in options:
        raise SettingError(f"{name} must be one of {', '.join(options)}, not {text!r}.")
    return text


def names(name: str) -> tuple[str, ...]:
    """The variable `name`: names separated by commas; none by default."""
    return tuple(part.strip() for part in os.environ.get(name, "").split(",") if part.strip())


def url(name: str, default: str, schemes: Sequence[str]) -> str:
    """The variable `name`, of one of the schemes. What it holds is not repeated: it may hold a password."""
    text = os.environ.get(name, default).strip()
    if urlsplit(text).scheme not in schemes:
        raise SettingError(f"{name} must be a URL that starts with one of {', '.join(schemes)}, and '://'.")
    return text
