"""Stories read from their files, and what of a checklist a text contains."""

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
    """One interrupted work, with the data of its file."""

    name: str
    data: Mapping[str, Any]

    @property
    def resumed_at(self) -> datetime:
        return datetime.fromisoformat(self.data["resumed_at"])

    @property
    def conversations(self) -> Sequence[Mapping[str, Any]]:
        conversations: Sequence[Mapping[str, Any]] = self.data["conversations"]
        return conversations

    @property
    def strategies(self) -> list[str]:
        """The texts of the strategies that fit the work."""
        return [strategy_text(each["description"], each["context_pattern"]) for each in self.data["strategies"]]

    def turns(self) -> Iterator[str]:
        """Return all turns of all conversations in order, as a log shows them."""
        for conversation in self.conversations:
            for step in conversation["log"]:
                if isinstance(step, list):
                    yield f"{step[0]}: {step[-1]}"

    def missing(self, text: str) -> list[str]:
        """Return the items of the checklist that the text does not contain."""
        found = text.casefold()
        return [
            item["knows"]
            for item in self.data["checklist"]
            if not all(any(wording.casefold() in found for wording in wordings) for wordings in item["in"])
        ]

    def still_in_force(self, text: str) -> list[str]:
        """Return lines that state what was retracted as if it held."""
        return [
            line
            for line in text.splitlines()
            for item in self.data["taken_back"]
            if item["old"].casefold() in line.casefold()
            and not any(word.casefold() in line.casefold() for word in item["told_with"])
        ]


@cache
def read_story(name: str) -> Story:
    path = Path(__file__).with_name(f"{name}.json")
    return Story(name=name, data=json.loads(path.read_text(encoding="utf-8")))
