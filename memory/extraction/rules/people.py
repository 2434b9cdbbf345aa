"""The people spoken of, for whom "he" and "she" may stand: in the same turn, or in the last one of the same speaker."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from memory.extraction.rules.names import is_name
from memory.extraction.rules.subjects import Speaker, Subject

_SOMEBODY = re.compile(
    r"\b(?:man|guy|woman|lady|girl|boy|kid|child|baby|person|people|someone|somebody|everyone|dude|fellow|bloke|couple"
    r"|customer|client|patient|student|stranger|owner|driver|doctor|nurse|teacher|boss|friend|friends|dog|cat|puppy"
    r"|kitten|pet|mum|mom|dad|guest|host|author|actor|singer|character)\b",
    re.IGNORECASE,
)
_CAPITALIZED = re.compile(r"(?<=[\w,;] )[A-Z][\w'-]+")


@dataclass(slots=True)
class People:
    """The people spoken of: in this sentence, before it, and in the whole turn of a speaker."""

    here: list[Subject] = field(default_factory=list)
    before: list[Subject] = field(default_factory=list)
    turn: dict[str, Subject] = field(default_factory=dict)
    speaker: str = ""
    is_old: bool = False
    """True if the last sentence spoke of nobody."""

    @property
    def only(self) -> Subject | None:
        """The only person who is spoken of, if there is exactly one."""
        one = self.here or self.before
        return one[0] if len(one) == 1 else None

    def begin_turn(self, speaker: Speaker) -> None:
        """Keep the only person of the last turn if the same speaker goes on."""
        last = list(self.turn.values()) if speaker.label == self.speaker else []
        self.before = last if len(last) == 1 else []
        self.here, self.turn, self.speaker, self.is_old = [], {}, speaker.label, False

    def add(self, people: Iterable[Subject]) -> None:
        for each in people:
            self.turn[each.label] = each
            self.here = [*(other for other in self.here if other.label != each.label), each]

    def end_sentence(self, text: str) -> None:
        """Forget those of the sentences before if this is the second one without them, or if it speaks of others.

        A single word is no sentence: "Back.", "Okay."
        """
        is_word = " " not in text
        if self.here or names_somebody(text) or (self.is_old and not is_word):
            self.before = self.here
        self.is_old = not self.here and (self.is_old or not is_word)
        self.here = []

    def hear(self, text: str) -> None:
        """Forget the people of the last turn if what is said in between names others."""
        known = {each.label for each in self.turn.values()}
        if _SOMEBODY.search(text) or any(name not in known for name in _names_in(text)):
            self.turn = {}


def names_somebody(text: str) -> bool:
    """Return True if a sentence may speak of somebody who is not known."""
    return _SOMEBODY.search(text) is not None or any(True for _ in _names_in(text))


def _names_in(text: str) -> Iterable[str]:
    return (match[0] for match in _CAPITALIZED.finditer(text) if is_name(match[0]))
