"""Data sets for evaluating recall: samples of what an agent remembers, with questions about it.

Everything is a service's draft already, with the id that its row will have, so that answers are known before anything
is stored. A sample can be loaded once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memory.services.contexts.entries import EntryDraft
from memory.services.entities.learn import EntityDraft
from memory.services.facts.learn import FactDraft
from memory.services.goals.plan import GoalDraft
from memory.services.strategies.learn import StrategyDraft
from memory.services.summaries.store import EpisodeDraft
from memory.services.turns import TurnDraft

ADVERSARIAL = "adversarial"
"""The type of questions whose evidence does not answer them: they are reported apart, and are in no average."""

Draft = EntityDraft | FactDraft | EpisodeDraft | EntryDraft | GoalDraft | StrategyDraft


class BadDatasetError(ValueError):
    """A file that cannot be evaluated: says the place in it, and what is wrong there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleConversation:
    """A conversation of a sample, its turns in order."""

    conversation_id: str
    turns: Sequence[TurnDraft]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMemory:
    """A memory of another kind than a turn, stored with its time, or with the time of loading.

    `outcome` is how a goal ended, if it did; `successes` and `failures` are the uses of a strategy.
    """

    key: str
    draft: Draft
    stored_at: datetime | None = None
    outcome: str = ""
    successes: int = 0
    failures: int = 0

    @property
    def text(self) -> str:
        """Return the text that is embedded."""
        return text_of_draft(self.draft)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleQuestion:
    """A question, and the keys of all memories that answer it. Without a time it is asked at its sample's.

    `replaced` are the keys of stale answers: memories that answered the question until an answer replaced them.
    """

    text: str
    answers: Sequence[str]
    type: str
    asked_at: datetime | None = None
    replaced: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSample:
    """The memories of one agent, for one user if named, and the questions about them.

    `notes` are in an order in which each can be stored. `ids` are those of the rows by key, turns included. Without
    `asked_at` questions are asked at the time of loading.
    """

    name: str
    user_id: str = ""
    talks: Sequence[SampleConversation] = ()
    notes: Sequence[SampleMemory] = ()
    questions: Sequence[SampleQuestion] = ()
    ids: Mapping[str, UUID] = field(default_factory=dict)
    asked_at: datetime | None = None

    @property
    def texts(self) -> list[str]:
        """The texts to embed, each once."""
        said = [turn.message.text for talk in self.talks for turn in talk.turns]
        return list(dict.fromkeys([*said, *(note.text for note in self.notes)]))

    @property
    def counted(self) -> list[SampleQuestion]:
        """Return the questions that averages include."""
        return [question for question in self.questions if question.type != ADVERSARIAL]

    def ids_of(self, keys: Iterable[str]) -> frozenset[UUID]:
        return frozenset(self.ids[key] for key in keys)


def text_of_draft(draft: Draft) -> str:
    match draft:
        case FactDraft():
            return draft.claim
        case EpisodeDraft():
            return draft.summary
        case GoalDraft():
            return draft.description
        case EntityDraft() | EntryDraft() | StrategyDraft():
            return draft.text
