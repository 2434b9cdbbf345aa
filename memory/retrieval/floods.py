"""Floods: many near-duplicates that would take all places, of the candidates and then of the results.

Near-duplicates differ only in numbers, dates, quoted values and names (`templates`), whoever wrote them. Retrievers
return a bounded number of candidates, so a flood keeps everything else from being ranked at all: where `has_flood` sees
one, the pipeline looks for the rest of it (`find_floods`), and gathers again with only the best. The selector
`diversity` then gives a template one place (`limit_templates`), unless the question asks for what differs.

Everything is counted by keys, one look-up for each candidate. Without a flood, only the best candidates are looked at.
"""

import math
import re
from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Sequence
from datetime import datetime
from heapq import nlargest
from operator import attrgetter
from uuid import UUID

from memory.kinds import Kind, spec_of
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import ScoringContext
from memory.retrieval.templates import template_of

SAMPLE = 12
"""Best candidates by words, and by meaning, in which a flood is looked for."""
MIN_SAMPLED = 6
"""Candidates of one template among these from which on there may be a flood."""
MIN_FLOOD = 24
"""Candidates of one template that are a flood."""
FLOOD_CANDIDATES = 1_000
"""The limit of each retriever that looks for the rest of a flood."""
MAX_FLOOD_ROUNDS = 3
MAX_KEPT = MIN_FLOOD - 1
"""Candidates of a flood that stay: too few to be a flood."""
ALIKE = "alike"
"""Signal of the size of the flood that a candidate is of."""

MIN_TEMPLATE_CANDIDATES = 4
"""Fewer candidates of one template are a coincidence."""
MIN_COMPARED, COMPARED_PER_RESULT = 30, 3
PLACES_PER_OTHER = 5
"""Of so many places, one is for others than a template whose values the question asks for."""
MAX_LISTED_PER_RESULT = 3
"""More candidates of a template than this for each result are a flood, unless they are of different times."""
MIN_MINUTES_SHARE = 0.5
"""Minutes in which the candidates of a list were said, as a share of their number."""

ASKS_FOR_ALL = re.compile(
    r"\b(?:how (?:many|much|often)|list|all|every|each|total|sums?|sum up|average|mean|count|times|combined|altogether"
    r"|wie ?viele?n?|wie oft|alle[nsr]?|jede[nmrs]?|insgesamt|combien|tou(?:te)?s|liste[rz]?|cuánt[oa]s?|cuanto|todos"
    r"|todas|lista|quant[oiae]s?|tutt[ie]|hoeveel|hoe vaak|сколько|все)\b"
    r"|多少|几|幾|所有|全部|每|いくつ|いくら|何回|何|全て|すべて|몇|얼마|모두|모든|กี่|เท่าไ|ทั้งหมด",
    re.IGNORECASE,
)
"""A question about all of the differing values."""
ASKS_FOR_VALUE = re.compile(
    r"\b(?:what|which|when|who|whom|whose|where|was|welche[nmrs]?|wann|wer|wen|wem|wo|quand|qu(?:i|oi|el(?:le)?s?)|où"
    r"|qué|que|cuál(?:es)?|cuándo|quién(?:es)?|dónde|qual[ie]?|quais|quando|quem|chi|cosa|dove|onde|welke?|wanneer|wie"
    r"|wat|waar|что|как(?:ой|ая|ое|ие)|когда|кто|где)\b|什么|什麼|哪|谁|誰|何|いつ|どこ|どれ|どの|언제|누구|어디|무엇|뭐"
    r"|อะไร|ใคร|เมื่อ|ที่ไหน",
    re.IGNORECASE,
)
"""A question about one of the differing values."""


def template_key(candidate: Candidate) -> Hashable:
    """Return the key that near-duplicates share; None if the candidate stands for itself.

    Kinds that are more than their text (entities, goals, slots) stand for themselves.
    """
    if candidate.is_cut or (spec_of(candidate.kind).repeat_key is None and candidate.kind != Kind.CONTEXT_ENTRY):
        return None
    template = template_of(candidate.text)
    return None if template is None else (candidate.kind, template)


