"""Ends that claims state: of jobs, relationships, lives, medicines and plans, whether or not they name the value.

"The user quit their job" ends whatever employer is known (`ANY`), "The user split up with Sam" every way in which Sam
was the partner, and "The user's cat Biscuit died" where Biscuit lives and how old it is. Plans are compared by their
words: "The Rome trip is cancelled" ends "The user is going to Rome on 20 December 2026".
"""

import re
from collections.abc import Iterator

from memory.dates import MONTHS, WEEKDAYS
from memory.extraction.grounding import word_stems
from memory.extraction.rules.ailments import DRUG
from memory.extraction.rules.planned_states import cancels_planned_state
from memory.extraction.rules.statements import ClaimParts, normalize_value
from memory.extraction.rules.words import PERSON_RELATIONS, words
from memory.models.facts import Temporal

ANY = ""
"""The value of an end that ends whatever value is known."""
_SUBJECT = r"(?P<subject>\S.{0,80}?)"
_VALUE = r"(?P<value>\S.{0,79}?)"
_ANYTHING = r"(?P<value>)"
DATED = r"(?: (?:in|on|from|since|until) (?:the .{1,40}|[^ ]{1,12} ?[^ ]{0,12} ?)?(?:19|20)\d\d)?"
_AN = r"(?:an? |the |their |his |her |my |our )?"
_NAMED = r"(?=(?-i:[A-Z]))"
_HAS = r"(?:has |have )?"
_LEFT = rf"{_HAS}(?:broke(?:n)? up|split(?: up)?|separated|parted)"
PARTNER = "wife|husband|spouse|fiancé|fiancée|fiance|fiancee|girlfriend|boyfriend|partner"
_PARTNERS = ("spouse", "engaged", "relation:partner", *(f"only:{who}" for who in PARTNER.split("|")[:-1]))
_SPOUSES = ("only:wife", "only:husband", "only:spouse", "spouse")
_OF_LIVES = (
    "residence", "employer", "age", "diet", "shift", "grade", "income", "marital status", "spouse", "profession",
)  # fmt: skip
"""Attributes that end with a life."""
_SEASONS = "spring|summer|autumn|fall|winter|new year"
WHEN_PARTED = (
    rf"(?:in (?:the )?(?:(?:early|late) )?(?:{'|'.join(MONTHS)}|{_SEASONS}|\d{{4}})"
    rf"|on (?:(?:the )?\d+(?:st|nd|rd|th)?|{'|'.join(WEEKDAYS).title()}|good terms)"
    r"|last|this|today|yesterday|recently|an? (?:few|couple|year|month|week|while)"
    r"|\w+ (?:years?|months?|weeks?|days?) ago)\b"
)
"""What follows "we split up" where it is a parting: not "in two groups"."""
MEAT = r"(?:(?:red|some|white) )?(?:meat|chicken|beef|pork|bacon|steak|burgers|lamb|turkey|ham)"
FISH = r"(?:some )?(?:fish|seafood|salmon)"
FROM_ANIMALS = r"(?:dairy|cheese|eggs|milk|butter|honey|yoghurt|yogurt)"
_NOT_VEGAN = rf"(?:{FROM_ANIMALS}|{FISH})"
_BEGAN_EATING = rf"{_HAS}(?:started|begun|began|gone back to|went back to) eating"
_DIED = rf"{_HAS}(?:died|passed away)"
_DISMISSED = "(?:was|got|has been|have been) (?:fired|sacked|laid off|let go|made redundant)"


