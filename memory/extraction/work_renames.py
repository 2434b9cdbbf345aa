"""Updates of work episodes after a goal or an artifact that they name was renamed or deleted.

Lines about other things are not changed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from memory.extraction.work_stories import LABELS, one_line

NAMING = ("goal", "produced")
"""Fields of an episode's data, and labels of its lines, that name goals and artifacts."""

NOTHING_LEFT = "(taken out)"
"""The text of an episode of which nothing is left."""

Renaming = Callable[[str, str], str]
"""Returns the new text for a field of NAMING and its current text; empty to remove it."""


def format_product(title: str, uri: str) -> str:
    """Return the text by which episodes name an artifact."""
    return one_line(f"{title} ({uri})" if title else uri)


def is_product_of(text: str, uri: str) -> bool:
    """Return True if the text names an artifact of this path or URI, whatever its title.

    >>> is_product_of("The plan (docs/plan.md)", "docs/plan.md"), is_product_of("old/docs/plan.md", "docs/plan.md")
    (True, False)
    """
    name = one_line(uri)
    return text == name or text.endswith(f" ({name})")


def rewrite_episode(text: str, data: Mapping[str, Any], renaming: Renaming) -> tuple[str, dict[str, Any]]:
    """Return the text and data of an episode after renaming."""
    lines = [rewritten for line in text.split("\n") if (rewritten := rewrite_line(line, renaming)) is not None]
    return "\n".join(lines).strip() or NOTHING_LEFT, {
        key: rewrite_item(key, value, renaming) for key, value in data.items()
    }


def rewrite_line(line: str, renaming: Renaming) -> str | None:
    for key in NAMING:
        label = f"{LABELS[key]}: "
        if line.startswith(label):
            rewritten = one_line(renaming(key, line.removeprefix(label)))
            return label + rewritten if rewritten else None
    return line


def rewrite_item(key: str, value: Any, renaming: Renaming) -> Any:
    if key not in NAMING:
        return value
    if isinstance(value, list):
        return list(dict.fromkeys(filter(None, (one_line(renaming(key, item)) for item in value))))
    return one_line(renaming(key, value)) if value else value
