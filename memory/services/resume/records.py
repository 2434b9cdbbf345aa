"""Snippets of what was recorded (structured turns, work episodes, recalled memories), and the last outcome."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from memory.extraction.survivors import has_negation
from memory.extraction.terms import content_words, specific_terms
from memory.extraction.turn_slots import Point, Rationale
from memory.extraction.work_notes import NoteKind, depends_on_previous, is_instruction, kind_of, status_of
from memory.extraction.work_stories import LABELS as EPISODE_LABELS
from memory.kinds import Kind, spec_of
from memory.models import TurnSlot
from memory.providers.sentences import is_question
from memory.reasoning import ReasoningTier
from memory.retrieval.candidates import Candidate
from memory.retrieval.resume import ResumedEpisode, ResumedMemory, ResumedSlot, ResumedTurn
from memory.services.records.reasoning import redact_slot
from memory.services.resume.items import EPOCH, GIVEN, NOTES, PacketItem, PacketSection, memory_fields, short_line
from memory.services.resume.snippets import (
    MERGED_KINDS,
    NOTE_LABELS,
    OPEN_NOTES,
    SPEAKER_LABELS,
    Snippet,
    bounded_sentences,
    is_uninformative,
    note_kind_by_role,
    prepend_antecedent,
)

NOTE_BY_LIST: Mapping[str, NoteKind] = {
    "decisions": NoteKind.DECISION,
    "rejected": NoteKind.REJECTION,
    "constraints": NoteKind.CONSTRAINT,
    "corrections": NoteKind.CORRECTION,
    "blockers": NoteKind.BLOCKER,
    "open_ends": NoteKind.NEXT_STEP,
    "produced": NoteKind.RESULT,
}
NOTE_BY_POINT = {"decisions": NoteKind.DECISION, "rejected": NoteKind.REJECTION, "blockers": NoteKind.BLOCKER}
NOTE_BY_LABEL = {"Decided": NoteKind.DECISION, "Rejected": NoteKind.REJECTION, "Blocked by": NoteKind.BLOCKER}
"""Labels of points in the text of a reasoning, as `Rationale.tell` writes them."""
NOTE_BY_STATUS: Mapping[str, NoteKind] = {"failed": NoteKind.ERROR, "open": NoteKind.NEXT_STEP}
SPECIFIC_NOTES = frozenset({NoteKind.BLOCKER, NoteKind.NEXT_STEP, NoteKind.CORRECTION, NoteKind.CONSTRAINT})
"""Notes that say more about an outcome than its status."""
FINDING_NOTES = frozenset({NoteKind.ERROR, NoteKind.RESULT})
DONE_PREFIX = f"{EPISODE_LABELS['done']}: "

REPORTING_ROLES = frozenset({"user", "assistant"})
"""Roles whose reports count: tool output is no outcome yet."""
MAX_REPORTING_TURNS = 40
MAX_OUTCOME_CHARACTERS = 300
OUTCOME_WEIGHT = 11.0
MIN_SHARED_WORDS = 2
"""Content words that a report and its contradiction share at least, unless they share a specific term."""

_CONTRADICTS = re.compile(r"\b(?:still|again|wrong|broken|incorrect|untrue|actually)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:what|who|whose|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will|would|shall|should|have|has)"
    r"(?:'s|'re)?\b",
    re.IGNORECASE,
)
"""Questions of users, many of which end without a question mark."""
_RETRIES = re.compile(
    r"\b(?:re-?try|re-?run|once more|one more time|another (?:try|go)|(?:try|run|do|start|deploy|test|go) "
    r"(?:(?:it|that|this|them|the \w+) )?again)\b",
    re.IGNORECASE,
)

Report = tuple[ResumedTurn, str, str]
"""A turn that reports an outcome, the report, and its status."""


def snippets_of_slots(
    slots: Sequence[ResumedSlot], allowed: ReasoningTier, *, open_goals: Collection[UUID]
) -> Iterator[Snippet]:
    """Return the snippets of records: the points of rationales, and the sentences of the other slots."""
    for index, slot in enumerate(slots):
        is_reasoning = slot.slot == TurnSlot.Slot.REASONING
        is_of_closed_goal = slot.goal_id is not None and slot.goal_id not in open_goals
        for snippet in snippets_of_reasoning(slot, allowed) if is_reasoning else snippets_of_slot(slot):
            recency = (index + 1) / len(slots)
            yield replace(snippet, recency=recency, author=slot.agent_id, is_of_closed_goal=is_of_closed_goal)


def snippets_of_reasoning(slot: ResumedSlot, allowed: ReasoningTier) -> Iterator[Snippet]:
    """Return decisions, rejected options and blockers, as far as the account's policy allows."""
    row = TurnSlot(slot=slot.slot, tier=slot.tier, text=slot.text, data=slot.data)
    redacted = redact_slot(row, allowed)
    if redacted is None:
        return
    rationale = Rationale.of_json(redacted.data.get("rationale", {}))
    points = [(NOTE_BY_POINT[name], point) for name in NOTE_BY_POINT for point in getattr(rationale, name)]
    if not points:
        summary = redacted.data.get("summary", "") or redacted.text
        points = [(NoteKind.DECISION, Point(what=sentence)) for sentence in bounded_sentences(summary)]
    for number, (note, point) in enumerate(points):
        yield Snippet(
            source=slot,
            text=point.format(),
            note=note,
            position=(NOTES, slot.recorded_at, slot.number, number),
            label=NOTE_LABELS.get(note, ""),
            is_recorded=True,
        )


