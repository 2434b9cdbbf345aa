"""Data and texts of work episodes (E5): decisions that hold, retractions, actions and the outcome of adjacent turns.

Points of rationales come first; further ones are found by the forms of sentences (`work_notes`). Everything is quoted
as somebody wrote it. A decision that a later turn retracts is listed as a correction instead.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, takewhile
from typing import Any

from memory.extraction.compression import Passage
from memory.extraction.survivors import facts_in, has_negation
from memory.extraction.turn_slots import Point, Rationale
from memory.extraction.work_notes import NoteKind, find_notes, kind_of, work_sentences
from memory.providers.sentences import tokenize
from memory.tokens import estimate_tokens

MAX_EPISODE_STEPS = 30
"""Records that one episode merges."""
MAX_LIST_ITEMS = 30
"""Items of each list, the latest ones. Decisions, corrections and products are not limited."""
MAX_LIST_TOKENS = 100
"""Tokens of the items of such a list together."""
MAX_COMPARED_POINTS = 20
"""Points of one turn that are compared with earlier decisions."""
SHARE_OF_ESSENTIALS = 0.75
"""Share of an episode's tokens that decisions and outcomes may take before another episode begins."""
MIN_ACTION_TOKENS = 10
SAME_MATTER_SHARE = 0.6
"""Share of words that a point must have in common with a decision to be about the same matter."""
OPPOSITE_MATTER_SHARE = 0.8
"""The same for a point that differs from the decision by a negation."""
MIN_COMMON_WORDS = 2
FOUND = frozenset({NoteKind.ERROR, NoteKind.RESULT})
"""Kinds of sentences of an observation that are findings. Other sentences are if they contain facts."""
UNRESOLVING_KINDS = frozenset({NoteKind.BLOCKER, NoteKind.NEXT_STEP, NoteKind.QUESTION_OPEN, NoteKind.ERROR})
"""Kinds of sentences of an outcome that resolve nothing."""

LABELS = {
    "goal": "Goal",
    "decisions": "Decided",
    "rejected": "Rejected",
    "constraints": "To be kept to",
    "findings": "Found",
    "done": "Done",
    "produced": "Produced",
    "outcome": "Outcome",
    "corrections": "Corrected",
    "blockers": "Blocked by",
    "open_ends": "Open",
    "tools": "Tools",
}
"""Labels of the lines of an episode's text, by field of its data, in the order of the text."""
ARCHIVED = ("goal", "decisions", "produced", "outcome", "corrections", "open_ends")
"""Fields that an archived episode keeps, besides the outcomes of steps that did not succeed."""
FAILED = "Failed"
SUCCEEDED = "succeeded"

