"""Which pieces a packet has room for: what weighs most for its tokens first, and nothing twice.

Two say the same where most words of the one stand in the other, and it names nothing that is not told yet; the
weightier one is told. A section takes no more than its share as long as others have something to say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memory.services.resume_pieces import Piece, Section

SAME_SHARE = 0.65
TOKENS_OF_A_LINE = 70
"""A piece of so many tokens has to weigh twice as much as one of none."""
TOKENS_OF_A_GOAL = 30
"""What each goal is taken to have, however long it is: they go in by what presses."""
FIRST_SHARE = 0.6
"""Of what goes in before all else."""
MOST_CONSIDERED = 800
SHARES: Mapping[Section, float] = {
    Section.GOALS: 0.35,
    Section.LAST_OUTCOME: 0.15,
    Section.OPEN_ENDS: 0.25,
    Section.CONSTRAINTS: 0.35,
    Section.EVIDENCE: 0.65,
    Section.ARTIFACTS: 0.15,
    Section.STRATEGIES: 0.12,
    Section.REPLAY: 0.45,
}
"""Of all tokens; what is left then goes to whoever weighs most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a piece's line takes in tokens, and the heading that it needs with what that takes."""

    line: Callable[[Piece], int]
    heading: Callable[[Piece], tuple[str, int]]


@dataclass(slots=True, kw_only=True)
class Chosen:
    """What goes in so far, and what is left of the room."""

    room: int
    left: int
    pieces: list[Piece] = field(default_factory=list)
    spent: dict[Section, int] = field(default_factory=dict)
    headings: set[str] = field(default_factory=set)
    specifics: set[str] = field(default_factory=set)
    ids: set[UUID | None] = field(default_factory=lambda: {None})

    def add(self, piece: Piece, prices: Prices, *, share: float) -> bool:
        """Whether it went in: there is room, what it is below is told, and nothing says it already."""
        if piece.below not in self.ids:
            return False
        name, of_heading = prices.heading(piece)
        cost = prices.line(piece) + (0 if name in self.headings else of_heading)
        spent = self.spent.get(piece.section, 0) + cost
        if cost > self.left or spent > share * self.room or self.tells(piece):
            return False
        self.pieces.append(piece)
        self.ids.add(piece.id)
        self.headings.add(name)
        self.specifics |= piece.specifics
        self.spent[piece.section] = spent
        self.left -= cost
        return True

    def tells(self, piece: Piece) -> bool:
        """Whether what is chosen says it."""
        if piece.is_apart:
            return False
        if piece.specifics - self.specifics:
            return False
        enough = SAME_SHARE * len(piece.words)
        return not piece.words or any(len(piece.words & each.words) >= enough for each in self.pieces)


def weightiest(pieces: Sequence[Piece], prices: Prices) -> list[Piece]:
    """What has to go in, then by what they weigh for their tokens."""

    def worth(piece: Piece) -> float:
        tokens = TOKENS_OF_A_GOAL if piece.section == Section.GOALS else prices.line(piece)
        return -piece.weight / (1 + tokens / TOKENS_OF_A_LINE)

    return sorted(pieces, key=lambda piece: (not piece.is_first, worth(piece), *order_of(piece)))


def heaviest(pieces: Sequence[Piece]) -> list[Piece]:
    """As many as are looked at: no packet has room for more, and each is compared with others."""
    return sorted(pieces, key=lambda piece: (-piece.weight, *order_of(piece)))[:MOST_CONSIDERED]


def order_of(piece: Piece) -> tuple[object, ...]:
    """One order for pieces that weigh the same."""
    return (piece.section.value, piece.place, piece.label, piece.text, str(piece.id))


def choose(pieces: Sequence[Piece], room: int, prices: Prices) -> list[Piece]:
    """What goes in of pieces that `weightiest` has ordered. Parts are counted, each heading once."""
    chosen = Chosen(room=room, left=room)
    waiting = [piece for piece in pieces if not chosen.add(piece, prices, share=share_of(piece))]
    for piece in waiting:
        chosen.add(piece, prices, share=1.0)
    return chosen.pieces


def share_of(piece: Piece) -> float:
    return FIRST_SHARE if piece.is_first else SHARES[piece.section]
