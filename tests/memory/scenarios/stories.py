"""The stories: read from their files, and what of a checklist stands in a text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from memory.services.strategies.learn import strategy_text

NAMES = ("incident", "migration", "purchase", "refactoring", "research")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One interrupted work, as its file tells it."""

    name: str
    told: Mapping[str, Any]

    @property
    def resumed_at(self) -> datetime:
        return datetime.fromisoformat(self.told["resumed_at"])

    @property
    def conversations(self) -> Sequence[Mapping[str, Any]]:
        conversations: Sequence[Mapping[str, Any]] = self.told["conversations"]
        return conversations

    @property
    def strategies(self) -> list[str]:
        """The texts of those that fit the work."""
        return [strategy_text(each["description"], each["context_pattern"]) for each in self.told["strategies"]]

    def turns(self) -> Iterator[str]:
        """All turns of all conversations in order, as a log shows them."""
        for conversation in self.conversations:
            for step in conversation["log"]:
                if isinstance(step, list):
                    yield f"{step[0]}: {step[-1]}"

    def missing(self, text: str) -> list[str]:
        """The items of the checklist that the text does not tell."""
        found = text.casefold()
        return [
            item["knows"]
            for item in self.told["checklist"]
            if not all(any(wording.casefold() in found for wording in wordings) for wordings in item["in"])
        ]

    def still_in_force(self, text: str) -> list[str]:
        """Lines that tell what was taken back as if it held."""
        return [
            line
            for line in text.splitlines()
            for item in self.told["taken_back"]
            if item["old"].casefold() in line.casefold()
            and not any(word.casefold() in line.casefold() for word in item["told_with"])
        ]


@cache
def read_story(name: str) -> Story:
    path = Path(__file__).with_name(f"{name}.json")
    return Story(name=name, told=json.loads(path.read_text(encoding="utf-8")))
