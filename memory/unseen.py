"""Characters that no reader sees, and a program or a model does: one list for whoever drops or escapes them.

Control characters that are no white space, and what Unicode says to leave out where a font has no sign for it
(Default_Ignorable_Code_Point): soft hyphens, fillers, marks that turn the direction of writing, selectors of variants,
and the tag characters that spell out messages for models alone. The two joiners stay: Persian, Indic scripts and
emoji are other words and signs without them.
"""

import re
from collections.abc import Sequence

Range = tuple[int, int]

CONTROLS: Sequence[Range] = ((0x00, 0x08), (0x0E, 0x1B), (0x7F, 0x84), (0x86, 0x9F))
IGNORABLE: Sequence[Range] = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200B), (0x200E, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
JOINERS: Sequence[Range] = ((0x200C, 0x200D),)
"""Not among the unseen."""


def points_of(*ranges: Range) -> list[int]:
    return [point for first, last in ranges for point in range(first, last + 1)]


UNSEEN = frozenset(points_of(*CONTROLS, *IGNORABLE))
"""As code points."""
_UNSEEN = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in (*CONTROLS, *IGNORABLE)) + "]")


def drop_unseen(text: str) -> str:
    return _UNSEEN.sub("", text)
