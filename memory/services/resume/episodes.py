"""What work came to, as pieces of a packet: the lists of its episodes, and what their texts say was done."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memory.extraction.work_notes import NoteKind, kind_of
from memory.extraction.work_stories import LABELS as LINES
from memory.retrieval.resume import EpisodeOfWork
from memory.services.resume.notes import LABELS, Said, says_nothing, sentences_of
from memory.services.resume.pieces import NOTES

LISTS: Mapping[str, NoteKind] = {
    "decisions": NoteKind.DECISION,
    "rejected": NoteKind.REJECTION,
    "constraints": NoteKind.CONSTRAINT,
    "corrections": NoteKind.CORRECTION,
    "blockers": NoteKind.BLOCKER,
    "open_ends": NoteKind.NEXT_STEP,
    "produced": NoteKind.RESULT,
}
BY_STATUS: Mapping[str, NoteKind] = {"failed": NoteKind.ERROR, "open": NoteKind.NEXT_STEP}
"""What an outcome is where its words say nothing more telling; a result, if it succeeded."""
MORE_TELLING = frozenset({NoteKind.BLOCKER, NoteKind.NEXT_STEP, NoteKind.CORRECTION, NoteKind.CONSTRAINT})
FOUND = frozenset({NoteKind.ERROR, NoteKind.RESULT})
DONE = f"{LINES['done']}: "


def notes_of_episodes(episodes: Sequence[EpisodeOfWork]) -> Iterator[Said]:
    """What work came to, what came up meanwhile, and what was done."""
    for place, episode in enumerate(episodes):
        points = [(note, text) for name, note in LISTS.items() for text in texts_in(episode.data.get(name))]
        recorded = [*points, *points_of_outcomes(episode)]
        found = [*points_of_findings(episode), *points_of_deeds(episode)]
        for number, (note, text) in enumerate([*recorded, *found]):
            yield Said(
                of=episode,
                text=text,
                note=note,
                place=(NOTES, episode.event_time, episode.number, number),
                recency=(place + 1) / len(episodes),
                label=LABELS.get(note, "") if note else "",
                is_recorded=number < len(recorded),
            )


def points_of_outcomes(episode: EpisodeOfWork) -> Iterator[tuple[NoteKind, str]]:
    """Sentence by sentence; what is told as an open end already is not told again."""
    told = set(texts_in(episode.data.get("open_ends")))
    outcomes = [*outcomes_in(episode), *((episode.status, text) for text in texts_in(episode.data.get("outcome")))]
    for status, outcome in outcomes:
        for text in sentences_of(outcome) if outcome not in told else ():
            note = kind_of(text)
            yield note if note in MORE_TELLING and note else BY_STATUS.get(status, NoteKind.RESULT), text


def outcomes_in(episode: EpisodeOfWork) -> Iterator[tuple[str, str]]:
    """How each record before the last one ended, and with what."""
    listed = episode.data.get("outcomes")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield from ((str(each.get("status", "")), text) for text in texts_in(each.get("text")))


def points_of_findings(episode: EpisodeOfWork) -> Iterator[tuple[NoteKind, str]]:
    for text in texts_in(episode.data.get("findings")):
        note = kind_of(text)
        yield note if note in FOUND and note else NoteKind.RESULT, text


def points_of_deeds(episode: EpisodeOfWork) -> Iterator[tuple[NoteKind | None, str]]:
    """Of the lines that tell what was done, all but the outcomes behind it."""
    outcomes = tuple(text for _, text in outcomes_in(episode))
    for line in episode.text.split("\n"):
        deed = line.removeprefix(DONE)
        if deed == line:
            continue
        outcome = next((text for text in outcomes if deed.endswith(text)), "")
        for text in sentences_of(deed.removesuffix(outcome).removesuffix(" -> ")):
            note = kind_of(text)
            if not says_nothing(text, note):
                yield None if note == NoteKind.QUESTION_OPEN else note, text


def texts_in(value: Any) -> list[str]:
    """A text or a list of texts, as an episode's data may hold them; anything else says nothing."""
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, str) and each.strip()]
