"""Sentences that ask to forget something that was said, as in "Forget what I said about my address".

Only plain English orders to the assistant are read, and only whole sentences: "I always forget my keys" and "Don't
forget my birthday" ask for nothing. What is asked for is either a topic, some words that a claim must have, or a
statement that the user takes back. A reason may follow ("…, that was private").

To add a form, add what asks to `_ASKING`, what it asks to forget to `_OBJECTS`, or both as a whole to `_WHOLE`.
"""

import re
from dataclasses import dataclass

from memory.extraction.rules.nouns import CODE, CREDENTIAL
from memory.extraction.rules.words import CITIES, COMMON_CAPITALS, COUNTRIES, REGIONS, TOWNS
from memory.scoring import MAX_STATEMENT_CHARACTERS

_TOPIC = r"(?P<topic>[\w'][\w' -]{1,59}?)"
_OWN = rf"(?P<own>my|our) {_TOPIC}"
_NAME = r"(?-i:[A-Z])[\w-]+"
_SAID = (
    r"(?:have )?(?:ever |just )?(?:said|told you|mentioned|talked|shared(?: with you)?|wrote)"
    r"(?: (?:anything|something))?(?: (?:earlier|before|to you))?"
)
_ALL = r"(?:everything|anything|all|all of what|whatever|what)(?: that)?"
_KEEP = r"(?:remember|memori[sz]e|store|save|keep|know|note|record)"
_VERB = r"(?:is|are|am|was|were|has|have|had|lives?|works?|likes?|loves?|hates?|can't|cannot|doesn't|isn't|aren't)"
_CLAUSE = rf"(?=[^,;]{{0,80}}(?: {_VERB}|'(?:s|m|ve|re)) )"
_STATED = rf"(?P<stated>(?:(?:i|i'm|i've|my|we|we're|our)\b|(?:(?:she|he|they)\b|{_NAME}\b){_CLAUSE}).{{3,200}}?)"
_STATED_AS_CLAUSE = rf"(?P<stated>(?:(?:i|i'm|i've|we|we're)\b|(?:my|our)\b{_CLAUSE}).{{3,200}}?)"
_ASKED_FOR = {
    r"where (?:i|we) live(?: now)?": "home",
    r"where i(?:'m| am) from": "hometown",
    r"(?:where i work|who i work for|what i do(?: for (?:a living|work))?|what my job is)": "job",
    r"how old i am": "age",
    r"when i was born": "birthday",
    r"(?:what|how much) i (?:earn|make)": "salary",
    r"what i(?:'m| am) called": "name",
    r"(?:what|which \w+) i(?:'m| am) allergic to": "allergy",
    r"(?:where|when|what|who|how \w+|whether) (?:my|our) [\w' -]{2,60}": "",
}
"""Indirect questions and their topics. What the last one asks for is no topic of claims."""
_INDIRECT = "|".join(rf"(?P<asked{place}>{words})" for place, words in enumerate(_ASKED_FOR))
_FORGET = r"(?:forget|erase from (?:your|the) memory)(?: about)?"
_UNWANTED = (
    rf"(?:(?:please (?:don't|do not|never)|you (?:should|must) not) (?:remember|memori[sz]e|store)"
    rf"|i(?: really)? (?:don't|do not|didn't|did not) want you to {_KEEP}"
    rf"|i(?:'d| would) (?:rather|prefer)(?: it| that)?(?: if)? you (?:forgot|(?:didn't|did not) {_KEEP})"
    r"|(?:stop|no longer) remember(?:ing)?)"
)
_GIVEN = r" (?:that )?i (?:(?:just )?(?:gave|told|sent)(?: to)?(?: you)?|shared(?: with you)?|mentioned)(?: earlier)?"
_SECRET = rf"(?:(?:{CREDENTIAL}|{CODE})(?: (?:code|number))?)"
_PERSONAL = (
    r"(?:address(?:es)?|(?:phone|mobile|cell|telephone) number|birthday|date of birth|salary|income|age|allerg(?:y|ies)"
    rf"|diagnosis|medications?|{_SECRET})"
)
"""What users say of themselves, rather than what programs keep for them: "delete my last order"."""
_RECORD = r"(?:memori[sz]e|store|save|keep|record|note(?: down)?)"
_FORMS_OF_FORGETTING = (
    rf"(?:{_FORGET}|delete|remove|erase) {_ALL} i(?:'ve)? {_SAID}(?: (?:about|on|regarding) {_TOPIC})",
    rf"{_FORGET} (?:that )?i(?:'ve)? {_SAID} that {_STATED}",
    rf"{_FORGET} (?:that )?i(?:'ve)? {_SAID} {_STATED_AS_CLAUSE}",
    rf"{_FORGET} (?:that )?i(?:'ve)? {_SAID} (?:about|on|regarding) {_TOPIC}",
    rf"{_FORGET} (?:that )?i(?:'ve)? (?:ever )?(?:mentioned|shared|told you|gave you) {_OWN}",
    rf"(?:{_FORGET} (?:the fact )?|(?:delete|remove|erase) the fact )that {_STATED}",
    rf"{_FORGET} (?:my|our|all|all my|all of my) (?:personal )?(?:data|details|information|info|memories)",
    rf"{_FORGET} {_OWN}(?:{_GIVEN})?",
    rf"{_FORGET} (?:{_INDIRECT})",
    rf"{_FORGET} (?P<topic>{_NAME}'s [\w' -]{{2,50}}?)",
    rf"forget about (?P<who>{_NAME}(?: {_NAME})?)",
    rf"{_FORGET} the (?P<topic>(?:[\w'-]+ ){{0,4}}?{_SECRET}(?: (?:for|to|of) [\w' -]{{2,40}}?)?)(?:{_GIVEN})?",
    rf"{_FORGET} the {_TOPIC}(?P<own>{_GIVEN})",
)
_WHOLE = (
    rf"{_UNWANTED} (?:that )?{_STATED_AS_CLAUSE}",
    rf"{_UNWANTED} {_OWN}",
    rf"{_UNWANTED} (?:{_INDIRECT})",
    rf"(?:do not|don't|never) remember (?:that )?{_STATED}(?=,? please)",
    rf"(?:do not|don't) (?:remember|{_RECORD}) that {_STATED_AS_CLAUSE}",
    rf"(?:do not|don't) {_RECORD} (?P<own>my) (?P<topic>(?:[\w'-]+ ){{0,3}}?{_PERSONAL})",
    (
        rf"(?:forget|delete|remove|erase) {_ALL} you(?:'ve)? (?:know|have|remember(?:ed)?|stored|saved|noted|learned)"
        rf"(?: stored| saved)?(?: about (?:me|{_TOPIC}))?"
    ),
    rf"forget everything about (?:me|{_TOPIC})",
    rf"(?:delete|erase) everything about (?:me|{_OWN})",
    rf"(?:delete|remove|erase) {_OWN} from (?:your|the) (?:memory|memories|notes|records)",
    rf"(?:delete|erase|remove) (?P<own>my|our) (?P<topic>(?:[\w'-]+ ){{0,3}}?{_PERSONAL})",
    r"(?:delete|erase) (?:all )?(?:of )?my (?:personal )?(?:data|details|information|info|memories)",
)
_PLEASE = r"(?:,? (?:please|pls|plz|thanks|thank you|thx|ok(?:ay)?|for me|(?:will|would|can|could) you)){0,3}"
_WHY = (
    r"(?:(?:[,;] |\s[-–—]+ | (?=(?:because|since)\b))(?:(?:because|since|as|and) )?"
    r"(?P<why>(?:(?:that|it|this|which)(?: |'s )(?:is |was )?(?:a mistake|an error|private|personal|confidential|secret"
    r"|wrong|untrue|not true|outdated|old|nobody's business|none of)|you (?:don't|do not|should|shouldn't|needn't) "
    r"|i(?: |'m |'ve |'d ))(?!.*(?<!n't )(?<!not )\b(?:want|need|fancy|feel like|hate|love)\b).{0,120}?))?"
)
_FORMS = tuple(
    re.compile(rf"{form}{_PLEASE}{_WHY}\s*[.!]*", re.IGNORECASE) for form in (*_FORMS_OF_FORGETTING, *_WHOLE)
)
_MAY_ASK = re.compile(
    r"\b(?:forg[eo]t|remember|memori|delete|erase|remove|want you to|you didn't|you did not"
    r"|(?:don['’]t|do not) (?:store|save|keep|record|note))",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?:(?:please|pls|plz|ok(?:ay)?|hey|hi|actually|sorry|no|wait|and|also|just|then|now|oh|"
    r"(?:can|could) you|(?:would|will) you(?=.*\bplease\b)|i(?:'d| would) like you to|"
    r"i (?:want|need) you to|you (?:can|should|may))"
    r"[,!.:]?\s+)+",
    re.IGNORECASE,
)
_NOT_SAID = re.compile(
    r"\b(?:it|that|this|them|those|these|last|previous|question|request|message|order|idea|suggestion|comment|prompt"
    r"|instructions?|rules?|plan|point|answer|tonight|today|tomorrow|now|for (?:a|an|one))\b|^(?:me|myself)$",
    re.IGNORECASE,
)
"""Topics that no claim is about: what somebody said a moment ago, and what is to be left aside for a while."""
_LEFT_ASIDE = re.compile(r"\b(?:diets?|budget|calories|schedule|deadline)$", re.IGNORECASE)
"""Topics that one leaves aside for a reason: "Forget my diet, it's Christmas"."""
_JOINED = re.compile(r"(?<=\w),?\s(?:and|but|then|or)\s", re.IGNORECASE)
_ASKED = re.compile(r"(?:i|we) (?:ever )?(?:asked|said|brought|wrote|texted|called)\b", re.IGNORECASE)
_NO_NAMES = COMMON_CAPITALS | CITIES | COUNTRIES | REGIONS | TOWNS


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetWords:
    """A wish to forget a `topic`, or what was `stated`; everything, or nothing certain, if both are empty.

    `is_own` is True for "my address", and `is_name` for "forget about Alex". `rest` is what the sentence says besides:
    a reason, or what it asks then. `is_joined` is True if the topic or statement may be two.
    """

    topic: str = ""
    stated: str = ""
    is_own: bool = False
    is_name: bool = False
    rest: str = ""
    is_joined: bool = False


def may_ask_to_forget(text: str) -> bool:
    """Return False for a text that has none of the words of requests to forget something."""
    return _MAY_ASK.search(text) is not None


def read_forget_words(sentence: str) -> ForgetWords | None:
    """Return what a sentence asks to forget; None if it asks for no such thing."""
    sentence = sentence.replace("’", "'").strip()
    if len(sentence) > MAX_STATEMENT_CHARACTERS or not may_ask_to_forget(sentence):
        return None
    lead = _BEFORE.match(sentence)
    # a question is a request only after "can you" and the like
    orders = [sentence, sentence[lead.end() :].rstrip("?")] if lead else [sentence]
    found = (form.fullmatch(order.strip()) for order in orders for form in _FORMS)
    match = next(filter(None, found), None)
    return _read(match) if match else None


def _read(match: re.Match[str]) -> ForgetWords | None:
    found = {name: words for name, words in match.groupdict().items() if words}
    topic, stated, why, who = (found.get(name, "") for name in ("topic", "stated", "why", "who"))
    own = re.match(r"(?:my|our) ", topic, re.IGNORECASE)
    topic = topic[own.end() :] if own else re.sub(r"^the ", "", topic, flags=re.IGNORECASE)
    asked = next((topic for place, topic in enumerate(_ASKED_FOR.values()) if f"asked{place}" in found), "")
    is_aside = _NOT_SAID.search(topic) or (why and _LEFT_ASIDE.search(topic))
    if (topic and is_aside) or _ASKED.match(stated) or (who and not _NO_NAMES.isdisjoint([who, who.lower()])):
        return None
    is_own = own is not None or "own" in found or bool(asked)
    joined = _JOINED.search(topic or stated)
    rest = why or (topic[joined.end() :] if joined and topic else "")
    return ForgetWords(
        topic=who or asked or topic,
        stated=stated,
        is_own=is_own,
        is_name=bool(who),
        rest=rest,
        is_joined=joined is not None,
    )
