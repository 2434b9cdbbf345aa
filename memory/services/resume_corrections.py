"""What was taken back, or is done: a decision stands no longer where something later says that it does not.

Told apart by words: a later correction, decision or rejection names what it undoes ("instead of the blue pump", "forget
the tank"), and an earlier piece whose decision that is, is left out. Where nothing is named, both stay, in the order of
time, and the later one is told as a correction.
"""

import re
from collections.abc import Sequence

from memory.extraction.work_notes import NoteKind
from memory.services.resume_pieces import Piece, content_words

UNDONE_SHARE = 0.6
"""Of the words that a later piece undoes, so many stand in what it takes back."""
FEWEST_WORDS = 2
"""That both have: one word alone may be what all of the work is about."""
TAKES_BACK = frozenset({NoteKind.CORRECTION.value, NoteKind.DECISION.value, NoteKind.REJECTION.value})
MAY_BE_TAKEN_BACK = frozenset({NoteKind.DECISION.value, NoteKind.NEXT_STEP.value, "said"})
RESOLVES = frozenset({NoteKind.RESULT.value, NoteKind.DECISION.value})
MAY_BE_RESOLVED = frozenset({NoteKind.BLOCKER.value, NoteKind.NEXT_STEP.value})

_NOT_YET = re.compile(r"\b(?:not|yet|still|until|waiting|pending|no|if|once|when)\b|n't\b", re.IGNORECASE)
_UNDOES = re.compile(
    r"\b(?:instead of|rather than|no longer|not going (?:to|with)|decided (?:against|not to)"
    r"|reject(?:ed)?|rul(?:e|ed) out|drop(?:ped)?|scrap(?:ped)?|forget(?: about)?|ditch(?:ed)?|discard(?:ed)?"
    r"|abandon(?:ed)?|revert(?:ed)?|undo|don'?t|do not|won'?t|without|not)\s+(?P<undone>[^.;,:!?]{3,80})",
    re.IGNORECASE,
)


def without_settled(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that still hold, in their order: neither taken back nor, of what is open, come to a result since."""
    undoing = [(piece, words) for piece in pieces if piece.says in TAKES_BACK for words in undone_by(piece)]
    results = [piece for piece in pieces if piece.says in RESOLVES and not _NOT_YET.search(piece.text)]
    return [
        piece
        for piece in pieces
        if not any(takes_back(later, words, piece) for later, words in undoing)
        and not any(resolves(later, piece) for later in results)
    ]


def undone_by(piece: Piece) -> list[frozenset[str]]:
    """The words of each thing that the piece undoes; of a rejected option, all of it."""
    if piece.says == NoteKind.REJECTION and piece.label:
        return [content_words(piece.text.partition(" (because ")[0])]
    found = [content_words(match["undone"]) for match in _UNDOES.finditer(piece.text)]
    return [words for words in found if len(words) >= FEWEST_WORDS]


def takes_back(later: Piece, undone: frozenset[str], piece: Piece) -> bool:
    if piece.says not in MAY_BE_TAKEN_BACK or piece.place >= later.place or piece.id == later.id:
        return False
    shared = undone & piece.words
    return len(shared) >= FEWEST_WORDS and len(shared) >= UNDONE_SHARE * len(undone)


def resolves(later: Piece, piece: Piece) -> bool:
    """Whether a later result says most of what was open."""
    if piece.says not in MAY_BE_RESOLVED or piece.place >= later.place or piece.id == later.id:
        return False
    shared = later.words & piece.words
    return len(shared) >= FEWEST_WORDS and len(shared) >= UNDONE_SHARE * len(piece.words)
