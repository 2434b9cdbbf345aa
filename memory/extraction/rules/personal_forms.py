"""Forms of what people say of themselves and of their people: abilities, conditions, refusals, appointments.

To add a form, add it to `FORMS`, and to `test_personal_rules.py` a sentence that it must read and one that it must not
read.
"""

import re
from dataclasses import dataclass

from memory.dates import MONTHS, WEEKDAYS
from memory.extraction.rules.ailments import CONDITION, CONDITION_WHERE, DRUG
from memory.extraction.rules.endings import FISH, FROM_ANIMALS, MEAT, WHEN_PARTED
from memory.extraction.rules.names import NAME
from memory.extraction.rules.words import LANGUAGES

_TAIL = (
    r"(?P<tail>(?:\s*[,.;:!(–—]|\s+-).*| (?:because|as|since|so|but|and|though|although|yet|either|too|btw|actually"
    r"|you know|and neither|unfortunately|sadly)\b.*)?"
)
_DAY = rf"(?:{'|'.join(WEEKDAYS)})"
RECURRING = (
    rf"(?:on (?:{_DAY}|week|weekend)(?:s|days)(?:(?:,| and) {_DAY}s)*(?: (?:mornings|afternoons|evenings|nights))?"
    rf"|on {_DAY} (?:mornings|afternoons|evenings|nights)"
    rf"|every (?:(?:other|second|single|few) )?(?:days?|mornings?|evening|night|weeks?|weekend|months?|year|summer"
    rf"|winter|spring|autumn|weekday|{_DAY})(?: (?:morning|afternoon|evening|night))?"
    r"|(?:once|twice|(?:two|three|four|five|six|\d) times) (?:a|per|every) (?:day|week|month|year)"
    r"|(?:one|two|three|four|five|six|\d) (?:days|nights|evenings|mornings|hours) (?:a|per) (?:week|day|month)"
    r"|most (?:mornings|evenings|nights|weekends|days)|(?:in|during) the (?:mornings|evenings)|(?:at|on) weekends?"
    r"|at the weekend)"
)
"""Pattern of words that say how often something happens."""
_REFUSED = (
    "work|manage|supervise|live|move|relocate|drive|fly|use|buy|own|rent|marry|teach|study|commute|share|join|travel"
    "|eat|drink|have|take|be|sell|retire|pay"
)
_ABILITY = (
    r"(?:swim|cook|dance|sing|whistle|ski|skate|ice[- ]skate|sew|knit|juggle|touch[- ]type|surf|dive"
    r"|drive(?: (?:an? )?(?:manual|stick|stick shift|automatic|cars?|vans?|trucks?))?"
    r"|ride (?:an? )?(?:bike|bicycle|bikes|horses?|motorbike|motorcycle)"
    r"|read (?:sheet )?(?:music|maps)"
    rf"|(?:speak|read|understand) (?:{'|'.join(sorted(LANGUAGES))})"
    r"|play (?:the )?(?:piano|guitar|violin|cello|drums|flute|chess|bridge|poker))"
)
_LANGUAGE = "|".join(sorted(LANGUAGES))
_UNABLE = (
    r"(?:swallow (?:pills|tablets)|see (?:well|in the dark)|hear (?:well|on (?:my|the) \w+ (?:ear|side))"
    r"|walk (?:far|long distances)|climb stairs|lift (?:heavy \w+|(?:more|anything)[^,;.]*)|smell|taste)"
)
_MONEY = (
    r"(?:about |around |roughly |over |almost |nearly )?[$€£]?\d[\d,.]*k?(?: ?(?:€|euros?|pounds?|dollars?"
    r"|bucks|quid|francs?|usd|eur|gbp|chf))?"
)
_PAY = (
    r"(?:about |around |just over |just under )?(?:(?:[$€£]\d{1,3}(?:,\d{3}){1,2}|[$€£]\d{4,6}|[$€£]?\d{2,3}k)"
    r"(?: (?:a|per) (?:year|month))?|[$€£]\d[\d.]* an hour)"
)
_EVENTS = (
    "appointment|check-?up|operation|surgery|scan|mri|x-?ray|biopsy|procedure|consultation|interview|exam|examination"
    "|driving test|test|viewing|flight|hearing|court date|audition|recital|concert|gig|wedding|funeral|reunion"
    "|presentation|conference|workshop|deadline|physio|physiotherapy|therapy session|session|tournament|match|race"
    "|marathon|half marathon|colonoscopy|endoscopy|mammogram|blood test|eye test|vaccination|jab|birthday party|party"
    "|dinner|lunch|meeting|call|visit|booking|reservation|trip|date|lesson|class"
)
_SHIFT = r"(?:the )?(?:lates|earlies|nights|days|(?:night|late|early|day|evening|morning|weekend) shifts?)"
_HOURS = r"(?:from )?\d{1,2}(?::\d\d)? ?(?:am|pm)? ?(?:to|till|until|-|–) ?\d{1,2}(?::\d\d)? ?(?:am|pm)?"
_LEAVE = (
    r"(?:(?:maternity|paternity|parental|sick|annual|study|unpaid|garden(?:ing)?) leave|an? sabbatical|furlough"
    r"|probation|crutches|dialysis|chemo(?:therapy)?|a (?:gluten|dairy|lactose)[- ]free diet|a low-?[\w-]+ diet"
    r"|a keto diet)"
)
_SCHOOL = (
    r"(?:(?:secondary|primary|high|middle|elementary|nursery|boarding|grammar|medical|law|business|art|drama|graduate"
    r"|night|big|pre)[ -]?school|school|university|college|uni|kindergarten|nursery|preschool|reception|year \d+"
    r"|chemo(?:therapy)?|physio(?:therapy)?|therapy|radiotherapy|dialysis|maternity leave|paternity leave"
    r"|parental leave|an apprenticeship|a phd|a master's)"
)
_ROLE = (
    r"(?P<role>(?:the |an? )?(?:(?:vice|deputy|assistant|co-?|managing|executive|senior) )?(?:head|director|chief|lead"
    r"|manager|owner|co-?founder|founder|president|chair|chairman|chairwoman|captain|editor|ceo|cto|cfo|vp|treasurer"
    r"|secretary) (?:of|at) |in charge of )"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalForm:
    """A form of what is said about a person: a pattern of the words after the subject, with the first verb as its base.

    `claim` and `attribute` are filled with the groups of the pattern. In claims, `does`, `is`, `has` and `takes` agree
    with the subject, and so does `verbs`, the group `verb` as a finite verb. The group `rest` is a value, which must be
    understood without the conversation. `is_past` is True for events. A form with `is_plan` needs a date to
    come, and one with `is_lasting` has no date.
    """

    pattern: re.Pattern[str]
    claim: str
    attribute: str
    is_past: bool = False
    is_plan: bool = False
    is_lasting: bool = False
    value: str = ""
    liking: str = ""


def _form(pattern: str, claim: str, attribute: str, **options: object) -> PersonalForm:
    return PersonalForm(pattern=re.compile(pattern), claim=claim, attribute=attribute, **options)  # type: ignore[arg-type]


FORMS = (
    _form(rf"can not (?P<verb>{_ABILITY}|{_UNABLE})(?: (?:at all|anymore|any more))?{_TAIL}", "cannot {verb}",
          "ability:{verb}", value="no"),
    _form(rf"(?:can|know how to|have learned (?:how )?to) (?:now )?(?P<verb>{_ABILITY})(?: now| again)?{_TAIL}",
          "can {verb}", "ability:{verb}", value="yes"),
    _form(rf"(?:have )?never (?:learned|learnt) (?:how )?to (?P<verb>{_ABILITY}){_TAIL}", "never learned to {verb}",
          "ability:{verb}", value="no"),
    _form(rf"do not (?P<verb>drive|smoke|vape|cook|swim|fly){_TAIL}", "{does} not {verb}", "habit:{verb}", value="no"),
    _form(r"can not (?P<verb>digest|tolerate|have) (?P<rest>(?!(?:an?|the|my|any|more|lunch|dinner|breakfast|enough"
          r"|too|much|fun|both|all)\b)[a-z][\w-]*(?: [\w-]+){0,2}?)"
          rf"(?: (?:at all|anymore|any more))?{_TAIL}", "cannot {verb} {rest}", "cannot {verb}:{rest}"),
    _form(r"can not (?P<verb>stand|bear) (?P<rest>(?!(?:up|still|on|in|at|for|straight|by|back|the|an?|that|how"
    r"|when|to|it|being|having|my|all)\b)\S.+)",
          "cannot {verb} {rest}", "attitude", liking="dislikes"),
    _form(rf"(?:do not want|never wants?) to (?P<verb>{_REFUSED}) (?P<rest>.+)", "{does} not want to {verb} {rest}",
          "refusal:{verb}", is_lasting=True),
    _form(r"(?:will never|would never|refuse to|will not ever|will never ever|would never ever) (?P<verb>work"
          r"|fly|drive|use|buy|eat|drink|live|own|wear) (?P<again>again )?(?P<rest>.+)", "will never {verb} {rest}",
          "refusal:{verb}", is_lasting=True),
    _form(r"never (?P<verb>fly|drive|use|buy|eat|drink|wear|cook"
    r"|smoke) (?P<rest>.+)", "never {verbs} {rest}", "never {verb}",
          is_lasting=True),
    _form(r"(?:have )?(?P<verb>died|passed away|pass away)(?P<rest>(?: (?:in|on|last|this|two|three"
    r"|\w+ (?:years?|months?"
          r"|weeks?) ago|a few|yesterday)\b.*)?)", "{died} {rest}", "died", is_past=True),
    _form(r"(?:have )?(?P<verb>broke|broken"
    r"|split) up with (?P<rest>(?:my )?[\w'-]+.*)", "{parted} up with {rest}", "event:break up",
          is_past=True),
    _form(rf"(?:have )?(?:broke|broken|split) up(?P<rest>(?: {WHEN_PARTED}.*)?)"
          r"[.!]*", "{parted} up {rest}", "event:break up", is_past=True),
    _form(rf"(?:have )?separated from (?P<rest>my [a-z]+|{NAME})", "separated from {rest}", "event:break up",
          is_past=True),
    _form(rf"(?P<verb>eat) (?P<what>{MEAT}|{FISH}|{FROM_ANIMALS}) (?P<now>now|again)"
          rf"(?: (?:now|these days|nowadays))?{_TAIL}",
          "{verbs} {what} {now}", "eats"),
    _form(r"(?:was|were|served) in the (?P<rest>(?:royal )?(?:navy|army|air force|marines|merchant navy|military|police"
          r"|fire service|coast guard)(?: .*)?)", "was in the {rest}", "service", is_past=True),
    _form(r"be expecting(?P<rest>(?:,? (?:due|an? baby|twins|our|my|a (?:boy|girl)|in|on"
    r"|for)\b.*)?)", "{is} expecting {rest}", "expecting"),
    _form(rf"(?P<verb>speak) (?P<rest>(?:{_LANGUAGE})(?:,? (?:and )?(?:(?:some|a little|a bit of|basic|fluent) )?"
          rf"(?:{_LANGUAGE}))+){_TAIL}", "{verbs} {rest}", "language"),
    _form(r"(?P<verb>go) to (?P<bed>bed|sleep) (?P<rest>(?:at|around|by|before|after) (?:about )?(?:\d|noon"
    r"|midnight).*)",
          "{verbs} to {bed} {rest}", "bedtime"),
    _form(rf"(?P<verb>owe) (?P<rest>(?:my|the) [\w-]+ {_MONEY}(?: .*)?)", "{verbs} {rest}", "owe"),
    _form(r"be (?P<rest>the (?:youngest|oldest|eldest|middle) (?:child|of (?:two|three|four|five|six|seven"
    r"|eight|nine|ten)))"
          rf"{_TAIL}", "{is} {rest}", "birth order"),
    _form(rf"can not drive (?P<rest>at night|in the dark|on (?:the )?motorways?|long distances)(?: anymore)?{_TAIL}",
          "cannot drive {rest}", "ability:drive {rest}", value="no"),
    _form(rf"(?:take|be taking|be on|have been taking|have been on) (?:my |the |some )?"
          rf"(?P<rest>(?:\d+ ?m?c?g (?:of )?)?{DRUG}.*)", "{takes} {rest}", "takes"),
    _form(rf"(?:have )?(?:stopped taking|stopped|came off|come off|am off) (?:my |the )?(?P<rest>{DRUG}.*)",
          "stopped taking {rest}", "stopped taking", is_past=True),
    _form(rf"(?:no longer (?:takes?|on)|be no longer (?:taking|on)) (?:my |the |any )?(?P<rest>{DRUG}){_TAIL}",
          "no longer {takes} {rest}", "stopped taking"),
    _form(rf"(?:do not take|be not (?:taking|on)) (?:my |the |any )?(?P<rest>{DRUG}) (?:any ?more|any longer){_TAIL}",
          "{does} not take {rest} anymore", "stopped taking"),
    _form(rf"(?:have )?started (?:taking |on )?(?:my |the |an? )?(?P<rest>{DRUG}.*)", "started taking {rest}",
          "event:take", is_past=True),
    _form(rf"have (?:got )?(?P<rest>{CONDITION}(?:{CONDITION_WHERE})?){_TAIL}",
          "{has} {rest}", "condition"),
    _form(r"(?P<verb>get|suffer from) "
          rf"(?P<rest>{CONDITION}(?: from (?:the )?[a-z]+(?: [a-z]+)?|{CONDITION_WHERE})?){_TAIL}",
          "{verbs} {rest}", "condition"),
    _form(rf"be (?:now |currently |back )?on (?P<rest>{_SHIFT})(?: (?:now|this week"
    rf"|at the moment))?(?:,? (?P<hours>{_HOURS}))?{_TAIL}", "{is} on {rest} {hours}", "shift"),
    _form(rf"be (?:now |currently )?on (?P<rest>{_LEAVE}(?: (?:until|till|since|from) .+)?)", "{is} on {rest}",
          "leave"),
    _form(rf"have been (?P<at>at) (?P<rest>(?-i:{NAME}) (?:for (?:about |over |almost |nearly )?"
          r"(?:an?|two|three|four|five|six|seven|eight|nine|ten|[a-z]+teen|[a-z]+ty|\d+) (?:years?|months?|decades?)"
          rf"|since (?:(?:{'|'.join(MONTHS)}) )?\d{{4}}))\b.*", "{has} been {at} {rest}", "employed"),
    _form(r"(?:have )?(?:just )?(?P<how>handed in|gave in|gave|given|put in|submitted) (?:my|his|her) "
          r"(?P<what>notice|resignation)(?P<rest>.*)", "{how} their {what} {rest}", "notice", is_past=True),
    _form(rf"(?:have|have got|got) (?P<rest>(?:an?|my|the|another|two|three) (?:[\w'-]+ ){{0,4}}?(?:{_EVENTS})s?\b.+)",
          "{has} {rest}", "appointment", is_plan=True),
    _form(rf"(?P<verb>save|put away|set aside|put aside|put|pay|earn|make|invest|spend|owe) (?:up )?"
          rf"(?P<rest>{_MONEY}(?:,? | ?/ ?)(?:(?:an?|per|each|every) )?(?:month|year|week|hour|day|mo|monthly|weekly"
          r"|yearly|annually)\b.*)", "{verbs} {rest}", "{verb} money"),
    _form(rf"(?P<verb>earn) (?P<rest>{_MONEY}(?: .+)?)", "{verbs} {rest}", "{verb} money"),
    _form(rf"be (?:now |currently |back )*on (?P<rest>{_PAY})(?: now)?{_TAIL}", "{earns} {rest}", "earn money"),
    _form(r"(?P<verb>wear|take) (?P<rest>(?:a )?size \d[\w.]*(?: (?:shoes?|dress|jeans|trousers|boots))?)"
          rf"{_TAIL}", "{verbs} {rest}", "size"),
    _form(r"be (?P<rest>(?:\d\.\d\d ?m(?:etres?|eters?)?|\d{3} ?cm|\d (?:foot|feet|ft)(?: \d{1,2})?|\d'\d{1,2}\"?)"
          rf"(?: tall)){_TAIL}", "{is} {rest}", "height"),
    _form(r"be (?:currently |actively |still |also )?(?P<verb>looking|searching|hunting) for "
          r"(?P<rest>an? (?:new |different |better |bigger |smaller |part-time |full-time |second |cheaper )*(?:job"
          r"|flat|apartment|house|place|role|position|flatmate|roommate|car|therapist|nanny|childminder|school"
          r"|apprenticeship|internship)\b.*)", "{is} looking for {rest}", "search"),
    _form(r"be saving (?:up )?for (?P<rest>(?:an?|the|my|our) \w.+)", "{is} saving for {rest}", "saving"),
    _form(rf"(?P<verb>share) custody(?: (?:of|with) [^,;.]+)?{_TAIL}", "{verbs} custody", "custody"),
    _form(rf"be {_ROLE}(?P<rest>.+)", "{is} {role} {rest}", "role"),
    _form(rf"(?:be|will be) starting (?P<rest>{_SCHOOL}\b.+)", "{is} starting {rest}", "plan", is_plan=True),
    _form(r"be (?:coming|going) to (?P<verb>stay|visit)(?: with (?:me|us))?(?P<us> us| me)?(?P<rest> .+)",
          "{is} coming to {verb} {rest}", "plan", is_plan=True),
    _form(r"be in (?P<rest>(?:(?:the )?(?:year \d+|\d+(?:st|nd|rd|th) grade|(?:first|second|third|fourth|fifth|sixth"
          r"|seventh|eighth|final|last) (?:grade|year|form))|(?:my|his|her) (?:first|second|third|fourth|final|last)"
          rf" (?:year|semester|term|trimester))(?: (?:of|at) [\w' ]+?)?){_TAIL}", "{is} in {rest}", "grade"),
    _form(r"only (?P<verb>eat|drink|wear|buy|use) (?P<rest>(?!(?:an?|the|my|to|it|when|if|one|two|on|at|in|for)\b)"
          r"[a-z].+)", "only {verbs} {rest}", "only {verb}"),
)  # fmt: skip
