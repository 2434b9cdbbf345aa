"""Restatements: sentences in other words that the rules read, where the speaker's words would take rules of their own.

"Sam and I split up" is "I split up with Sam", "I'm vegan but my wife isn't" ends in "my wife is not vegan", "I had to
cancel the trip" is "I cancelled the trip", "my doctor stopped the metformin" is "I stopped taking metformin",
"I'm vegan and allergic to nuts" has its subject twice, "As a vegan I avoid eggs" says "I am a vegan", and
"I've been vegan since uni" is "I am vegan since uni", "I take Ramipril, 5 mg" is "I take 5 mg of Ramipril",
"I traded the Golf in" is "I sold the Golf",
"Acme let me go" is "I was let go by Acme", "go live is" is "go-live is", and "I'm starting at Acme as a nurse on
Monday" is "I start at Acme as …".
"""

import re

from memory.extraction.rules.ailments import DRUG
from memory.extraction.rules.endings import PARTNER, WHEN_PARTED
from memory.extraction.rules.names import ADJECTIVES, NAME, PERSON
from memory.extraction.rules.words import PERSON_RELATIONS, PROFESSIONS, words

IS_DOING = (
    r"(?![a-z]+ing(?: (?!(?:and|but|who|that|because|if|when|me|us|him|her|it|them|an?|the|my|our|to|in|at|on|for"
    r"|with)\b)[\w-]+){1,3} (?:is|are|was|were|has|had|will|meets?|starts?|begins?|began|ends?|moves?|moved|got|gets"
    r"|costs?|takes?|took|runs?|goes|went|needs?|lasts?|opens?|closes?|started|ended|finished|changed)\b)[a-z]+ing"
)
"""What somebody is doing behind "'s", but not their thing: "Tom's reading a lot", not "Tom's reading age is 9"."""
MAX_STATES = 4
"""States of one subject of which the later ones leave it out."""
_RELATIVE = (
    rf"[Mm]y (?:(?:{ADJECTIVES}) )*(?:{'|'.join(sorted(PERSON_RELATIONS, key=len, reverse=True))})(?: {PERSON})?"
)
_BEGIN = r"(?:^|(?<=[,;:.] )|(?<=\band )|(?<=\bbut )|(?<=\bso )|(?<=\bbecause ))"
_PARTED = re.compile(
    rf"{_BEGIN}(?P<who>{_RELATIVE}|[Mm]y [a-z'-]+(?: [a-z'-]+)?|{PERSON}) and I "
    r"(?:have |are |had )?(?:(?:just|finally|recently|now) )*"
    r"(?P<how>(?:got )?divorced|split(?: up)?|broken? up|broke up|(?:got )?separated)"
    rf"(?=$|[.,;!]| (?:and|but|so|after)\b| {WHEN_PARTED})"
)
_PARTNER = re.compile(rf"\b(?:{PARTNER}|ex|ex-\w+|missus|other half|man|girl|lover|date|fella|bloke)\b")
_COMPANIES = words("Google Apple Amazon Microsoft Meta Facebook Instagram Twitter Netflix Tinder Uber Slack")
_PARTING = {"di": "got divorced from", "sp": "split up with", "br": "broke up with", "se": "separated from"}
_PROFESSIONAL = (
    r"(?i:doctors?|gp|dr|consultant|specialist|cardiologist|psychiatrist|neurologist|nurse|dentist|oncologist"
    r"|rheumatologist|pharmacist|surgeon)"
)
_HAS = r"(?:has |have )?(?:just |now )?"
_TAKEN_OFF = re.compile(
    rf"(?:{_BEGIN}(?:[Mm]y|[Tt]he) {_PROFESSIONAL} {_HAS}(?:(?:took|taken|take) me off (?:the |my )?"
    r"|(?:stopped|discontinued) my )"
    rf"|(?:{_BEGIN}[Mm]y|^[Tt]he) {_PROFESSIONAL} {_HAS}(?:stopped|discontinued) (?:the )?)(?P<what>{DRUG})"
)
_OFF_DRUG = re.compile(
    rf"{_BEGIN}I (?:am|came|have come|got) (?:now |finally |completely |fully )*off (?:the |my )?(?P<what>{DRUG})"
)
_AMOUNT_OF_DRUG = r"\d[\d.,]* ?(?:mg|mcg|µg|g|ml|iu|units|tablets?|pills?|drops|puffs)"
_NEW_DOSE = re.compile(
    rf"{_BEGIN}I am (?:now |back )?(?:down|up|now) (?:to|on) (?P<dose>{_AMOUNT_OF_DRUG})(?: of)? (?P<what>{DRUG})"
)
_TRADED_IN = re.compile(
    rf"{_BEGIN}(?P<who>I|[Ww]e) (?:have )?(?:just |finally )?(?:traded in|traded(?= [\w' -]{{2,30}} in\b))"
    r" (?P<what>(?:(?:my|our) [\w' -]{2,30}?|the (?:[A-Z][\w-]*|(?:old )?(?:car|van|bike|truck|phone|laptop))))"
    r"(?: in)?(?=$|[.,;!]| (?:for|and|but|so|because|last|on|yesterday)\b)"
)
_DOSE = re.compile(rf"(?<= )(?<!is )(?P<what>{DRUG}|[A-Z][a-z]+), (?P<dose>{_AMOUNT_OF_DRUG}\b(?! of\b))")
_HOW_OFTEN = re.compile(
    r",(?= (?:every (?:other |second )?(?:day|night|morning|evening|week|month|weekday|\w+day)|(?:once|twice) an? \w+"
    r"|(?:three|four) times a \w+|in the (?:mornings?|evenings?)|on \w+days)\b"
    r"(?:(?! (?:I|[Ww]e|[Ss]he|[Hh]e|[Ii]t|[Tt]hey|[Mm]y|[Oo]ur|is|are|was)\b)[^,;])*$)"
)
_STILL = re.compile(
    r"(?:(?<=\b(?P<who>I))|(?<=\b[Ss]he)|(?<=\b[Hh]e)|(?<=\w\w)) (?:have|has) been(?= (?:an? )?(?:strictly |strict )?"
    r"(?:vegetarian|vegan|pescatarian|c(?:o)?eliac|diabetic|lactose[ -]intolerant|allergic to [^,;]{2,40}?)"
    r" (?:since|for)\b)"
)
_CANCELLED = re.compile(
    rf"{_BEGIN}(?P<who>I|[Ww]e) (?:have )?(?:just )?(?:(?:had|decided) to (?:cancel|call off)|called off)"
    r"(?= (?:the|my|our)\b)"
)
_DISMISSED = re.compile(
    rf"{_BEGIN}(?:(?P<who>(?!(?:I|We|You|He|She|They|It|That|This|Who|Which)\b){PERSON}|[Tt]he [\w' -]{{2,40}}?)"
    r"|[Mm]y (?:boss|job|company|employer))"
    rf" {_HAS}(?:(?P<let>let me go)|(?P<laid>laid me off)|(?P<fired>fired me|sacked me))"
    r"(?=$|[.,;!]| (?:and|but|so|because|after|yesterday|today|last|this|in|on)\b)"
)
_STARTING = re.compile(
    rf"\b(?:am|(?P<third>is)) starting (?=(?:at|for|with) {NAME} as an? [^.,;]{{2,40}}? "
    r"(?:on|in|from|next|this|tomorrow)\b)"
)
_DIET = r"(?:vegan|vegetarian|pescatarian|diabetic|c(?:o)?eliac|teetotaler|teetotaller)"
_STATE = (
    r"(?:also )?(?:(?:(?:severely|highly|badly|mildly) )?(?:allergic|intolerant) to\b"
    rf"|(?:strictly )?(?:{_DIET}|(?:lactose|gluten)[ -]intolerant|asthmatic|epileptic|pregnant|teetotal|deaf|dyslexic"
    r"|colou?r[ -]blind|married|divorced|widowed|single|retired)"
    r"(?=$|[.,;!]| (?:and|but|so|since|because|too|as well)\b)"
    rf"|an? (?:strict )?{_DIET}\b)"
)
_AND_STATE = re.compile(
    rf"{_BEGIN}(?P<who>I|{_RELATIVE}|[Ss]he|[Hh]e) (?P<be>am|is) (?P<first>(?!not\b|\w+ing\b)"
    r"(?:(?!\b(?:am|is|are|was|were|has|have|I|[Mm]y|[Ww]e|[Hh]e|[Ss]he|who|if|when|of|for|with|between|like)\b)[^;.!?]){2,80}?)"
    rf"(?:,? and|,) (?={_STATE})"
)
_AS_A = re.compile(
    rf"^As an? (?P<what>(?P<diet>(?:strict |lifelong )?{_DIET})|(?:[a-z]+ )?(?:{'|'.join(sorted(PROFESSIONS))})),? "
    r"(?=I (?!\w+ed\b|was\b|had\b|did\b|went\b|saw\b|got\b"
    r"|(?:could|would|might|can|should|must|may|want|need|wish|expect|am able)\b))"
)
_GO_LIVE = re.compile(
    r"(?P<go>\b[Gg])o live(?= (?:is|was|will be|has been|gets?|got|moves?|moved|slips?|slipped|to (?:the )?\d|date)\b)"
)
_BUT_NOT = re.compile(
    r"(?P<first>(?:^|.*[,;] )(?:I am|[Mm]y [\w' -]{2,40}? is|[A-Z][\w'-]+ is)(?P<not> not)? "
    r"(?P<what>(?!(?:going|sure|in|on|at)\b)[a-z][\w' -]{2,60}?)),? "
    rf"(?:but (?P<who>{_RELATIVE}|{PERSON}|I) (?P<verb>is|am|is not|am not|isn't)"
    rf"|and (?:so|neither) (?:is|am) (?P<also>{_RELATIVE}|{PERSON}|I))(?P<end>[.!]*$|[,;] .*)"
)


