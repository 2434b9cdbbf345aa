"""Decisions, lasting wishes, and what the speaker's team does: "let's go with Postgres", "please always answer in French".

Claims say whose decision or wish it is: "The user decided to go with Postgres", "The user asks to always answer in
French". "We" in a statement about work is "The user's team", since it is about more people than the speaker. Orders
that are over when they are carried out ("fix the test", "add a field") are no claims.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from memory.dates import Tense
from memory.extraction.rules.nouns import Noun, read_noun
from memory.extraction.rules.phrases import possessive
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.specifics import is_address, is_capital, is_specific
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.things import attribute_of, make_thing, Reading
from memory.extraction.rules.values import Value, read_value
from memory.extraction.rules.words import LANGUAGES, words
from memory.models.facts import Certainty, Temporal
from memory.verbs import VERBS, Verb

_WE = r"(?:we|We|I|i)"
_SETTLED = re.compile(
    rf"(?:(?P<lets>[Ll]et's|lets|Lets|[Ll]et us)|{_WE}(?: have| are| will| all|'ll|'re|'ve|'m| am)?)(?: also| now| just| finally)? "
    r"(?P<verb>(?:go(?:ing)?|went|stick(?:ing)?|stay(?:ing)?|stuck|start(?:ing)?|gone) with|use|switch(?:ed|ing)? (?:over )?to|mov(?:e|ed|ing) to"
    r"|migrat(?:e|ed|ing) to|settled on|agreed on|agreed to|agreed|decided on|decided to|decided against|decided|picked|chose"
    r"|opted for|pinned|disabled|enabled|capped|limited|removed|named|keep|dropped|are dropping|drop|dropping|ditched|ditching|replaced|replacing|replace|standardi[sz](?:ed|ing) on"
    r"|sticking to|stick to|went for|go for|going for|going to use|going to go with|gonna use|gonna go with|will use"
    r"|adopt|adopted|pin|call it|name it|aim for|aiming for|target|targeting|settle on|postpone|postponed|delay|delayed"
    r"|settle on|stick with|ship|skip|do|make it|take|taking|not use|not do|set|limit|cap|meet|book|booked|hire|hired|rename|renamed|paid|bought|ordered|upgraded|upgrade|moved|move|switched|changed|change|set up|chosen|bumped|bump|raised|raise|lowered|lower|reduced|increased|cut) "
    r"(?P<rest>.+)"
)
_THIRD_PERSON = {
    "go with": "went with", "use": "use", "switch to": "switch to",
}  # fmt: skip
_DECISION = re.compile(
    r"(?:[Tt]he )?(?:(?:final|team|our) )?[Dd]ecision(?:[\w' ]{0,30})?(?: is|:|,)(?: that| to)? (?P<rest>.+)"
    r"|[Ii]t(?:'s| is| was) (?:decided|settled|agreed)(?: then)?[:,]? (?:that )?(?P<settled>.+)"
)
_ALWAYS = re.compile(r"(?P<always>always|never|do not ever|don't ever) (?P<verb>[a-z]+)(?P<rest> .+)?", re.IGNORECASE)
_FORBIDDEN = re.compile(
    r"(?:do not|don't|dont|pls don't|please don't|no longer|stop) (?P<verb>[a-z]+) (?P<rest>.+)", re.IGNORECASE
)
_FORBIDDEN_VERBS = words(
    "use touch commit push deploy merge change edit add put write send call ping recommend suggest mention include log "
    "store schedule book format rename delete remove run import explain apologize apologise translate contact email "
    "text install upgrade bump modify create generate mock start open reply answer give propose offer plan serve cook "
    "order buy treat mix disturb using committing pushing adding sending suggesting writing mocking calling giving "
    "recommending deploying merging wake feed water share publish post invite show print quote"
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
    r"(?P<verb>prefer(?= .+ over )|use|stick with|stick to|keep using|go with|switch to|prefer|default to|target|run|name|pin) (?P<rest>.+)",
    re.IGNORECASE,
)
_SET = re.compile(
    r"(?P<verb>keep|set|bump|raise|lower|increase|reduce|change|move|rename|pin|limit|cap|put|drop|make|push|extend"
    r"|shift|reschedule|postpone|cut|switch) (?P<what>[^,;]{2,60}?) (?P<to>(?:down |up |back )?(?:to|at|under|below|above|on|in"
    r"|until|till|by)) (?P<rest>.+)",
    re.IGNORECASE,
)
_CALL_ME = re.compile(
    r"(?:call me|my friends call me|everyone calls me|everybody calls me) (?P<name>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?)",
    re.IGNORECASE,
)
_REACH = re.compile(
    r"(?P<verb>ping|e-?mail|call|ask|contact|write to|phone|ring|reach out to|reach|text|talk to|send"
    r"|notify|tag|assign|cc|invite|dm|page) (?P<who>[A-Za-z][\w'.-]*(?: [A-Z][\w'.-]+){0,2}) (?P<rest>(?:at|on|under|via|by|about"
    r"|for|with|in|when|over|if) .+)"
)
_SEND_TO = re.compile(
    r"(?P<verb>send|forward|mail|email|report|escalate|assign|address|hand|give) (?P<what>[^,;]{2,60}?) to (?P<rest>[A-Za-z#@].+)",
    re.IGNORECASE,
)
_STYLE = re.compile(
    r"(?P<verb>answer|reply|respond|write|speak|explain|talk|communicate|comment|format|summari[sz]e|address me|text|keep|give) "
    rf"(?P<rest>(?:to me |me |with me |back |everything |all |the |your |my )*.*\b(?:in (?:{'|'.join(sorted(LANGUAGES))}|bullet points|short sentences"
    r"|plain \w+|full sentences|one sentence|two sentences|metric|lower ?case|upper ?case|british english|american english|simple words|markdown|tables?)|short|brief|concise|with (?:tabs|spaces|sources|metric|examples))\b.*)",
    re.IGNORECASE,
)
_REMIND = re.compile(r"[Rr]emind me (?P<rest>(?:to|about|on|at|in|of|every|tomorrow|next) .+)")
_WANTS = re.compile(
    r"I(?P<verb> (?:want|need|prefer|expect|would like|would prefer|like|love|'d like|'d prefer|'d rather have|would rather have|insist on|demand|hate|do not want|do not like|require)|'d like|'d prefer) (?P<rest>.+)"
)
_WISHES = {
    "want": "wants", "need": "needs", "prefer": "prefers", "expect": "expects", "would like": "would like",
    "would prefer": "would prefer", "'d like": "would like", "'d prefer": "would prefer", "insist on": "insists on",
    "'d rather have": "would rather have", "would rather have": "would rather have", "demand": "demands",
    "do not want": "does not want", "require": "requires", "hate": "hates", "like": "likes", "love": "loves",
    "do not like": "does not like",
}  # fmt: skip
_OUR_VERBS = (
    "use deploy ship release run store host keep meet pay support serve charge open close deliver start pin test build "
    "need publish log bill accept take offer sell order work teach have sleep live get train hold rotate sync review "
    "tag version freeze merge back require allow write send measure count target expect aim cache sample drink eat "
    "speak treat feed water bake print rent pick own play follow plan cook wake drive commute study read draw code type "
    "take weigh listen watch clock park bring teach cycle walk eat drink open close live mow prescribe post swim run"
).split()
_PRESENT = {base: Verb(base, "", "", "").present for base in _OUR_VERBS}
_OURS = re.compile(
    rf"(?P<who>[Ww]e|I) (?:(?:also|currently|now|only|always|usually|still|mostly|generally|just|all|normally) )*"
    rf"(?P<neg>(?:do not|don't|never) )?(?P<verb>{'|'.join(_OUR_VERBS)})(?P<up> up)? (?P<rest>.+)"
)
_ENGAGED = re.compile(r"(?:engag|marri|with (?:each|one)|together)")


def read_decisions(said: ClauseContext, text: str) -> Iterator[Statement]:
    """Yield the statement that a text makes about a decision, a lasting wish, or the habits of the speaker's team."""
    for read in (_own_clause, _order):
        if statement := read(said, text):
            yield statement
            return


