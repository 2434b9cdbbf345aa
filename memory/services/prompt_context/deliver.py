"""From recalled material to the text that an agent gets, and to the marks in the conversation's ledger.

Where injected memories are suppressed, the text holds exactly what this call was the first to mark: two that ask at
once never both get a memory, nor one that says the same in other words (`Candidate.also`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ledger import store as ledger
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.services.prompt_context.layout import Laid, Limits, Material, lay_out
from memory_project.redis import Place

MARK_ROUNDS = 3
"""How often what others injected meanwhile is replaced by other memories, before it is only left out."""
EMPTY_ROUNDS = 20
"""The same while there is nothing to show yet: with each round others have got something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What this call entered into a ledger: all that it wanted to show, and what it was the first to mark."""

    owner: Owner
    place: Place
    entered: list[Candidate] = field(default_factory=list)
    held: set[str] = field(default_factory=set)

    def enter(self, items: Sequence[Candidate]) -> None:
        """In one step, each with the near-duplicates that it stands for."""
        keys = dict.fromkeys(keys_of(items), ledger.DEFAULT_VALUE)
        new = {key: value for key, value in keys.items() if key not in self.held}
        marks = ledger.mark_many(self.place, new, agent_id=self.owner.agent_id) if new else {}
        self.held.update(key for key, made in marks.items() if made.first)
        self.entered.extend(items)

    def has(self, item: Candidate) -> bool:
        """Whether nobody else has shown it, or what says the same."""
        return self.held.issuperset(keys_of([item]))

    def among(self, items: Iterable[Candidate]) -> set[str]:
        return {item.item_key for item in items if self.has(item)}

    def take_back(self, *, but: Sequence[Candidate]) -> None:
        """What could have been shown, and had no room in the end. What others have shown in other words stays."""
        own = [item for item in self.entered if self.has(item)]
        for stray in sorted(keys_of(own) - keys_of(but)):
            ledger.evict(self.place, stray, agent_id=self.owner.agent_id)


def keys_of(items: Iterable[Candidate]) -> set[str]:
    """Of the items, and of the near-duplicates that they stand for, which are of their kind."""
    return {f"{item.kind.value}:{each}" for item in items for each in (item.id, *item.also)}


def deliver_unmarked(material: Material, limits: Limits, marks: Marks) -> Laid:
    """The material laid out and marked, without what others marked meanwhile: other memories take its places."""
    laid = lay_out(material, limits)
    marks.enter(laid.items)
    had_items, rounds = bool(laid.items), 0
    while lost := {item.item_key for item in laid.items} - marks.among(laid.items):
        own, rounds = marks.among(material.every()), rounds + 1
        is_last = rounds >= (MARK_ROUNDS if own else EMPTY_ROUNDS)
        material = material.only(own) if is_last else material.without(lost)
        laid = lay_out(material, limits, kept=own)
        marks.enter(laid.items)
    marks.take_back(but=laid.items)
    return replace(laid, is_taken=had_items and not laid.items)
