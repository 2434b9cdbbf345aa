"""Episodes rewritten after a goal or an artifact that they name was renamed or deleted.

Their lines about other things stay as they are.
"""

from collections.abc import Callable, Mapping
from typing import Any

from memory.extraction.work_stories import LABELS, one_line

NAMING = ("goal", "produced")
"""What an episode's data and its lines repeat of others."""

NOTHING_LEFT = "(taken out)"
"""The text of an episode that told nothing else."""

Renaming = Callable[[str, str], str]
"""What to tell for a thing of NAMING, by which it is and how it was told; empty to leave it out."""


def format_product(title: str, uri: str) -> str:
    """Format an artifact as episodes name it."""
    return one_line(f"{title} ({uri})" if title else uri)


def is_product_of(told: str, uri: str) -> bool:
    """Return whether a product was recorded under this path or URI, whatever its title.

    >>> is_told_of("The plan (docs/plan.md)", "docs/plan.md"), is_told_of("old/docs/plan.md", "docs/plan.md")
    (True, False)
    """
    name = one_line(uri)
    return told == name or told.endswith(f" ({name})")


def rewrite_episode(text: str, data: Mapping[str, Any], renaming: Renaming) -> tuple[str, dict[str, Any]]:
    """Text and data of an episode with other names in them."""
    lines = [told for line in text.split("\n") if (told := rewrite_line(line, renaming)) is not None]
    return "\n".join(lines).strip() or NOTHING_LEFT, {
        key: rewrite_item(key, value, renaming) for key, value in data.items()
    }


def rewrite_line(line: str, renaming: Renaming) -> str | None:
    for key in NAMING:
        label = f"{LABELS[key]}: "
        if line.startswith(label):
            told = one_line(renaming(key, line.removeprefix(label)))
            return label + told if told else None
    return line


def rewrite_item(key: str, value: Any, renaming: Renaming) -> Any:
    if key not in NAMING:
        return value
    if isinstance(value, list):
        return list(dict.fromkeys(filter(None, (one_line(renaming(key, item)) for item in value))))
    return one_line(renaming(key, value)) if value else value