def _own_value(said: ClauseContext, text: str, *, is_past: bool = False) -> Value | None:
    """Return a value in a clause about the speaker, in which "my" becomes "their"."""
    tense = Tense.PAST if is_past else Tense.FUTURE
    value = read_value(text, at=said.turn.timestamp, speaker=said.speaker, tense=tense)
    return replace(value, words=value.words.replace(possessive(said.speaker.label), "their")) if value else None


def _state(
    said: ClauseContext, *, subject: str, attribute: str, value: Value, claim: str, liking: str = ""
) -> Statement:
    date = value.date
    is_ahead = date is not None and date.start >= said.turn.timestamp
    return Statement(
        turn=said.turn.index,
        subject=subject,
        attribute=attribute,
        value=value.words,
        claim=claim,
        temporal=Temporal.FUTURE if is_ahead else Temporal.CURRENT,
        certainty=Certainty.EXPLICIT,
        valid_to=date.end if is_ahead and date else None,
        names=said.speaker.names,
        topic=value.words if liking and len(value.words) <= MAX_TOPIC else "",
        liking=liking if len(value.words) <= MAX_TOPIC else "",
        is_own=True,
        is_correction=said.clause.is_correction,
        is_retraction=said.clause.is_retraction,
    )


MAX_TOPIC = 100


