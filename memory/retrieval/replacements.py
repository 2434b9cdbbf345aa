"""The selector `replacement`: statements that later ones replaced, in the order in which a question wants both.

A REPLACES link says with which probability the later statement replaces the earlier one, whatever is asked. How
probable it is that a question wants one of the two instead of the other depends on both being answers, too: a strong
link to a statement that fits the question badly moves nothing, and a weak one between the first two results is enough.
`wanted_probability` weighs this; its weights were learned from the questions of `docs/sample/updates.json`,
`plain-updates.json`, `restatements.json` and `notes.json`, among all turns of a sample and among a few.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import LinkBetween, ScoringContext
from memory.scoring import (
    COMPETING_MARGIN,
    COMPETING_REPLACEMENT,
    MAX_STATEMENT_CHARACTERS,
    SUPERSEDED_FACTOR,
    SURE_REPLACEMENT,
)
from memory.verbs import VERBS

REPLACES, DERIVED_FROM = "REPLACES", "DERIVED_FROM"

MAX_REORDERED = 20
"""Candidates at the front whose replacements are moved before them. Those behind are marked where they are."""
NEARLY_SAME = 0.9
"""Factor on the score of a statement that is probably replaced, or that answers less than the other one."""
_EARLIER = re.compile(
    r"\b(?:previous(?:ly)?|former(?:ly)?|used to|original(?:ly)?|at first|initial(?:ly)?|back then|prior|ago"
    r"|(?:my|our|your|his|her|their|\w+['’]s) old\b(?!.*\bnow)"
    r"|(?:what|who|which)(?: is| are|['’]s) the old (?!.*\bnow)[\w-]+(?: [\w-]+)?(?=\W*$))\b",
    re.IGNORECASE,
)
"""Words that ask about what was true before something changed, in any tense.

"The old cluster" may be the name of what is there still ("How long must the old cluster be kept?").
"""
_EARLIER_UNLESS_NOW = re.compile(
    r"\b(?:(?<!how )(?<!years )(?<!months )(?<!weeks )(?<!days )(?<!-)old"
    r"|before|first|earlier|until|in (?:early|mid|late)|in (?:january|february|march|april|may|june|july|august"
    r"|september|october|november|december))\b",
    re.IGNORECASE,
)
"""Words that do so unless the question is in the present tense ("Where are we going in July?")."""
_PAST_FORMS = "|".join(sorted({verb.past.split()[0] for verb in VERBS.values() if verb.past not in (verb.base, "got")}))
_PAST = re.compile(
    r"\b(?:was|were|did|had)(?:n['’]t)?\b"
    rf"|(?<!\bis )(?<!\bare )(?<!\bam )(?<!['’]s )\b(?:i|we|you|he|she|they|who|that) (?:{_PAST_FORMS})\b",
    re.IGNORECASE,
)
"""An auxiliary or, after a pronoun, a verb in the past tense: not "What is she called?"."""
_PERFECT = re.compile(r"\b(?:has|have)(?:n['’]t)?\b(?! to\b)(?!.*\bgot\b)", re.IGNORECASE)
_PRESENT = re.compile(
    r"\b(?:am|is|are|do|does|will|shall|can|should|must|might|would|could)(?:n['’]t)?\b|\b(?:won|can)['’]t\b|['’](?:re|ll|m)\b"
    r"|\b(?:what|where|who|when|how|which|it|that|there|he|she)['’]s\b"
    r"|^(?:who|what|which(?: \w+)?) (?!has\b)\w+[^\Ws]s\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][^\W\d_A-Z]+")
_INTRODUCTION = re.compile(
    r"^(?:(?:do|can|could|would|will) (?:you|anybody|anyone) (?:please |still |also )?"
    r"(?:know|remember|recall|tell (?:me|us)|remind (?:me|us))|is it (?:true|right) that|i wonder|please tell me)\b",
    re.IGNORECASE,
)
"""Words before a question proper, in the present tense whatever it is about."""
_ASKS_FOR_AGE = re.compile(r"\bhow old\b", re.IGNORECASE)
_NUMBER = (
    r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?)"
)
_AGE = re.compile(
    rf"(?:\b(?:is|was|are|am|turn(?:s|ed|ing)?|aged?)|['’](?:s|m|re))(?: (?:now|already|about|almost|only|just))?"
    rf" {_NUMBER}(?=$|[.,;:!?)]|\s+(?:and|but|years?|months?|now|today|yesterday|in|on|this|last|next)\b)"
    rf"|\b{_NUMBER}[ -](?:years?|months?)[ -]old\b|\b{_NUMBER}(?:st|nd|rd|th) birthday|\bborn\b",
    re.IGNORECASE,
)
"""A number that is somebody's age, or when somebody was born."""
INTERCEPT = 2.82
LINK_WEIGHT = 0.84
NEWER_RANK_WEIGHT = -2.08
OLDER_RANK_WEIGHT = -2.81
PAST_TENSE_WEIGHT = -1.69
LEAST_WANTED = 0.15
"""Least probability at which a question gets the later statement before the earlier one."""
LEAST_WANTED_IF_SURE = 0.05
"""The same for a sure replacement, wherever the later statement was found."""
LEAST_WANTED_PAST = 0.3
"""Least probability at which a question about the past gets the earlier statement before the later one."""
CLEAR = 0.5
"""Weight from which a statement is replaced for a question with a name that only this statement has."""
SHARED_SOURCE_WEIGHT = 0.4
"""Greatest weight with which one of several facts is replaced with the statement that they were learned from."""
MAX_CERTAINTY = 0.999
MAX_PLACE = 8
"""A statement further behind counts as being at this place: the questions learned from had few of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A replacing candidate, the weight of the link, and how probably a question wants one of the two first."""

    newer: Candidate
    weight: float
    wanted: float


