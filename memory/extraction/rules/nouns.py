"""Subjects of statements about things: noun phrases that are understood without the conversation."""

import re
from dataclasses import dataclass

from memory.dates import MONTHS, WEEKDAYS
from memory.extraction.rules.names import Names
from memory.extraction.rules.phrases import possessive
from memory.extraction.rules.specifics import is_capital, is_technical
from memory.extraction.rules.subjects import Speaker
from memory.extraction.rules.words import COMMON_CAPITALS, words
from memory.redaction import URL_PASSWORD, redact_known_forms

MAX_SUBJECT_WORDS = 7

_WORD = re.compile(r"[\w/@#.$€£-][\w'./@:#+%&-]*")
_DETERMINER = re.compile(r"(?:the|our|my|all|every|each|both|all the|all our|all my|only) ", re.IGNORECASE)
_NEVER = words(
    "it its this that these those they them their theirs he she him her his hers you your yours i we me us who whom "
    "whose what which when where why how there here something someone somebody anything anyone anybody everything "
    "everyone everybody nothing nobody none thing things stuff one ones another other others else such same is are was "
    "were be been being am has have had do does did will would can could may might must shall should not no never "
    "please let let's lets if unless because although though whether than then so but or as maybe perhaps probably "
    "think guess know see saw said say says told want wanted just also really very too only even still yet already "
    "again today tomorrow yesterday tonight now later soon ago it's that's there's what's he's she's i'm i'd i'll "
    "i've we've we're we'll don't doesn't didn't isn't aren't wasn't can't won't cant dont thats im ive wont doesnt "
    "lol yeah yes ok okay yep nope sure well hey hi hello oh ah wow hmm thanks thx sorry make sure remember note fyi "
    "btw while until till whatever whenever like about latter former following above below"
)
_NEVER_FIRST = words(
    "a an and to of for in on at by with from into onto over under after before during between through via per up down "
    "out off about above across against along among around behind beyond despite near since within without some any "
    "many much several few more most less least lots plenty half enough first second third next last two three four "
    "five six seven eight nine ten back always often usually sometimes currently actually basically finally meanwhile "
    "otherwise instead use set put get got make made take go going went come keep give ask tell check change update "
    "add "
    "remove fix run try need look wait stop start show write read create move send call open close build test deploy "
    "install delete rename replace switch turn push pull merge commit and/or including except regarding due thanks "
    "knowing saying looking thinking trying using having getting doing making going being seeing hoping turns seems "
    "looks sounds feels means makes works helps good great nice cool fine bad better best worse worst new old other "
    "happy glad excited afraid aware true false right wrong correct ok quick question heads reminder hence thus "
    "mine ours hard slow fast high low k yay ugh ha haha damn god plus minus"
)
_NOUN_BEHIND_ARTICLE = words("build deploy release merge install update")
"""Verbs that are nouns behind "the" or "our"."""
_VAGUE = words(
    "problem problems issue issues question questions error bug bugs answer answers idea ideas point points "
    "reason reasons result results output outputs line lines thing things part parts way ways rest fix trick day days "
    "week weeks month year morning night evening afternoon time times weather code place places guy guys man men woman "
    "women kid message messages difference example examples case cases option options choice choices life world people "
    "person folks photo photos picture pictures story news feeling vibe vibes moment truth fact catch bottom top side "
    "end start beginning answer response reply warning failure hits"
)
_DEPENDENT = words(
    "test tests file files script page table column branch service server job app box call book movie place store "
    "house "
    "room film game song query function class method module endpoint field row value number count limit change changes "
    "version item list string key keys process command step setting config option user users customer client guest boy "
    "girl team company shop city town park trip view show event class course project task ticket document report "
    "image picture painting color colour total sum price size word note doctor man lady owner boss water food cake "
    "flight train bus tram hotel beach museum restaurant pr mr commit diff sun airport station cpu load usage "
    "port gateway ward contact headmistress teacher nurse neighbour neighbor limit road door roof kitchen school "
    "office "
    "machine device system tool thing program package library model data set group party dog cat car bike"
)
_WITH_ADDRESS = words(
    "server branch table service endpoint project package library model database limit size count price gateway"
)
"""Nouns that need no more words before a value that only one of them has: "the server is runs.acme.internal"."""
_IDENTITY = r"(?:(?:social security|national insurance|passport) (?:number|no\b\.?|#)|ssn)"
CREDENTIAL = (
    r"\b(?:passwords?|passphrases?|passcodes?|passwd|pwd|pw|secret|pin|cvv|(?:api|secret|private|access) (?:key|token)"
    r"|token"
    rf"|{_IDENTITY})"
)
_LOCKED = (
    r"(?:front |back |side )?(?:door|gate|alarm|entry|entrance|access|security|voicemail|key ?pad|key ?box|lock"
    r"|lock ?box|padlock|safe|locker|garage|building|intercom|lift|elevator|unlock|pin|login|log-in|verification"
    r"|recovery|backup|one-time|2fa|cvv|cvc)"
)
CODE = (
    rf"\b(?:{_LOCKED} (?:code|combination)s?"
    rf"|(?:code|combination) (?:for|to|of|on) (?:the |my |our |your )?(?:\w+ ){{0,2}}{_LOCKED})\b"
)
_DIGITAL = r"[#*a-z]?\d[\d.,-]*+(?! (?:lines|files|digits|characters|minutes|hours|days|weeks|years)\b)"
_GIVES_CODE = re.compile(
    rf"{CODE}[^.,;:=]{{0,60}}?(?:(?: (?:is|are|was|were|to|now|stays|remains)|'s)\b| ?[:=])(?: now)? ?{_DIGITAL}"
    rf"|{CODE} (?=\d{{3}}){_DIGITAL}|\d[#*a-z]? is (?:my|our|the|their) (?:[\w'-]+ ){{0,2}}?{CODE}",
    re.IGNORECASE,
)
"""A code that opens something, in digits: not a postcode, the code of an error or a country, or a discount code."""
_WHERE = r"(?:in|at|on|under|behind|by|with|stored|kept|changed|set|reset|updated)\b"
_DIGITS = r"(?<![\w-])(?:[A-Z]{0,3}-?)\d(?:[ -]?\d){4}"
_STATES_SECRET = re.compile(
    rf"{CREDENTIAL}(?: (?:of|for|in|on|at|to|from|with) [^.]{{1,60}}?)?"
    r"(?: (?:is|was|are|were|(?:has|have|had)(?: just)? been)(?: now)?+(?: (?:changed|set|reset|updated) to)?+"
    r"| ?[:=]| to)"
    rf" ?(?!{_WHERE}|the |an? |be |/)\S"
    rf"|{CREDENTIAL} (?:stays|remains) (?!{_WHERE}|the |an? |as )\S"
    rf"|\S is (?:my|our|the|their) (?:[\w'-]+ ){{0,2}}{CREDENTIAL}[.!]*$"
    rf"|\S as (?:my|our|the|their|an?) (?:[\w'-]+ ){{0,3}}{CREDENTIAL}"
    rf"|\b{_IDENTITY}.*?{_DIGITS}|{_DIGITS}.*\b{_IDENTITY}",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"\b(?:cpu|usage|error rate|load average|disk space|battery|temperature outside|weather)$", re.IGNORECASE
)
_DAYS = frozenset({*WEEKDAYS, *(month.lower() for month in MONTHS)})
_TIMED = words(
    "day days week month year evening morning night afternoon time times weather code line list number questions "
    "errors messages photos pictures news options output "
    "results answers points"
)
_INNER = re.compile(
    r"(?<! of)(?<! for)(?<! in)(?<! on)(?<! at)(?<! to)(?<! from)(?<! per)(?<! with)(?<! between)(?<! behind)"
    r"(?<! under)(?<! and)(?<!^all)(?<!^All)(?<!^only) (?:the|an?|my|our) ",
    re.IGNORECASE,
)
"""An article within a phrase, which is two phrases then: "listen the demo"."""
_PARTS = re.compile(r" (?:of|for|in|on|at|to|from|per|with|between|behind|under) ")


