"""Tasks: requests to do something, for which everything known about the people and things that they name helps.

Most words of a task say what to do ("book a table for me and my partner"), and no memory holds them, so that words and
meaning make each memory look unlikely to help (`confidence`). A task that names what the account knows is not silent
for that reason: by name, or as something of the user ("my partner", "our car"). Rules for English.
"""

import re
from collections.abc import Iterator, Sequence

from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.words import NAMELESS

MAX_TASK_CHARACTERS = 300
"""A longer request brings along what it is about, such as a text to translate, and names much besides."""

_DO = (
    "arrange|bake|book|build|buy|choose|come up with|compose|cook|create|decorate|design|draft|email|generate|help|"
    "invite|make|message|order|organi[sz]e|pack|pick|plan|prepare|recommend|remind (?:me|us) to|reply|reserve|schedule|"
    "send|set up|shop|suggest|surprise|text|think of|throw|wrap|write"
)
_TASK = re.compile(
    r"(?:(?:please|hi|hey|hello|ok|okay|and|now|then|also|let['’]s|(?:can|could|would|will) (?:you|we)|"
    r"i(?:['’]d| would)? (?:want|need|like|have) (?:you )?to|we (?:want|need|have) to),? )*"
    rf"(?:{_DO}|find|get)\b(?! (?:of|for|history|status|date|number|details|\w{{1,2}} (?:was|is))\b)",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    rf"\b(?:should|shall|can|could|might) (?:i|we) (?:{_DO})\b"
    r"|(?<!\bthe )\b(?:ideas?|suggestions?|recipes?|tips) for\b",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:my|our) (?:(?:dear|older|elder|younger|little|big) )?([^\W\d_][\w-]*)", re.IGNORECASE)
_OWNED = re.compile(
    r"\b(?:my|our|(?!(?:it|that|let|what|here|there|he|she|who|how|where)['’])[^\W\d_]+['’]s)"
    r" ([^\W\d_][\w-]*(?: [^\W\d_][\w-]*){0,2})",
    re.IGNORECASE,
)
"""What somebody has, and up to two words more."""


def names_what_is_known(candidates: Sequence[Candidate], query: Query) -> bool:
    """Return True if the question is a task that names somebody or something that one of these candidates is about."""
    if not is_task(query.text):
        return False
    names, owned = [name.casefold() for name in query.names], list(find_owned(query.text))
    return any(
        each.hops in (0, 1)
        or any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", each.text.casefold()) for name in names)
        or any(are_same(thing, other) for other in (find_owned(each.text) if owned else ()) for thing in owned)
        for each in candidates
    )


def is_task(text: str) -> bool:
    """Return True if a text asks for something to be done, or for advice, not for what is known."""
    text = text.strip()
    return len(text) <= MAX_TASK_CHARACTERS and bool(_TASK.match(text) or _ADVICE.search(text))


def keys_of_owned(text: str, *, user_id: str) -> list[str]:
    """Return the keys of facts that say what the user's own things and people in a task are (`Fact.attribute`)."""
    if not is_task(text):
        return []
    owners = {"the user", user_id.casefold() or "the user"}
    return sorted(
        f"{owner}|{kind}:{word}"
        for owner in owners
        for match in _OWN.finditer(text)
        for word in {match[1].casefold(), match[1].casefold().removesuffix("s")}
        for kind in ("relation", "only")
    )


def find_owned(text: str) -> Iterator[tuple[str, ...]]:
    """Yield what the text says that somebody has, as folded words, the head last: ("blue", "car") of "my blue car"."""
    for match in _OWNED.finditer(text):
        words: list[str] = []
        for word in match[1].split():
            if word.lower() in NAMELESS or (words and word[0].isupper()):
                break
            words.append(word.casefold().removesuffix("s"))
        if words:
            yield tuple(words)


def are_same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return True if the head of one is a word of the other: "my car" and "my blue car", not "my blue jacket"."""
    return one[-1] in other or other[-1] in one