def _own_clause(said: ClauseContext, text: str) -> Statement | None:
    if match := _DECISION.fullmatch(text):
        return _decision(said, text, match["rest"] or match["settled"])
    if match := _SETTLED.fullmatch(text):
        if statement := _settled(said, match):
            return statement
    if (
        (match := _IT_IS.fullmatch(text))
        and is_specific(f"x {match['what']}")
        and (value := _own_value(said, match["what"]))
    ):
        claim = f"{said.speaker.label} decided on {value.words}"
        return _state(said, subject=said.speaker.label, attribute="decision", value=value, claim=claim)
    if match := _WANTS.fullmatch(text):
        return _wish(said, match)
    if match := _RATHER.fullmatch(text):
        value = _own_value(said, match["rest"])
        if value and value.is_specific:
            claim = f"{said.speaker.label} would rather {value.words}"
            return _state(said, subject=said.speaker.label, attribute="wish", value=value, claim=claim, liking="wants")
    if (match := _ON.fullmatch(text)) and (value := _own_value(said, match["rest"])) and value.is_specific:
        who = f"{said.speaker.owner} team"
        claim = f"{who} is {match['on']} {value.words}"
        return _state(said, subject=who, attribute=f"be {match['on']}", value=value, claim=claim)
    if match := _USING.fullmatch(text):
        base = "use" if match["verb"] == "using" else match["verb"].removesuffix("ing")
        text = f"{match['who']} {base} {match['rest']}"
    if match := _OURS.fullmatch(text):
        return _habit(said, match)
    return None


def _decision(said: ClauseContext, text: str, rest: str) -> Statement | None:
    value = _own_value(said, rest)
    if value is None or not value.is_specific or len(value.words.split()) < 2:
        return None
    claim = f"{said.speaker.owner} decision is: {value.words}"
    return _state(said, subject=said.speaker.label, attribute="decision", value=value, claim=claim)


_PAST_VERBS = re.compile(
    r"(?:went with|switched(?: over)? to|moved to|migrated to|settled on|agreed on|agreed to|agreed|decided on|decided to"
    r"|decided against|decided|picked|chose|opted for|pinned|disabled|enabled|capped|limited|removed|named|dropped|ditched|replaced|standardi[sz]ed on|went for|adopted|stuck with"
    r"|postponed|delayed|booked|hired|renamed|paid|bought|ordered|upgraded|moved|switched|changed|set up|chosen|bumped|raised|lowered|reduced|increased)"
)
_TO_BASE = (
    (re.compile(r"^(?:gonna|going to|will) "), ""),
    (re.compile(r"^are "), ""),
    (re.compile(r"^going\b"), "go"),
    (re.compile(r"^(switch|stick|stay|start|aim|target|go|ditch)ing\b"), r"\1"),
    (re.compile(r"^(mov|migrat|replac|tak)ing\b"), r"\1e"),
    (re.compile(r"^standardi([sz])ing\b"), r"standardi\1e"),
    (re.compile(r"^dropping\b"), "drop"),
)
_SOUND = words("standardize standardise use go stick stay start switch move migrate keep drop ditch replace adopt pin aim target settle postpone "
               "delay ship skip set limit cap meet hire rename take upgrade change bump raise lower book not")  # fmt: skip


