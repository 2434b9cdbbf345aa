"""The step of a resume that leaves out what belongs to neither the lineage, nor an open goal, nor the client's query.

Recalled memories and facts of other conversations stay only if they share words with an open goal or with the query.
Within the lineage, turns and records of other goals that are closed are left out as long as something is left; of their
turns only standing rules ("always …", "never …") stay. Completed parts of an open goal are no other goals, abandoned
ones are. Turns name no goal: they belong to the goals whose words, or whose turns' words, they share most.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar
from uuid import UUID

from memory.extraction.terms import content_words
from memory.extraction.work_notes import NoteKind, kind_of
from memory.retrieval.candidates import Candidate
from memory.retrieval.resume import ResumedEpisode, ResumedGoal, ResumedMemory, ResumedSlot, ResumedTurn
from memory.services.resume.goals import include_ancestors
from memory.services.resume.settle import SETTLED_TYPES
from memory.services.resume.snippets import FRESH_TURNS, Snippet, bounded_sentences

MIN_GOAL_WORDS = 2
"""Words that a memory of another conversation shares with an open goal, if that has so many."""
MIN_TOPIC_WORDS = 2
"""Words that a turn shares with the turns of closed goals, if it names no goal itself."""
MIN_QUERY_SHARE = 0.3
"""Share of the query's words that a memory of another conversation has."""
MIN_QUERY_RELEVANCE = 0.5
"""Relevance to the query, from 0 to 1, that is enough without a common word."""

_STANDING = re.compile(r"\b(?:always|never|from now on|in general|every time|whenever)\b", re.IGNORECASE)