def order_by_replacement(candidates: Sequence[Candidate], context: ScoringContext) -> list[Candidate]:
    """Put a statement before the one that it replaces, and mark that one with what replaced it and when.

    A question about the past gets the earlier one first, before facts that were learned from the later one, too. With
    `as_of`, a later statement counts once it was said: until then the earlier one comes first and has no mark. From
    SURE_REPLACEMENT on the earlier one is marked, and loses half of its score unless the later one is hardly an answer.
    With `include_superseded` the order stays.
    """
    if not any(link.type == REPLACES for link in context.links):
        return list(candidates)
    query = context.query
    is_about_past = asks_about_past(query.text)
    is_past_tense = not is_about_past and is_in_past_tense(query.text)
    sources = sources_of_facts(candidates, context.links)
    asked = frozenset(name.lower() for name in _NAME.findall(query.text))
    replaced = find_replaced(candidates, context.links, sources, is_past_tense=is_past_tense, asked=asked)
    aged = find_aged(candidates, sources) if _ASKS_FOR_AGE.search(query.text) else frozenset()
    for place, older in enumerate(candidates):
        if (found := replaced.get(older.id)) is None:
            continue
        newer = found.newer
        is_later = query.as_of is not None and newer.event_time > query.as_of
        is_sure = found.weight >= SURE_REPLACEMENT
        if is_sure and not is_later:
            older.superseded_by, older.superseded_at = newer.id, newer.event_time
        if query.include_superseded or place >= MAX_REORDERED:
            continue
        if is_about_past or is_later:
            if found.wanted >= LEAST_WANTED_PAST:
                for each in (newer, *facts_of(newer, candidates[:MAX_REORDERED], sources)):
                    put_first(older, each, factor=NEARLY_SAME)
        elif (newer.id in aged or older.id not in aged) and found.wanted >= (
            LEAST_WANTED_IF_SURE if is_sure and not is_past_tense else LEAST_WANTED
        ):
            put_first(newer, older, factor=SUPERSEDED_FACTOR if is_sure else NEARLY_SAME)
    return sorted(candidates, key=lambda each: -each.score) if replaced else list(candidates)


