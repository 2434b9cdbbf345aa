"""Styles of answers that a user wants, forbids and allows again: bullet points, emojis, Markdown.

A user has one wish about each of them, so that "emojis are fine after all" ends "never use emojis". What is said of one
place only ("no emojis in commit messages") is no wish about all answers, and ends none.
"""

import re
from dataclasses import replace

from memory.extraction.rules.own import own_statement, own_value
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.statements import ClaimParts, Statement

_THING = (
    r"(?P<thing>emojis?|emoticons?|smileys?|hashtags?|exclamation (?:marks|points)|em[- ]dashes|markdown"
    r"|bullet(?:ed)? (?:points|lists?)|bullets)"
)
_NAMES = (("bullet", "bullets"), ("emo", "emojis"), ("smiley", "emojis"), ("exclamation", "exclamation marks"))
_USE = r"(?:(?:use|add|include|send|(?:answer|reply|respond|write|speak|format)(?: [a-z]+)? (?:in|with|using)) )"
_ALL = r"(?:(?:the|your|any|all|of|those|these) )*"
_CLAIM = re.compile(
    rf"(?P<subject>\S.{{0,80}}?) (?:asks (?:(?P<no>not to|never to|for no(?: more)?)|to always|to|for) {_USE}?{_THING}"
    rf"|is fine with (?P<fine>)(?:{_THING.replace('thing', 'allowed')}))(?: (?:again|now|after all|from now on))*\.?",
    re.IGNORECASE,
)
_AGAIN = r"(?: (?:again|now|after all|from now on|these days|going forward))+"
_FORBIDS = re.compile(
    rf"(?:(?:drop|lose|ditch|skip|stop|enough (?:with|of)|no more) {_ALL}{_THING}"
    rf"|I do(?:n't| not) want {_ALL}{_THING.replace('thing', 'unwanted')} (?:any ?more|any longer))"
    rf"(?: (?:in|from) (?:your|the) (?:answers|replies|responses|messages))?(?:{_AGAIN})?(?:,? (?:please|pls|thanks))?",
    re.IGNORECASE,
)
_ALLOWS = re.compile(
    rf"{_THING} (?:are|is) (?:(?:totally|perfectly|actually) )?(?:fine|ok|okay|allowed|welcome|good|all ?right|alright)"
    rf"(?:(?: (?:with|by|for) me)?{_AGAIN}| (?:with|by) me)"
    rf"|(?:{_USE}|go back to (?:using )?|bring back ){_ALL}{_THING.replace('thing', 'back')}(?: again| after all)",
    re.IGNORECASE,
)


def read_style(claim: str) -> ClaimParts | None:
    """Return the wish of a claim about a style of all answers: "The user asks never to use emojis"."""
    match = _CLAIM.fullmatch(claim)
    if match is None:
        return None
    thing = (match["thing"] or match["allowed"]).casefold()
    name = next((name for start, name in _NAMES if thing.startswith(start)), thing.rstrip("s"))
    value = "unwanted" if match["no"] else "wanted"
    return ClaimParts(subject=match["subject"], attribute=f"style:{name}", value=value)


def read_style_change(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "drop the bullets", "no more bullet points", "emojis are fine after all", "use emojis again"."""
    text = text.strip().rstrip(".!")
    if match := _FORBIDS.fullmatch(text):
        thing, claim, liking = match["thing"] or match["unwanted"], "asks for no more", "avoids"
    elif match := _ALLOWS.fullmatch(text):
        thing, claim, liking = match["thing"] or match["back"], "is fine with", ""
    else:
        return None
    value = own_value(said, thing[:1].lower() + thing[1:])
    if value is None:
        return None
    label = said.speaker.label
    claim = f"{label} {claim} {value.words}"
    statement = own_statement(said, subject=label, attribute="style", value=value, claim=claim, liking=liking)
    # "actually" and "no" change the wish, which was true until now
    return replace(statement, is_correction=False, is_retraction=False)
