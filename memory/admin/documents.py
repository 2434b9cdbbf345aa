"""JSON values to look at: over lines, shown as text whatever they say, and no more of them than anybody reads."""

from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible
from memory.admin.transcripts import over_lines

MOST_CHARACTERS = 200_000


def show_json(value: Any, *, characters: int = MOST_CHARACTERS) -> SafeString:
    text = over_lines(value, characters=characters)
    cut = "… cut off here" if len(text) > characters else ""
    return format_html('<pre class="json">{}{}</pre>', mark_invisible(text[:characters]), cut)


def beginning_of(column: str) -> Left:
    """For lists: so much of a JSON column as is shown, and no more, from the database."""
    return Left(Cast(column, TextField()), EXCERPT_CHARACTERS + 1)