def snippets_of_slot(slot: ResumedSlot) -> Iterator[Snippet]:
    is_outcome = slot.slot == TurnSlot.Slot.OUTCOME
    for number, sentence in enumerate(bounded_sentences(slot.text)):
        note = kind_of(sentence)
        if is_uninformative(sentence, note) and not is_outcome:
            continue
        if is_outcome:
            note = note_of_outcome(slot.status, note)
        yield Snippet(
            source=slot,
            text=sentence,
            note=None if note == NoteKind.QUESTION_OPEN else note,
            position=(NOTES, slot.event_time, slot.number, number),
            is_recorded=is_outcome,
        )


def note_of_outcome(status: str, note: NoteKind | None) -> NoteKind:
    """Return what a sentence of an outcome is: by its words if they are specific, else by the outcome's status."""
    return note if note in SPECIFIC_NOTES and note else NOTE_BY_STATUS.get(status, NoteKind.RESULT)


def snippets_of_episodes(episodes: Sequence[ResumedEpisode]) -> Iterator[Snippet]:
    """Return the snippets of work episodes: recorded points and outcomes, findings, and what was done."""
    for index, episode in enumerate(episodes):
        points = [
            (note, text) for name, note in NOTE_BY_LIST.items() for text in texts_in_value(episode.data.get(name))
        ]
        recorded = [*points, *outcome_notes(episode)]
        findings = ((kind_of(text), text) for text in texts_in_value(episode.data.get("findings")))
        found = [
            *((note if note in FINDING_NOTES else NoteKind.RESULT, text) for note, text in findings),
            *action_notes(episode),
        ]
        for number, (note, text) in enumerate([*recorded, *found]):
            yield Snippet(
                source=episode,
                text=text,
                note=note,
                position=(NOTES, episode.event_time, episode.number, number),
                recency=(index + 1) / len(episodes),
                label=NOTE_LABELS.get(note, "") if note else "",
                is_recorded=number < len(recorded),
            )


def outcome_notes(episode: ResumedEpisode) -> Iterator[tuple[NoteKind, str]]:
    """Return the sentences of the outcomes that are not listed as open ends already."""
    open_ends = set(texts_in_value(episode.data.get("open_ends")))
    last_outcome = texts_in_value(episode.data.get("outcome"))
    for status, outcome in [*listed_outcomes(episode), *((episode.status, text) for text in last_outcome)]:
        for text in bounded_sentences(outcome) if outcome not in open_ends else ():
            yield note_of_outcome(status, kind_of(text)), text


def listed_outcomes(episode: ResumedEpisode) -> Iterator[tuple[str, str]]:
    """Return the status and text of the outcome of each record before the last one."""
    listed = episode.data.get("outcomes")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield from ((str(each.get("status", "")), text) for text in texts_in_value(each.get("text")))


