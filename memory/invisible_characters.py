"""Characters that readers do not see but programs and models do, in one list for code that drops or escapes them.

These are control characters that are not white space, and the characters that Unicode leaves out if a font has no glyph
(Default_Ignorable_Code_Point): soft hyphens, fillers, marks of writing direction, variation selectors, and tag
characters, which can spell out messages for models alone. The two joiners are no part of it: Persian, Indic scripts and
emoji would become other words and signs without them.
"""

import re
from collections.abc import Sequence

CodePointRange = tuple[int, int]

CONTROLS: Sequence[CodePointRange] = ((0x00, 0x08), (0x0E, 0x1B), (0x7F, 0x84), (0x86, 0x9F))
IGNORABLE: Sequence[CodePointRange] = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200B), (0x200E, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
JOINERS: Sequence[CodePointRange] = ((0x200C, 0x200D),)
"""Invisible, but kept."""


def code_points(*ranges: CodePointRange) -> list[int]:
    return [point for first, last in ranges for point in range(first, last + 1)]


INVISIBLE_CODE_POINTS = frozenset(code_points(*CONTROLS, *IGNORABLE))
"""All code points that `drop_invisible` drops."""
_INVISIBLE = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in (*CONTROLS, *IGNORABLE)) + "]")

_JOINED = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in JOINERS) + "]")


def drop_invisible(text: str) -> str:
    return _INVISIBLE.sub("", text)


def is_blank(text: str) -> bool:
    """Return True if a text has nothing that a reader sees: only white space, invisible characters and joiners."""
    return not _JOINED.sub("", drop_invisible(text)).strip()
