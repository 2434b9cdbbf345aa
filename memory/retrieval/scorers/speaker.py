"""Who is asked about as having said something: their turns are boosted, and nobody else's are lowered."""

from collections.abc import Sequence

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting
from memory.scoring import SPEAKER_BOOST


def speaker(candidates: Sequence[Candidate], setting: Setting) -> None:
    asked = [frozenset(name.casefold().split()) for name in setting.query.speakers if name.strip()]
    if not asked:
        return
    said: dict[tuple[str, str], bool] = {}
    for candidate in candidates:
        if not candidate.role:
            continue
        who = (candidate.role, candidate.speaker)
        if who not in said:
            said[who] = is_asked_about(candidate, asked)
        if said[who]:
            candidate.multiply("speaker", SPEAKER_BOOST, "said by whom the question asks about")


def is_asked_about(candidate: Candidate, asked: Sequence[frozenset[str]]) -> bool:
    """By role, or by name: a first name is enough for a longer one, and a longer one for a first name."""
    if frozenset({candidate.role}) in asked:
        return True
    words = frozenset(candidate.speaker.casefold().split())
    return bool(words) and any(name <= words or words <= name for name in asked)