def action_notes(episode: ResumedEpisode) -> Iterator[tuple[NoteKind | None, str]]:
    """Return the sentences of the lines that say what was done, without the outcomes that follow in them."""
    outcomes = tuple(text for _, text in listed_outcomes(episode))
    for line in episode.text.split("\n"):
        action = line.removeprefix(DONE_PREFIX)
        if action == line:
            continue
        outcome = next((text for text in outcomes if action.endswith(text)), "")
        for text in bounded_sentences(action.removesuffix(outcome).removesuffix(" -> ")):
            note = kind_of(text)
            if not is_uninformative(text, note):
                yield None if note == NoteKind.QUESTION_OPEN else note, text


def texts_in_value(value: Any) -> list[str]:
    """Return the texts in a field of an episode's data: a text or a list of texts; none for anything else."""
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, str) and each.strip()]


def snippets_of_recalled(
    results: Sequence[Candidate], read: Collection[UUID], allowed: ReasoningTier
) -> Iterator[Snippet]:
    """Return the snippets of recalled memories that were not read already and that nothing recalled supersedes."""
    allows_rationales = allowed in (ReasoningTier.STRUCTURED_RATIONALE, ReasoningTier.RAW_TRACE)
    speakers = {*SPEAKER_LABELS, "assistant", *(each.speaker for each in results)} - {""}
    for result in results:
        quote = spec_of(result.kind).resume_quote
        if result.id in read or result.superseded_at or quote == "omitted":
            continue
        if result.kind == Kind.TURN_SLOT:
            yield from snippets_of_recalled_slot(result) if allows_rationales else ()
            continue
        sentences = [result.text] if quote == "whole" else bounded_sentences(result.text)
        for number, line in enumerate(sentences):
            # summaries quote what was said with the speaker before it
            named, _, said = line.partition(": ") if result.kind in MERGED_KINDS else ("", "", "")
            sentence = said if said and named in speakers else line
            note = note_kind_by_role(result.role, sentence)
            if note != NoteKind.QUESTION_OPEN and not is_question(sentence) and not is_uninformative(sentence, note):
                yield Snippet(
                    source=result,
                    text=sentence,
                    note=NoteKind.RESULT if note in OPEN_NOTES else note,
                    position=(NOTES, result.event_time, result.index or 0, number),
                    speaker=result.role if result.role in SPEAKER_LABELS else "",
                    author=result.speaker,
                    label="" if sentence is line else f"{named}: ",
                )


def snippets_of_recalled_slot(result: Candidate) -> Iterator[Snippet]:
    """Return the snippets of a recalled slot, whose points are what their labels say."""
    is_outcome = result.slot == TurnSlot.Slot.OUTCOME
    for number, sentence in enumerate(bounded_sentences(result.text)):
        label, _, rest = sentence.partition(": ")
        point = NOTE_BY_LABEL.get(label) if result.slot == TurnSlot.Slot.REASONING else None
        note = point or kind_of(sentence) or (NoteKind.RESULT if is_outcome else None)
        if note == NoteKind.QUESTION_OPEN or (is_uninformative(sentence, note) and not is_outcome):
            continue
        yield Snippet(
            source=result,
            text=rest if point else sentence,
            note=note,
            position=(NOTES, result.event_time, 0, number),
            label=NOTE_LABELS.get(note, "") if note and point else "",
            is_recorded=is_outcome or point is not None,
        )


def last_outcome_items(
    slots: Sequence[ResumedSlot], episodes: Sequence[ResumedEpisode], turns: Sequence[ResumedTurn]
) -> list[PacketItem]:
    """Return the last outcome as one item, or none: of the latest record or episode, else as it was reported last.

    An error reported after the latest record overrides it, and so does a success of what failed in it. A report counts
    only if its form states a status and the other side did not contradict it afterwards.
    """
    recorded: list[tuple[ResumedSlot | ResumedEpisode, str]] = [
        *((slot, slot.text) for slot in slots if slot.slot == TurnSlot.Slot.OUTCOME),
        *((each, each.data["outcome"]) for each in episodes if isinstance(each.data.get("outcome"), str)),
    ]
    latest = max(recorded, key=lambda each: (each[0].event_time, each[0].number), default=None)
    report = find_last_report(turns)
    if latest is not None and not (report is not None and overrides_record(report, *latest)):
        return [outcome_item(latest[0], prepend_action(*latest, slots), latest[0].status)]
    return [outcome_item(*report)] if report is not None else []