_IN_COURSES = r"(?:antibiotics?|\w{3,}(?:cillin|mycin|cycline))(?: course)?"
"""Medicines that are taken until the packet is empty, so that "finished the ibuprofen" is none."""
SMOKED = (
    r"(?:(?:.{1,30} )?(?:cigarettes?|cigs?|cigars?|packs?|pipe)(?: .{1,40})?"
    r"|(?:[\w-]+ ){1,3}(?:a|per) (?:day|week)|(?:heavily|socially|occasionally)(?: .{1,40})?)"
)
"""Pattern of what and how much somebody smokes; "smokes brisket" is cooking."""
WHOM = r"(?:the user|(?:their|his|her|my) [a-z]+(?: (?-i:[A-Z])[\w'-]+)?|(?-i:[A-Z])[\w'-]+)"
"""Pattern of the person that somebody owes money."""
_MONEY = r"the (?:money|(?:[$€£] ?)?\d[\d.,]*(?: [a-z]+)?)"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{_SUBJECT} {pattern}{DATED}\.?")


_ENDING = (
    (
        ("employer", "studies"),
        _compile(rf"{_HAS}(?:left|quit) (?:(?:their|his|her) (?:job|position) (?:at|with) )?{_NAMED}{_VALUE}"),
    ),
    (("uses", "drinks", "employer", "studies"), _compile(rf"{_HAS}(?:switched|moved) from {_VALUE} to .{{1,60}}")),
    (_SPOUSES, _compile(rf"(?:is|got) (?:divorced|separated) from {_NAMED}{_VALUE}")),
    (_SPOUSES, _compile(rf"(?:is|got) (?:now )?divorced{_ANYTHING}(?: from (?:their|his|her) (?:{PARTNER}))?")),
    (_PARTNERS, _compile(rf"{_LEFT} (?:with|from) {_NAMED}{_VALUE}")),
    (_PARTNERS, _compile(rf"{_LEFT}{_ANYTHING}(?: (?:with|from) (?:their|his|her) (?:{PARTNER})(?: {_NAMED}\w+)?)?")),
    (_PARTNERS, _compile(rf"{_HAS}left (?:their|his|her) (?:{PARTNER}){_ANYTHING}")),
    (("uses",), _compile(rf"{_HAS}stopped using {_AN}{_VALUE}")),
    (("uses",), _compile(rf"(?:{_HAS}(?:dropped|ditched)|decided to (?:drop|ditch)) {_NAMED}{_VALUE}")),
    (("drinks",), _compile(rf"{_HAS}(?:stopped drinking|quit(?: drinking)?|given up|gave up) {_AN}{_VALUE}")),
    (("smokes",), _compile(rf"{_HAS}(?:stopped|quit|gave up|given up) smoking{_ANYTHING}(?: for good| cold turkey)?")),
    (("takes",), _compile(rf"{_HAS}(?:finished|completed) {_AN}(?:(?:course|round) of )?(?P<value>{_IN_COURSES})")),
    (("takes",), _compile(rf"{_HAS}(?:finished|completed) {_AN}(?:course|round) of (?P<value>{DRUG})")),
    (("owes",), _compile(rf"{_HAS}(?:paid|repaid) (?P<value>{WHOM}(?: {_MONEY})?) back")),
    (("owes",), _compile(rf"{_HAS}(?:paid back|repaid) (?P<value>{WHOM})")),
    (
        ("takes",),
        _compile(rf"(?:{_HAS}stopped taking|no longer takes?|do(?:es)? not take) (?P<value>{DRUG})(?: .{{1,40}})?"),
    ),
    (("employer", "studies"), _compile(rf"(?:is no longer (?:at|with)|resigned from|retired from) {_NAMED}{_VALUE}")),
    (("employer",), _compile(rf"{_DISMISSED} (?:by|from|at) {_AN}{_NAMED}{_VALUE}")),
    (
        ("employer",),
        _compile(
            rf"(?:{_DISMISSED}"
            rf"|{_HAS}(?:quit|lost|left|resigned from|given up|gave up) (?:their|his|her) job"
            rf"|(?:is |has |have )?retired){_ANYTHING}"
        ),
    ),
    (
        ("studies",),
        _compile(rf"{_HAS}dropped out(?: of {_AN}(?:[a-z]+ )?(?:school|uni(?:versity)?|college|course))?{_ANYTHING}"),
    ),
    (("diet",), _compile(rf"(?:eats? {MEAT} (?:now|again)|{_BEGAN_EATING} {MEAT}){_ANYTHING}")),
    (("diet",), _compile(rf"(?:eats? {_NOT_VEGAN} (?:now|again)|{_BEGAN_EATING} {_NOT_VEGAN})(?P<vegan>)")),
    (("diet",), _compile(rf"(?:eats? {FISH} (?:now|again)|{_BEGAN_EATING} {FISH})(?P<vegetarian>)")),
    (_OF_LIVES, _compile(rf"{_DIED}{_ANYTHING}")),
)  # fmt: skip
"""Attributes of which the claim ends the value."""
_INSTEAD = re.compile(
    rf"{_SUBJECT} (?P<verb>uses?|drinks?|works? (?:for|at)|studies) \S.{{0,59}}? (?:instead of|rather than) {_VALUE}\.?"
)
_OF_VERBS = {"work": "employer", "studie": "studies", "use": "uses", "drink": "drinks"}
_DEAD = re.compile(rf"(?P<whose>.+)'s (?:[a-z-]+ ){{0,2}}(?P<kind>[a-z-]+) (?P<name>[A-Z][\w'-]+) {_DIED}{DATED}\.?")
_SIDELINE = re.compile(
    r"\b(?:part[- ]time|also|too|as well|freelances?|weekends?|evenings?|side|volunteer|another|second)\b"
)