def gives_secret(sentence: str) -> bool:
    """Return True for a sentence that gives a password, a passport number or the like, not only where it is kept."""
    has_known_form = URL_PASSWORD.search(sentence) is not None or redact_known_forms(sentence) != sentence
    return has_known_form or any(form.search(sentence) for form in (_STATES_SECRET, _GIVES_CODE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A subject of a claim. `label` begins the claim, and `key` identifies the thing: it has no determiner."""

    label: str
    key: str
    is_name: bool
    is_plural: bool
    is_known: bool = False
    """True if a determiner or its form says that it is one certain thing, or all of a kind."""


def read_noun(text: str, speaker: Speaker, names: Names | None = None, *, says_which: bool = False) -> Noun | None:
    """Return a noun phrase that stands on its own as a subject, or None. The value may say which thing is meant."""
    tokens = text.split()
    if not 0 < len(tokens) <= MAX_SUBJECT_WORDS or not all(map(_WORD.fullmatch, tokens)) or _INNER.search(text):
        return None
    if any(token.lower() in _NEVER for token in tokens[1:]) or any(token[0].isdecimal() for token in tokens[:1]):
        return None
    if _TRANSIENT.search(text):
        return None
    match = _DETERMINER.match(f"{text} ")
    core = text[match.end() :] if match else text
    first = core.split()[0] if core else ""
    determiner = match[0].strip().lower() if match else ""
    if not first or first.lower() in _NEVER:
        return None
    is_noun = is_technical(first) or (bool(determiner) and first.lower() in _NOUN_BEHIND_ARTICLE)
    if first.lower() in _NEVER_FIRST and not is_noun:
        return None
    if not _is_clear(core, determiner, says_which=says_which) or _is_gerund(first):
        return None
    return Noun(
        label=_label(core, determiner, speaker),
        key=core.casefold(),
        is_name=_is_name(core, names) and determiner != "my",
        is_plural=_is_plural(_PARTS.split(core)[0]) or " and " in core,
        is_known=bool(determiner) or is_technical(first),
    )


def _is_name(core: str, names: Names | None) -> bool:
    """Return True for capitalized words, technical terms, and people whom the conversation names in lower case too."""
    is_written = all(is_capital(token) or is_technical(token) for token in core.split())
    return is_written or (names is not None and names.type_of(core) == "person")


def _is_clear(core: str, determiner: str, *, says_which: bool) -> bool:
    """Return True if the noun says which thing is meant, as far as its words tell."""
    head = _PARTS.split(core)[0].split()
    last = head[-1].lower() if head else ""
    if (
        not head
        or (last in _VAGUE and (len(head) < 2 or last not in _TIMED))
        or core.lower() in _DAYS
        or last.endswith("ly")
    ):
        return False
    if len(core.split()) > 1 or determiner in ("our", "my", "all", "every", "each"):
        return True
    is_named = is_technical(core) or (is_capital(core) and core not in COMMON_CAPITALS)
    return is_named or last not in _DEPENDENT or (says_which and last in _WITH_ADDRESS)


_NOUNS_IN_ING = words(
    "staging billing logging pricing onboarding testing caching training meeting building parking shipping housing "
    "invoicing monitoring accounting clothing drilling wedding tracing routing indexing hosting string ring spring "
    "king ceiling painting catering backporting linting formatting scheduling sampling seating grooming landing "
    "visiting opening working closing mailing drinking running target reading writing cooling mixing proofing baking "
    "swimming boarding dining morning evening rehearsal tutoring coaching heating lighting flooring wiring bedding"
)


def _is_gerund(word: str) -> bool:
    return word.endswith("ing") and word.islower() and word not in _NOUNS_IN_ING


def _is_plural(head: str) -> bool:
    last = head.split()[-1].lower()
    return (last.endswith("s") and not last.endswith(("ss", "us", "is"))) or last in ("people", "staff", "data", "kids")


def _label(core: str, determiner: str, speaker: Speaker) -> str:
    if determiner in ("my", "our"):
        return f"{speaker.owner} {core}"
    if determiner in ("all my", "all our"):
        return f"All of {possessive(speaker.label)} {core}"
    text = f"{determiner} {core}".strip()
    first = text.split()[0]
    return text if is_technical(first) or (first.islower() and "-" in first) else text[:1].upper() + text[1:]
