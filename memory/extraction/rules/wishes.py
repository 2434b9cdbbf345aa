"""Lasting wishes and settings in the imperative: "please always answer in French", "bump the timeout to 60s".

An order is a claim only if it lasts: it says so ("always", "from now on"), it forbids something, it names a style, a
setting with its value, a contact, or a tool. To add a form, add a reader to `_READERS`.
"""

import re
from dataclasses import replace

from memory.dates import WEEKDAYS
from memory.extraction.rules.nouns import read_noun
from memory.extraction.rules.own import find_subject, own_order, own_statement, own_value, without_me
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.specifics import is_address, is_capital, is_specific, is_technical
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.styles import read_style_change
from memory.extraction.rules.things import attribute_of
from memory.extraction.rules.values import Value
from memory.extraction.rules.words import LANGUAGES, words
from memory.verbs import VERBS

_ALWAYS = re.compile(
    r"(?P<always>always|never(?: ever)?|do not ever|don't ever) (?P<verb>[a-z-]+)(?P<rest> .+)?", re.IGNORECASE
)
_FORBIDDEN = re.compile(
    r"(?:do not|don't|dont|pls don't|please don't|no longer|stop) (?P<verb>[a-z-]+) (?P<rest>.+)", re.IGNORECASE
)
_FORBIDDEN_VERBS = words(
    "use touch commit push deploy merge change edit add put write send call ping recommend suggest mention include log "
    "store schedule book format rename delete remove run import explain apologize apologise translate contact email "
    "text install upgrade bump modify create generate mock start open reply answer give propose offer plan serve cook "
    "order buy treat mix disturb using committing pushing adding sending suggesting writing mocking calling giving "
    "recommending deploying merging wake feed water share publish post invite show print quote hardcode hard-code "
    "inline rebase squash amend force-push cherry-pick expose swallow cache disable bypass interpolate concatenate "
    "truncate alter restart duplicate mutate patch stub indent nest wrap shorten abbreviate putting repeat repeating"
)
_NO_MORE = re.compile(
    r"(?P<what>no (?!more\b|need|problem|idea|worries|way|clue|rush|one|wonder|luck|longer|matter|doubt|reply|answer"
    r"|news|changes?\b|hurry|reason|thanks|it\b|that\b|the\b|I\b|we\b|not\b)[a-z][^,;.!?]{2,80})",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:from now on|going forward|from here on|in (?:the )?future|by default|every time|at all times|as a rule"
    r"|for good|everywhere|from today on|starting (?:today|now|tomorrow|next \w+|on \w+|from \w+)|in general)\b",
    re.IGNORECASE,
)
_LEAD_LASTING = re.compile(
    r"(?:from now on|going forward|from here on|in (?:the )?future|by default|in general|as a rule|from today on),? ",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:(?:please|pls|plz|kindly|so|ok|okay|and|also|then|oh|btw|just|again|yes|yeah|hey|hi|but|can you please"
    r"|one more thing|remember to|remember|make sure to|be sure to|I want you to|I would like you to|I'd like you to"
    r"|I need you to|I'd prefer (?:it )?if you|you should|you must|you can|you have to|try to|in that case|fine|good"
    r"|thanks|thank you|cool|great|perfect|nice|sure|right|alright|and please|well|important|note|reminder)[,:;.!]* )+",
    re.IGNORECASE,
)
_USE = re.compile(
    r"(?P<verb>prefer(?= .+ over )|use|stick with|stick to|keep using|go with|switch to|prefer|default to|target|run"
    r"|name|pin) (?P<rest>.+)",
    re.IGNORECASE,
)
_SET = re.compile(
    r"(?P<verb>keep|set|bump|raise|lower|increase|reduce|change|move|rename|pin|limit|cap|put|drop|make|push|extend"
    r"|shift|reschedule|postpone|cut|switch) (?P<what>[^,;]{2,60}?) (?P<to>(?:down |up |back )?(?:to|at|under|below"
    r"|above|on|in"
    r"|until|till|by)) (?P<rest>.+)",
    re.IGNORECASE,
)
_CALL_ME = re.compile(
    r"(?:call me|my friends call me|everyone calls me|everybody calls me) (?P<name>[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?)",
    re.IGNORECASE,
)
_REACH = re.compile(
    r"(?P<verb>ping|e-?mail|call|ask|contact|write to|phone|ring|reach out to|reach|text|talk to"
    r"|deal with|check with|send|notify|tag|assign|cc|invite|dm|page)"
    r" (?P<who>[A-Za-z][\w'.-]*(?: [A-Z][\w'.-]+){0,2}) (?P<rest>(?:at|on|under"
    r"|via|by|about"
    r"|for|with|in|when|over|if) .+)"
)
_SEND_TO = re.compile(
    r"(?P<verb>send|forward|mail|email|report|escalate|assign|address|hand|give|log|publish|upload|export|track|archive"
    r"|ship|stream) (?P<what>[^,;]{2,60}?) to (?P<rest>[A-Za-z#@].+)",
    re.IGNORECASE,
)
_STYLE = re.compile(
    r"(?P<verb>answer|reply|respond|write|speak|explain|talk|communicate|comment|format|summari[sz]e|address me|text"
    r"|keep|give) "
    rf"(?P<rest>.*\b(?:in (?:{'|'.join(sorted(LANGUAGES))}"
    r"|bullet points|short sentences"
    r"|plain \w+|full sentences|one sentence|two sentences|metric|lower ?case|upper ?case|british english"
    r"|american english|simple words|markdown|tables?)|short|brief|concise|with (?:tabs|spaces|sources|metric"
    r"|examples))\b.*)",
    re.IGNORECASE,
)
_REMIND = re.compile(r"[Rr]emind me (?P<rest>(?:to|about|on|at|in|of|every|tomorrow|next) .+)")


_SCOPE = re.compile(
    r"(?:for|in|on) (?P<which>this|the|our|all) (?P<what>(?:[\w-]+ ){0,3}(?:repo|repos|repository|repositories|project"
    r"|projects|codebase|service|services|package|module|app|team|branch|client|customer|document|report|thread|chat))"
    r"(?::|,|(?= (?:never|always|no|do not|don't)\b)) ?(?=\w)",
    re.IGNORECASE,
)


def read_wish(said: ClauseContext, text: str) -> Statement | None:
    """Read a wish that lasts, or a setting, in the imperative, for one project or all: "in this repo: no raw SQL"."""
    match = _SCOPE.match(text)
    if match is None:
        return _read_order(said, text)
    text = text[match.end() :]
    if match["which"].lower() == "this" or match["what"].lower() in _ONLY_KINDS:
        return _read_order(said, text)
    statement = _read_order(said, text)
    which = match["which"].lower()
    where = f"{match[0].split()[0].lower()} {'their' if which == 'our' else which} {match['what']}"
    return replace(statement, claim=f"{statement.claim} {where}") if statement else None


_ONLY_KINDS = words("repo repository project codebase service package module app team branch document report chat")


def _read_order(said: ClauseContext, text: str) -> Statement | None:
    is_polite = False
    if (match := _LEAD_LASTING.match(text)) and _POLITE.match(text, match.end()):
        # as it would be without it: "From now on, please answer in Portuguese"
        text = f"{text[match.end() :].rstrip('.!')} {match[0].rstrip(' ,')}"
    if match := _POLITE.match(text):
        is_polite = re.search(r"please|pls|plz|want you|like you|need you", match[0], re.IGNORECASE) is not None
        text = text[match.end() :]
    is_polite = is_polite or re.search(r"\b(?:please|pls|plz)\b", text, re.IGNORECASE) is not None
    lasts = _LASTING.search(text) is not None
    text = _LEAD_LASTING.sub("", text, count=1) if _LEAD_LASTING.match(text) else text
    for read in _READERS:
        if statement := read(said, text, lasts=lasts or is_polite):
            return statement
    return None


def _asks(
    said: ClauseContext, words_: str, value: Value, *, attribute: str, subject: str = "", liking: str = "wants"
) -> Statement:
    return own_statement(
        said,
        subject=subject or said.speaker.label,
        attribute=attribute,
        value=replace(value, words=value.words),
        claim=f"{said.speaker.label} asks {words_}",
        liking=liking,
    )


def _weekly(text: str) -> str:
    """Return what is never or always done on a weekday with the weekday in the plural: "on Fridays"."""
    return _ON_WEEKDAY.sub(lambda match: f"on {match['day'].capitalize()}s", text)


_ON_WEEKDAY = re.compile(rf"\bon (?:an? )?(?P<day>{'|'.join(WEEKDAYS)})s?(?! the| \d)\b", re.IGNORECASE)


def _always(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    match = _ALWAYS.fullmatch(text)
    if match is None or match["verb"].lower() not in _LASTING_VERBS:
        return None
    value = own_order(said, _weekly(f"{match['verb']}{match['rest'] or ''}"))
    if value is None or len(value.words.split()) < 2:
        return None
    is_never = match["always"].lower() != "always"
    words_ = f"never to {value.words}" if is_never else f"to always {value.words}"
    return _asks(
        said, words_, value, attribute=f"wish:{value.words.casefold()}", liking="avoids" if is_never else "wants"
    )


def _forbidden(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    match = _FORBIDDEN.fullmatch(text)
    if match is None or match["verb"].lower() not in _FORBIDDEN_VERBS:
        return None
    value = own_order(said, match["rest"])
    if value is None or (
        value.words.split()[0] in ("the", "up", "to") and not value.is_specific and len(value.words.split()) < 3
    ):
        return None
    verb = _BASES.get(match["verb"].lower(), match["verb"].lower())
    claim_value = replace(value, words=f"{verb} {value.words}")
    return _asks(
        said,
        f"not to {claim_value.words}",
        claim_value,
        attribute=f"wish:{claim_value.words.casefold()}",
        liking="avoids",
    )


_BASES = {
    "using": "use", "committing": "commit", "pushing": "push", "adding": "add", "sending": "send", "giving": "give",
    "suggesting": "suggest", "writing": "write", "mocking": "mock", "calling": "call", "deploying": "deploy",
    "recommending": "recommend", "merging": "merge", "putting": "put", "repeating": "repeat",
}  # fmt: skip


def _no_more(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "no emojis in commit messages", "no deploys on Fridays please"."""
    match = _NO_MORE.match(text)
    value = own_value(said, match["what"]) if match else None
    if value is None or not (
        lasts or re.search(r" (?:in|on|for|at|after|before|during|between|without|from) \S", value.words)
    ):
        return None
    if (
        re.search(r" (?:is|are|was|were|has|have|had|can|could|will|to) ", f"{value.words} ")
        or len(value.words.split()) > 9
    ):
        return None
    if not lasts and (_FOR_A_WHILE.search(value.words) or _REASON.match(text, len(value.words))):
        return None
    words_ = value.words[:1].lower() + value.words[1:]
    return _asks(said, f"for {words_}", value, attribute=f"wish:{words_.casefold()}", liking="wants")


_REASON = re.compile(r",? so\b")
"""What makes "no milk in the house" a reason for what follows, and no wish."""
_FOR_A_WHILE = re.compile(r" for (?:at least |about |the next )?[\w-]+ (?:hours?|days?|weeks?|months?)$")
"""The end of what somebody must not do for some time, which is advice more often than a wish of the speaker."""


def _named(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    match = _CALL_ME.match(text)
    if match is None or not is_capital(match["name"]):
        return None
    return _asks(said, f"to be called {match['name']}", Value(words=match["name"]), attribute="called", liking="")


def _reach(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "ping Tom at tom@example.com", "ask Salka about the stems", "send invoices to Gwen Astley"."""
    if match := _SEND_TO.fullmatch(text):
        what, whom = own_value(said, match["what"]), own_value(said, match["rest"])
        if (
            what is None
            or whom is None
            or what.words.startswith(("the ", "a ", "an "))
            or not (is_capital(whom.words) or is_address(whom.words.split()[0]) or is_technical(whom.words.split()[0]))
        ):
            return None
        words_ = f"{match['verb'].lower()} {what.words} to {whom.words}"
        return _asks(said, f"to {words_}", whom, subject=what.words.casefold(), attribute="send to", liking="")
    match = _REACH.fullmatch(text)
    if match is None or not is_capital(match["who"][:1].upper() + match["who"][1:]) or match["who"] in _NOBODY:
        return None
    value = own_value(said, match["rest"])
    if value is None or len(value.words.split()) < 2:
        return None
    contact = value.words.partition(" ")[2]
    who = match["who"][:1].upper() + match["who"][1:]
    if value.words.split()[0] in ("at", "on", "under", "via", "by") and is_address(contact):
        claim = f"{who} can be reached {value.words}"
        return replace(
            own_statement(
                said, subject=who.casefold(), attribute="contact", value=replace(value, words=contact), claim=claim
            ),
            is_own=False,
        )
    if not match["who"][0].isupper() or not re.match(r"(?:about|for|in|on|via|with)\b", value.words):
        return None
    words_ = f"to {match['verb'].lower()} {match['who']} {value.words}"
    return _asks(said, words_, value, subject=value.words.partition(" ")[2].casefold(), attribute="ask", liking="")


_NOBODY = words(
    "me us it him her them that this the a an my our everyone everybody someone people off up down out in on"
)


def _remind(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    match = _REMIND.fullmatch(text)
    value = own_value(said, without_me(match["rest"])) if match else None
    if value is None or not value.is_specific:
        return None
    return _asks(
        said, f"for a reminder {value.words}", value, attribute=f"reminder:{value.words.casefold()}", liking=""
    )


def _setting(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "bump the timeout to 60s", "use ruff instead of flake8", "keep the log level at warn"."""
    if match := _SET.fullmatch(text):
        noun, value = read_noun(match["what"], said.speaker), own_value(said, match["rest"])
        if match["to"] in ("in", "on") and match["verb"].lower() not in ("keep", "put"):
            return None
        if noun and value and (value.is_specific or lasts):
            words_ = f"{match['verb'].lower()} {match['what']} {match['to']} {value.words}"
            if (whole := own_value(said, words_)) and whole.words.endswith(value.words):
                asked = f"to {whole.words}"
                return _asks(said, asked, value, subject=noun.key, attribute=attribute_of(value.words), liking="")
    if match := _USE.fullmatch(text):
        value = own_value(said, match["rest"])
        if (
            value is None
            or not (
                _begins_specific(value.words)
                or (lasts and (value.is_specific or _PLAIN.fullmatch(value.words)))
                or " over " in value.words
            )
            or len(value.words.split()) > 10
        ):
            return None
        verb = match["verb"].lower()
        if verb in ("run", "name", "pin", "target") and not lasts:
            return None
        subject, attribute = find_subject(said, verb, value)
        return _asks(said, f"to {verb} {value.words}", value, subject=subject, attribute=attribute)
    return None


_PLAIN = re.compile(r"(?!(?:the|an?|my|their|some|all|both|more)\b)[\w-]+(?: [\w-]+)?")


def _begins_specific(text: str) -> bool:
    bare = re.sub(r"^(?:the|a|an|only|plain|my|their) ", "", text)
    return is_specific(" ".join(bare.split()[:2]))


def _styled(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "answer in French", "keep answers short", and any other order that is said to last."""
    match = _STYLE.fullmatch(text)
    if match:
        value = own_value(
            said,
            re.sub(
                r"\byour (?=answers|replies|responses|messages|summaries|explanations)", "", without_me(match["rest"])
            ),
        )
        if value and (lasts or match["verb"].lower() in ("answer", "reply", "respond", "keep", "speak", "explain")):
            verb = match["verb"].lower()
            return _asks(
                said, f"to {verb} {value.words}", replace(value, words=f"{verb} {value.words}"), attribute="style"
            )
        return None
    if lasts and (match := _POLITE_NOUN.match(text)) and (value := own_value(said, match[0])):
        return _asks(said, f"for {value.words}", value, attribute=f"wish:{value.words.casefold()}")
    if (match := _KEEP.match(text)) and (value := own_value(said, match["rest"])) and len(value.words.split()) > 2:
        return _asks(said, f"to keep {value.words}", value, attribute=f"keep:{value.words.casefold()}")
    first, _, behind = text.partition(" ")
    is_general = lasts and _ONE_THING.match(behind) is None
    if not (_LASTING.search(text) or is_general) or first.lower() not in _ORDERS:
        return None
    value = own_value(said, without_me(text))
    if value is None or len(value.words.split()) < 3 or (not _LASTING.search(text) and not value.is_specific):
        return None
    words_ = value.words[:1].lower() + value.words[1:]
    return _asks(said, f"to {words_}", value, attribute=f"wish:{words_.casefold()}")


_LASTING_VERBS = (frozenset(VERBS) | _FORBIDDEN_VERBS | words("round convert quote cite label reply")) - words(
    "be love like enjoy miss know want hate need struggle have"
)
_STYLED = (
    "spelling|grammar|punctuation|indentation|quotes|tabs|spaces|bullets|bullet points|headings|sentences|paragraphs"
    "|answers|replies|responses|summaries|messages|units|notation|style|format|dates|times|currency|prices|English"
    "|Markdown|comments|docstrings|type hints|imports|commits|code blocks|line endings"
)
_POLITE_NOUN = re.compile(
    r"(?:[a-z-]+ ){0,2}[a-z]{3,}s (?:as|in|with|without) [^,;]{3,60}?,? (?:please|pls|plz)(?=,|$)"
    rf"|(?:(?!(?:no|the|an?|my|your|nice|good|great|thanks|for|with|to|of|me)\b)[\w-]+ ){{1,3}}(?:{_STYLED}),?"
    r" (?:please|pls|plz)(?=,|$)",
    re.IGNORECASE,
)
_KEEP = re.compile(r"keep (?P<rest>(?:the|our|all) [a-z]+ [^,;]{3,60})(?=,|;|$)", re.IGNORECASE)
_ONE_THING = re.compile(r"(?:an?|the|this|that|these|those|my|our|it|one|two|three|\d+|me|in|up|to)\b", re.IGNORECASE)
_ORDERS = words(
    "use put write send answer reply format name tag label sign log store save commit squash rebase run test check "
    "include add prefer start end call keep mark round show give list cite mention ask explain translate print order "
    "book buy avoid skip leave make do set wrap import import indent"
)

_READERS = (read_style_change, _always, _forbidden, _no_more, _named, _reach, _remind, _setting, _styled)
