"""Last steps of a resume: choose the items that fit into the token budget, nothing twice, and render them as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from uuid import UUID

from django.template.loader import render_to_string

from memory.extraction.terms import content_words
from memory.extraction.work_notes import NoteKind
from memory.services.prompt_context.layout import NOTICE
from memory.services.prompt_context.quoting import mark_of_flags
from memory.services.prompt_context.sections import CountTokens
from memory.services.resume.goals import format_goal_details
from memory.services.resume.items import PacketItem, PacketSection

MIN_SAME_SHARE = 0.65
HALVING_TOKENS = 70
"""An item of so many tokens must weigh twice as much as one of none."""
ASSUMED_GOAL_TOKENS = 30
"""Tokens that each goal is assumed to have: goals are chosen by urgency, not by length."""
FIRST_SHARE = 0.6
"""Share of the tokens for the items that are packed before all others."""
MAX_CONSIDERED_ITEMS = 800
UNCOMPARED_SECTIONS = frozenset(
    {PacketSection.GOALS, PacketSection.ARTIFACTS, PacketSection.STRATEGIES, PacketSection.REPLAY}
)
"""Sections whose items are all shown, whatever others say."""
PLAIN_TYPES = frozenset({"said", "fact", NoteKind.QUESTION_OPEN.value})
"""Item types whose content an item of any other type may say as well."""
OUTCOME = "outcome"
PROFILE = "profile"
ATTITUDES = frozenset({"avoids", "wants", "likes", "dislikes"})
"""Values of preferences that only say how somebody likes a topic."""
EQUIVALENT_TYPES: Mapping[str, frozenset[str]] = {
    NoteKind.DECISION: frozenset({NoteKind.CORRECTION, NoteKind.CONSTRAINT}),
    NoteKind.CORRECTION: frozenset({NoteKind.DECISION}),
    NoteKind.RESULT: frozenset({OUTCOME}),
    NoteKind.ERROR: frozenset({OUTCOME}),
}
"""Item types that say as much as the type in the key."""
SECTION_SHARES: Mapping[PacketSection, float] = {
    PacketSection.GOALS: 0.35,
    PacketSection.LAST_OUTCOME: 0.15,
    PacketSection.OPEN_ENDS: 0.25,
    PacketSection.CONSTRAINTS: 0.35,
    PacketSection.EVIDENCE: 0.65,
    PacketSection.ARTIFACTS: 0.15,
    PacketSection.STRATEGIES: 0.12,
    PacketSection.REPLAY: 0.45,
}
"""Share of all tokens for each section; what is left then goes to the most valuable items."""

HEADINGS = {section: section.value.replace("_", " ").title() for section in PacketSection}
DECISIONS = "Decisions"
DECIDED = frozenset({NoteKind.DECISION.value, NoteKind.REJECTION.value, NoteKind.CORRECTION.value})
DATED_SECTIONS = frozenset({PacketSection.OPEN_ENDS, PacketSection.EVIDENCE})
"""Sections whose lines show each new day: what was said on it may speak of tomorrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPacket:
    """A text, its tokens, the items in it in its order, and the items that had no room.

    An item that says the same as one in the text is in neither list.
    """

    text: str
    tokens: int
    items: Sequence[PacketItem]
    left_out: Sequence[PacketItem] = ()


@dataclass(slots=True, kw_only=True)
class ItemSelection:
    """The items chosen so far, and how many of `room` tokens are left."""

    room: int
    left: int
    count: CountTokens
    items: list[PacketItem] = field(default_factory=list)
    spent: dict[PacketSection, int] = field(default_factory=dict)
    headings: set[str] = field(default_factory=set)
    ids: set[UUID | None] = field(default_factory=lambda: {None})

    def try_add(self, item: PacketItem, *, share: float) -> bool:
        """Add the item if its section has room, and return True if it is done with: added, or said already.

        It takes the place of an item that says the same and that it outranks. It is not added without its parent.
        """
        if item.parent_id not in self.ids:
            return False
        twin = next((each for each in self.items if covers_item(each, item)), None)
        if twin is not None and not (outranks_item(item, twin) and covers_item(item, twin)):
            return True
        heading = heading_of_item(item)
        cost = line_tokens(item, self.count) + (0 if heading in self.headings else self.count(f"[{heading}]\n"))
        freed = line_tokens(twin, self.count) if twin else 0
        spent = self.spent.get(item.section, 0) + cost - (freed if twin and twin.section == item.section else 0)
        if cost - freed > self.left or spent > share * self.room:
            return False
        if twin is not None:
            # its heading stays paid for
            self.items = [each for each in self.items if each is not twin]
            self.spent[twin.section] -= freed
        self.items.append(item)
        self.ids.add(item.id)
        self.headings.add(heading)
        self.spent[item.section] = self.spent.get(item.section, 0) + cost
        self.left += freed - cost
        return True


def keep_heaviest(items: Sequence[PacketItem]) -> list[PacketItem]:
    """Return as many items as are processed: no packet has room for more, and each is compared with others.

    Preferences that a rule says in words ("commit .env.local: avoids") are left out.
    """
    rules = [each.words for each in items if each.section == PacketSection.CONSTRAINTS and each.item_type != PROFILE]
    items = [each for each in items if each.item_type != PROFILE or not is_said(each, rules)]
    return sorted(items, key=lambda item: (-item.weight, *tie_breaker(item)))[:MAX_CONSIDERED_ITEMS]


def is_said(preference: PacketItem, rules: Sequence[frozenset[str]]) -> bool:
    """Return True if one of the rules, given by their words, has all words of the topic that somebody likes or not."""
    topic, _, attitude = preference.text.rpartition(": ")
    words = content_words(topic)
    return attitude in ATTITUDES and bool(words) and any(words <= rule for rule in rules)


