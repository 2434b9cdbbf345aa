"""A packet as text: sections of lines within its tokens, counted of the whole.

Every line begins with a mark of ours, and holds stored text on one line: none of it can pass for a heading.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from django.template.loader import render_to_string

from memory.extraction.work_notes import NoteKind
from memory.services.prompt_context.layout import NOTICE
from memory.services.resume.goals import tell_goal
from memory.services.resume.pack import Prices, choose, weightiest
from memory.services.resume.pieces import Piece, Section

HEADINGS = {
    Section.GOALS: "Goals",
    Section.LAST_OUTCOME: "Last Outcome",
    Section.OPEN_ENDS: "Open Ends",
    Section.CONSTRAINTS: "Constraints",
    Section.EVIDENCE: "Evidence",
    Section.ARTIFACTS: "Artifacts",
    Section.STRATEGIES: "Strategies",
    Section.REPLAY: "Replay",
}
DECISIONS = "Decisions"
DECIDED = frozenset({NoteKind.DECISION.value, NoteKind.REJECTION.value, NoteKind.CORRECTION.value})
ORDER = (
    "Goals",
    "Last Outcome",
    "Open Ends",
    "Constraints",
    DECISIONS,
    "Evidence",
    "Artifacts",
    "Strategies",
    "Replay",
)
DATED = frozenset({"Open Ends", DECISIONS, "Evidence"})
"""Sections whose lines tell of a new day: what was said on it may speak of tomorrow."""

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidPacket:
    """The text, its tokens, the pieces that stand in it, in that order, and those that had no room."""

    text: str
    tokens: int
    pieces: Sequence[Piece]
    left_out: Sequence[Piece] = ()


@dataclass(slots=True, kw_only=True)
class LineCosts:
    """What lines and headings take in tokens, each counted once."""

    count: CountTokens
    known: dict[str, int] = field(default_factory=dict)

    def of(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = self.count(text)
        return self.known[text]

    def line(self, piece: Piece) -> int:
        return self.of(f"{tell_line(piece)}\n")

    def heading(self, piece: Piece) -> tuple[str, int]:
        name = heading_of(piece)
        return name, self.of(f"[{name}]\n")


def heading_of(piece: Piece) -> str:
    is_decision = piece.section == Section.EVIDENCE and piece.says in DECIDED
    return DECISIONS if is_decision else HEADINGS[piece.section]


def tell_line(piece: Piece, *, day: str = "") -> str:
    if piece.section == Section.GOALS:
        return f"{piece.label}- {piece.text}{tell_goal(piece)}"
    return f"- {day}{piece.label}{piece.text}"


def lay_out_packet(pieces: Sequence[Piece], max_tokens: int, *, count: CountTokens) -> LaidPacket:
    """What there is room for, in `max_tokens` as counted of the whole; nothing where that is no more than a frame."""
    costs = LineCosts(count=count)
    prices = Prices(line=costs.line, heading=costs.heading)
    ordered = weightiest(pieces, prices)
    room = max_tokens - count(render([]))
    while room > 0:
        packed = choose(ordered, room, prices)
        laid = fill(packed.chosen, count)
        if laid.tokens <= max_tokens:
            return replace(laid, left_out=packed.left_out)
        # days are not in the prices, and a tokenizer may count a whole higher than its parts
        room -= laid.tokens - max_tokens
    return LaidPacket(text="", tokens=0, pieces=[], left_out=ordered)


def fill(chosen: Sequence[Piece], count: CountTokens) -> LaidPacket:
    """The pieces in their order, as text."""
    if not chosen:
        return LaidPacket(text="", tokens=0, pieces=[])
    pieces = sorted(chosen, key=lambda piece: (ORDER.index(heading_of(piece)), piece.place, piece.label, piece.text))
    text = render(pieces)
    return LaidPacket(text=text, tokens=count(text), pieces=pieces)


def render(pieces: Sequence[Piece]) -> str:
    parts = [
        {"name": name, "lines": dated_lines(list(group), is_dated=name in DATED)}
        for name, group in groupby(pieces, key=heading_of)
    ]
    return render_to_string("context/resume.txt", {"notice": NOTICE, "parts": parts}).strip()


def dated_lines(pieces: Sequence[Piece], *, is_dated: bool) -> list[str]:
    """The lines of a section; in a dated one the first of each day says so."""
    lines, last = [], ""
    for piece in pieces:
        day = f"{piece.event_time:%Y-%m-%d}" if is_dated and piece.event_time else ""
        lines.append(tell_line(piece, day=f"({day}) " if day and day != last else ""))
        last = day or last
    return lines
