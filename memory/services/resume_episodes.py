"""What work came to, as pieces of a packet: the lists of its episodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memory.extraction.work_notes import NoteKind
from memory.retrieval.resume import EpisodeOfWork
from memory.services.resume_notes import LABELS, Said
from memory.services.resume_pieces import NOTES

LISTS: Mapping[str, NoteKind] = {
    "decisions": NoteKind.DECISION,
    "rejected": NoteKind.REJECTION,
    "corrections": NoteKind.CORRECTION,
    "blockers": NoteKind.BLOCKER,
    "open_ends": NoteKind.NEXT_STEP,
    "produced": NoteKind.RESULT,
}


def notes_of_episodes(episodes: Sequence[EpisodeOfWork]) -> Iterator[Said]:
    """What work came to, by the lists of its episodes."""
    for place, episode in enumerate(episodes):
        points = [(note, text) for name, note in LISTS.items() for text in texts_in(episode.data.get(name))]
        points += [(NoteKind.RESULT, text) for text in texts_in(episode.data.get("outcome"))]
        for number, (note, text) in enumerate(points):
            yield Said(
                of=episode,
                text=text,
                note=note,
                place=(NOTES, episode.event_time, episode.number, number),
                recency=(place + 1) / len(episodes),
                label=LABELS.get(note, ""),
                is_recorded=True,
            )


def texts_in(value: Any) -> list[str]:
    """A text or a list of texts, as an episode's data may hold them; anything else says nothing."""
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, str) and each.strip()]