def restate(sentence: str) -> str:
    """Return a sentence in words that the rules read, or the sentence as it is."""
    sentence = _PARTED.sub(lambda match: _parted(match) if _may_be_partner(match["who"]) else match[0], sentence)
    sentence = _TAKEN_OFF.sub(r"I stopped taking \g<what>", sentence)
    sentence = _OFF_DRUG.sub(r"I stopped taking \g<what>", sentence)
    sentence = _NEW_DOSE.sub(r"I now take \g<dose> of \g<what>", sentence)
    sentence = _TRADED_IN.sub(r"\g<who> sold \g<what>", sentence)
    sentence = _DOSE.sub(r"\g<dose> of \g<what>", sentence)
    sentence = _HOW_OFTEN.sub("", sentence)
    sentence = _STILL.sub(lambda match: " am" if match["who"] == "I" else " is", sentence)
    sentence = _CANCELLED.sub(r"\g<who> cancelled", sentence)
    sentence = _DISMISSED.sub(_dismissed, sentence)
    sentence = _STARTING.sub(lambda match: "starts " if match["third"] else "start ", sentence)
    sentence = _GO_LIVE.sub(r"\g<go>o-live", sentence)
    sentence = _AS_A.sub(lambda match: f"I am {'' if match['diet'] else 'a '}{match['what']}, ", sentence)
    for _ in range(MAX_STATES):
        sentence = _AND_STATE.sub(_with_subject, sentence)
    match = _BUT_NOT.fullmatch(sentence)
    return _with_both(match) if match else sentence