Row = TypeVar("Row", ResumedSlot, ResumedEpisode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """The subject of a packet: conversations, the words of open goals and of other, closed ones, and the query's."""

    conversations: frozenset[str]
    open_goals: Sequence[frozenset[str]]
    closed_words: frozenset[str]
    """Words that only closed goals have which are no part of an open one."""
    rival_words: frozenset[str]
    """Words of the open goals that a closed one is no part of: a parent has words of all its parts."""
    closed_ids: frozenset[UUID]
    query_words: frozenset[str]
    fresh_words: frozenset[str]
    """Words of the last turns."""

    @property
    def open_words(self) -> frozenset[str]:
        return frozenset().union(*self.open_goals)

    @classmethod
    def of(
        cls,
        goals: Sequence[ResumedGoal],
        shown: Collection[UUID],
        conversations: Iterable[str],
        query: str,
        turns: Sequence[ResumedTurn] = (),
    ) -> "Focus":
        """Make the focus of the goals that were read, of which those of `shown` belong to open trees or were named."""
        closed = [goal for goal in goals if not goal.is_open and goal.id not in shown]
        closed_ids = frozenset(goal.id for goal in closed)
        others = [goal for goal in goals if goal.id not in closed_ids]
        open_goals = [content_words(goal.text) for goal in others]
        above = include_ancestors(closed_ids, {goal.id: goal for goal in goals})
        beside = [words for goal, words in zip(others, open_goals, strict=True) if goal.id not in above]
        of_closed = frozenset().union(*(content_words(f"{goal.text} {goal.result}") for goal in closed))
        return cls(
            conversations=frozenset(conversations),
            open_goals=open_goals,
            closed_words=of_closed.difference(*open_goals),
            rival_words=frozenset().union(*(beside or open_goals)),
            closed_ids=closed_ids,
            query_words=content_words(query),
            fresh_words=frozenset().union(*(content_words(turn.text) for turn in turns[-FRESH_TURNS:])),
        )

    def is_asked_for(self, text: str, *, relevance: float = 0.0) -> bool:
        """Return True for a memory that the client's query asks for."""
        shared = len(content_words(text) & self.query_words)
        is_close = shared >= MIN_QUERY_SHARE * len(self.query_words) or relevance >= MIN_QUERY_RELEVANCE
        return bool(self.query_words) and is_close

    def is_of_closed(self, text: str) -> bool:
        """Return True for a memory about other, closed goals rather than about open ones, if there are any."""
        return bool(self.open_goals) and self.count_closed_words(content_words(text)) > 0

    def count_closed_words(self, words: frozenset[str]) -> int:
        """Return how many more words are of closed goals than of open ones."""
        closed = len(words & self.closed_words)
        return closed - len(words & (self.rival_words if closed else self.open_words))

    def holds(self, text: str, conversation_id: str) -> bool:
        """Return True for a memory of the lineage or about an open goal."""
        words = content_words(text)
        is_near = any(len(words & goal) >= min(MIN_GOAL_WORDS, len(goal)) for goal in self.open_goals if goal)
        return not self.is_of_closed(text) and (is_near or conversation_id in self.conversations)


def keep_recalled(
    results: Sequence[Candidate], focus: Focus, relevance: Mapping[UUID, float], *, dropped: Collection[UUID]
) -> list[Candidate]:
    """Return the recalled memories that the packet is about; of those that were dropped, what the query asks for.

    Of a user's other messages, standing rules about what was spoken of last stay.
    """
    kept = []
    for each in results:
        is_near = each.id not in dropped and focus.holds(each.text, each.conversation_id)
        if is_near or focus.is_asked_for(each.text, relevance=relevance.get(each.id, 0.0)):
            kept.append(each)
        elif each.id not in dropped and each.role == "user" and (rules := rules_spoken_of(each, focus)):
            kept.append(replace(each, text=rules))
    return kept


def rules_spoken_of(said: Candidate, focus: Focus) -> str:
    rules = [each for each in bounded_sentences(said.text) if _STANDING.search(each) and is_rule(each)]
    return " ".join(each for each in rules if content_words(each) & focus.fresh_words)


def keep_facts(facts: Sequence[ResumedMemory], focus: Focus) -> list[ResumedMemory]:
    """Return the facts that the packet is about, and besides these rules and facts of no conversation."""
    return [
        fact
        for fact in facts
        if focus.is_asked_for(fact.text)
        or focus.holds(fact.text, fact.conversation_id)
        or (not focus.is_of_closed(fact.text) and (not fact.conversation_id or is_rule(fact.text)))
    ]


def is_rule(text: str) -> bool:
    return kind_of(text) == NoteKind.CONSTRAINT


def keep_rows(rows: Sequence[Row], focus: Focus) -> list[Row]:
    """Return records, or work episodes, without those of other goals that are closed."""
    return [row for row in rows if row.goal_id not in focus.closed_ids]


def keep_turns(turns: Sequence[ResumedTurn], focus: Focus) -> list[ResumedTurn]:
    """Return the turns without those of other goals that are closed, of which standing rules stay."""
    closed = find_closed_turns(turns, focus)
    if len(closed) == len(turns):
        return list(turns)
    kept = []
    for turn in turns:
        if turn.id in closed:
            rules = " ".join(standing_rules(turn, focus))
            kept += [replace(turn, text=rules)] if rules else []
        else:
            kept.append(turn)
    return kept


def demote_settled(snippets: Iterable[Snippet], turns: Sequence[ResumedTurn], focus: Focus) -> Iterator[Snippet]:
    """Return the snippets; what was decided, required or open for a closed goal is only something that was said."""
    closed = find_closed_turns(turns, focus)
    for snippet in snippets:
        is_closed = snippet.source.id in closed or getattr(snippet.source, "goal_id", None) in focus.closed_ids
        is_settled = is_closed and snippet.note in SETTLED_TYPES and not _STANDING.search(snippet.text)
        yield replace(snippet, note=None, is_of_closed_goal=True) if is_settled else snippet


def standing_rules(turn: ResumedTurn, focus: Focus) -> list[str]:
    """Return the sentences of a user's turn that hold whatever is worked on."""
    return [
        sentence
        for sentence in (bounded_sentences(turn.text) if turn.role == "user" else ())
        if _STANDING.search(sentence) and not content_words(sentence) & focus.closed_words
    ]


def find_closed_turns(turns: Sequence[ResumedTurn], focus: Focus) -> set[UUID]:
    """Return the turns that belong to other goals that are closed.

    These are the turns that share more words with these goals than with open ones; those that name neither and share
    more words with the former turns than with all others; and those that stand between two of them.
    """
    if not focus.closed_words:
        return set()
    words = {turn.id: content_words(turn.text) for turn in turns}
    balance = {each: focus.count_closed_words(of) for each, of in words.items()}
    named = [each for each, count in balance.items() if count > 0]
    if not named:
        return set()
    topic = frozenset().union(*(words[each] for each in named))
    of_open = frozenset().union(focus.open_words, *(words[each] for each, count in balance.items() if count < 0))
    for each, count in balance.items():
        own = words[each] - focus.closed_words
        if not count and len(own & (topic - of_open)) >= MIN_TOPIC_WORDS + len(own & (of_open - topic)):
            balance[each] = 1
    known = [(at, turn) for at, turn in enumerate(turns) if balance[turn.id]]
    for (at, before), (then, after) in pairwise(known):
        is_between = balance[before.id] > 0 < balance[after.id] and before.conversation_id == after.conversation_id
        balance |= dict.fromkeys((turn.id for turn in turns[at + 1 : then]), 1) if is_between else {}
    return {each for each, count in balance.items() if count > 0}
