"""Decisions, and what the speaker's team does: "let's go with Postgres", "we deploy on Thursdays".

Claims say whose decision or wish it is: "The user decided to go with Postgres", "The user asks to always answer in
French". "We" in a statement about work is "The user's team", since it is about more people than the speaker. Orders
that are over when they are carried out ("fix the test", "add a field") are no claims.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memory.extraction.rules.own import find_subject, own_statement, own_value
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.values import Value
from memory.extraction.rules.wishes import read_wish
from memory.extraction.rules.words import PERSON_RELATIONS, PLURAL_RELATIONS, words
from memory.models.facts import Temporal
from memory.verbs import VERBS, Verb

_WE = r"(?:we|We|I|i)"
_COMPANY = (
    r"(?:(?:my|our|his|her|their|some|an?|old) )*(?:friends?|family|relatives|in-laws"
    rf"|{'|'.join(sorted(PERSON_RELATIONS | PLURAL_RELATIONS))})\b"
)
"""Whom somebody stays or goes with, which decides nothing."""
_SETTLED = re.compile(
    rf"(?:(?P<lets>[Ll]et's|lets|Lets|[Ll]et us)|{_WE}(?: have| are| will| all|'ll|'re|'ve|'m| am)?)(?: also| now"
    rf"| just| finally)? "
    rf"(?P<verb>(?:go(?:ing)?|went|stick(?:ing)?|stay(?:ing)?|stuck|start(?:ing)?|gone) with(?! {_COMPANY})|use"
    r"|switch(?:ed|ing)? (?:over )?to|mov(?:e|ed|ing) to"
    r"|migrat(?:e|ed|ing) to|(?:up|down)grad(?:e|ed|ing) to"
    r"|settled on|agreed on|agreed to|agreed|decided on|decided to|decided against|decided"
    r"|picked|chose"
    r"|opted for|pinned|disabled|enabled|capped|limited|removed|named|keep|dropped|are dropping|drop|dropping|ditched"
    r"|ditching|replaced|replacing|replace|standardi[sz](?:ed|ing) on"
    r"|sticking to|stick to"
    r"|went for(?! (?:(?:an?|the|our) )?(?:\w+ ){0,2}(?:walk|run|swim|drive|ride|jog|hike|nap|stroll|coffee|drinks?"
    r"|beers?|lunch|dinner|breakfast)(?:$| (?:with|in|on|along|around|after|before|at|and|today|yesterday|last)\b))"
    r"|go for|going for|going to use|going to go with|gonna use|gonna go with|will use"
    r"|adopt|adopted|pin|call it|name it|aim for|aiming for|target|targeting|settle on|postpone|postponed|delay|delayed"
    r"|settle on|stick with|ship|skip|do|make it|take|taking|not use|not do|set|limit|cap|meet|book|booked|hire|hired"
    r"|rename|renamed|paid|bought|ordered|upgraded|upgrade|moved|move|switched|changed|change|set up|chosen|bumped"
    r"|bump|raised|raise|lowered|lower|reduced|increased|cut) "
    r"(?P<rest>.+)"
)
_DECISION = re.compile(
    r"(?:[Tt]he )?(?:(?:final|team|our) )?[Dd]ecision(?:[\w' ]{0,30})?(?: is|:|,)(?: that| to)? (?P<rest>.+)"
    r"|[Ii]t(?:'s| is| was) (?:decided|settled|agreed)(?: then)?[:,]? (?:that )?(?P<settled>.+)"
)
_WANTS = re.compile(
    r"I(?P<verb> (?:want|need|prefer|expect|would like|would prefer|like|love|'d like|'d prefer|'d rather have"
    r"|would rather have|insist on|demand|hate|do not want|do not like|require)|'d like|'d prefer) (?P<rest>.+)"
)
_WISHES = {
    "want": "wants", "need": "needs", "prefer": "prefers", "expect": "expects", "would like": "would like",
    "would prefer": "would prefer", "'d like": "would like", "'d prefer": "would prefer", "insist on": "insists on",
    "'d rather have": "would rather have", "would rather have": "would rather have", "demand": "demands",
    "do not want": "does not want", "require": "requires", "hate": "hates", "like": "likes", "love": "loves",
    "do not like": "does not like",
}  # fmt: skip
_OUR_VERBS = sorted(
    words(
        "accept aim allow back bake bill bring build buy cache chair charge clock close code commute cook count cycle "
        "deliver deploy do draw drink drive eat expect feed follow freeze get have hold host keep launch lead listen "
        "live log maintain measure meet merge mow need offer open order own park pay pick pin plan play post prescribe "
        "print publish read relaunch release rent require review rotate run sample sell send serve ship sleep speak "
        "start store study support swim sync tag take target teach test train treat type use version wake walk watch "
        "water weigh work write"
    )
)
_PRESENT = {base: Verb(base, "", "", "").present for base in _OUR_VERBS}
_OURS = re.compile(
    r"(?P<who>[Ww]e|I) (?:(?:also|currently|now|still|mostly|generally|just|all|normally) )*(?P<how>(?:only|always"
    r"|usually) )?"
    rf"(?P<neg>(?:do not|don't|can not|cannot|never) )?(?P<verb>{'|'.join(_OUR_VERBS)})"
    r"(?P<up> up)? (?P<rest>.+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseForm:
    """A form of a clause about the speaker: its pattern, with the value as `rest`, and the verb of its claim."""

    pattern: re.Pattern[str]
    verb: str
    attribute: str
    is_team: bool = False


_FORMS = (
    ClauseForm(
        pattern=re.compile(r"(?P<rest>(?=[A-Z]|\S*\d|[a-z]+ it is)[^,;:]{2,60}?) it is(?: then)?"),
        verb="decided on",
        attribute="decision",
    ),
    ClauseForm(
        pattern=re.compile(rf"{_WE} [^,;]{{3,60}}? and (?P<verb>go with|switch to|move to|stick with) (?P<rest>.+)"),
        verb="decided to {verb}",
        attribute="decision",
    ),
    ClauseForm(
        pattern=re.compile(rf"{_WE} (?:will )?go without (?P<rest>(?!(?:the|an?|my|any)\b)[\w-]+(?: [\w-]+){{0,2}})"),
        verb="decided to go without",
        attribute="decision:without",
    ),
    ClauseForm(
        pattern=re.compile(r"I am (?P<in>in|at) (?P<rest>[A-Z][\w-]+(?: [A-Z][\w-]+)*)(?: (?:right )?now)?"),
        verb="is {in}",
        attribute="location",
    ),
    ClauseForm(
        pattern=re.compile(r"I(?:'d| would) (?:much )?rather (?P<rest>(?!not|be|see|know|die)[a-z]+ .+)"),
        verb="would rather",
        attribute="wish",
    ),
    ClauseForm(
        pattern=re.compile(r"[Ww]e are (?:(?:still|currently|now|all) )?on (?P<rest>(?=\S*\d|\S+ v?\d).+)"),
        verb="is on",
        attribute="be on",
        is_team=True,
    ),
)


def read_decisions(said: ClauseContext, text: str) -> Iterator[Statement]:
    """Yield the statement that a text makes about a decision, a lasting wish, or the habits of the speaker's team."""
    for read in (_own_clause, read_wish):
        if statement := read(said, text):
            yield statement
            return


