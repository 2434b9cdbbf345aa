"""Limits of what somebody says: exceptions, and where, when and for what an order or a decision holds.

A claim that leaves them out says more than its speaker did, and is not made. What the speaker said as a whole may
still be a claim in their own words.
"""

import re

from memory.extraction.grounding import word_stems

_EXCEPTION = re.compile(r"\b(?:except(?:ing)?|apart from|aside from|other than)\b", re.IGNORECASE)
_OF_A_TIME = re.compile(
    r"\b(?:stop(?:ped)?|quit|g[ia]ve up|given up) "
    r".*\b(?P<when>(?:before|after) (?:lunch|dinner|supper|breakfast|noon|work|\d)"
    r"|for (?:an?|one|two|three|four|five|six|\d+|a few|a couple of|some) (?:days?|weeks?|months?|years?|while|time)\b)"
)
_IS_ORDER = re.compile(r" (?:asks|decided|wants|prefers) ")
_PLEASE = re.compile(r",? (?:please|pls|thanks|thank you)\b", re.IGNORECASE)
_MARK = re.compile(r"\s*[,;(]\s*|\s+[-–—]+\s+")
_LIMIT = re.compile(
    r"(?:(?:and|but|only|not) )*(?:in|on|for|within|under|inside|outside|when|while|if|unless|without|except)\s"
    r"(?!(?:my|our|real|good|fun|god's|now|today|here|general|future|the future|short|fact|sure|the record|example"
    r"|instance|me|least"
    r"|last|the moment|possible|in doubt|needed|unsure|necessary|you need|there are questions|that|this|it"
    r"|second thought|the end|other words|any case|the whole|balance)\b)(?!.*\b(?:i|we|they|he|she)\b).+",
    re.IGNORECASE,
)
"""A piece of a clause that says where, when or for what the rest holds, or where it does not."""


def loses_limit(claim: str, clause: str) -> bool:
    """Return True if the clause names a limit that the claim leaves out.

    Such are the exception in "I'm vegetarian, except for fish", the place in "Use tabs, not spaces, in Makefiles", and
    the time in "I stopped drinking coffee after lunch" and "for a month".
    """
    if _EXCEPTION.search(clause) and not _EXCEPTION.search(claim):
        return True
    if (of_time := _OF_A_TIME.search(clause)) and of_time["when"] not in claim:
        return True
    if not _IS_ORDER.search(claim):
        return False
    said, pieces = word_stems(claim), _MARK.split(_PLEASE.sub("", clause.strip(" .!)")))
    return len(pieces) > 1 and any(_LIMIT.match(piece) and not word_stems(piece) <= said for piece in pieces)
