"""Questions of users about themselves, and the statements that answer them in other words. English.

"Where do I live?" shares no word with "I moved to Lisbon in March", and their vectors are not near. So for what people
ask most of an assistant that should know them, a table says what a statement speaks of that answers it. It is read of
facts ("The user moved to Lisbon") and of what users say themselves ("I moved to Lisbon").
"""

import re
from typing import NamedTuple

_WHO = (
    r"\b(?:i|we|(?:the )?user)(?:['’](?:ve|m|re|d|s))?(?: (?:have|has|am|is|are|just|now|also|recently|really|still))* "
)
_IS = r"\b(?:i(?:['’]m| am)|(?:the )?user is) (?:also )?"
_OWN = r"\b(?:my|our|user['’]s) (?:\w+ )?"
_ANIMALS = "dog|cat|puppy|kitten|horse|pony|parrot|bird|rabbit|bunny|hamster|fish|turtle|tortoise|pet"
_FAMILY = (
    "wife|husband|mother|mum|mom|father|dad|parents?|brothers?|sisters?|siblings?|sons?|daughters?|kids?|child|children"
    "|baby|twins|grand(?:mother|father|parents|son|daughter|children|ma|pa)|uncle|aunt|cousins?|nephews?|nieces?"
)
_PARTNERS = "wife|husband|partner|girlfriend|boyfriend|fiancée?|spouse"
_CHILDREN = "children|kids|siblings|brothers?|sisters?|sons?|daughters?"
_HAVE = r"do (?:i|we) (?:still )?have "


class _Topic(NamedTuple):
    """A pattern of questions, and the pattern of the statements that answer them."""

    asked: re.Pattern[str]
    answers: re.Pattern[str]


def _topic(asked: str, answers: str) -> _Topic:
    return _Topic(re.compile(asked, re.IGNORECASE), re.compile(answers, re.IGNORECASE))


_TOPICS = (
    _topic(
        r"\bwhere (?:do|am) i (?:now |currently )?(?:live|living|based|at home)\b|\bwhere(?: is|['’]s) (?:my )?home\b"
        r"|\b(?:what|which) (?:city|town|country|place|area|district|street) (?:do|am) i\b|\bmy address\b",
        rf"{_WHO}(?:lives?|living|based|moved(?! (?:the|my|our|it|this|that)\b)|relocated|resides?)\b"
        rf"|{_OWN}(?:address|flat|house|apartment|home)\b",
    ),
    _topic(
        r"\b(?:where|for whom|who|what) do i (?:now |currently )?(?:work|do for (?:a living|work))\b(?! on| out| with)"
        r"|\b(?:what|where|who)(?: is|['’]s) my (?:current |new |own )?(?:job|work|occupation|profession|employer)\b"
        r"|\bwho employs me\b"
        r"|\b(?:what|which) (?:company|firm)\b.*\b(?:i|me)\b",
        rf"{_WHO}(?:work(?:s|ing)?|employed|started (?:an? |my |their )?(?:new )?job|joined)\b|{_OWN}(?:job|employer)\b"
        rf"|{_IS}an? (?:\w+ ){{0,3}}(?:\w+(?:er|or|ist|ian|ant)|nurse|chef|clerk|analyst)\b",
    ),
    _topic(
        r"\bhow old am i\b|\bmy (?:age|birthday|birth ?date|date of birth)\b|\bwhen was i born\b",
        rf"{_WHO}(?:\d{{1,3}}(?: years old)?(?=[.,;!]|$| and)|turn(?:s|ed|ing) \d|born\b)|{_OWN}(?:birthday|age)\b",
    ),
    _topic(
        r"\bwhat(?: is|['’]s) my (?:(?:full|first|last|own) )?name\b|\bwho am i\s*\?*$",
        rf"{_OWN}name is\b|{_WHO}called\b|\bi['’]m (?-i:[A-Z])",
    ),
    _topic(
        r"\bam i (?:married|single|engaged|divorced|in a relationship)\b|\bmy (?:marital|relationship) status\b"
        rf"|\b{_HAVE}an? (?:{_PARTNERS})\b|\bwho am i (?:married|dating|seeing|with)\b",
        rf"{_OWN}(?:{_PARTNERS})\b|{_WHO}(?:married|engaged|single|divorced|widowed|dating|seeing)\b",
    ),
    _topic(
        rf"\bhow many (?:{_CHILDREN})\b|\b{_HAVE}(?:any |a )?(?:family|{_CHILDREN})\b|\b(?:in|about) my family\b",
        rf"{_OWN}(?:{_FAMILY})\b|{_WHO}(?:has |have )?.{{0,40}}\b(?:{_CHILDREN})\b",
    ),
    _topic(
        rf"\b(?:my|any) pets?\b|\b{_HAVE}(?:an? |any )?(?:pets?|dogs?|cats?|animals?)\b",
        rf"{_OWN}(?:{_ANIMALS})\b|{_WHO}(?:have|has|got|owns?|own|adopted) .{{0,30}}\b(?:{_ANIMALS})s?\b",
    ),
    _topic(
        r"\bwhat (?:do|am) i (?:like|love|enjoy|into|interested in|do for fun|do in my (?:free|spare) time)\b"
        r"|\bmy (?:hobby|hobbies|interests|passions?|likes)\b",
        rf"{_WHO}(?:likes?|loves?|enjoys?|adores?|into|plays?|a fan of|interested in)\b"
        rf"|{_OWN}(?:hobby|hobbies|favou?rite)\b",
    ),
    _topic(
        r"\b(?:my|any) (?:diet|dietary|food|allerg)|\b(?:can|can['’]t|should|may) i (?:not )?eat\b|\bam i allergic\b",
        rf"{_WHO}(?:not |an? )?(?:allergic|intolerant|vegetarian|vegan|pescatarian|coeliac|celiac|diabetic)\b"
        rf"|{_WHO}(?:do(?:es)? not|do(?:es)?n['’]t|can['’]t|cannot|never) eat\b|{_OWN}(?:diet|\w*allergy)\b",
    ),
    _topic(r"\bwhat (?:do|can) you (?:know|remember|tell me) about me\b", rf"{_WHO}|{_OWN}|\bi['’]m\b"),
)


def patterns_of_answers(question: str) -> list[re.Pattern[str]]:
    """Return the patterns of statements that answer a question about the asker; none for other questions."""
    return [topic.answers for topic in _TOPICS if topic.asked.search(question)]