def _own_clause(said: ClauseContext, text: str) -> Statement | None:
    if match := _DECISION.fullmatch(text):
        return _decision(said, match["rest"] or match["settled"])
    if (match := _SETTLED.fullmatch(text)) and (statement := _settled(said, match)):
        return statement
    for form in _FORMS:
        match = form.pattern.fullmatch(text)
        value = own_value(said, match["rest"]) if match else None
        if match and value and (value.is_specific or form.attribute == "decision:without"):
            who = f"{said.speaker.owner} team" if form.is_team else said.speaker.label
            claim = f"{who} {form.verb.format(**match.groupdict())} {value.words}"
            return own_statement(said, subject=who, attribute=form.attribute, value=value, claim=claim)
    if match := _WANTS.fullmatch(text):
        return _wish(said, match)
    if match := _USING.fullmatch(text):
        base = "use" if match["verb"] == "using" else match["verb"].removesuffix("ing")
        text = f"{match['who']} {base} {match['rest']}"
    match = _OURS.fullmatch(text)
    return _habit(said, match) if match else None


def _decision(said: ClauseContext, rest: str) -> Statement | None:
    value = own_value(said, rest)
    if value is None or len(value.words.split()) < 3:
        return None
    claim = f"{said.speaker.owner} decision is: {value.words}"
    return own_statement(said, subject=said.speaker.label, attribute="decision", value=value, claim=claim)


