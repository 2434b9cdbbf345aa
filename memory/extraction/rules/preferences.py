"""Likes and dislikes: "loves jazz", "does not like coffee", "prefers tea to coffee"."""

import re

from memory.extraction.rules.phrases import Voice, cut, phrase
from memory.extraction.rules.statements import LIKINGS
from memory.extraction.rules.verbs import Form, Predicate

_NO_TOPIC = re.compile(
    r"(?:how|that|when|what|where|who|to be able|to see|to hear|to know|to think|to say"
    r"|the way|the idea|the fact|being able"
    r"|having been|all|every|my life|myself|catching up|talking|chatting|the (?:sound"
    r"|look|experience|support|vibe|vibes"
    r"|idea|colors?|feeling|way|view|energy|atmosphere|memories|concept|passion|enthusiasm|painting|picture|photo)"
    r"|to (?:see|hear|go|come|join|have|do|know|be)|getting to|watching them|me)\b"
)
# "the ending" is that of what was just spoken of
_THAT_ONE = re.compile(
    r"the (?!(?:sea|ocean|beach|mountains|sun|rain|outdoors|cold|heat|snow|forest|woods|countryside|city"
    r"|theat(?:er|re)|opera|cinema|circus|ballet|news|weekends?|night|desert|internet)\b|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_OVER = re.compile(r"(?P<topic>.{1,80}?) (?:over|to|more than|rather than|instead of) (?P<other>.{1,80})")


def liking_of(predicate: Predicate, text: str, voice: Voice) -> tuple[str, str, str] | None:
    """Topic, how it is liked, and the verb of the claim where it is another than what was said."""
    if predicate.verb == "prefer":
        return _preference(predicate, text, voice)
    is_told = predicate.form in (Form.PRESENT, Form.NEGATED, Form.NO_LONGER, Form.USED_TO, Form.PAST, Form.PERFECT)
    topic = phrase(cut(text), voice) if is_told and not (_NO_TOPIC.match(text) or _THAT_ONE.match(text)) else ""
    if not topic:
        return None
    how = LIKINGS[predicate.verb]
    if predicate.form is Form.NEGATED:
        # "I don't love it" and "I don't hate it" say less than they seem to
        return (topic, "dislikes", "dislikes") if predicate.verb in ("like", "enjoy") else None
    return topic, "dislikes" if predicate.form is Form.NO_LONGER else how, ""


def _preference(predicate: Predicate, text: str, voice: Voice) -> tuple[str, str, str] | None:
    if predicate.form is not Form.PRESENT:
        return None
    match = _OVER.match(text)
    topic = phrase(cut(match["topic"] if match else text), voice)
    other = phrase(cut(match["other"]), voice) if match else ""
    if not topic or (match and not other):
        return None
    return (f"{topic} over {other}", f"prefers it over {other}", "") if other else (topic, "prefers", "")
