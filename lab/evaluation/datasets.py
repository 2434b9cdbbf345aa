"""What recall is evaluated on: samples, each with what an agent remembers, and questions about that.

Everything is a service's draft already, with the id that its row will have, so that answers are known before anything
is stored. A sample can be loaded once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memory.services.contexts.entries import EntryDraft
from memory.services.entities.learn import EntityDraft
from memory.services.facts.learn import FactDraft
from memory.services.goals.plan import GoalDraft
from memory.services.strategies.learn import StrategyDraft
from memory.services.summaries.store import EpisodeDraft
from memory.services.turns.store import TurnDraft

ADVERSARIAL = "adversarial"
"""The type of questions whose evidence does not answer them: they are reported apart, and are in no average."""

Draft = EntityDraft | FactDraft | EpisodeDraft | EntryDraft | GoalDraft | StrategyDraft


class BadDatasetError(ValueError):
    """A file that cannot be evaluated: says the place in it, and what is wrong there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation of a sample, its turns in order."""

    conversation_id: str
    turns: Sequence[TurnDraft]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A memory of another kind, told at a time, or when it is loaded.

    Of goals `outcome` is how they ended, if they did; of strategies `successes` and `failures` are their uses.
    """

    key: str
    draft: Draft
    told_at: datetime | None = None
    outcome: str = ""
    successes: int = 0
    failures: int = 0

    @property
    def text(self) -> str:
        """What is embedded of it."""
        return text_of(self.draft)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the keys of all memories that answer it. Without a time it is asked at its sample's."""

    text: str
    answers: Sequence[str]
    type: str
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one agent remembers, for one user where it is named, and what it is asked.

    `notes` come in an order in which each can be stored. `ids` are those of the rows, by key, turns included. Without
    `asked_at` it is asked when it is loaded.
    """

    name: str
    user_id: str = ""
    talks: Sequence[Talk] = ()
    notes: Sequence[Note] = ()
    questions: Sequence[Question] = ()
    ids: Mapping[str, UUID] = field(default_factory=dict)
    asked_at: datetime | None = None

    @property
    def texts(self) -> list[str]:
        """All that is to be embedded, each text once."""
        said = [turn.message.text for talk in self.talks for turn in talk.turns]
        return list(dict.fromkeys([*said, *(note.text for note in self.notes)]))

    @property
    def counted(self) -> list[Question]:
        """Those that are in averages."""
        return [question for question in self.questions if question.type != ADVERSARIAL]

    def answers_of(self, question: Question) -> frozenset[UUID]:
        return frozenset(self.ids[key] for key in question.answers)


def text_of(draft: Draft) -> str:
    match draft:
        case FactDraft():
            return draft.claim
        case EpisodeDraft():
            return draft.summary
        case GoalDraft():
            return draft.description
        case EntityDraft() | EntryDraft() | StrategyDraft():
            return draft.text