def find_aged(candidates: Sequence[Candidate], sources: Mapping[UUID, Sequence[UUID]]) -> frozenset[UUID]:
    """Return the candidates that say an age, and facts of a source that does.

    A question for an age never gets another statement before one of them: that is about another matter, however near
    both are ("Alma is 7", "Alma got two new teeth").
    """
    aged = {each.id for each in candidates if _AGE.search(each.text)}
    return frozenset(aged | {fact for fact, own in sources.items() if not aged.isdisjoint(own)})


def asks_about_past(question: str) -> bool:
    """Return True if a question asks for what was true before something changed.

    >>> asks_about_past("Where did she live in May?"), asks_about_past("How old is she?")
    (True, False)
    """
    if _EARLIER.search(question):
        return True
    question = _INTRODUCTION.sub("", question)
    is_now = _PRESENT.search(question) is not None and _PAST.search(question) is None
    return _EARLIER_UNLESS_NOW.search(question) is not None and not is_now


def is_in_past_tense(question: str) -> bool:
    """Return True if a question asks about what happened.

    >>> is_in_past_tense("Has she been to Porto?"), is_in_past_tense("Do I have to go to the office?")
    (True, False)
    """
    question = _INTRODUCTION.sub("", question)
    if _PAST.search(question):
        return True
    return _PERFECT.search(question) is not None and _PRESENT.search(question) is None


def wanted_probability(weight: float, *, newer_place: int, older_place: int, is_past_tense: bool) -> float:
    """Return how probable it is that a question wants one of two linked statements instead of the other.

    `weight` is that of the link; places count from 0 in the order before this selector. A question in the past tense
    ("Where did she get the tickets?") asks about what happened, which nothing replaces.
    """
    sure = min(max(weight, 1 - MAX_CERTAINTY), MAX_CERTAINTY)
    total = INTERCEPT + LINK_WEIGHT * math.log(sure / (1 - sure)) + PAST_TENSE_WEIGHT * is_past_tense
    total += NEWER_RANK_WEIGHT * math.log1p(min(newer_place, MAX_PLACE)) + OLDER_RANK_WEIGHT * math.log1p(older_place)
    return 1 / (1 + math.exp(-total))


def sources_of_facts(candidates: Sequence[Candidate], links: Sequence[LinkBetween]) -> dict[UUID, list[UUID]]:
    """Return the memories that each fact among the candidates was learned from, by its id."""
    facts = {each.id for each in candidates if each.kind == Kind.FACT}
    sources: dict[UUID, list[UUID]] = defaultdict(list)
    for link in links:
        if link.type == DERIVED_FROM and link.source in facts:
            sources[link.source].append(link.target)
    return sources


def facts_of(
    source: Candidate, candidates: Sequence[Candidate], sources: Mapping[UUID, Sequence[UUID]]
) -> list[Candidate]:
    """Return the facts among the candidates that were learned from this one alone."""
    return [each for each in candidates if sources.get(each.id) == [source.id]]


def find_replaced(
    candidates: Sequence[Candidate],
    links: Sequence[LinkBetween],
    sources: Mapping[UUID, Sequence[UUID]],
    *,
    is_past_tense: bool,
    asked: frozenset[str],
) -> dict[UUID, Replaced]:
    """Return, by id, for each replaced candidate the replacement that the question wants most.

    Long texts are left out: they say more than one thing, and are about as near to each other as what replaces them.
    A fact is at the place of its only source, or that one at the fact's: both say the same.
    `asked` are the names in the question: what is about others replaces nothing for it.
    """
    replacements = collect_replacements(candidates, links, sources)
    places = places_of(candidates, sources)
    found: dict[UUID, Replaced] = {}
    for older in candidates:
        if len(older.text) > MAX_STATEMENT_CHARACTERS:
            continue
        ways = [
            Replaced(
                newer=newer,
                weight=weight,
                wanted=wanted_probability(
                    weight, newer_place=places[id(newer)], older_place=places[id(older)], is_past_tense=is_past_tense
                ),
            )
            for newer, weight in replacements.get(older.id, ())
            if newer is not older and not (asked and speaks_of_others(newer.text, older.text, asked, weight=weight))
        ]
        if ways:
            found[older.id] = max(ways, key=lambda way: way.wanted)
    return found