_PAST_VERBS = re.compile(
    r"(?:went with|switched(?: over)? to|moved to|migrated to|(?:up|down)graded to"
    r"|settled on|agreed on|agreed to|agreed|decided on"
    r"|decided to"
    r"|decided against|decided|picked|chose|opted for|pinned|disabled|enabled|capped|limited|removed|named|dropped"
    r"|ditched|replaced|standardi[sz]ed on|went for|adopted|stuck with"
    r"|postponed|delayed|booked|hired|renamed|paid|bought|ordered|upgraded|moved|switched|changed|set up|chosen"
    r"|bumped|raised|lowered|reduced|increased)"
)
_IS_DROPPING = re.compile(rf"{_WE}(?: (?:also|now|just|finally))? drop ")
_DROPPED_BY_NAME = re.compile(
    r"(?:support for )?(?:(?!(?:at|in|on|off|to|for|by|from|with)\b)[a-z][\w./-]* ){0,3}"
    r"[A-Z]\S*(?! (?:off|at)\b)(?= |$)"
)
"""What is dropped in a decision, where the words may be about what happens often: "we drop Redis", not "the kids"."""
_TO_BASE = (
    (re.compile(r"^(?:gonna|going to|will) "), ""),
    (re.compile(r"^are "), ""),
    (re.compile(r"^going\b"), "go"),
    (re.compile(r"^(switch|stick|stay|start|aim|target|go|ditch)ing\b"), r"\1"),
    (re.compile(r"^(mov|migrat|replac|tak|upgrad|downgrad)ing\b"), r"\1e"),
    (re.compile(r"^standardi([sz])ing\b"), r"standardi\1e"),
    (re.compile(r"^dropping\b"), "drop"),
)
_SOUND = words(
    "standardize standardise use go stick stay start switch move migrate keep drop ditch replace adopt pin aim target "
    "settle postpone delay ship skip set limit cap meet hire rename take upgrade downgrade change bump raise lower "
    "book not"
)


