"""Sentences without what does not belong to their statement: laughter, "as she says", and a request at their end.

A laugh stands for a joke in its own clause only: "I moved to Leeds, it's freezing lol" states the move.
"""

import re

_LAUGH = re.compile(r"(?:\b(?:lo+l|lmf?ao|rofl|(?:ha){2,}h?|(?:he){2,}h?)\b|😂|🤣)[\s!.,😂🤣]*", re.IGNORECASE)
_BEFORE_LAUGH = re.compile(
    r"\s*[,;:…–—]+\s|\s+(?:and|but|so|because|cause|though|which)\s+(?=(?:I|we|she|he|they|it|that|my|the)\b)"
)
_REQUEST = re.compile(
    r"(?:,|;|\s[-–—]+)\s+(?:(?:so|and|but|also|then|please)\s+)*(?:(?:could|can|would|will) you|any (?:ideas?|tips?"
    r"|suggestions?|advice|recommendations?|thoughts)|what|how (?:do|can|should|would|could|about|much|many|long)|which"
    r"|where|should I|do you|is there|are there|can I|could I|may I|can we)\b[^?]*\?+$",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:(?:so|and|but|ok|okay|hey|hi|well|oh|also|btw)[,!]? )*(?:what|how|which|where|when|who|why|is|are|am|was|do"
    r"|does|did|can|could|would|will|should|may|have you|has|any)\b",
    re.IGNORECASE,
)
_AS_SAID = re.compile(
    r",? as (?:he|she|they|I|we|(?:my|the) [a-z-]+) (?:always )?(?:says?|said|puts? it|calls? it"
    r"|mentioned)\b(?=[,;.!]|$)",
    re.IGNORECASE,
)

_IRONY = re.compile(
    r"\W*(?:(?:oh|ah|ugh|yay|well|just)[, ]+(?:(?:how|just) )?(?:joy\b(?=[,!. …-])|(?:great|wonderful|fantastic"
    r"|brilliant|lovely|perfect|fabulous|fun|marvell?ous)\b[,!. …-]+(?:I|we)"
    r" (?:just |really |so |absolutely |simply )?(?:love|adore|enjoy)\b)"
    r"|(?:wow|gee|ugh|yay)[, ]+(?:I|we|don't I|don't you) (?:just|really|so|absolutely|simply) (?:love|adore|enjoy)\b"
    r"|(?:oh[, ]+)?yeah[, ]+right\b)",
    re.IGNORECASE,
)
"""The beginning of a sentence that is meant ironically."""


def begins_with_laugh(sentence: str) -> bool:
    """Return True if a sentence begins with a laugh, or is one: it is about the sentence before."""
    return _LAUGH.match(sentence[:100]) is not None


def without_laughter(sentence: str) -> str:
    """Return the sentence without a laugh at its beginning, and without the clause before a laugh within it.

    "As she says" is left out as well.
    """
    if match := _LAUGH.match(sentence):
        sentence = sentence[match.end() :]
    match = _LAUGH.search(sentence)
    if match is None:
        return _AS_SAID.sub("", sentence)
    ends = [joint.start() for joint in _BEFORE_LAUGH.finditer(sentence[: match.start()].rstrip(" ,"))]
    return _AS_SAID.sub("", sentence[: ends[-1]]) if ends else ""


def without_request(sentence: str) -> str:
    """Return the statement before a request or question in the same sentence: "I have asthma, can I dive there?"."""
    match = _REQUEST.search(sentence) if sentence.endswith("?") else None
    return sentence if match is None or _ASKS.match(sentence) else sentence[: match.start()]


def is_ironic(sentence: str) -> bool:
    """Return True for a sentence that says the opposite: "Oh great, I just love queues", "I adore paperwork 🙄"."""
    return "🙄" in sentence or _IRONY.match(sentence) is not None
