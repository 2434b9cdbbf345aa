"""Closed lists of English words that the rules for questions use, and how much of a question they read."""

import re
from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

MAX_READ_CHARACTERS = 2_000
"""Rules read only this much of the beginning, so that a pasted document costs no more than a question."""


def frozen_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def merge_unique(before: Iterable[Item], found: Iterable[Item], *, limit: int) -> tuple[Item, ...]:
    """Append found items that are new, up to the limit. Items that were there before all stay."""
    kept = tuple(dict.fromkeys(before))
    return tuple(dict.fromkeys((*kept, *found)))[: max(limit, len(kept))]


def split_words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without possessives."""
    found = (word.removesuffix("'s").removesuffix("’s") for word in _WORD.findall(text.casefold()))
    return frozenset(found)


FUNCTION_WORDS = frozen_words(
    "a about above after again against all also although always am among an and any anybody anyone anything are around "
    "as at be because been before being below between both but by can cannot could did do does doing done down during "
    "each either else ever every everyone everything few for from further had has have having he her here hers herself "
    "him himself his how however i if in into is it its itself just last latest least less many may me might mine more "
    "most much must my myself neither never next no nobody nor not nothing now of off often on once one only or other "
    "our ours ourselves out over own per quite rather really same shall she should since so some somebody someone "
    "something still such than that the their theirs them themselves then there these they thing things this those "
    "through to too toward towards under until up upon us very was we were what whatever when where whether which "
    "while who whoever whom whose why will with within without would yes yet you your yours yourself ok okay oh hi hey "
    "hello please thanks well today yesterday tomorrow tonight ago"
)
"""Words that connect others and name nothing."""

CONTRACTIONS = frozen_words(
    "i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll we're we've we'd "
    "we'll they're they've they'd they'll that's there's here's what's when's where's who's why's how's which's let's "
    "isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't won't wouldn't can't couldn't shouldn't "
    "mustn't mightn't ain't"
)

OPENERS = frozen_words(
    "tell remind show list give find get fetch recall remember look search explain describe summarize summarise "
    "compare name say let help write read check take make ask answer think know see go try use keep add remove "
    "update change delete create call email send open close start stop plan book buy order pay visit meet talk "
    "anything according regarding concerning considering given assuming suppose"
)
"""Words that questions and orders begin with, whose capital therefore does not make them names."""

CALENDAR_WORDS = frozen_words(
    "january february march april may june july august september october november december jan feb mar apr jun jul "
    "aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri "
    "sat sun"
)
"""Words with a capital that name a time."""

NAMELESS = FUNCTION_WORDS | CONTRACTIONS | CALENDAR_WORDS
"""Words that no name begins or ends with."""

INSIDE_NAMES = frozen_words("of the de da do dos das del della di la le los van von der den al")
"""Small words that occur inside names and name nobody by themselves."""