def _settled(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    """Read "let's go with Postgres", "we decided against Kafka", "we moved the standup to 10:15"."""
    verb = match["verb"].lower()
    is_past = _PAST_VERBS.fullmatch(verb) is not None
    is_plan = (
        match["lets"] is not None
        or verb in ("drop", "ditch", "go with", "settle on", "stick with", "stick to", "stay with")
        or re.search(r"ing\b|^will|^gon|^going", verb) is not None
        or re.match(r"\S+(?:'ll| will|'re| are|'m| am) ", match[0]) is not None
    )
    if not (is_past or is_plan) or (_IS_DROPPING.match(match[0]) and not _DROPPED_BY_NAME.match(match["rest"])):
        return None
    leading = _FOR_WHAT.fullmatch(said.clause.lead)
    rest = match["rest"].removeprefix("that ") if "decided" in verb or "agreed" in verb else match["rest"]
    value = own_value(said, f"{rest} {leading[1].lower()}" if leading else rest, past=verb if is_past else "")
    is_explicit = "decided" in verb or "agreed" in verb
    if (
        value is None
        or not (value.is_specific or (is_explicit and len(value.words.split()) > 2))
        or value.words.split()[0] in ("to", "with", "for", "up", "out", "on", "back", "in")
    ):
        return None
    if is_past:
        clean = f"{verb} that" if verb in ("decided", "agreed") and not value.words.startswith("not to ") else verb
        who = said.speaker.label
        subject, attribute = find_subject(said, verb, value)
        statement = own_statement(
            said, subject=subject, attribute=attribute, value=value, claim=f"{who} {clean} {value.words}"
        )
        is_over = verb in ("paid", "bought", "ordered", "hired")
        return replace(statement, temporal=Temporal.PAST) if is_over else statement
    for pattern, base in _TO_BASE:
        verb = pattern.sub(base, verb)
    if verb.split()[0] not in _SOUND:
        return None
    subject, attribute = find_subject(said, verb, value)
    claim = f"{said.speaker.label} decided to {verb} {value.words}"
    return own_statement(said, subject=subject, attribute=attribute, value=value, claim=claim)


_USING = re.compile(
    r"(?P<who>[Ww]e|I) (?:are|am|have been) (?:(?:also|currently|now|still|just|all) )*(?P<verb>using|deploying"
    r"|targeting"
    r"|shipping|testing|supporting) (?P<rest>.+)"
)
_FOR_WHAT = re.compile(r"(?:\w+ )?(for (?:the |our |my )?[\w./-]+(?: [\w./-]+){0,3})", re.IGNORECASE)


def _wish(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    if re.match(r"(?:to |how|when|that|what|the way|it|you|my |being|having)", match["rest"]):
        return None
    verb = match["verb"].strip()
    value = own_value(said, match["rest"])
    if value is None or not value.is_specific or (verb == "need" and not _says_how_much(value)):
        return None
    claim = f"{said.speaker.label} {_WISHES[verb]} {value.words}"
    return own_statement(
        said, subject=said.speaker.label, attribute=f"wish:{value.words.casefold()}", value=value, claim=claim
    )


def _says_how_much(value: Value) -> bool:
    """Return True for what somebody needs in more than three words, or by a date, or in an amount: not for "PDF"."""
    return value.date is not None or any(map(str.isdecimal, value.words)) or len(value.words.split()) > 3


_AUXILIARY = re.compile(rf"(?:still|indeed|really|also|not|{'|'.join(VERBS)})\b")
_ROLE = re.compile(r"the [\w-]+ [\w -]+")
_PLAIN = re.compile(r"(?!(?:the|an?|my|their|some|all|two|much|more|up|it|no|one|this|that)\b)[\w-]+(?: [\w-]+){0,2}")
_PASSING = re.compile(r"\b(?:left|questions?|options?|issues?|problems?|ideas?|minutes?|errors?|failures?|bugs?)\b")
_TEAM_VERBS = words(
    "launch relaunch use deploy ship release run store host support serve charge deliver test build publish log bill "
    "accept offer sell "
    "rotate sync review tag version freeze merge require allow cache target pin measure"
)


def _habit(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    """Read "we use pnpm, not npm", "we deploy on Thursdays", "I work from 9 to 5"."""
    is_team = match["who"].lower() == "we"
    verb = match["verb"]
    if match["neg"] and "never" not in match["neg"] and verb not in _TEAM_VERBS | {"eat", "drink"}:
        return None
    if verb == "do" and _AUXILIARY.match(match["rest"]):
        return None
    value = own_value(said, match["rest"])
    is_plain = value is not None and _PLAIN.fullmatch(value.words) is not None
    is_role = verb in ("chair", "lead", "own", "maintain") and _ROLE.fullmatch(value.words if value else "") is not None
    is_role = is_role or (is_plain and verb in ("own", "maintain") and not match["neg"])
    is_diet = is_plain and (verb == "use" or (bool(match["neg"]) and verb in ("eat", "drink")))
    if (
        value is None
        or not (value.is_specific or is_diet or is_role)
        or value.words.startswith(("like ", "over "))
        or (re.match(r"(?:been|got|had|to)\b", value.words) and not (value.date and verb in ("need", "have")))
    ):
        return None
    if verb == "need" and not (match["neg"] or _says_how_much(value)):
        return None
    if verb == "have" and (not any(map(str.isdecimal, value.words)) or _PASSING.search(value.words)):
        return None
    does = "does not " if match["neg"] and "never" not in match["neg"] else "never " if match["neg"] else ""
    form = verb if does.startswith("does") else Verb(verb, "", "", "").present
    who = f"{said.speaker.owner} team" if is_team and verb in _TEAM_VERBS else said.speaker.label
    first = value.words.split()[0]
    preposition = first if first in ("on", "at", "in", "from", "to", "with", "every", "for", "by") else ""
    return own_statement(
        said,
        subject=who,
        attribute=f"{verb} {preposition}".strip(),
        value=value,
        claim=f"{who} {match['how'] or ''}{does}{form}{match['up'] or ''} {value.words}",
    )
