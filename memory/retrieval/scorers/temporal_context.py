"""The documented boosts of facts (X11): what is so now before what was.

Of a question about another time nothing is boosted: with `as_of`, or where all the times that it speaks of are over, it
asks for what was so then.
"""

from collections.abc import Sequence

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting
from memory.scoring import TEMPORAL_BOOSTS


def temporal_context(candidates: Sequence[Candidate], setting: Setting) -> None:
    if asks_about_the_past(setting):
        return
    for candidate in candidates:
        if candidate.temporal:
            candidate.multiply("temporal_context", TEMPORAL_BOOSTS[candidate.temporal])


def asks_about_the_past(setting: Setting) -> bool:
    windows = setting.query.windows
    are_over = [window.until is not None and window.until <= setting.now for window in windows]
    return setting.query.as_of is not None or (bool(are_over) and all(are_over))
