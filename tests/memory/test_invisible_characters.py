"""Invisible characters: the list, and that all code that drops or escapes them uses it."""

import unicodedata

import pytest

from memory.identity import normalize_claim
from memory.invisible_characters import INVISIBLE_CODE_POINTS, drop_invisible, is_blank
from memory.providers.material import encode_line
from memory.services.prompt_context.quoting import clean_line

HIDDEN = (
    *(0xAD, 0x61C, 0x115F, 0x1160, 0x180E, 0x200B, 0x200E, 0x200F, 0x202A, 0x202E, 0x2060, 0x206F, 0x3164, 0xFE00),
    *(0xFE0F, 0xFEFF, 0xFFA0, 0xE0000, 0xE0041, 0xE0100, 0xE0FFF),
)


@pytest.mark.parametrize("point", HIDDEN, ids=hex)
def test_an_invisible_character_is_dropped_from_contexts_and_claims_and_escaped_in_prompts(point: int) -> None:
    text = f"the boi{chr(point)}ler"

    assert clean_line(text) == normalize_claim(text) == "the boiler"
    assert chr(point) not in encode_line({"text": text})


@pytest.mark.parametrize("text", ["می‌خواهم", "क्‍ष", "👩‍🔧"], ids=["Persian", "Devanagari", "emoji"])
def test_joiners_stay_where_scripts_and_emoji_need_them(text: str) -> None:
    assert clean_line(text) == text


def test_no_letter_and_no_white_space_counts_as_invisible() -> None:
    for point in INVISIBLE_CODE_POINTS:
        assert not chr(point).isspace()
        assert unicodedata.category(chr(point)) in {"Cc", "Cf", "Cn", "Mn"} or "FILLER" in unicodedata.name(chr(point))


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\u200b \ufeff\u2060", "\u200d\u200c"], ids=ascii)
def test_a_text_without_visible_characters_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(f"{text}a")


def test_visible_characters_are_kept() -> None:
    assert drop_invisible("Ana’s\tpump,\n水 2°") == "Ana’s\tpump,\n水 2°"
