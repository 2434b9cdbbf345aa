"""Correction lineage: what was superseded never comes before what superseded it, and a promoted fact comes once.

Facts that were superseded are left out by the search, unless the question is about a time at which they were true, or
believed: only then both can be there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from memory.identity import normalize_claim
from memory.models import Fact
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import LinkBetween, Setting
from memory.retrieval.selectors.standing import stand_for

SUPERSEDES, PROMOTED_FROM = "SUPERSEDES", "PROMOTED_FROM"
"""Types of links from what came later, to what was there before."""

Successors = Mapping[UUID, Sequence[Candidate]]


def lineage(candidates: Sequence[Candidate], setting: Setting) -> list[Candidate]:
    """A successor takes the place of what it supersedes, where that ranks before it, with its score; all else stays
    in order, and is pinned where that is. Of a fact and what it was promoted to, the better one stands for both."""
    if not setting.links:
        return list(candidates)
    ranked = join_copies(candidates, setting.links)
    successors = successors_of(ranked, setting.links)
    pin_successors(ranked, successors)
    return put_in_order(ranked, successors)


def join_copies(candidates: Sequence[Candidate], links: Iterable[LinkBetween]) -> list[Candidate]:
    """Copies that were corrected since claim something else, and stay two."""
    partners: dict[UUID, list[UUID]] = defaultdict(list)
    for link in links:
        if link.type == PROMOTED_FROM:
            partners[link.source].append(link.target)
            partners[link.target].append(link.source)
    kept: dict[UUID, Candidate] = {}
    for candidate in candidates:
        standing = (kept[each] for each in partners[candidate.id] if each in kept) if partners else ()
        same = next((each for each in standing if claims_the_same(each, candidate)), None)
        if same is None:
            kept[candidate.id] = candidate
        else:
            stand_for(same, candidate)
    return list(kept.values())


def claims_the_same(one: Candidate, other: Candidate) -> bool:
    return normalize_claim(one.text) == normalize_claim(other.text)


def successors_of(candidates: Sequence[Candidate], links: Iterable[LinkBetween]) -> Successors:
    """By what they superseded. What is active was superseded by nothing that still counts: it came back."""
    by_id = {each: candidate for candidate in candidates for each in (candidate.id, *candidate.also)}
    successors: dict[UUID, list[Candidate]] = defaultdict(list)
    for link in links:
        old, new = by_id.get(link.target), by_id.get(link.source)
        if link.type == SUPERSEDES and old and new and old.status != Fact.Status.ACTIVE:
            successors[old.id].append(new)
    return successors


def pin_successors(candidates: Iterable[Candidate], successors: Successors) -> None:
    """Or what was superseded would be in every answer, and what took its place would make room for it."""
    waiting = [candidate for candidate in candidates if candidate.pinned]
    while waiting:
        for each in successors.get(waiting.pop().id, ()):
            if not each.pinned:
                each.pinned = True
                waiting.append(each)


def put_in_order(ranked: Sequence[Candidate], successors: Successors) -> list[Candidate]:
    if not successors:
        return list(ranked)
    placed: dict[UUID, Candidate] = {}
    for candidate in ranked:
        for each in after_its_successors(candidate, successors, placed):
            lift(each, candidate.score)
            placed[each.id] = each
    return list(placed.values())


def after_its_successors(
    candidate: Candidate, successors: Successors, placed: Mapping[UUID, Candidate]
) -> list[Candidate]:
    """The candidate with all that succeeded it in any number of steps and is not placed yet, the latest first."""
    met, done, waiting = set(placed), dict[UUID, Candidate](), [candidate]
    while waiting:
        last = waiting[-1]
        # each is gone into once: links that lead back end there
        ahead = [] if last.id in met else [each for each in successors.get(last.id, ()) if each.id not in met]
        is_known = last.id in placed
        met.add(last.id)
        if ahead:
            waiting += reversed(ahead)
            continue
        waiting.pop()
        if not is_known:
            done.setdefault(last.id, last)
    return list(done.values())


def lift(successor: Candidate, score: float) -> None:
    if successor.score >= score:
        return
    factor = score / successor.score if successor.score > 0 else 1.0
    successor.multiply("lineage", factor, "takes the place of what it supersedes")
    successor.score = score