def prepend_action(source: ResumedSlot | ResumedEpisode, outcome: str, slots: Sequence[ResumedSlot]) -> str:
    """Return the outcome, after the action of its record if it does not say itself what it is the outcome of."""
    if not isinstance(source, ResumedSlot) or not (depends_on_previous(outcome) or is_uninformative(outcome, None)):
        return outcome
    actions = (each.text for each in slots if each.record_id == source.record_id and each.slot == TurnSlot.Slot.ACTION)
    action = next(actions, "")
    return f"{action} -> {outcome}" if 0 < len(action) <= MAX_OUTCOME_CHARACTERS else outcome


def overrides_record(report: Report, record: ResumedSlot | ResumedEpisode, outcome: str) -> bool:
    turn, text, status = report
    if turn.event_time <= record.event_time:
        return False
    return status == "failed" or (status == "succeeded" and record.status == "failed" and is_same_topic(text, outcome))


def find_last_report(turns: Sequence[ResumedTurn]) -> Report | None:
    """Return the last turn with a report that stands, the report, and its status; None without one.

    None, too, if the last report is a failure that was tried again since and of which nothing more is known.
    """
    later: list[tuple[ResumedTurn, str]] = []
    leaning: Report | None = None
    for turn in reversed([turn for turn in turns[-MAX_REPORTING_TURNS:] if turn.role in REPORTING_ROLES]):
        sentences = bounded_sentences(turn.text)
        for index in reversed(range(len(sentences))):
            report = prepend_antecedent(sentences[index], sentences[index - 1] if index else "")
            # users' questions and instructions report nothing
            asks = turn.role == "user" and (_ASKS.match(sentences[index]) or is_instruction(sentences[index]))
            status = "" if asks else status_of(sentences[index])
            if not status or any(contradicts_report(each, text, turn, report) for each, text in later):
                continue
            if report:
                return join_reports((turn, report, status), leaning, later)
            leaning = leaning or (turn, sentences[index], status)
        if leaning and turn is not leaning[0] and turn.role == "user" and (asked := request_of(sentences)):
            return leaning[0], f"user: {asked} {leaning[0].role}: {leaning[1]}", leaning[2]
        later += [(turn, sentence) for sentence in sentences]
    return None


def request_of(sentences: Sequence[str]) -> str:
    """Return the last instruction among the sentences that does not only ask to try again; empty without one."""
    return next((each for each in reversed(sentences) if is_instruction(each) and not _RETRIES.search(each)), "")


def join_reports(report: Report, leaning: Report | None, later: Sequence[tuple[ResumedTurn, str]]) -> Report | None:
    """Return the report, continued by a later one that depends on it ("It worked this time"); None if it is outdated.

    `later` are the sentences said since, the latest first.
    """
    turn, text, status = report
    if leaning is not None and leaning[0].conversation_id == turn.conversation_id:
        return leaning[0], f"{text} {leaning[1]}", leaning[2]
    asked = [at for at, (each, said) in enumerate(later) if each.role == "user" and _RETRIES.search(said)]
    answers = [said for each, said in (later[: asked[0]] if asked else ()) if each.role == "assistant"]
    was_retried = any(kind_of(said) != NoteKind.NEXT_STEP for said in answers)
    return None if status == "failed" and was_retried else report


def is_same_topic(text: str, other: str) -> bool:
    shared = len(content_words(text) & content_words(other))
    return shared >= MIN_SHARED_WORDS or bool(specific_terms(text) & specific_terms(other))


def contradicts_report(later: ResumedTurn, text: str, turn: ResumedTurn, report: str) -> bool:
    """Return True if the other side says of the same thing that it is not so."""
    if later.role == turn.role or later.conversation_id != turn.conversation_id:
        return False
    if not (_CONTRADICTS.search(text) or has_negation(text) or status_of(text) == "failed"):
        return False
    return is_same_topic(text, report)


def outcome_item(source: ResumedMemory, text: str, status: str) -> PacketItem:
    """Return the item. `record_id` is None for what was only said."""
    return PacketItem(
        section=PacketSection.LAST_OUTCOME,
        item_type="outcome",
        text=short_line(text, MAX_OUTCOME_CHARACTERS),
        label=f"{status}: ",
        weight=OUTCOME_WEIGHT,
        position=(GIVEN, EPOCH, 0, 0),
        **memory_fields(source),
        source_text=text,
        is_distinct=True,
        details={"record_id": source.record_id if isinstance(source, ResumedSlot) else None, "status": status},
    )
