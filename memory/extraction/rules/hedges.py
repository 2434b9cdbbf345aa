"""Doubts in claims: "I think I'm pregnant" says "The user may be pregnant", since who reads a claim sees no more."""

import re
from dataclasses import replace

from memory.extraction.rules.statements import Statement
from memory.extraction.rules.words import HEDGES
from memory.models.facts import Certainty
from memory.verbs import VERBS

HEDGED = re.compile(
    r"\b(?:i (?:think|guess|believe|suppose)|not (?:sure|certain)|" + "|".join(sorted(HEDGES)) + r"|might|seems?|"
    r"as far as i (?:know|remember)|kind of|kinda|sort of|sorta|thinking (?:about|of))\b",
    re.IGNORECASE,
)
MAX_TAIL_WORDS = 3
"""Words of what follows a clause and only doubts it."""
_SAYS_SO = re.compile(
    r"\b(?:may|might|(?:plans?|wants?|hopes?|intends?|aims?) to"
    r"|(?:is|are) (?:considering|thinking|planning|hoping|trying|looking|aiming))\b"
)
_MAY = {
    "is not": "may not be", "are not": "may not be", "is": "may be", "are": "may be", "was": "may have been",
    "were": "may have been", "will": "may", "has": "may have", "have": "may have", "does not": "may not",
    "do not": "may not", "no longer": "may no longer", "has been": "may have been",
}  # fmt: skip
_BASES = {form: verb.base for verb in VERBS.values() for form in (verb.present, verb.base)}
_PARTICIPLES = {verb.past: verb.participle for verb in VERBS.values()}


def is_doubted(clause: str, following: str = "") -> bool:
    """Return True if a clause is in doubt by itself, or by what follows it: "I live in Leeds, I think"."""
    is_tail = len(following.split()) <= MAX_TAIL_WORDS and HEDGED.search(following) is not None
    return is_tail or HEDGED.search(clause) is not None


def with_hedge(statement: Statement) -> Statement | None:
    """Return the statement with its doubt in the claim, or None if the claim has no verb that takes one."""
    claim = statement.claim
    if statement.certainty != Certainty.UNCERTAIN or _SAYS_SO.search(claim):
        return statement
    before, rest = f"{statement.subject} ", claim.removeprefix(f"{statement.subject} ")
    if rest == claim:
        # "The user's sister is Priya" is about the user
        before, _, rest = claim.partition(" is ")
        before, rest = f"{before} ", f"is {rest}"
    first, _, others = rest.partition(" ")
    two = " ".join(rest.split()[:2])
    if may := _MAY.get(two):
        others = rest.removeprefix(two).strip()
        others = " ".join([_BASES.get(others.split()[0], ""), *others.split()[1:]]) if two == "no longer" else others
    elif not (may := _MAY.get(first, "")):
        base, participle = _BASES.get(first), _PARTICIPLES.get(first)
        may = f"may {base}" if base else f"may have {participle}" if participle else ""
    return replace(statement, claim=f"{before}{may} {others}".strip()) if may else None
