"""Diversity: no conversation takes all the places, as long as others have something nearly as good to say."""

import math
from collections import Counter, deque
from collections.abc import Sequence

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting

SHARE = 0.8
"""Of the results: what one conversation may take before others come first."""
NEARLY_AS_GOOD = 0.9
"""Of the score of whom it comes before."""


def diversity(candidates: Sequence[Candidate], setting: Setting) -> list[Candidate]:
    """Beyond its share of `top_k` a conversation waits for others that are nearly as good, and only for those.

    Of ten results eight may be of one conversation. Where that has ten candidates with scores from 0.98 down to 0.89,
    and another conversation two with 0.85 and 0.40, the one with 0.85 comes ninth, before 0.90 and 0.89; the other one
    stays where it is. So the conversation that a question is about loses at most two places, to what is about as good;
    and none where all is of one conversation, as where the client asks for one. The active conversation may take all
    places: it is what the agent is in. What is of no conversation neither waits nor counts. Nothing is left out: with
    too few others all places go to whom they went.
    """
    share = math.ceil(SHARE * setting.query.top_k)
    taken: Counter[str] = Counter()
    kept: list[Candidate] = []
    waiting: deque[Candidate] = deque()
    for candidate in candidates:
        while waiting and candidate.score < NEARLY_AS_GOOD * waiting[0].score:
            keep_behind(kept, waiting.popleft())
        if is_limited(candidate, setting) and taken[candidate.conversation_id] >= share:
            waiting.append(candidate)
            continue
        taken[candidate.conversation_id] += 1
        kept.append(candidate)
    for each in waiting:
        keep_behind(kept, each)
    return kept


def is_limited(candidate: Candidate, setting: Setting) -> bool:
    return candidate.conversation_id not in ("", setting.query.conversation_id)


def keep_behind(kept: list[Candidate], candidate: Candidate) -> None:
    """After what came before it meanwhile, with no greater score than that."""
    if kept and 0 < kept[-1].score < candidate.score:
        candidate.multiply("diversity", kept[-1].score / candidate.score, "gave way to another conversation")
    kept.append(candidate)