def render_packet(items: Sequence[PacketItem], max_tokens: int, *, count: CountTokens) -> RenderedPacket:
    """Return what fits into `max_tokens`, counted of the whole text; an empty packet if no item does."""
    ordered = sort_by_value(items, count)
    room = max_tokens - count(render_text([]))
    while room > 0:
        # within their section's share first, then in what is left
        selection = ItemSelection(room=room, left=room, count=count)
        shares = ((item, FIRST_SHARE if item.is_first else SECTION_SHARES[item.section]) for item in ordered)
        waiting = [item for item, share in shares if not selection.try_add(item, share=share)]
        left_out = [item for item in waiting if not selection.try_add(item, share=1.0)]
        chosen = sorted(selection.items, key=text_order)
        text = render_text(chosen) if chosen else ""
        tokens = count(text) if chosen else 0
        if tokens <= max_tokens:
            return RenderedPacket(text=text, tokens=tokens, items=chosen, left_out=left_out)
        # days are not in the costs, and a tokenizer may count a whole higher than its parts
        room -= tokens - max_tokens
    return RenderedPacket(text="", tokens=0, items=[], left_out=ordered)


def sort_by_value(items: Sequence[PacketItem], count: CountTokens) -> list[PacketItem]:
    """Return the items in the order of choice: first ones, then by weight for their tokens, what gives orders last.

    Goals keep their places all the same: those below them need them.
    """

    def value(item: PacketItem) -> float:
        tokens = ASSUMED_GOAL_TOKENS if item.section == PacketSection.GOALS else line_tokens(item, count)
        return item.weight / (1 + tokens / HALVING_TOKENS)

    def is_last(item: PacketItem) -> bool:
        return bool(item.flags) and item.section != PacketSection.GOALS

    return sorted(items, key=lambda item: (is_last(item), not item.is_first, -value(item), *tie_breaker(item)))


def tie_breaker(item: PacketItem) -> tuple[object, ...]:
    """Return a sort key that orders items of the same weight."""
    return (item.section.value, item.position, item.label, item.text, str(item.id))


def covers_item(shown: PacketItem, item: PacketItem) -> bool:
    """Return True if a reader of `shown` does not need `item`.

    Most of its words and all that it names stand in `shown`, and both deny something or neither does. An item of
    another type says something else, unless it is plain or says the same words in the same section; a distinct item
    must be said in the same words.
    """
    if item.section in UNCOMPARED_SECTIONS:
        return False
    if item.plain_text == shown.plain_text and item.section in (shown.section, PacketSection.EVIDENCE):
        return not item.is_distinct or shown.item_type == item.item_type
    is_same_type = shown.item_type == item.item_type
    if item.is_distinct:
        is_within_outcome = shown.item_type == OUTCOME and item.plain_text in shown.plain_text
        return is_within_outcome or (is_same_type and item.plain_text == shown.plain_text)
    is_equivalent = shown.item_type in EQUIVALENT_TYPES.get(item.item_type, ())
    if not (is_same_type or item.item_type in PLAIN_TYPES or is_equivalent):
        return False
    if shown.is_negated != item.is_negated or not item.specifics <= shown.specifics | shown.words:
        return False
    shared_words = item.words & shown.words
    return item.named <= shown.words | shown.named and len(shared_words) >= MIN_SAME_SHARE * len(item.words)


def outranks_item(item: PacketItem, shown: PacketItem) -> bool:
    """Return True for no orders over orders, recorded over said, the user over the agent, later over earlier."""

    def rank(each: PacketItem) -> tuple[object, ...]:
        return (not each.flags, each.is_recorded, each.speaker == "user", each.speaker == "", each.position)

    return not shown.is_distinct and rank(item) > rank(shown)


def text_order(item: PacketItem) -> tuple[object, ...]:
    """Return a sort key for the order of the text: sections in their order, decisions before other evidence."""
    is_decision = heading_of_item(item) == DECISIONS
    return (list(PacketSection).index(item.section), not is_decision, item.position, item.label, item.text)


def heading_of_item(item: PacketItem) -> str:
    is_decision = item.section == PacketSection.EVIDENCE and item.item_type in DECIDED
    return DECISIONS if is_decision else HEADINGS[item.section]


def render_text(items: Sequence[PacketItem]) -> str:
    """Return the packet's text. Stored text stands on one line after a mark of ours, and cannot pass for a heading."""
    parts = [
        {"name": name, "lines": format_section_lines(list(group))} for name, group in groupby(items, heading_of_item)
    ]
    return render_to_string("context/resume.txt", {"notice": NOTICE, "parts": parts}).strip()


def format_section_lines(items: Sequence[PacketItem]) -> list[str]:
    """Return the lines of a section; in a dated one, the first line of each day says so."""
    lines, last = [], ""
    for item in items:
        day = f"{item.event_time:%Y-%m-%d}" if item.section in DATED_SECTIONS and item.event_time else ""
        lines.append(format_item_line(item, day=f"({day}) " if day and day != last else ""))
        last = day or last
    return lines


def line_tokens(item: PacketItem, count: CountTokens) -> int:
    return count(f"{format_item_line(item)}\n")


def format_item_line(item: PacketItem, *, day: str = "") -> str:
    """Return the line of an item; one that gives orders says so."""
    orders = mark_of_flags(item.flags)
    if item.section == PacketSection.GOALS:
        return f"{item.label}- {orders}{item.text}{format_goal_details(item)}"
    return f"- {day}{orders}{item.label}{item.text}"
