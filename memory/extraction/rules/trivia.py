"""Claims that are true and not worth keeping: what happened once without a time or place, and half sentences."""

import re

_LASTING = (
    r"(?:operation|surgery|baby|accident|heart attack|stroke|miscarriage|transplant|injury|concussion|biopsy|fracture"
    r"|caesarean|c-section|dog|cat|horse|rabbit|childhood|upbringing|car|boat|farm|garden|aquarium|allergy|stammer)s?"
)
_UNTIMED = re.compile(rf".+ had an? (?!(?:[\w'-]+ ){{0,2}}{_LASTING}$)[a-z][\w'-]*(?: [a-z][\w'-]*){{0,2}}")
_IS_TASK = re.compile(
    r" (?:(?:is|are) (?:trying|working)|(?:have|has) (?:tried|come|completed)|needs?|saw"
    r"|wants? to (?:create|build|make|improve|write|implement|add|fix|use|find|know|understand|learn)) "
)
"""Words of claims about a task at hand, for which somebody asks for help in the same sentence."""
_BARE_NEED = re.compile(
    r".+ (?:needs?|wants?) (?:only )?(?:(?:\d|two|three|four|five|six|seven|eight|nine|ten)\w* [a-z]+"
    r"|[A-Z]{2,5}|one more"
    r"(?: \w+)?)"
)
_RARE = re.compile(
    r".+ (?:only )?gets? (?:only )?(?:about |around )?(?:\d+|one|two|three) (?:weekends?|days?|nights?|hours?"
    r"|minutes?)\b.*"
)
_ADJECTIVES = (
    "perky|chatty|pushy|cheesy|fussy|picky|messy|noisy|bossy|cheeky|preachy|salesy|wordy|flowery|formal|informal|verbose"
    "|vague|slow|loud|fast|bland|boring|fancy|plain|generic|robotic|corporate|cheerful|chirpy|cute|bubbly|peppy|upbeat"
    "|sarcastic|late|early|cold|hot|big|small|short|long"
)
_BARE_ADJECTIVE = re.compile(
    rf".+ (?:hates?|loves?|likes?|dislikes?|enjoys?|prefers?) (?:(?:too|so|very) )?(?:{_ADJECTIVES})"
)
_ALWAYS_DID = re.compile(r"[A-Z].+ always used (?!to ).+")
_GOT = re.compile(
    r".+ got the (?:job|results?|keys|letter|email|message|call|news)|.+ got an? (?:coffee|tea"
    r"|drink|beer|sandwich|snack|call|text|message|email)"
)
_OF_NOTHING = re.compile(
    r"(?:Their|Its|This|That|These|Those|They|It|His|Her) .+|.+ (?:has|have) (?:\d+|nobody.*|no one.*)"
)
"""A claim about something that it does not name."""
_OF_ANY = re.compile(
    r"(?:The |the user's )?(?:id|latest|volume|path|key|value|file|column|output|result|log|dump|pod|row|line|count"
    r"|total) (?:is|was|has|are|dies|gets?) .+",
    re.IGNORECASE,
)
"""A claim about a thing of which there are many, without its name: "The id is int4"."""
_FAILING = re.compile(
    r".+ (?:crash(?:es|ed)?|dies with|fails?|failed|hangs|hung|times out|timed out|throws|segfaults|panics)\b.*"
    r"|.+ (?:is|are) (?:(?!\bnot\b)[\w-]+ )*too [a-z]+"
)
"""What goes wrong for now."""
_ON_THE_PHONE = re.compile(
    r".+ had [A-Z].* on the phone.*|.+ (?:found|sent|saw|lost) the [a-z]+|The user starts? on \d.*"
)
_STOP_WORD = re.compile(r".+ decided (?:on|to go with) (?:WHEN|IF|AND|OR|NOT|THEN|ELSE|IN|ON|SO|FINE|YES|OK)")
_READERS = (
    _OF_NOTHING,
    _OF_ANY,
    _FAILING,
    _ON_THE_PHONE,
    _STOP_WORD,
    _GOT,
    _UNTIMED,
    _BARE_NEED,
    _RARE,
    _BARE_ADJECTIVE,
    _ALWAYS_DID,
)
_WHERE = re.compile(r" (?:at|in|on|with|for|from|near|about|of|as|to) ")


def is_task(claim: str) -> bool:
    """Return True for a claim about what somebody is doing, if they ask for help with that in the same sentence."""
    return _IS_TASK.search(claim) is not None


def is_trivial(claim: str) -> bool:
    """Return True for a claim that nobody will ask for: "The user had a fight", "The user needs two slides"."""
    found = next((pattern for pattern in _READERS if pattern.fullmatch(claim)), None)
    return found is not None and not (found is _UNTIMED and _WHERE.search(claim.partition(" had ")[2]))