_RETRACTS = re.compile(
    r"\b(?:instead|no longer|rather than|revert(?:ed|ing)?|undo(?:ne|ing)?|undid|roll(?:ed|ing)? back|cancel\w*"
    r"|withdr[ae]w\w*|abandon\w*|drop(?:ped)?|stop(?:ped)?|wrong|mistake|scrap(?:ped)?"
    r"|changed? (?:my|our|the) (?:mind|plan))\b",
    re.IGNORECASE,
)
_IS_GIVEN_UP = re.compile(
    r"(?:^|[.;,:!?] )(?P<undone>[^.;,:!?]{2,60}?) (?:is|are|was|were)"
    r" (?:given up|dropped|off the table|rejected|ruled out|obsolete|cancell?ed|no longer \w+)",
    re.IGNORECASE,
)
_SMALL_WORDS = frozenset(
    tokenize("a an and are as at be by for from in into is it of on or our so that the then this to was we with")
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One record, without reasoning that the account's tier does not allow.

    `points` are those of its rationale. `summary` is the reason in short, for records without a rationale.
    """

    number: int
    status: str
    observation: str = ""
    points: Rationale = field(default_factory=Rationale)
    summary: str = ""
    action: str = ""
    outcome: str = ""
    tools: Sequence[str] = ()

    @cached_property
    def notes(self) -> Mapping[NoteKind, Sequence[str]]:
        found: dict[NoteKind, list[str]] = {}
        for text in (self.observation, self.summary, self.action, self.outcome):
            for note in find_notes(text):
                found.setdefault(note.kind, []).append(note.text)
        return found

    @property
    def decisions(self) -> list[str]:
        """The decisions of the step, with reasons."""
        decided = format_points(self.points.decisions) or [one_line(self.summary).removeprefix("Decided: ")]
        return drop_repeated_texts([*decided, *self.notes.get(NoteKind.DECISION, ())])

    @property
    def rejected(self) -> list[str]:
        return drop_repeated_texts([*format_points(self.points.rejected), *self.notes.get(NoteKind.REJECTION, ())])

    @cached_property
    def findings(self) -> Sequence[str]:
        """The sentences of the observation that report an error or a result, or contain facts."""
        kinds = {text: kind_of(text) for text in work_sentences(self.observation)}
        return [text for text, kind in kinds.items() if kind in FOUND or (kind is None and facts_in(text))]

    @cached_property
    def resolutions(self) -> Sequence[frozenset[str]]:
        """The words of each sentence of a successful outcome that may resolve something open."""
        sentences = work_sentences(self.outcome)[:MAX_COMPARED_POINTS] if self.status == SUCCEEDED else []
        return [words_of(text) for text in sentences if kind_of(text) not in UNRESOLVING_KINDS]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStory:
    """Adjacent steps of one goal, with the names of the artifacts that they produced."""

    goal: str
    steps: Sequence[Step]
    produced: Sequence[str] = ()


def one_line(text: str) -> str:
    """Return a text on one line, so that none of its lines looks like a line of the episode."""
    return " ".join(text.split())


def format_points(points: Iterable[Point]) -> list[str]:
    return [one_line(point.format()) for point in points]


def drop_repeated_texts(texts: Iterable[str]) -> list[str]:
    """Return each text once, at its last position. A text whose words another one contains is left out."""
    kept: dict[str, str] = {}
    for text in texts:
        key = " ".join(tokenize(text))
        others = (other for other in list(kept.items())[-MAX_COMPARED_POINTS:] if other[0] != key)
        if key and not any(key in other and has_negation(text) == has_negation(said) for other, said in others):
            kept.pop(key, None)
            kept[key] = text
    return list(kept.values())


def split_steps(steps: Sequence[Step], *, max_tokens: int) -> Iterator[Sequence[Step]]:
    """Yield the steps in segments of one step or more, whose decisions and outcomes leave room for actions."""
    segment: list[Step] = []
    taken = 0
    for step in steps:
        cost = sum(map(estimate_tokens, (*step.decisions, *step.rejected, step.outcome)))
        if segment and (len(segment) == MAX_EPISODE_STEPS or taken + cost > max_tokens * SHARE_OF_ESSENTIALS):
            yield segment
            segment, taken = [], 0
        segment.append(step)
        taken += cost
    if segment:
        yield segment


def build_episode_data(story: WorkStory) -> dict[str, Any]:
    """Return an episode's `data`: what holds at the end of its steps, in chronological order."""
    last = story.steps[-1]
    decisions, corrections = net_decisions(story.steps)
    return {
        "goal": one_line(story.goal),
        "decisions": decisions,
        "rejected": latest_texts(text for step in story.steps for text in step.rejected),
        "constraints": latest_texts(notes_of(story.steps, NoteKind.CONSTRAINT)),
        "findings": latest_findings(story.steps),
        "produced": drop_repeated_texts(map(one_line, story.produced)),
        "outcomes": [
            {"status": step.status, "text": one_line(step.outcome)} for step in story.steps[:-1] if step.outcome.strip()
        ],
        "outcome": one_line(last.outcome),
        "corrections": corrections,
        "blockers": latest_texts(blockers_of(story.steps)),
        "open_ends": latest_texts(open_ends_of(story.steps)),
        "tools": list(dict.fromkeys(tool for step in story.steps for tool in step.tools))[:MAX_LIST_ITEMS],
    }


def latest_texts(texts: Iterable[str]) -> list[str]:
    newest_first = drop_repeated_texts(texts)[: -MAX_LIST_ITEMS - 1 : -1]
    sizes = accumulate(estimate_tokens(text) for text in newest_first)
    fitting = sum(1 for _ in takewhile(lambda size: size <= MAX_LIST_TOKENS, sizes))
    return newest_first[:fitting][::-1]


def notes_of(steps: Iterable[Step], *kinds: NoteKind) -> Iterator[str]:
    return (text for step in steps for kind in kinds for text in step.notes.get(kind, ()))


def latest_findings(steps: Sequence[Step]) -> list[str]:
    """Return the latest findings in order. Errors and results take precedence over sentences with facts."""
    found = [text for step in steps for text in step.findings]
    latest = set(latest_texts(sorted(found, key=lambda text: kind_of(text) in FOUND)))
    return [text for text in drop_repeated_texts(found) if text in latest]


def blockers_of(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the blockers that no later step resolved, without those that their step's outcome repeats."""
    for place, step in enumerate(steps, start=1):
        said = [*format_points(step.points.blockers), *besides_outcome(step, NoteKind.BLOCKER)]
        yield from (text for text in said if not is_resolved(text, steps[place:]))


def open_ends_of(steps: Sequence[Step]) -> Iterator[str]:
    """Yield outcomes of open steps that no later step resolved, and next steps and questions of the last step."""
    for place, step in enumerate(steps[:-1], start=1):
        if step.status == "open" and not is_resolved(step.outcome, steps[place:]):
            yield one_line(step.outcome)
    yield from besides_outcome(steps[-1], NoteKind.NEXT_STEP, NoteKind.QUESTION_OPEN)


def besides_outcome(step: Step, *kinds: NoteKind) -> Iterator[str]:
    outcome = one_line(step.outcome)
    return (text for text in notes_of([step], *kinds) if text not in outcome)


def is_resolved(text: str, later: Iterable[Step]) -> bool:
    """Return True if the outcome of a later step has most words of the open text."""
    about = words_of(text)
    least = max(MIN_COMMON_WORDS, SAME_MATTER_SHARE * len(about))
    return any(len(about & resolution) >= least for step in later for resolution in step.resolutions)


def net_decisions(steps: Sequence[Step]) -> tuple[list[str], list[str]]:
    """Return the decisions that hold, and the corrections: retracted decisions with the reason, and others."""
    held: dict[str, frozenset[str]] = {}
    corrections: list[str] = []
    for step in steps:
        for text, is_rejection in find_retractions(step):
            said = words_of(text)
            against = [
                decision
                for decision, about in held.items()
                if is_same_matter(about, said, min_shared_words(text, decision, is_rejection=is_rejection))
                or gives_up_decision(text, about)
            ]
            corrections += [format_correction(decision, text, step) for decision in against]
            if not against and text in step.notes.get(NoteKind.CORRECTION, ()):
                corrections.append(text)
            held = {decision: about for decision, about in held.items() if decision not in against}
        held |= {decision: words_of(decision) for decision in step.decisions}
    return drop_repeated_texts(held), drop_repeated_texts(corrections)


def format_correction(decision: str, text: str, step: Step) -> str:
    """Format a retracted decision with the text that retracts it, unless that text is part of a rationale.

    A rationale is of a deeper tier of reasoning than corrections, which must not repeat it.
    """
    is_of_rationale = text in format_points(step.points.rejected)
    return f"{decision} (taken back)" if is_of_rationale else f"{decision} (taken back: {text})"


def find_retractions(step: Step) -> list[tuple[str, bool]]:
    """Return the texts of a step that may retract earlier decisions, each with True if it is a rejection."""
    others = [*step.notes.get(NoteKind.CORRECTION, ()), *step.decisions]
    points = [*((text, True) for text in step.rejected), *((text, False) for text in dict.fromkeys(others))]
    return points[:MAX_COMPARED_POINTS]


def min_shared_words(text: str, decision: str, *, is_rejection: bool) -> float:
    """Return the share of words that a text must have in common with a decision to retract it; above 1 for never."""
    if is_rejection or _RETRACTS.search(text):
        return SAME_MATTER_SHARE
    return OPPOSITE_MATTER_SHARE if has_negation(text) != has_negation(decision) else 2


def gives_up_decision(text: str, about: frozenset[str]) -> bool:
    """Return True if it says that something is given up and names only words of the decision `about`."""
    undone = (words_of(match["undone"]) for match in _IS_GIVEN_UP.finditer(text))
    return any(words and words <= about for words in undone)


def is_same_matter(about: frozenset[str], said: frozenset[str], share: float) -> bool:
    shared = len(about & said)
    return shared >= max(min(MIN_COMMON_WORDS, len(about)), 1) and shared >= share * min(len(about), len(said))


def words_of(text: str) -> frozenset[str]:
    return frozenset(tokenize(text.split(" (because ", 1)[0])) - _SMALL_WORDS


def actions_to_shorten(story: WorkStory, data: Mapping[str, Any], *, max_tokens: int) -> list[Passage]:
    """Return the actions of the steps to shorten, within the tokens that the other lines leave."""
    left = max_tokens - estimate_tokens(format_episode_text(data, story, [""] * len(story.steps)))
    share = left // len(story.steps)
    bound = share if share >= MIN_ACTION_TOKENS else 0
    texts = (step.action if bound else "" for step in story.steps)
    return [Passage(part="action", text=text, max_tokens=max(bound, 1)) for text in texts]


def format_episode_text(data: Mapping[str, Any], story: WorkStory, actions: Sequence[str]) -> str:
    """Return the episode's text: a line with a label for each item. `actions` are the shortened ones, one per step."""
    *earlier, last = zip(story.steps, actions, strict=True)
    done = [*(format_action(step, action, data["open_ends"]) for step, action in earlier), one_line(last[1])]
    items = {**data, "done": list(filter(None, done)), "tools": filter(None, [", ".join(data["tools"])])}
    said = "\n".join([*done, data["outcome"]])
    items |= {key: [text for text in data[key] if text not in said] for key in ("constraints", "findings")}
    lines = ((format_label(key, last[0].status), text) for key in LABELS for text in as_list(items[key]))
    return "\n".join(f"{label}: {text}" for label, text in lines if text)


def format_action(step: Step, action: str, open_ends: Collection[str]) -> str:
    """Format an action with its outcome, unless the outcome is listed as open or part of the action's text."""
    done, outcome = one_line(action), one_line(step.outcome)
    is_shown = outcome.rstrip(".") in done if step.status == SUCCEEDED else outcome in open_ends
    status = "" if step.status == SUCCEEDED or not outcome else f"{step.status}: "
    return " -> ".join(filter(None, [done, "" if is_shown else status + outcome]))


def format_label(key: str, status: str) -> str:
    return f"{LABELS[key]} ({status})" if key == "outcome" else LABELS[key]


def as_list(value: Any) -> Iterable[str]:
    return [value] if isinstance(value, str) else value


def archive_work(text: str, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text and data of a merged episode, reduced to the fields ARCHIVED and unsuccessful outcomes.

    If the text was corrected since, items that it no longer contains are dropped from the data.
    """
    starts = tuple(LABELS[key] for key in ARCHIVED)
    lines = [line for line in text.split("\n") if line.startswith(starts) and ": " in line]
    unsuccessful = [each for each in data.get("outcomes", ()) if each["status"] != SUCCEEDED and each["text"] in text]
    failed = [f"{FAILED}: {each['text']}" for each in unsuccessful if each["status"] == "failed"]
    archived = "\n".join([*lines, *failed]) or text
    kept = {key: data[key] for key in ARCHIVED if key in data}
    return archived, {
        "outcomes": unsuccessful,
        **{
            key: [item for item in value if item in archived]
            if isinstance(value, list)
            else value
            if value in archived
            else ""
            for key, value in kept.items()
        },
    }