def _with_subject(match: re.Match[str]) -> str:
    """Return "I am vegan, I am" for "I am vegan and" before "allergic to nuts"."""
    who = f"{match['who'][:1].lower()}{match['who'][1:]}" if match["who"] != "I" else "I"
    return f"{match['who']} {match['be']} {match['first']}, {who} {match['be']} "


def _may_be_partner(who: str) -> bool:
    """Return True for "Sam", "my wife" and "my ex", whom somebody splits up with: not for "my mum", "Google"."""
    return _PARTNER.search(who) is not None if who[:3] in ("My ", "my ") else who not in _COMPANIES


def _parted(match: re.Match[str]) -> str:
    how = match["how"].removeprefix("got ")
    return f"I {_PARTING[how[:2]]} {match['who']}"


def _dismissed(match: re.Match[str]) -> str:
    """Return "I was let go by Acme" for "Acme let me go", and "I was laid off" for "my company laid me off"."""
    how = "let go" if match["let"] else "laid off" if match["laid"] else "fired"
    return f"I was {how} by {match['who']}" if match["who"] else f"I was {how}"


def _with_both(match: re.Match[str]) -> str:
    """Return "I am not allergic to nuts, my son is allergic to nuts" for "I'm not allergic to nuts but my son is"."""
    is_denied = match["not"] is not None
    denies = is_denied if match["also"] else match["verb"] not in ("is", "am")
    if match["who"] and denies == is_denied:
        return match[0]
    who = match["who"] or match["also"]
    verb = f"{'am' if who == 'I' else 'is'}{' not' if denies else ''}"
    return f"{match['first']}, {who} {verb} {match['what']}{match['end']}"