def _settled(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    """Read "let's go with Postgres", "we decided against Kafka", "we moved the standup to 10:15"."""
    verb = match["verb"].lower()
    is_past = _PAST_VERBS.fullmatch(verb) is not None
    is_plan = (
        match["lets"] is not None
        or verb in ("go with", "settle on", "stick with", "stick to", "stay with")
        or re.search(r"ing\b|^will|^gon|^going", verb) is not None
        or re.match(r"\S+(?:'ll| will|'re| are|'m| am) ", match[0]) is not None
    )
    if not (is_past or is_plan):
        return None
    leading = _FOR_WHAT.fullmatch(said.clause.lead)
    rest = match["rest"].removeprefix("that ") if "decided" in verb or "agreed" in verb else match["rest"]
    value = _own_value(said, f"{rest} {leading[1].lower()}" if leading else rest, is_past=is_past)
    is_explicit = "decided" in verb or "agreed" in verb
    if (
        value is None
        or not (value.is_specific or (is_explicit and len(value.words.split()) > 2))
        or value.words.split()[0] in ("to", "with", "for", "up", "out", "on", "back", "in")
    ):
        return None
    if is_past:
        clean = re.sub(r"^(?:decided|agreed)$", r"decided that" if verb == "decided" else "agreed that", verb)
        who = said.speaker.label
        subject, attribute = _about(said, verb, value)
        statement = _state(
            said, subject=subject, attribute=attribute, value=value, claim=f"{who} {clean} {value.words}"
        )
        is_over = verb in ("paid", "bought", "ordered", "hired")
        return replace(statement, temporal=Temporal.PAST) if is_over else statement
    for pattern, base in _TO_BASE:
        verb = pattern.sub(base, verb)
    if verb.split()[0] not in _SOUND:
        return None
    subject, attribute = _about(said, verb, value)
    claim = f"{said.speaker.label} decided to {verb} {value.words}"
    return _state(said, subject=subject, attribute=attribute, value=value, claim=claim)


_RATHER = re.compile(r"I(?:'d| would) (?:much )?rather (?P<rest>(?!not|be|see|know|die)[a-z]+ .+)")
_ON = re.compile(r"[Ww]e are (?:(?:still|currently|now|all) )?(?P<on>on) (?P<rest>(?=\S*\d|\S+ v?\d).+)")
_USING = re.compile(
    r"(?P<who>[Ww]e|I) (?:are|am|have been) (?:(?:also|currently|now|still|just|all) )*(?P<verb>using|deploying|targeting"
    r"|shipping|testing|supporting) (?P<rest>.+)"
)
_IT_IS = re.compile(r"(?P<what>[^,;:]{2,60}?) it is(?: then)?")
_FOR_WHAT = re.compile(r"(?:\w+ )?(for (?:the |our |my )?[\w./-]+(?: [\w./-]+){0,3})", re.IGNORECASE)
_FOR = re.compile(r"(?P<what>.+?) (?:for|as) (?P<thing>.+)")


def _about(said: ClauseContext, verb: str, value: Value) -> tuple[str, str]:
    """Return the subject and the attribute of a decision: "Postgres for the queue" is about the queue."""
    if (match := _FOR.fullmatch(value.words)) and (noun := read_noun(match["thing"], said.speaker)):
        return noun.key, "decision"
    if (match := re.fullmatch(r"(?P<thing>.+?) (?:from .+ )?to (?P<value>.+)", value.words)) and (
        noun := read_noun(match["thing"], said.speaker)
    ):
        return noun.key, attribute_of(match["value"])
    return said.speaker.label, f"decision:{verb.split()[0]}"


def _wish(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    if re.match(r"(?:to |how|when|that|what|the way|it|you|my |being|having)", match["rest"]):
        return None
    verb = match["verb"].strip()
    value = _own_value(said, match["rest"])
    if value is None or not value.is_specific:
        return None
    claim = f"{said.speaker.label} {_WISHES[verb]} {value.words}"
    return _state(
        said, subject=said.speaker.label, attribute=f"wish:{value.words.casefold()}", value=value, claim=claim
    )


_PASSING = re.compile(r"\b(?:left|questions?|options?|issues?|problems?|ideas?|minutes?|errors?|failures?|bugs?)\b")
_TEAM_VERBS = words(
    "use deploy ship release run store host support serve charge deliver test build publish log bill accept offer sell "
    "rotate sync review tag version freeze merge require allow cache target pin measure"
)


def _habit(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    """Read "we use pnpm, not npm", "we deploy on Thursdays", "I work from 9 to 5"."""
    is_team = match["who"].lower() == "we"
    verb = match["verb"]
    if match["neg"] and "never" not in match["neg"] and verb not in _TEAM_VERBS | {"eat", "drink"}:
        return None
    value = _own_value(said, match["rest"])
    is_diet = bool(match["neg"]) and verb in ("eat", "drink") and value is not None and len(value.words.split()) <= 3
    if (
        value is None
        or not (value.is_specific or is_diet)
        or (re.match(r"(?:been|got|had|to)\b", value.words) and not (value.date and verb in ("need", "have")))
    ):
        return None
    if verb == "have" and (not any(map(str.isdecimal, value.words)) or _PASSING.search(value.words)):
        return None
    does = "does not " if match["neg"] and "never" not in match["neg"] else "never " if match["neg"] else ""
    form = verb if does.startswith("does") else _PRESENT[verb]
    who = f"{said.speaker.owner} team" if is_team and verb in _TEAM_VERBS else said.speaker.label
    first = value.words.split()[0]
    preposition = first if first in ("on", "at", "in", "from", "to", "with", "every", "for", "by") else ""
    return _state(
        said,
        subject=who,
        attribute=f"{verb} {preposition}".strip(),
        value=value,
        claim=f"{who} {does}{form}{match['up'] or ''} {value.words}",
    )


def _order(said: ClauseContext, text: str) -> Statement | None:
    """Read a wish that lasts, or a setting, in the imperative."""
    is_polite = False
    if match := _POLITE.match(text):
        is_polite = re.search(r"please|pls|plz|want you|like you|need you", match[0], re.IGNORECASE) is not None
        text = text[match.end() :]
    is_polite = is_polite or re.search(r"\b(?:please|pls|plz)\b", text, re.IGNORECASE) is not None
    lasts = _LASTING.search(text) is not None
    text = _LEAD_LASTING.sub("", text, count=1) if _LEAD_LASTING.match(text) else text
    for read in (_always, _forbidden, _no_more, _named, _reach, _remind, _setting, _styled):
        if statement := read(said, text, lasts=lasts or is_polite):
            return statement
    return None


def _asks(
    said: ClauseContext, words_: str, value: Value, *, attribute: str, subject: str = "", liking: str = "wants"
) -> Statement:
    return _state(
        said,
        subject=subject or said.speaker.label,
        attribute=attribute,
        value=replace(value, words=value.words),
        claim=f"{said.speaker.label} asks {words_}",
        liking=liking,
    )


def _without_me(text: str) -> str:
    """Return an order without words for the speaker who gives it: "answer me in French"."""
    return re.sub(r"\b(?:to me|with me|for me|me)\b ?", "", text)


def _always(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    match = _ALWAYS.fullmatch(text)
    if match is None or match["verb"].lower() not in _LASTING_VERBS:
        return None
    value = _own_value(said, _without_me(f"{match['verb']}{match['rest'] or ''}"))
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
    value = _own_value(said, _without_me(match["rest"]))
    if (
        value is None
        or value.words.split()[0] in ("the", "up", "to")
        and not value.is_specific
        and len(value.words.split()) < 3
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
    "recommending": "recommend", "merging": "merge",
}  # fmt: skip


def _no_more(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "no emojis in commit messages", "no deploys on Fridays please"."""
    match = _NO_MORE.match(text)
    value = _own_value(said, match["what"]) if match else None
    if value is None or not (
        lasts or re.search(r" (?:in|on|for|at|after|before|during|between|without|from) \S", value.words)
    ):
        return None
    if (
        re.search(r" (?:is|are|was|were|has|have|had|can|could|will|to) ", f"{value.words} ")
        or len(value.words.split()) > 9
    ):
        return None
    words_ = value.words[:1].lower() + value.words[1:]
    return _asks(said, f"for {words_}", value, attribute=f"wish:{words_.casefold()}", liking="wants")


def _named(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    match = _CALL_ME.match(text)
    if match is None or not is_capital(match["name"]):
        return None
    return _asks(said, f"to be called {match['name']}", Value(words=match["name"]), attribute="called", liking="")


def _reach(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "ping Tom at tom@example.com", "ask Salka about the stems", "send invoices to Gwen Astley"."""
    if match := _SEND_TO.fullmatch(text):
        what, whom = _own_value(said, match["what"]), _own_value(said, match["rest"])
        if (
            what is None
            or whom is None
            or what.words.startswith(("the ", "a ", "an "))
            or not (is_capital(whom.words) or is_address(whom.words.split()[0]))
        ):
            return None
        words_ = f"{match['verb'].lower()} {what.words} to {whom.words}"
        return _asks(said, f"to {words_}", whom, subject=what.words.casefold(), attribute="send to", liking="")
    match = _REACH.fullmatch(text)
    if match is None or not is_capital(match["who"][:1].upper() + match["who"][1:]) or match["who"] in _NOBODY:
        return None
    value = _own_value(said, match["rest"])
    if value is None or len(value.words.split()) < 2:
        return None
    contact = value.words.partition(" ")[2]
    who = match["who"][:1].upper() + match["who"][1:]
    if value.words.split()[0] in ("at", "on", "under", "via", "by") and is_address(contact):
        claim = f"{who} can be reached {value.words}"
        return replace(
            _state(said, subject=who.casefold(), attribute="contact", value=replace(value, words=contact), claim=claim),
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
    value = _own_value(said, _without_me(match["rest"])) if match else None
    if value is None or not value.is_specific:
        return None
    return _asks(
        said, f"for a reminder {value.words}", value, attribute=f"reminder:{value.words.casefold()}", liking=""
    )


def _setting(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "bump the timeout to 60s", "use ruff instead of flake8", "keep the log level at warn"."""
    if match := _SET.fullmatch(text):
        noun, value = read_noun(match["what"], said.speaker), _own_value(said, match["rest"])
        if match["to"] in ("in", "on") and match["verb"].lower() not in ("keep", "put"):
            return None
        if noun and value and (value.is_specific or lasts):
            words_ = f"{match['verb'].lower()} {match['what']} {match['to']} {value.words}"
            if (whole := _own_value(said, words_)) and whole.words.endswith(value.words):
                asked = f"to {whole.words}"
                return _asks(said, asked, value, subject=noun.key, attribute=attribute_of(value.words), liking="")
    if match := _USE.fullmatch(text):
        value = _own_value(said, match["rest"])
        if (
            value is None
            or not (_begins_specific(value.words) or (lasts and value.is_specific) or " over " in value.words)
            or len(value.words.split()) > 10
        ):
            return None
        verb = match["verb"].lower()
        if verb in ("run", "name", "pin", "target") and not lasts:
            return None
        subject, attribute = _about(said, verb, value)
        return _asks(said, f"to {verb} {value.words}", value, subject=subject, attribute=attribute)
    return None


def _begins_specific(text: str) -> bool:
    bare = re.sub(r"^(?:the|a|an|only|plain|my|their) ", "", text)
    return is_specific(" ".join(bare.split()[:2]))


def _styled(said: ClauseContext, text: str, *, lasts: bool) -> Statement | None:
    """Read "answer in French", "keep answers short", and any other order that is said to last."""
    match = _STYLE.fullmatch(text)
    if match:
        value = _own_value(
            said,
            re.sub(
                r"\byour (?=answers|replies|responses|messages|summaries|explanations)", "", _without_me(match["rest"])
            ),
        )
        if value and (lasts or match["verb"].lower() in ("answer", "reply", "respond", "keep", "speak", "explain")):
            verb = match["verb"].lower()
            return _asks(
                said, f"to {verb} {value.words}", replace(value, words=f"{verb} {value.words}"), attribute="style"
            )
        return None
    first, _, behind = text.partition(" ")
    is_general = lasts and _ONE_THING.match(behind) is None
    if not (_LASTING.search(text) or is_general) or first.lower() not in _ORDERS:
        return None
    value = _own_value(said, _without_me(text))
    if value is None or len(value.words.split()) < 3 or (not _LASTING.search(text) and not value.is_specific):
        return None
    words_ = value.words[:1].lower() + value.words[1:]
    return _asks(said, f"to {words_}", value, attribute=f"wish:{words_.casefold()}")


_LASTING_VERBS = (frozenset(VERBS) | _FORBIDDEN_VERBS) - words(
    "be love like enjoy miss know want hate need struggle have"
)
_ONE_THING = re.compile(r"(?:an?|the|this|that|these|those|my|our|it|one|two|three|\d+|me|in|up|to)\b", re.IGNORECASE)
_ORDERS = words(
    "use put write send answer reply format name tag label sign log store save commit squash rebase run test check "
    "include add prefer start end call keep mark round show give list cite mention ask explain translate print order "
    "book buy avoid skip leave make do set wrap import import indent"
)
