"""Denials: claims that say in the same words that another one does not hold, and what they deny.

They are compared as whole claims, so that what a pattern misunderstands denies a claim that nobody made.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from memory.identity import normalize_claim
from memory.verbs import VERBS, Verb, regular_verb

_TAKES_MORE = (
    "have",
    "want",
    "need",
    "get",
    "take",
    "eat",
    "drink",
    "buy",
    "give",
    "say",
    "find",
    "got",
    "make",
    "see",
)
_NO_VERB = "".join(rf"(?<! {verb})" for verb in _TAKES_MORE)
ANY_MORE = re.compile(
    rf"((?:n't|\bnot|\bno longer)\b[^.;!?]{{1,80}}{_NO_VERB}) any (?:more|longer)"
    r"(?=\W*$|[.,;:!?)]|,? (?:because|since|so|but|and|as|now|these days|after|thank|btw|at all)\b)"
)
"""The end of "I don't have a dog any more", which is "anymore"; "I don't want any more" tells a quantity."""
_NOT_ANYMORE = re.compile(r" (?:anymore|any more|any longer|after all|at all)(?=\.?$)", re.IGNORECASE)
_BE = re.compile(r" (?P<verb>is|are)(?: not|n't| no longer) ", re.IGNORECASE)
_CAN = re.compile(r" (?:can't|cannot|can not|can no longer) ", re.IGNORECASE)
_DO = re.compile(r" (?P<do>does|do)(?: not|n't) (?P<verb>[\w-]+)", re.IGNORECASE)
_NO_LONGER = re.compile(r" no longer (?P<verb>\w+)", re.IGNORECASE)
_STOPPED = re.compile(r" (?P<has>has |have )?(?:stopped|quit|gave up|given up) (?P<gerund>\w+ing)\b", re.IGNORECASE)
_DIED = re.compile(
    r"(?P<whose>.+'s (?:[a-z-]+ ){0,2}[a-z-]+) (?P<name>[A-Z][\w'-]+)"
    r" (?:has |have )?(?:died|passed away)(?: (?:in|on|at|after|last) .*)?\.?"
)
_THE = re.compile(r" (?:the|that|this|their|his|her|my) (?=(?P<first>\w))", re.IGNORECASE)
_IS = re.compile(r" (?P<verb>is|are|can) ")
_PRESENT = {verb.present: verb.base for verb in VERBS.values() if verb.base != "be"}
_BY_GERUND = {verb.gerund: verb for verb in VERBS.values()}
MAX_SUBJECT_WORDS = 6
MAX_CHARACTERS = 300


@lru_cache(maxsize=64)
def opposites_of(claim: str) -> frozenset[str]:
    """Return the claims that it denies or, of one that denies nothing, those that deny it: all of them normalized."""
    claim = " ".join(claim[:MAX_CHARACTERS].split())
    return frozenset(map(normalize_claim, denied_claims(claim) or denials_of(claim)))


def denied_claims(claim: str) -> tuple[str, ...]:
    """Return the claims that this one denies: "Ana is not allergic to nuts" denies "Ana is allergic to nuts"."""
    bare = _NOT_ANYMORE.sub("", claim)
    affirmed = [" ".join(found.split()) for found in _affirm(bare)]
    # what was introduced as "a marathon" is "the marathon" then
    introduced = [_THE.sub(_with_a, each, count=1) for each in affirmed]
    return tuple(dict.fromkeys((*affirmed, *introduced)))


def _with_a(match: re.Match[str]) -> str:
    return " an " if match["first"] in "aeiou" else " a "


def _affirm(claim: str) -> Iterator[str]:
    if match := _DIED.fullmatch(claim):
        yield f"{match['whose']} is {match['name']}"
    elif match := _BE.search(claim):
        yield _put(claim, match, match["verb"])
    elif match := _CAN.search(claim):
        yield _put(claim, match, "can")
    elif match := _DO.search(claim):
        base = match["verb"]
        yield _put(claim, match, base if match["do"].lower() == "do" else _verb(base).present)
    elif match := _NO_LONGER.search(claim):
        yield _put(claim, match, match["verb"])
    elif match := _STOPPED.search(claim):
        known, stem = _BY_GERUND.get(match["gerund"]), match["gerund"].removesuffix("ing")
        for verb in (known,) if known else (_verb(stem), _verb(f"{stem}e")):
            yield _put(claim, match, verb.present)
            yield _put(claim, match, verb.base)


def denials_of(claim: str) -> tuple[str, ...]:
    """Return the claims in the same words that deny this one, which is no denial; empty where no verb is known."""
    bare = claim.rstrip(".")
    return tuple(form for short in _deny(bare) for form in (short, f"{short} anymore", f"{short} after all"))


def _deny(claim: str) -> Iterator[str]:
    if match := _IS.search(claim):
        verb = match["verb"]
        forms = ("cannot", "can't") if verb == "can" else (f"{verb} not", f"{verb}n't", f"{verb} no longer")
        yield from (_put(claim, match, form) for form in forms)
        return
    words = claim.split()
    place = next((place for place, word in enumerate(words[: MAX_SUBJECT_WORDS + 1]) if place and word in _PRESENT), 0)
    if place:
        base = _PRESENT[words[place]]
        for negated in (f"does not {base}", f"doesn't {base}", f"no longer {words[place]}"):
            yield " ".join([*words[:place], negated, *words[place + 1 :]])


def _verb(base: str) -> Verb:
    known = VERBS.get(base.lower())
    return known or regular_verb(base.lower())


def _put(claim: str, match: re.Match[str], words: str) -> str:
    """Return the claim with these words in place of the match."""
    return f"{claim[: match.start()]} {words} {claim[match.end() :]}".strip()
