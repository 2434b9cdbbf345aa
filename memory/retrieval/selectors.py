"""Selectors: the last stage of a recall, which orders and joins the ranked candidates.

`duplicates` joins near-duplicates, `diversity` limits how many of the first results differ only in numbers and names
(`floods`), or come from one conversation or author, `replacement` puts statements before those that they replace, and
`lineage` puts successors before what they superseded. Each returns candidates best first.

To add a selector, write a function `(Sequence[Candidate], ScoringContext) -> list[Candidate]` and add its line to
SELECTORS. `techniques`, `explain` and `metrics` then know it by that name.
"""

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from memory.identity import normalize_claim
from memory.kinds import spec_of
from memory.models import Fact
from memory.models.facts import ENDED
from memory.retrieval.candidates import Candidate
from memory.retrieval.floods import limit_templates
from memory.retrieval.plans import LinkBetween, ScoringContext, Selector
from memory.retrieval.replacements import order_by_replacement

MIN_COMPARED = 50
COMPARED_PER_RESULT = 2
MAX_NORMALIZED_CHARACTERS = 2_000
"""Longer texts are duplicates only if they are equal character by character."""

CONTRACTION = re.compile(r"(?<=\w)(n't|'m|'re|'ve|'ll)\b")
FULL_FORMS = {"n't": " not", "'m": " am", "'re": " are", "'ve": " have", "'ll": " will"}
QUESTION_MARKS = frozenset("?？؟")

DIVERSITY = "diversity"
SOURCE_SHARE = 0.8
"""Share of the results that one conversation or author may take before others come first."""
NEARLY_AS_GOOD = 0.9
"""A candidate comes before a waiting one if its score is at least this share of the waiting one's."""

SUPERSEDES, PROMOTED_FROM = "SUPERSEDES", "PROMOTED_FROM"
"""Types of links from the later memory to the earlier one."""

Successors = Mapping[UUID, Sequence[Candidate]]


def join_duplicates(candidates: Sequence[Candidate], context: ScoringContext) -> list[Candidate]:
    """Keep the best of each group of near-duplicates, which names the others in `also`. The order stays.

    Two memories are near-duplicates if only case, width, blanks, punctuation and contractions differ. All words must be
    the same in the same order, fillers too, since some names contain them. So a number, a name or a negation always
    keeps two apart, which no measure of similarity could promise. Each candidate costs one look-up; only the best
    candidates are compared.
    """
    compared = max(MIN_COMPARED, COMPARED_PER_RESULT * context.query.top_k)
    first_of: dict[Hashable, Candidate] = {}
    for candidate in candidates[:compared]:
        first = first_of.setdefault(duplicate_key(candidate), candidate)
        if first is not candidate:
            first.absorb(candidate)
    return [*first_of.values(), *candidates[compared:]]


def duplicate_key(candidate: Candidate) -> Hashable:
    """Return a key that near-duplicates share. Kinds stay apart: a fact is no duplicate of the turn that says it."""
    # memories of other kinds are more than their text: two entities may have one name, two keys one value
    key = spec_of(candidate.kind).repeat_key
    if key is None or candidate.is_cut:
        return candidate.id
    return (candidate.kind, *(getattr(candidate, name) for name in key), normalize_text(candidate.text))


@lru_cache(maxsize=4_096)
def normalize_text(text: str) -> Hashable:
    """Return the words of a text without differences in writing, with the signs that mean something but are no words.

    These signs are question marks and special numbers.
    """
    if len(text) > MAX_NORMALIZED_CHARACTERS:
        return text
    numbers = "" if text.isascii() else "".join(filter(is_special_number, text))
    return tuple(normalized_words(text)), any(mark in text for mark in QUESTION_MARKS), numbers


def normalized_words(text: str) -> list[str]:
    claim = normalize_claim(text)
    if "'" in claim:
        claim = CONTRACTION.sub(lambda short: FULL_FORMS[short[1]], claim)
    return claim.split()


def is_special_number(sign: str) -> bool:
    """Return True for a number that is not a digit: raised, in a circle, a fraction."""
    return sign.isnumeric() and not sign.isdecimal()


def diversify_results(candidates: Sequence[Candidate], context: ScoringContext) -> list[Candidate]:
    """Limit the places of near-duplicates that differ only in their values, then those of each source."""
    return diversify_sources(limit_templates(candidates, context), context)


def diversify_sources(candidates: Sequence[Candidate], context: ScoringContext) -> list[Candidate]:
    """Make a source that has its share of `top_k` wait for others that are nearly as good, and only for those.

    Sources are conversations, the authors of turns, and the minutes of an author. Eight of ten results may come from
    one conversation. If it has ten candidates with scores from 0.98 down to 0.89 and another conversation has two with
    0.85 and 0.40, the one with 0.85 becomes the ninth, before 0.90 and 0.89; the other stays where it is. So the source
    that a question is about loses at most two places, to results about as good, and none if all candidates belong to
    it, for example because the client limits the search to it. The active conversation is not limited, since the agent
    is in it. Memories of no such source neither wait nor count. Nothing is left out: with too few others all places
    stay as they were, and so does the order after the first `top_k`.
    """
    for source_of in (conversation_of, author_of, minute_of):
        candidates = diversify(candidates, context, source_of)
    return list(candidates)


def conversation_of(candidate: Candidate) -> Hashable:
    return candidate.conversation_id or None


def author_of(candidate: Candidate) -> Hashable:
    """Return who said a turn; None for other kinds."""
    names = (candidate.agent_id, candidate.user_id, candidate.role, candidate.speaker)
    return names if candidate.role else None


def minute_of(candidate: Candidate) -> Hashable:
    author = author_of(candidate)
    return author and (author, candidate.event_time.replace(second=0, microsecond=0))


