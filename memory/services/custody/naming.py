"""Finding a user id in texts and JSON that belong to others.

An id that could hardly be a word (at least six characters, one of them a digit or @) is found wherever it stands by
itself in a text. Other ids, such as `ana` or `1`, are found only as a whole value or as the name of a member in JSON:
in a running text nobody could tell them from words.
"""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

ERASED = "[erased]"
"""What stands for a text that was erased where its row has to stay."""

MIN_CHARACTERS = 6
TELLING = re.compile(r"[0-9@]")
ALONE = "(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])"
NOT_PLAIN = re.compile(r"([^A-Za-z0-9_])")


def escape(text: str) -> str:
    """Escape a text for regular expressions of Python and of PostgreSQL."""
    return NOT_PLAIN.sub(r"\\\1", text)


@dataclass(frozen=True)
class Naming:
    """A search for a user id."""

    user_id: str

    @property
    def is_telling(self) -> bool:
        """True if the id is searched for in running texts as well."""
        return len(self.user_id) >= MIN_CHARACTERS and TELLING.search(self.user_id) is not None

    @cached_property
    def spellings(self) -> list[str]:
        """The id as in texts and as in JSON."""
        in_json = json.dumps(self.user_id, ensure_ascii=False)[1:-1]
        return list(dict.fromkeys((self.user_id, in_json)))

    @cached_property
    def pattern(self) -> str:
        """A regular expression over columns as texts, each between line feeds (see `stores.text_of`)."""
        if self.is_telling:
            return "|".join(ALONE.format(escape(each)) for each in self.spellings)
        return "|".join(f'"{escape(each)}"|\\n{escape(each)}\\n' for each in self.spellings)

    @cached_property
    def _found(self) -> re.Pattern[str]:
        return re.compile("|".join(ALONE.format(escape(each)) for each in self.spellings))

    def is_in(self, text: str) -> bool:
        """Return True if a text names the user: contains the id, or is it."""
        return text == self.user_id or (self.is_telling and self._found.search(text) is not None)

    def is_in_json(self, text: str) -> bool:
        """Return True if a serialized value names the user; what is no JSON counts as a text."""
        try:
            value = json.loads(text)
        except ValueError:
            return self.is_in(text)
        return bool(self.without(value) != value)

    def without(self, value: Any) -> Any:
        """Return a JSON value without the texts that name the user, and without members that have its name."""
        if isinstance(value, str):
            return ERASED if self.is_in(value) else value
        if isinstance(value, list):
            return [self.without(each) for each in value]
        if isinstance(value, dict):
            return {name: self.without(each) for name, each in value.items() if not self.is_in(name)}
        return value