def read_ends(claim: str) -> Iterator[ClaimParts]:
    """Yield the attributes that a claim ends, with their values or ANY."""
    for attributes, pattern in _ENDING:
        if match := pattern.fullmatch(claim):
            diet = next((each for each in ("vegan", "vegetarian") if each in match.groupdict()), None)
            value = diet or match["value"]
            for attribute in attributes:
                yield _end(match["subject"], attribute, value)
    if match := _DEAD.fullmatch(claim):
        yield from (_end(match["name"], attribute, ANY) for attribute in _OF_LIVES)
        yield _end(match["whose"], "owns", f"{match['kind']} called {match['name']}")
    if match := _INSTEAD.fullmatch(claim):
        yield _end(match["subject"], _OF_VERBS[match["verb"].split()[0].rstrip("s")], match["value"])


def _end(subject: str, attribute: str, value: str) -> ClaimParts:
    return ClaimParts(subject=subject, attribute=attribute, value=value, temporal=Temporal.PAST, is_end=True)


def ends_value(end: ClaimParts, known: ClaimParts) -> bool:
    """Return True if an end is of whatever value is known, or names a medicine or a tool without its dose or use."""
    if known.is_end or known.temporal != Temporal.CURRENT:
        return False
    if end.value == ANY:
        return not (end.attribute == "employer" and _SIDELINE.search(known.value))
    if end.attribute == "uses":
        return normalize_value(known.value).startswith(f"{normalize_value(end.value)} for ")
    if end.attribute == "owns":
        # "a black cat named Pim"
        return f" {known.value.replace(' named ', ' called ')}".endswith(f" {end.value}") and " called " in end.value
    if end.attribute == "owes":
        paid = re.sub(r" the (?:money)?", " ", f"{end.value} ").strip()
        return f"{known.value} ".startswith(f"{paid} ")
    is_one = re.search(r",|\b(?:and|or)\b", known.value) is None
    return (
        end.attribute == "takes"
        and is_one
        and set(normalize_value(end.value).split()) <= set(normalize_value(known.value).split())
    )