def diversify(
    candidates: Sequence[Candidate], context: ScoringContext, source_of: Callable[[Candidate], Hashable]
) -> Sequence[Candidate]:
    """Return the candidates in the order that `diversify_sources` describes, for one sort of sources."""
    top_k, active = context.query.top_k, context.query.conversation_id
    share = math.ceil(SOURCE_SHARE * top_k)
    first = Counter(source_of(each) for each in candidates[:top_k])
    if max((count for source, count in first.items() if source is not None), default=0) <= share:
        return candidates
    taken: Counter[Hashable] = Counter()
    kept: list[Candidate] = []
    waiting: deque[Candidate] = deque()
    remaining = deque(candidates)
    while remaining and len(kept) < top_k:
        candidate = remaining[0]
        if waiting and candidate.score < NEARLY_AS_GOOD * waiting[0].score:
            append_behind(kept, waiting.popleft())
            continue
        remaining.popleft()
        source = None if active and candidate.conversation_id == active else source_of(candidate)
        if source is not None and taken[source] >= share:
            waiting.append(candidate)
            continue
        taken[source] += 1
        kept.append(candidate)
    for each in waiting:
        append_behind(kept, each)
    return [*kept, *remaining]


def append_behind(kept: list[Candidate], candidate: Candidate) -> None:
    """Append a candidate that waited, with a score no greater than that of the last one."""
    if kept and 0 < kept[-1].score < candidate.score:
        candidate.apply_factor("diversity", kept[-1].score / candidate.score, "gave way to another source")
    kept.append(candidate)


def order_by_lineage(candidates: Sequence[Candidate], context: ScoringContext) -> list[Candidate]:
    """Move each successor before what it superseded, with that one's score and pin; all else stays in order.

    Of a fact and the fact that it was promoted to, the better one stands for both. Search leaves out superseded facts
    unless the question is about a time at which they were true, or believed: only then both can be candidates.
    """
    if not any(link.type in (SUPERSEDES, PROMOTED_FROM) for link in context.links):
        return list(candidates)
    ranked = join_copies(candidates, context.links)
    successors = find_successors(ranked, context.links, as_of=context.query.as_of)
    for old in ranked:
        for new in successors.get(old.id, ())[:1]:
            old.superseded_by, old.superseded_at = new.id, old.valid_to or new.event_time
    pin_successors(ranked, successors)
    return order_after_successors(ranked, successors)


def join_copies(candidates: Sequence[Candidate], links: Iterable[LinkBetween]) -> list[Candidate]:
    """Join facts with their promoted copies, except copies that have been corrected since and claim something else."""
    partners: dict[UUID, list[UUID]] = defaultdict(list)
    for link in links:
        if link.type == PROMOTED_FROM:
            partners[link.source].append(link.target)
            partners[link.target].append(link.source)
    kept: dict[UUID, Candidate] = {}
    for candidate in candidates:
        earlier = (kept[each] for each in partners[candidate.id] if each in kept) if partners else ()
        same = next((each for each in earlier if normalize_claim(each.text) == normalize_claim(candidate.text)), None)
        if same is None:
            kept[candidate.id] = candidate
        else:
            same.absorb(candidate)
    return list(kept.values())


def find_successors(
    candidates: Sequence[Candidate], links: Iterable[LinkBetween], *, as_of: datetime | None
) -> Successors:
    """Return the successors of each superseded candidate, by its id.

    An active memory has none: it came back, so what superseded it no longer counts. A fact that was superseded after
    `as_of` has none yet.
    """
    by_id = {each: candidate for candidate in candidates for each in (candidate.id, *candidate.also)}
    successors: dict[UUID, list[Candidate]] = defaultdict(list)
    for link in links:
        old, new = by_id.get(link.target), by_id.get(link.source)
        if not (link.type == SUPERSEDES and old and new) or old.status in (Fact.Status.ACTIVE, ENDED):
            continue
        if as_of is None or old.valid_to is None or old.valid_to <= as_of:
            successors[old.id].append(new)
    return successors


def pin_successors(candidates: Iterable[Candidate], successors: Successors) -> None:
    """Pin the successors of pinned candidates, or they would make room for what they superseded."""
    waiting = [candidate for candidate in candidates if candidate.pinned]
    while waiting:
        for each in successors.get(waiting.pop().id, ()):
            if not each.pinned:
                each.pinned = True
                waiting.append(each)


def order_after_successors(ranked: Sequence[Candidate], successors: Successors) -> list[Candidate]:
    if not successors:
        return list(ranked)
    placed: dict[UUID, Candidate] = {}
    for candidate in ranked:
        for each in successors_then(candidate, successors, placed):
            if each.score < candidate.score:
                factor = candidate.score / each.score if each.score > 0 else 1.0
                each.apply_factor("lineage", factor, "takes the place of what it supersedes")
                each.score = candidate.score
            placed[each.id] = each
    return list(placed.values())


def successors_then(candidate: Candidate, successors: Successors, placed: Mapping[UUID, Candidate]) -> list[Candidate]:
    """Return the candidate and its successors over any number of steps that are not placed yet, the latest first."""
    met, done, waiting = set(placed), dict[UUID, Candidate](), [candidate]
    while waiting:
        last = waiting[-1]
        # each is expanded once, so links that form a cycle end there
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


SELECTORS: Mapping[str, Selector] = {
    "duplicates": join_duplicates,
    "replacement": order_by_replacement,
    DIVERSITY: diversify_results,
    "lineage": order_by_lineage,
}
"""Selectors by name, in the order in which they run: `diversity` after `replacement`, which may put two of a flood
first, and `lineage` last, as its promise must hold for the final order."""
