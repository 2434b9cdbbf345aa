"""Which pieces a packet has room for: what weighs most for its tokens first, and nothing twice.

What says the same as a weightier one is left out (`says_all`), or takes its place where it outranks it. A section takes
no more than its share as long as others have something to say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from memory.extraction.work_notes import NoteKind
from memory.services.resume.pieces import Piece, Section

SAME_SHARE = 0.65
TOKENS_OF_A_LINE = 70
"""A piece of so many tokens has to weigh twice as much as one of none."""
TOKENS_OF_A_GOAL = 30
"""What each goal is taken to have, however long it is: they go in by what presses."""
FIRST_SHARE = 0.6
"""Of what goes in before all else."""
MOST_CONSIDERED = 800
WHOLE = frozenset({Section.GOALS, Section.ARTIFACTS, Section.STRATEGIES, Section.REPLAY})
"""Sections whose lines are all told, whatever they say."""
PLAIN = frozenset({"said", "fact", NoteKind.QUESTION_OPEN.value})
"""What anything may say too."""
OUTCOME = "outcome"
AGREES: Mapping[str, frozenset[str]] = {
    NoteKind.DECISION: frozenset({NoteKind.CORRECTION, NoteKind.CONSTRAINT}),
    NoteKind.CORRECTION: frozenset({NoteKind.DECISION}),
    NoteKind.RESULT: frozenset({OUTCOME}),
    NoteKind.ERROR: frozenset({OUTCOME}),
}
"""By kind, what of another kind says as much."""
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
    """What goes in so far, and what is left of the room. `doubles` said nothing new, and need no room."""

    room: int
    left: int
    pieces: list[Piece] = field(default_factory=list)
    spent: dict[Section, int] = field(default_factory=dict)
    headings: set[str] = field(default_factory=set)
    doubles: list[Piece] = field(default_factory=list)
    ids: set[UUID | None] = field(default_factory=lambda: {None})

    def add(self, piece: Piece, prices: Prices, *, share: float) -> bool:
        """Whether it needs no further look: it went in, maybe for one that says the same, or is told already.
        Nothing goes in without what it is below."""
        if piece.below not in self.ids:
            return False
        twin = next((each for each in self.pieces if says_all(each, piece)), None)
        if twin is not None and not (outranks(piece, twin) and says_all(piece, twin)):
            self.doubles.append(piece)
            return True
        name, of_heading = prices.heading(piece)
        cost = prices.line(piece) + (0 if name in self.headings else of_heading)
        freed = prices.line(twin) if twin else 0
        spent = self.spent.get(piece.section, 0) + cost - (freed if twin and twin.section == piece.section else 0)
        if cost - freed > self.left or spent > share * self.room:
            return False
        if twin is not None:
            self.take_out(twin, freed)
        self.pieces.append(piece)
        self.ids.add(piece.id)
        self.headings.add(name)
        self.spent[piece.section] = self.spent.get(piece.section, 0) + cost
        self.left -= cost
        return True

    def take_out(self, piece: Piece, cost: int) -> None:
        """For one that outranks it; its heading stays paid for."""
        self.pieces = [each for each in self.pieces if each is not piece]
        self.doubles.append(piece)
        self.spent[piece.section] -= cost
        self.left += cost


def says_all(told: Piece, piece: Piece) -> bool:
    """Whether who reads `told` needs `piece` no more.

    Most of its words stand there, all that it names, and both deny something or neither does. What is of another kind
    says something else, but for plain talk; what stands apart is told in the same words only.
    """
    if piece.section in WHOLE:
        return False
    if piece.is_apart:
        is_within = told.says == OUTCOME and piece.plain_text in told.plain_text
        return is_within or (told.says == piece.says and piece.plain_text == told.plain_text)
    if told.says != piece.says and piece.says not in PLAIN and told.says not in AGREES.get(piece.says, ()):
        return False
    if told.is_negated != piece.is_negated or not piece.specifics <= told.specifics | told.words:
        return False
    return piece.named <= told.words | told.named and len(piece.words & told.words) >= SAME_SHARE * len(piece.words)


def outranks(piece: Piece, told: Piece) -> bool:
    """What was recorded before what was said, the user's words before the agent's, the later before the earlier."""

    def rank(each: Piece) -> tuple[object, ...]:
        return (each.is_recorded, each.by == "user", each.by == "", each.place)

    return not told.is_apart and rank(piece) > rank(told)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What goes in, and what had no room; what says the same as something that went in is neither."""

    chosen: Sequence[Piece]
    left_out: Sequence[Piece]


def choose(pieces: Sequence[Piece], room: int, prices: Prices) -> Packed:
    """What goes in of pieces that `weightiest` has ordered. Parts are counted, each heading once."""
    chosen = Chosen(room=room, left=room)
    waiting = [piece for piece in pieces if not chosen.add(piece, prices, share=share_of(piece))]
    left_out = [piece for piece in waiting if not chosen.add(piece, prices, share=1.0)]
    return Packed(chosen=chosen.pieces, left_out=left_out)


def share_of(piece: Piece) -> float:
    return FIRST_SHARE if piece.is_first else SHARES[piece.section]
