"""The sections of a context, laid out within its tokens: working memory, similar episodes, then the evidence.

Each section takes what it needs of the tokens that are left. Working memory is cut where it alone is too long, at the
end of a word; an episode goes in whole or not at all; of evidence as much as fits (`retrieval.packing`).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.template.loader import render_to_string

from memory.retrieval.candidates import Candidate
from memory.retrieval.packing import Passage, pack
from memory.services.layouts import fence, head_of, lines_of, one_line

WORKING_FIELDS = {
    "scratchpad": "Scratchpad",
    "entities": "Entities",
    "well_api": "Well API",
    "entity_id": "Entity",
    "entity_type_key": "Entity type",
}
"""The documented fields and their labels, in the order in which they are shown."""

CUT = " …"
WORD_END = re.compile(r"(?<=\S)(?=\s)")
BETWEEN_SECTIONS = "\n\n"

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a context is made of: episodes nearest first, evidence best first, and the turns next to that."""

    fields: Mapping[str, Any]
    episodes: Sequence[Candidate]
    evidence: Sequence[Candidate]
    neighbours: Sequence[Candidate]

    def without(self, keys: Collection[str]) -> "Material":
        episodes, evidence, neighbours = (
            [each for each in section if each.item_key not in keys]
            for section in (self.episodes, self.evidence, self.neighbours)
        )
        return replace(self, episodes=episodes, evidence=evidence, neighbours=neighbours)

    def only(self, keys: Collection[str]) -> "Material":
        every = {each.item_key for each in (*self.episodes, *self.evidence, *self.neighbours)}
        return self.without(every - set(keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A context's text, the memories whose text is in it, in that order, and its tokens as counted.

    `is_truncated` where working memory or a similar episode had no room.
    """

    text: str
    items: Sequence[Candidate]
    tokens: int
    is_truncated: bool


@dataclass(slots=True, kw_only=True)
class Counter:
    """Counts each passage once, however often it is tried."""

    count: CountTokens
    known: dict[str, int] = field(default_factory=dict)

    def line(self, line: str) -> int:
        if line not in self.known:
            self.known[line] = self.count(line)
        return self.known[line]

    def passage(self, notes: Sequence[Candidate]) -> int:
        # numbered with three digits at most, as there are no more results
        return sum(self.line(f"{line}\n") for line in (f"100. {head_of(notes)}", *lines_of(notes)))


def lay_out(material: Material, *, max_tokens: int, count: CountTokens, kept: Collection[str] = ()) -> Laid:
    """The documented sections and the evidence, in `max_tokens` as counted of the whole; empty ones are left out.

    Memories whose item keys are in `kept` have room before others.
    """
    counter = Counter(count=count)
    room = max_tokens
    while True:
        laid = fill(material, room, counter, kept)
        if laid.tokens <= max_tokens:
            return laid
        # a tokenizer may count a whole higher than its parts
        room -= laid.tokens - max_tokens


def fill(material: Material, room: int, counter: Counter, kept: Collection[str]) -> Laid:
    """The sections one after the other, where parts are counted."""
    working = lay_out_working(material.fields, room, counter.count)
    full = lay_out_working(material.fields, None, counter.count)
    left = room - counter.count(working)
    episodes = choose_episodes(material.episodes, left, counter)
    episodic = lay_out_episodes(episodes)
    left -= counter.count(episodic)
    passages = choose_passages(material, left, counter, kept)
    text = BETWEEN_SECTIONS.join(filter(None, [working, episodic, lay_out_passages(passages)]))
    return Laid(
        text=text,
        items=[*episodes, *(note for passage in passages for note in passage.notes)],
        tokens=counter.count(text),
        is_truncated=working != full or len(episodes) < len(material.episodes),
    )


def lay_out_working(fields: Mapping[str, Any], room: int | None, count: CountTokens) -> str:
    """The section of working memory, cut to `room` tokens; all of it without a limit."""
    working = [(label, fence(fields[name])) for name, label in WORKING_FIELDS.items() if fields.get(name)]
    if not working:
        return ""
    text = render_to_string("context/working_memory.txt", {"working": working}).strip()
    return text if room is None else cut_to_fit(text, room, count)


def cut_to_fit(text: str, room: int, count: CountTokens) -> str:
    """As much of a section as fits, with a mark where it ends; empty if that is no more than its heading."""
    if count(text) <= room:
        return text
    heading = text.index("\n")
    ends = [end for end in (match.start() for match in WORD_END.finditer(text)) if end > heading]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        fits = count(text[: ends[middle]] + CUT) <= room
        low, high = (middle + 1, high) if fits else (low, middle)
    return text[: ends[low - 1]] + CUT if low else ""


def choose_episodes(episodes: Sequence[Candidate], room: int, counter: Counter) -> list[Candidate]:
    """Nearest first those that fit; what does not makes way for what comes after it."""
    chosen: list[Candidate] = []
    for episode in episodes:
        if counter.count(lay_out_episodes([*chosen, episode])) <= room:
            chosen.append(episode)
    return chosen


def lay_out_episodes(episodes: Sequence[Candidate]) -> str:
    if not episodes:
        return ""
    shown = [{"similarity": each.similarity, "summary": one_line(each.text)} for each in episodes]
    return render_to_string("context/episodic_memory.txt", {"episodes": shown}).strip()


def choose_passages(material: Material, room: int, counter: Counter, kept: Collection[str]) -> list[Passage]:
    evidence, neighbours = (
        [note for note in notes if one_line(note.text)] for notes in (material.evidence, material.neighbours)
    )
    if not evidence:
        return []
    budget = room - counter.count(render_passages([]))
    return pack(evidence, neighbours, budget=budget, price=counter.passage, kept=kept)


def lay_out_passages(passages: Sequence[Passage]) -> str:
    return render_passages(passages) if passages else ""


def render_passages(passages: Sequence[Passage]) -> str:
    shown = [{"head": head_of(passage.notes), "lines": lines_of(passage.notes)} for passage in passages]
    return render_to_string("context/evidence.txt", {"passages": shown}).strip()