_CANCELLED = re.compile(
    r"(?P<whose>The user's |The |[A-Z][\w'-]*'s )(?P<what>\S.{1,60}?) (?:is|was|has been|got|is now)"
    rf" (?:(?:cancell?ed|called off|off){DATED}"
    r"|(?P<moved>moved|postponed|rescheduled|pushed|brought forward)(?: back)? (?:to|until) .{1,60})\.?"
    rf"|{_SUBJECT} {_HAS}(?:cancell?ed|called off|withdrew from|withdrawn from|(?:dropped|pulled|backed|bailed) out of"
    r"|had to (?:cancel|(?:drop|pull|back) out of|withdraw from)) (?:the|their|his|her) "
    rf"(?P<what2>\S.{{1,60}}?)(?:,.*)?{DATED}\.?"
    r"|(?P<going>.{1,80}? (?:is|are)) (?:no longer|not) (?P<doing>\w+ing .{1,60}?)(?: any ?more| after all)?\.?"
)
_PLAN = re.compile(
    r".{1,80}? (?:(?:is|are) (?:\w+ing|on|at)|will|has an?|have an?|plans? to|wants? to) .*"
    rf"\b(?:{'|'.join(MONTHS)}) \d{{4}}\b.*"
)
_DAY_OF_PLAN = re.compile(rf"(?:\d{{1,2}} )?(?:{'|'.join(MONTHS)}) \d{{4}}")
_SUBSCRIBED = re.compile(
    r".{1,80}? (?:has|have) an? (?!.*\band\b).*(?:subscription|membership|booking|reservation|appointment)\b.*"
)
_AS_OBJECT = (
    r"(?:^(?:The user's |The )|\b(?:has|have) an? (?:[\w'-]+ )?|\b(?:(?:is|are) \w+ing|will \w+) "
    r"(?:(?:to|at|in|on|for) )?(?:(?:the|an?|their|his|her) )?(?:[\w'-]+ )?)"
)
"""The words before the thing that is planned: "is running the half marathon", "has a dentist appointment"."""
_TRIP = words("trip holiday holidays vacation journey visit break getaway weekend flight travel plans booking")
_TRAVELS = re.compile(
    r"\b(?:going|flying|travell?ing|visiting|heading|driving|trip|holiday|vacation|flight|visit|fly|travel|go)\b"
)
_SMALL = words("to the of in on a an with for from at my their his her our user s")
_OF_RELATIVE = re.compile(
    rf"The user's (?:[a-z-]+ )?(?P<who>{'|'.join(sorted(PERSON_RELATIONS))})(?:'s)? (?!appointment)"
)


def ends_plan(new: str, old: str) -> bool:
    """Return True if a claim says that the plan of another one is cancelled, or its thing moved to another time."""
    if cancels_planned_state(new, old):
        return True
    match = _CANCELLED.fullmatch(new)
    if match is None or not (_PLAN.fullmatch(old) or _SUBSCRIBED.fullmatch(old)) or re.search(r"\bsince\b", old):
        return False
    if match["going"]:
        is_same = old.startswith(f"{match['going']} {match['doing'].split()[0]} ")
        return is_same and word_stems(match["doing"]) <= word_stems(old)
    what = (match["what"] or match["what2"]).casefold()
    if not _is_of_same(match["whose"] or f"{match['subject']}'s ", what, old):
        return False
    named = what.split()
    if match["moved"] or _TRIP.isdisjoint(named):
        return re.search(rf"{_AS_OBJECT}{re.escape(what)}\b", old, re.IGNORECASE) is not None
    telling = [word for word in named if word not in _TRIP and word not in _SMALL]
    return bool(telling) and _TRAVELS.search(old) is not None and word_stems(" ".join(telling)) <= word_stems(old)


def ends_studies(new: str, old: str) -> bool:
    """Return True for "The user dropped out of law school" after "The user studies law"."""
    return any(
        end.attribute == "studies" and re.match(rf"{re.escape(end.subject)} stud", old) for end in read_ends(new)
    )


def day_of_plan(claim: str) -> str:
    """Return the day or month of a plan, or the whole claim where it tells none: plans of one day are one plan."""
    match = _DAY_OF_PLAN.search(claim)
    return match[0] if match else claim


def _is_of_same(whose: str, what: str, old: str) -> bool:
    """Return True if the plan is that of the owner of what is cancelled: "The user's ", "Tom's ", or "The "."""
    if not whose.startswith("The "):
        return old.startswith(whose.removesuffix("'s "))
    relative = _OF_RELATIVE.match(old)
    return old.startswith("The ") and (relative is None or relative["who"] in what)
