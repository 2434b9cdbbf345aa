"""Settings from the environment: read once, when the settings load; a malformed value is refused in one sentence.

Every setting is declared where it is read, with its default and its range; the string below it says what it means.
`DECLARED` collects the declarations, from which `manage.py describe_settings` writes docs/configuration.md. Nothing
here needs Django: `make up` reads settings before it starts anything.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

WHOLE = re.compile(r"-?[0-9]{1,18}")
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


class SettingError(ValueError):
    """A malformed setting. The text is a whole sentence: which variable, and what it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A setting as the documentation shows it. `default` and `allowed` are texts for people.

    `description` is empty where the string below the setting describes it.
    """

    name: str
    default: str
    allowed: str
    description: str = ""


DECLARED: dict[str, Declaration] = {}
"""The declared settings by name, in the order in which they were declared."""


def declare(name: str, *, default: str, allowed: str = "", description: str = "") -> None:
    """Add a setting to `DECLARED`. Call it for a variable that is read by other means than this module."""
    DECLARED[name] = Declaration(name=name, default=default, allowed=allowed, description=description)


def whole_number(name: str, default: int, *, low: int, high: int) -> int:
    """Read an integer from `low` to `high`. Raises SettingError."""
    declare(name, default=str(default), allowed=f"{low} to {high}")
    value = os.environ.get(name, str(default)).strip()
    if not WHOLE.fullmatch(value) or not low <= int(value) <= high:
        raise SettingError(f"{name} must be a whole number from {low} to {high}, not {value!r}.")
    return int(value)


def number(name: str, default: float, *, low: float, high: float, unit: str = "") -> float:
    """Read a number from `low` to `high`, in `unit`. Raises SettingError."""
    declare(name, default=str(default), allowed=f"{low} to {high} {unit}".strip())
    value = os.environ.get(name, str(default)).strip()
    try:
        found = float(value)
    except ValueError:
        found = float("nan")
    if not low <= found <= high:  # not a number is in no range
        noun = f"a number of {unit}" if unit else "a number"
        raise SettingError(f"{name} must be {noun} from {low} to {high}, not {value!r}.")
    return found


def seconds(name: str, default: float, *, low: float, high: float) -> float:
    """Read a number of seconds, fractions allowed. Raises SettingError."""
    return number(name, default, low=low, high=high, unit="seconds")


def flag(name: str) -> bool:
    """Read a switch, which is off by default. Raises SettingError."""
    declare(name, default="false", allowed="true, false")
    value = os.environ.get(name, "").strip().lower()
    if value not in TRUE | FALSE:
        raise SettingError(f"{name} must be true or false, not {value!r}.")
    return value in TRUE


def choice(name: str, default: str, *, options: Sequence[str]) -> str:
    """Read one of the options. Raises SettingError."""
    declare(name, default=default, allowed=", ".join(options))
    value = os.environ.get(name, default).strip()
    if value not in options:
        raise SettingError(f"{name} must be one of {', '.join(options)}, not {value!r}.")
    return value


def text(name: str, default: str, *, shown_default: str = "") -> str:
    """Read a text. `shown_default` describes a default that depends on the installation, or that is empty."""
    declare(name, default=shown_default or default)
    return os.environ.get(name, default)


def names(name: str, *, default: Sequence[str] = (), shown_default: str = "none") -> tuple[str, ...]:
    """Read names separated by commas."""
    declare(name, default=",".join(default) or shown_default, allowed="separated by commas")
    value = os.environ.get(name, ",".join(default))
    return tuple(part.strip() for part in value.split(",") if part.strip())


def url(
    name: str, default: str, *, schemes: Sequence[str], shown_default: str, refused: Mapping[str, str] | None = None
) -> str:
    """Read a URL with one of the schemes. Raises SettingError, without repeating the value: it may hold a password.

    `refused` has what to say, after the name, about schemes that people may try.
    """
    declare(name, default=shown_default, allowed=", ".join(f"{scheme}://…" for scheme in schemes))
    value = os.environ.get(name, default).strip()
    if reason := (refused or {}).get(urlsplit(value).scheme):
        raise SettingError(f"{name} {reason}")
    if value != default and urlsplit(value).scheme not in schemes:
        raise SettingError(f"{name} must be a URL that starts with one of {', '.join(schemes)}, and '://'.")
    return value


def urls(name: str, *, schemes: Sequence[str]) -> tuple[str, ...]:
    """Read URLs separated by commas, each with one of the schemes. Raises SettingError, without repeating the value."""
    found = names(name)
    declare(name, default="none", allowed=", ".join(f"{scheme}://…" for scheme in schemes) + ", separated by commas")
    if any(urlsplit(value).scheme not in schemes for value in found):
        raise SettingError(
            f"{name} must be URLs separated by commas, each with {' or '.join(schemes)} and '://' at its beginning."
        )
    return found
