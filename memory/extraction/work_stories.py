"""The outcome of adjacent turns of one goal (E5): net decisions, retractions, actions, and how it ended.

Points of rationales come first; what else is told is found by the forms of sentences (`work_notes`). Everything stands
as somebody wrote it. A decision that a later turn takes back is a correction, and no decision any more.
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

MOST_STEPS = 30
"""Records that one episode merges."""
MOST_ITEMS = 30
"""Of each list but decisions, corrections, and what was produced: the latest,"""
MOST_TOKENS = 100
"""as far as they have no more of these."""
MOST_COMPARED = 20
"""Points of one turn that are compared with what was decided before."""
SHARE_OF_ESSENTIALS = 0.75
"""Of an episode's tokens, what decisions and outcomes may take before another episode begins."""
LEAST_TOKENS_OF_A_DEED = 10
SHARED_WORDS = 0.6
"""A later point that shares so many of a decision's words is about the same."""
SHARED_WORDS_OF_OPPOSITES = 0.8
"""And one that only denies what the other does not."""
LEAST_SHARED = 2
FOUND = frozenset({NoteKind.ERROR, NoteKind.RESULT})
"""What is found in what was perceived; other sentences as far as they name something."""
UNSETTLED = frozenset({NoteKind.BLOCKER, NoteKind.NEXT_STEP, NoteKind.QUESTION_OPEN, NoteKind.ERROR})
"""What a sentence of an outcome is that settles nothing."""

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
"""What the lines of an episode's text begin with, by what they tell, in this order."""
ARCHIVED = ("goal", "decisions", "produced", "outcome", "corrections", "open_ends")
"""What is left of an archived episode, beside the outcomes of steps that did not succeed."""
FAILED = "Failed"
SUCCEEDED = "succeeded"

