"""Requests in the form of a question that order something lasting: "can you always answer in French?", "no tabs, ok?".

Other questions stay what they are: "can you add a test?" is over when it is done, and "can you swim?" orders nothing.
"""

import re

from memory.extraction.rules.words import words
from memory.verbs import VERBS

_LEAD = (
    r"(?P<lead>(?:(?:oh|and|also|hey|hi|ok|okay|so|btw|by the way|well|fine|great|thanks|then|but|one more thing"
    r"|another thing|please|pls|next time)[,:.!]* )*)"
)
_ASKED = "|".join(
    sorted(
        words(
            "give use answer reply respond write put send show keep add format include explain list cite call remind "
            "speak start end check run mention quote convert round sign leave avoid make ask translate name label "
            "comment do"
        )
    )
)
_FORBIDDEN = "|".join(
    sorted(
        words(
            "put use add send write call commit push deploy merge touch change edit mention include suggest "
            "recommend schedule book run mock start open reply answer give log store format rename delete remove "
            "import explain apologize apologise translate repeat rewrite wake text email contact"
        )
    )
)
_LASTING = (
    r"(?:from now on|going forward|from here on|in (?:the )?future|by default|every time|at all times|from today on)"
)
_POLITE = r"(?:please |pls |maybe |perhaps |just |kindly |also )*"
_REQUEST = re.compile(
    rf"{_LEAD}(?P<since>{_LASTING},? )?(?:can|could|would|will) you {_POLITE}(?:(?P<always>(?:always|never)"
    rf" (?:{_ASKED}|{_FORBIDDEN})\b.+?)"
    rf"|not (?:ever )?(?P<not>(?:{_FORBIDDEN})\b.+?)|(?P<stop>stop [a-z]+ing\b.+?)"
    rf"|(?P<begin>{_LASTING},? .+?)|(?P<from>[a-z]+ .+? {_LASTING})|(?(since)(?P<order>[a-z]+ .+?)|(?!)))[?.! ]*",
    re.IGNORECASE,
)
_MIND = re.compile(rf"{_LEAD}would you mind not (?P<gerund>[a-z]+ing) (?P<rest>.+?)[?.! ]*", re.IGNORECASE)
_BASE_OF_GERUND = {verb.gerund: verb.base for verb in VERBS.values()}


UNTIL_I_AGREE = (
    r",? (?P<until>unless|until|before) (?:I|we) (?:(?P<have>have|had) )?(?P<agree>(?:(?:say|said) so"
    r"|(?:tell|told|ask|asked) you(?: to| otherwise)?|agreed?|approved?(?: (?:it|them))?|confirm(?:ed)?(?: it)?"
    r"|sign(?:ed)? off|ok(?:ay)?(?:ed)? (?:it|them)|(?:looked|had a look|have a look|look) at (?:it|them)"
    r"|(?:seen|see|read|check(?:ed)?|review(?:ed)?|test(?:ed)?) (?:it|them))(?: first| in writing)?)(?=[ .!,]*$)"
)
"""Pattern of the end of an order that waits for its speaker: "unless I say so", "until I have looked at it"."""
_TAGGED = re.compile(
    rf"(?P<order>{_LEAD}(?:do not|don't|dont|never|always|stop|no) .+?),? (?:ok|okay|alright|all right|right|please"
    r"|got it|understood|deal|yes|yeah)\?",
    re.IGNORECASE,
)
"""An order with a question behind it that asks for agreement: "don't deploy on Fridays, ok?"."""


def restate_request(sentence: str) -> str:
    """Return the order that a request makes ("please always answer in French"), and other sentences as they are."""
    if match := _MIND.fullmatch(sentence):
        gerund = match["gerund"].lower()
        base = _BASE_OF_GERUND.get(gerund) or gerund.removesuffix("ing")
        return f"{match['lead']}please do not {base} {match['rest']}"
    if match := _TAGGED.fullmatch(sentence):
        return match["order"]
    match = _REQUEST.fullmatch(sentence)
    if match is None:
        return sentence
    given = (match[name] for name in ("always", "stop", "begin", "from", "order"))
    order = next(filter(None, given), f"do not {match['not']}")
    order = f"{order} {match['since'].rstrip(', ')}" if match["since"] else order
    return f"{match['lead']}please {order}"