def places_of(candidates: Sequence[Candidate], sources: Mapping[UUID, Sequence[UUID]]) -> dict[int, int]:
    """Return the place of each candidate, by its `id()`. A fact and its only source share the first of theirs.

    Of several facts of one source each has its own: one may replace another.
    """
    alone = {own[0] for own, times in Counter(map(tuple, sources.values())).items() if len(own) == times == 1}
    places: dict[int, int] = {}
    of_source: dict[UUID, int] = {}
    for candidate in candidates:
        own = sources.get(candidate.id, ())
        source = own[0] if len(own) == 1 and own[0] in alone else candidate.id
        places[id(candidate)] = of_source.setdefault(source, len(of_source))
    return places


def collect_replacements(
    candidates: Sequence[Candidate], links: Sequence[LinkBetween], sources: Mapping[UUID, Sequence[UUID]]
) -> dict[UUID, list[tuple[Candidate, float]]]:
    """Return the candidates that replace each memory, with the weights of their links, by the id of the memory.

    A fact is replaced if all of its sources among the links are: it holds as long as one of its sources may hold, so
    that with the least weight counts. Of several facts of one source, at most one was replaced with it: each gives way
    to the newer statement, and none is marked.
    """
    # by the numbers of ids, which are hashed ten times as fast as ids
    by_number = {each.int: candidate for candidate in candidates for each in (candidate.id, *candidate.also)}
    replacements: dict[UUID, list[tuple[Candidate, float]]] = defaultdict(list)
    roles = {number: candidate.role for number, candidate in by_number.items()}
    for link in strongest_links(links, roles):
        if (newer := by_number.get(link.source.int)) is not None:
            replacements[link.target].append((newer, link.weight))
    resting = Counter(source for own in sources.values() for source in own)
    for fact, own in sources.items():
        if fact not in replacements and all(each in replacements for each in own):
            surest = [max(replacements[each], key=lambda found: found[1]) for each in own]
            newer, weight = min(surest, key=lambda found: found[1])
            shares = any(resting[each] > 1 for each in own)
            replacements[fact] = [(newer, min(weight, SHARED_SOURCE_WEIGHT) if shares else weight)]
    return replacements


def strongest_links(links: Sequence[LinkBetween], roles: Mapping[int, str]) -> list[LinkBetween]:
    """Return the REPLACES links without those that are clearly weaker than another one of the same later statement.

    What surely replaces one statement rarely replaces another one as well. An assistant that repeats a user is none:
    links to statements of different roles, which are given by the numbers of their ids, do not compete.
    """
    replaces = [(link, (link.source.int, roles.get(link.target.int, ""))) for link in links if link.type == REPLACES]
    strongest: dict[tuple[int, str], float] = defaultdict(float)
    for link, rivals in replaces:
        strongest[rivals] = max(strongest[rivals], link.weight)
    return [
        link
        for link, rivals in replaces
        if (most := strongest[rivals]) < COMPETING_REPLACEMENT or link.weight >= most - COMPETING_MARGIN
    ]


def speaks_of_others(newer: str, older: str, asked: frozenset[str], *, weight: float) -> bool:
    """Return True if only the older statement names what is asked for, and the newer one may be about something else.

    It is if the link is weak, and in any case if it names another name of the older one.

    >>> speaks_of_others("Ana is 7.", "Our kids: Ana is 6, Leo is 3.", frozenset({"leo"}), weight=0.9)
    True
    """
    before, after = (frozenset(re.findall(r"\w+", text.lower())) for text in (older, newer))
    if not asked & before - after:
        return False
    others = {name.lower() for name in _NAME.findall(older)} - asked
    return weight < CLEAR or (asked.isdisjoint(after) and not others.isdisjoint(after))


def put_first(first: Candidate, second: Candidate, *, factor: float) -> None:
    """Give the first at least the score of the second, and multiply that one by `factor`."""
    if 0 < first.score < second.score:
        reason = "chosen over another statement about the same"
        first.apply_factor("replacement", second.score / first.score, reason)
    second.apply_factor("replacement", factor)
