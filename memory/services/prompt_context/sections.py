"""The sections of a prompt context that hold no memories: working memory, the keys in the ledger, the user's profile.

Each is cut at the end of a word if it is too long.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from django.template.loader import render_to_string

from memory.extraction.rules.statements import LIKINGS
from memory.extraction.turn_slots import format_value
from memory.instructions import flags_of_texts, gives_instructions
from memory.services.prompt_context.quoting import PLAIN_NAME, clean_line, fence_value, format_label, mark_of_flags
from memory.tokens import BYTES_PER_TOKEN

WORKING_FIELDS = {
    "scratchpad": "Scratchpad",
    "entities": "Entities",
    "well_api": "Well API",
    "entity_id": "Entity",
    "entity_type_key": "Entity type",
}
"""The documented fields of working memory and their labels, in their order. Other fields follow by name."""
MIN_FIELD_CHARACTERS = 20
"""Long fields are cut to no less, to make room for the others."""

CUT_MARK = " …"
MAX_WORD_CHARACTERS = 50
"""Longer words are cut, like those of scripts that put no spaces between words."""
TASTES = list(LIKINGS.values())
"""Values of preferences that do not bear on every answer."""

MAX_PROFILE_ENTRIES, MAX_ENTRY_CHARACTERS = 50, 300
CountTokens = Callable[[str], int]


def format_fields(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the label and the text of each field of working memory that has a visible value, documented ones first.

    The mark of orders stands before the label, where no cut reaches it.
    """
    names = [*WORKING_FIELDS, *sorted(fields.keys() - WORKING_FIELDS.keys())]
    texts = {name: fence_value(fields[name]) for name in names if fields.get(name) not in (None, "", [], {})}
    return [
        (mark_of_flags(flags_of_texts(name, text)) + (WORKING_FIELDS.get(name) or format_label(name)), text)
        for name, text in texts.items()
        if text.strip()
    ]


def render_working_memory(fields: Sequence[tuple[str, str]]) -> str:
    return render_to_string("context/working_memory.txt", {"working": fields}).strip() if fields else ""


def fit_working_memory(fields: Sequence[tuple[str, str]], room: int, count: CountTokens) -> str:
    """Return the section within its tokens: the longest fields are cut, all to the same length, with a mark."""
    full = render_working_memory(fields)
    if len(fields) < 2 or count(full) <= room:
        return truncate_section(full, room, count)
    low, high = 0, max(len(text) for _, text in fields)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count(render_working_memory(cut_fields(fields, middle))) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    if low < MIN_FIELD_CHARACTERS:
        # too many fields: the last ones have no room
        return truncate_section(render_working_memory(cut_fields(fields, MIN_FIELD_CHARACTERS)), room, count)
    return render_working_memory(cut_fields(fields, low))


def format_profile(profile: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the label and the text of each entry of a user's profile that bears on any answer.

    These are styles, preferences and areas of expertise, without tastes ("coffee: likes"), which a recall finds when a
    question is about them, and without what gives orders to the model.
    """
    preferences = [item for item in profile["preferences"].items() if item[1] not in TASTES]
    entries = [*profile["communication_style"].items(), *preferences, ("knows", profile["expertise_areas"])]
    texts = (
        (format_label(name, plain=PLAIN_NAME), clean_line(format_value(value)))
        for name, value in entries
        if value not in (None, "", [], {})
    )
    shown = (each for each in texts if each[1] and not gives_instructions(": ".join(each)))
    return cut_fields(list(islice(shown, MAX_PROFILE_ENTRIES)), MAX_ENTRY_CHARACTERS)


def render_profile(entries: Sequence[tuple[str, str]]) -> str:
    return render_to_string("context/user_profile.txt", {"preferences": entries}).strip() if entries else ""


def cut_fields(fields: Sequence[tuple[str, str]], characters: int) -> list[tuple[str, str]]:
    """Return the fields with longer texts cut at the end of a word, with a mark."""
    return [
        (label, text if len(text) <= characters else f"{drop_cut_word(text, characters).rstrip()}{CUT_MARK}")
        for label, text in fields
    ]


def drop_cut_word(text: str, length: int) -> str:
    """Return the beginning of a text without a word that ends beyond it, unless that word alone is too long."""
    shown = text[:length]
    if not shown.strip() or text[length : length + 1].isspace():
        return shown
    word = shown.split()[-1]
    return shown[: len(shown.rstrip()) - len(word)] if len(word) <= MAX_WORD_CHARACTERS else shown


def truncate_section(text: str, room: int, count: CountTokens) -> str:
    """Return as much of a section as fits, with a mark where it ends; empty if no content would be left.

    It is cut at the end of a word, unless that word alone is too long.
    """
    if not text or count(text) <= room:
        return text
    low, high = 0, min(len(text), max(room, 0) * BYTES_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count(text[:middle].rstrip() + CUT_MARK) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    shown = drop_cut_word(text, low)
    has_content = any(map(str.isalnum, shown[text.find(": ") + 1 :]))
    return shown.rstrip() + CUT_MARK if has_content else ""