_TAKES_BACK = re.compile(
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
    """One record, as far as the policy allows.

    `points` are those of its rationale; without one, `summary` says why.
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
        """Return what was decided in it, with reasons."""
        told = format_points(self.points.decisions) or [one_line(self.summary).removeprefix("Decided: ")]
        return unlike([*told, *self.notes.get(NoteKind.DECISION, ())])

    @property
    def rejected(self) -> list[str]:
        return unlike([*format_points(self.points.rejected), *self.notes.get(NoteKind.REJECTION, ())])

    @cached_property
    def findings(self) -> Sequence[str]:
        """Return the observations that went wrong, were discoveries, or name something."""
        kinds = {text: kind_of(text) for text in work_sentences(self.observation)}
        return [text for text, kind in kinds.items() if kind in FOUND or (kind is None and facts_in(text))]

    @cached_property
    def settled(self) -> Sequence[frozenset[str]]:
        """The words of each thing that it brought to an end."""
        told = work_sentences(self.outcome)[:MOST_COMPARED] if self.status == SUCCEEDED else []
        return [words_of(text) for text in told if kind_of(text) not in UNSETTLED]

    @property
    def essential_tokens(self) -> int:
        return sum(map(estimate_tokens, (*self.decisions, *self.rejected, self.outcome)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStory:
    """Adjacent steps of one goal, and what they produced, by name."""

    goal: str
    steps: Sequence[Step]
    produced: Sequence[str] = ()


def one_line(text: str) -> str:
    """Put a text on one line, so that none of its lines passes for one of ours."""
    return " ".join(text.split())


def format_points(points: Iterable[Point]) -> list[str]:
    return [one_line(point.format()) for point in points]


def unlike(texts: Iterable[str]) -> list[str]:
    """Each once, where it came last; what another one says with more words around it is left out."""
    told: dict[str, str] = {}
    for text in texts:
        key = " ".join(tokenize(text))
        others = (other for other in list(told.items())[-MOST_COMPARED:] if other[0] != key)
        if key and not any(key in other and has_negation(text) == has_negation(said) for other, said in others):
            told.pop(key, None)
            told[key] = text
    return list(told.values())


def cut_steps(steps: Sequence[Step], *, max_tokens: int) -> Iterator[Sequence[Step]]:
    """Split the steps into segments whose decisions and outcomes leave room for actions; at least one step each."""
    stretch: list[Step] = []
    taken = 0
    for step in steps:
        cost = step.essential_tokens
        if stretch and (len(stretch) == MOST_STEPS or taken + cost > max_tokens * SHARE_OF_ESSENTIALS):
            yield stretch
            stretch, taken = [], 0
        stretch.append(step)
        taken += cost
    if stretch:
        yield stretch


def net_work(story: WorkStory) -> dict[str, Any]:
    """Return an episode's `data`: what holds at the end, in the order in which it came."""
    last = story.steps[-1]
    decisions, corrections = net_decisions(story.steps)
    return {
        "goal": one_line(story.goal),
        "decisions": decisions,
        "rejected": latest(text for step in story.steps for text in step.rejected),
        "constraints": latest(notes_of(story.steps, NoteKind.CONSTRAINT)),
        "findings": latest_findings(story.steps),
        "produced": unlike(map(one_line, story.produced)),
        "outcomes": [
            {"status": step.status, "text": one_line(step.outcome)} for step in story.steps[:-1] if step.outcome.strip()
        ],
        "outcome": one_line(last.outcome),
        "corrections": corrections,
        "blockers": latest(blockers_of(story.steps)),
        "open_ends": latest(open_ends_of(story.steps)),
        "tools": list(dict.fromkeys(tool for step in story.steps for tool in step.tools))[:MOST_ITEMS],
    }


def latest(texts: Iterable[str]) -> list[str]:
    newest_first = unlike(texts)[: -MOST_ITEMS - 1 : -1]
    sizes = accumulate(estimate_tokens(text) for text in newest_first)
    fitting = sum(1 for _ in takewhile(lambda size: size <= MOST_TOKENS, sizes))
    return newest_first[:fitting][::-1]


def notes_of(steps: Iterable[Step], *kinds: NoteKind) -> Iterator[str]:
    return (text for step in steps for kind in kinds for text in step.notes.get(kind, ()))


def latest_findings(steps: Sequence[Step]) -> list[str]:
    """Return the findings in order; failures and discoveries take precedence over what only names something."""
    found = [text for step in steps for text in step.findings]
    told = set(latest(sorted(found, key=lambda text: kind_of(text) in FOUND)))
    return [text for text in unlike(found) if text in told]


def blockers_of(steps: Sequence[Step]) -> Iterator[str]:
    """Return the blockers that no later step resolved. What an outcome says stands there."""
    for place, step in enumerate(steps, start=1):
        said = [*format_points(step.points.blockers), *besides_outcome(step, NoteKind.BLOCKER)]
        yield from (text for text in said if not is_settled(text, steps[place:]))


def open_ends_of(steps: Sequence[Step]) -> Iterator[str]:
    """Return what earlier steps left open and no later one resolved, and what the last one says comes next."""
    for place, step in enumerate(steps[:-1], start=1):
        if step.status == "open" and not is_settled(step.outcome, steps[place:]):
            yield one_line(step.outcome)
    yield from besides_outcome(steps[-1], NoteKind.NEXT_STEP, NoteKind.QUESTION_OPEN)


def besides_outcome(step: Step, *kinds: NoteKind) -> Iterator[str]:
    outcome = one_line(step.outcome)
    return (text for text in notes_of([step], *kinds) if text not in outcome)


def is_settled(text: str, later: Iterable[Step]) -> bool:
    """Return whether an outcome says most of what was open."""
    about = words_of(text)
    least = max(LEAST_SHARED, SHARED_WORDS * len(about))
    return any(len(about & settled) >= least for step in later for settled in step.settled)


def net_decisions(steps: Sequence[Step]) -> tuple[list[str], list[str]]:
    """Return the decisions that hold, those retracted with their retractions, and other corrections."""
    held: dict[str, frozenset[str]] = {}
    corrections: list[str] = []
    for step in steps:
        for text, is_rejection in takings_back(step):
            said = words_of(text)
            against = [
                decision
                for decision, about in held.items()
                if is_same_matter(about, said, needed(text, decision, is_rejection=is_rejection))
                or gives_up(text, about)
            ]
            corrections += [format_correction(decision, text, step) for decision in against]
            if not against and text in step.notes.get(NoteKind.CORRECTION, ()):
                corrections.append(text)
            held = {decision: about for decision, about in held.items() if decision not in against}
        held |= {decision: words_of(decision) for decision in step.decisions}
    return unlike(held), unlike(corrections)


def format_correction(decision: str, text: str, step: Step) -> str:
    """Format a correction; a rejection in a rationale is deeper than a decision, so only its fact is told."""
    is_of_rationale = text in format_points(step.points.rejected)
    return f"{decision} (taken back)" if is_of_rationale else f"{decision} (taken back: {text})"


def takings_back(step: Step) -> list[tuple[str, bool]]:
    """Return what in a step may retract an earlier decision, and whether it does so by being a rejection."""
    others = [*step.notes.get(NoteKind.CORRECTION, ()), *step.decisions]
    points = [*((text, True) for text in step.rejected), *((text, False) for text in dict.fromkeys(others))]
    return points[:MOST_COMPARED]


def needed(text: str, decision: str, *, is_rejection: bool) -> float:
    """Return the share of words that a point must share with a decision to retract it; above 1, it retracts none."""
    if is_rejection or _TAKES_BACK.search(text):
        return SHARED_WORDS
    return SHARED_WORDS_OF_OPPOSITES if has_negation(text) != has_negation(decision) else 2


def gives_up(text: str, about: frozenset[str]) -> bool:
    """Return whether it says that something is given up, and names nothing besides what was decided."""
    undone = (words_of(match["undone"]) for match in _IS_GIVEN_UP.finditer(text))
    return any(words and words <= about for words in undone)


def is_same_matter(about: frozenset[str], said: frozenset[str], share: float) -> bool:
    shared = len(about & said)
    return shared >= max(min(LEAST_SHARED, len(about)), 1) and shared >= share * min(len(about), len(said))


def words_of(text: str) -> frozenset[str]:
    return frozenset(tokenize(text.split(" (because ", 1)[0])) - _SMALL_WORDS


def deeds_to_shorten(story: WorkStory, data: Mapping[str, Any], *, max_tokens: int) -> list[Passage]:
    """Return what each step did, within the tokens left by what must be told."""
    left = max_tokens - estimate_tokens(lay_out(data, story, [""] * len(story.steps)))
    share = left // len(story.steps)
    bound = share if share >= LEAST_TOKENS_OF_A_DEED else 0
    texts = (step.action if bound else "" for step in story.steps)
    return [Passage(part="action", text=text, max_tokens=max(bound, 1)) for text in texts]


def lay_out(data: Mapping[str, Any], story: WorkStory, deeds: Sequence[str]) -> str:
    """Return the episode's text: a prefixed line for each thing. `deeds` are the actions of each step."""
    *earlier, last = zip(story.steps, deeds, strict=True)
    done = [*(format_action(step, deed, data["open_ends"]) for step, deed in earlier), one_line(last[1])]
    told = {**data, "done": list(filter(None, done)), "tools": filter(None, [", ".join(data["tools"])])}
    said = "\n".join([*done, data["outcome"]])
    told |= {key: [text for text in data[key] if text not in said] for key in ("constraints", "findings")}
    lines = ((format_label(key, last[0].status), text) for key in LABELS for text in as_list(told[key]))
    return "\n".join(f"{label}: {text}" for label, text in lines if text)


def format_action(step: Step, deed: str, open_ends: Collection[str]) -> str:
    """Format what was done and its result, unless it is told as an open end, or by what was done."""
    done, outcome = one_line(deed), one_line(step.outcome)
    is_told = outcome.rstrip(".") in done if step.status == SUCCEEDED else outcome in open_ends
    status = "" if step.status == SUCCEEDED or not outcome else f"{step.status}: "
    return " -> ".join(filter(None, [done, "" if is_told else status + outcome]))


def format_label(key: str, status: str) -> str:
    return f"{LABELS[key]} ({status})" if key == "outcome" else LABELS[key]


def as_list(value: Any) -> Iterable[str]:
    return [value] if isinstance(value, str) else value


def archive_work(text: str, data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Text and data of a merged episode, reduced to what a goal was, what was decided and produced, what came of it.

    A text that was corrected since has the last word: of the lists, what does not stand in it any more is dropped.
    """
    starts = tuple(LABELS[key] for key in ARCHIVED)
    lines = [line for line in text.split("\n") if line.startswith(starts) and ": " in line]
    unsuccessful = [each for each in data.get("outcomes", ()) if each["status"] != SUCCEEDED and each["text"] in text]
    failed = [f"{FAILED}: {each['text']}" for each in unsuccessful if each["status"] == "failed"]
    told = "\n".join([*lines, *failed]) or text
    kept = {key: data[key] for key in ARCHIVED if key in data}
    return told, {
        "outcomes": unsuccessful,
        **{
            key: [item for item in value if item in told] if isinstance(value, list) else value if value in told else ""
            for key, value in kept.items()
        },
    }