def group_by_template(candidates: Iterable[Candidate]) -> dict[Hashable, list[Candidate]]:
    """Return the candidates of each template, in their order."""
    groups: dict[Hashable, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if (key := template_key(candidate)) is not None:
            groups[key].append(candidate)
    return groups


def largest_group(candidates: Iterable[Candidate]) -> int:
    """Return how many of the candidates share a template at most."""
    return max(map(len, group_by_template(candidates).values()), default=0)


def has_flood(candidates: Sequence[Candidate]) -> bool:
    """Return True if many candidates share a template, and so do many of the best by words or by meaning."""
    if len(candidates) < MIN_FLOOD:
        return False
    by_words = nlargest(SAMPLE, candidates, key=attrgetter("bm25"))
    by_meaning = nlargest(SAMPLE, candidates, key=lambda each: each.similarity or 0.0)
    if max(map(largest_group, (by_words, by_meaning))) < MIN_SAMPLED:
        return False
    return largest_group(candidates) >= MIN_FLOOD


def find_floods(candidates: Iterable[Candidate]) -> dict[Hashable, list[Candidate]]:
    """Return the candidates of each flood, the best by words and meaning together first."""
    groups = group_by_template(candidates).items()
    return {key: sorted(group, key=closeness, reverse=True) for key, group in groups if len(group) >= MIN_FLOOD}


def closeness(candidate: Candidate) -> tuple[float, datetime, UUID]:
    return candidate.bm25 + (candidate.similarity or 0.0), candidate.event_time, candidate.id


def limit_templates(candidates: Sequence[Candidate], context: ScoringContext) -> list[Candidate]:
    """Give the candidates of a template one place; the others come after everything else.

    If the question asks for what differs ("How many km did I run?"), a template with more candidates than there are
    results takes four of five places, and one with fewer stays as it is. Nothing is left out. If the best candidates
    have no template in common, the others are not looked at.
    """
    query = context.query
    compared = max(MIN_COMPARED, COMPARED_PER_RESULT * query.top_k)
    if largest_group(candidates[:compared]) < MIN_TEMPLATE_CANDIDATES:
        return list(candidates)
    groups = [each for each in group_by_template(candidates).values() if len(each) >= MIN_TEMPLATE_CANDIDATES]
    repeats: set[UUID] = set()
    listed: set[UUID] = set()
    for group in groups:
        if not asks_for_values(query.text, group, top_k=query.top_k):
            repeats.update(each.id for each in group[1:] if not each.pinned)
        elif len(group) > query.top_k:
            listed.update(each.id for each in group)
    ordered = [each for each in candidates if each.id not in repeats]
    ordered = interleave_listed(ordered, listed, top_k=query.top_k) if listed else ordered
    return lower_to_order([*ordered, *(each for each in candidates if each.id in repeats)])


def asks_for_values(question: str, group: Sequence[Candidate], *, top_k: int) -> bool:
    """Return True if the question asks for what differs within the group.

    A question about one value ("When …?") does not ask for a burst: for more than a list, said within a few minutes.
    """
    if ASKS_FOR_ALL.search(question):
        return True
    size = max(len(group), *(each.factors.get(ALIKE, 0) for each in group))
    is_long = size > MAX_LISTED_PER_RESULT * top_k
    minutes = {each.event_time.replace(second=0, microsecond=0) for each in group} if is_long else ()
    is_burst = is_long and len(minutes) < MIN_MINUTES_SHARE * len(group)
    return not is_burst and ASKS_FOR_VALUE.search(question) is not None


def interleave_listed(candidates: Sequence[Candidate], listed: Collection[UUID], *, top_k: int) -> list[Candidate]:
    """Leave every fifth of the first `top_k` places, beginning with the third, to candidates that are not listed."""
    waiting, others = (
        deque(each for each in candidates if (each.id in listed) == is_listed) for is_listed in (True, False)
    )
    ranks = {each.id: rank for rank, each in enumerate(candidates)}
    ordered: list[Candidate] = []
    taken = 0
    while waiting and others and len(ordered) < top_k:
        is_due = taken < (len(ordered) + 1 + 2) // PLACES_PER_OTHER
        is_other = is_due or ranks[others[0].id] < ranks[waiting[0].id]
        ordered.append((others if is_other else waiting).popleft())
        taken += is_other
    return [*ordered, *sorted((*waiting, *others), key=lambda each: ranks[each.id])]


def lower_to_order(candidates: list[Candidate]) -> list[Candidate]:
    """Give no candidate a higher score than the one before it."""
    lowest = math.inf
    for candidate in candidates:
        if 0 < lowest < candidate.score:
            candidate.apply_factor("diversity", lowest / candidate.score, "differs from another only in its values")
        lowest = min(lowest, candidate.score)
    return candidates
