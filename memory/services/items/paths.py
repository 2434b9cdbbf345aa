"""The keys of entries that are items: labels joined by dots, a slash, and the key of the item.

Percent signs and control characters are percent-encoded, in labels slashes too. Labels have no dots.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from memory.errors import Unprocessable

MAX_PATH_CHARACTERS = 200
SEPARATOR = "/"
LABEL_SEPARATOR = "."
IN_KEYS = re.compile(r"[%\x00-\x1f\x7f-\x9f]")
IN_LABELS = re.compile(r"[%/\x00-\x1f\x7f-\x9f]")
ANY_LABEL = "*"


@dataclass(frozen=True, slots=True)
class ItemPath:
    """The namespace and the key of an item."""

    namespace: tuple[str, ...]
    key: str

    @property
    def text(self) -> str:
        """The key of the entry. Raises Unprocessable if it is too long."""
        text = format_namespace(self.namespace) + SEPARATOR + IN_KEYS.sub(encode, self.key)
        if len(text) > MAX_PATH_CHARACTERS:
            raise Unprocessable(
                f"the namespace and the key of an item have at most {MAX_PATH_CHARACTERS} characters together"
            )
        return text


def encode(found: re.Match[str]) -> str:
    """Return a character in percent-encoding."""
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def format_namespace(labels: Sequence[str]) -> str:
    return LABEL_SEPARATOR.join(IN_LABELS.sub(encode, label) for label in labels)


def parse_namespace(text: str) -> tuple[str, ...]:
    return tuple(unquote(label) for label in text.split(LABEL_SEPARATOR))


def parse_path(text: str) -> ItemPath:
    """Return the namespace and key of an entry's key."""
    namespace, _, key = text.partition(SEPARATOR)
    return ItemPath(parse_namespace(namespace), unquote(key))


def namespace_pattern(labels: Sequence[str], *, is_prefix: bool) -> str:
    """Return a regular expression of PostgreSQL for namespaces that begin, or end, with these labels."""
    if not labels:
        return ""
    body = r"\.".join("[^.]+" if label == ANY_LABEL else re.escape(format_namespace([label])) for label in labels)
    return rf"^{body}(\.|$)" if is_prefix else rf"(^|\.){body}$"
