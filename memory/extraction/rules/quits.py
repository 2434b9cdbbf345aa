"""Ends of what somebody does, has or plans, said with a name for it: "I quit pilates", "the swim class is over".

Each is a claim that is compared with another one as a pair: "The user quit pilates" ends "The user has pilates on
Fridays at 6" and "The user goes to pilates with Ann", since pilates is what the verb of those claims has, with nothing
but when, where and with whom behind it. So a claim that names two things ("a dog and a cat") has no end here, and an
end that holds for a part only ("I gave up coffee after lunch") ends nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memory.dates import MONTHS, WEEKDAYS
from memory.extraction.rules.open_claims import third_person
from memory.extraction.rules.phrases import Voice
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.subjects import Subject, subject_of
from memory.models.facts import Temporal
from memory.verbs import VERBS, regular_verb

_ARTICLE = r"(?:an?|the|my|our|their|his|her|that|this|some)"
_HAS = r"(?:has |have |had )?(?:(?:just|finally|now|recently|already) )?(?:had to |decided to )?"
_DAYS = "|".join(f"{day}s?" for day in WEEKDAYS)
_WHEN = (
    r"(?: (?:last|this|yesterday|today|recently|now|again|altogether|completely|entirely|for good"
    rf"|in (?:{'|'.join(MONTHS)})(?: \d{{4}})?|in \d{{4}}|in the week of .+"
    rf"|on \d{{1,2}} (?:{'|'.join(MONTHS)})(?: \d{{4}})?|(?:an?|\w+) \w+ ago"
    r"|after (?:all|\w+ (?:years|months|weeks))|because|since|due to|thanks to)\b.*|,.*)?"
)
_SINCE = rf"(?:{_WHEN}| to (?:a|an|the|my|their|his|her|some|someone|[A-Z]\w*)\b.*)"
"""Words behind an end that tell when, why and to whom it was, and limit it to no part of what it ends."""
_DONE = (
    r"(?:quit|quits|gave up|given up|give up|packed in|jacked in|got rid of|gotten rid of|outgrew|outgrown|gave away"
    r"|given away|sold|(?<=had to )(?:give away|sell|get rid of)|handed over(?: the keys (?:of|to|for))?|handed back"
    r"|handed in|returned)"
)
_DONE_WITHOUT_ARTICLE = r"(?:dropped|drop|stopped|stop|ditched|ditch)"
"""Verbs that end what somebody does, but not "my phone"."""
_GONE = r"(?:over|finished|done with|gone|history|no more|a thing of the past)"
_QUIT = re.compile(
    rf"(?P<subject>\S.{{0,60}}?) {_HAS}(?:{_DONE} (?:(?:doing|playing|using) )?(?:{_ARTICLE} )?(?P<what>\S.{{1,60}}?)"
    rf"|{_DONE_WITHOUT_ARTICLE} (?:(?:doing|playing) )?(?P<bare>(?!{_ARTICLE} |\w+ing\b)\S.{{1,60}}?"
    rf"|{_ARTICLE} .{{0,40}}?(?:class|classes|lessons?|course|therapy|training|club|sessions))"
    r"|(?:lets?|cancell?ed|stopped) (?:an?|the|their|his|her) (?P<run>.{2,40}?)"
    r"(?: (?:thing|subscription|membership|plan))?(?: to)? (?:run out|lapse|expire|go)"
    rf"|(?:passed|handed) (?:(?:the|their|his|her) )?(?P<over>.{{2,40}}?) (?:over|on)(?= to )){_SINCE}"
)
_OVER = re.compile(
    r"(?P<subject>The user|[A-Z][\w-]+|The user's [a-z]+(?: [A-Z]\w+)?)(?:'s|') (?P<what>\S.{1,40}?)"
    rf" (?:is|are|has|have)(?: now)? (?:been )?{_GONE}{_SINCE}"
)
_LEFT_OFF = re.compile(
    rf"(?P<subject>\S.{{0,60}}?) (?:{_HAS}(?:stop(?:ped)?|quits?|gave up|given up|give up) (?P<gerund>\w+ing)"
    r"|no longer (?P<verb>\w+)|(?:do|does) not (?P<base>\w+)|is no longer (?P<being>\w+ing))"
    rf"(?P<rest>(?: \S+){{0,8}}?)(?P<anymore> anymore)?{_WHEN}"
)
_VERB_GROUPS = ("gerund", "verb", "base", "being")
_GOES = re.compile(r"go|goes|going|sees?|seeing")
_HOLDS = (
    r"(?:ha(?:s|ve)(?: got)?|go(?:es)? to|sees?|attends?|do(?:es)?|is (?:doing|taking|learning|studying|playing|in|on"
    r"|at|a member of|responsible for|in charge of)|plays?(?: in)?|sings? in|practi[cs]es?|takes?|learns?|stud(?:y|ies)"
    r"|drives?|rides?|owns?|keeps?|uses?|rents?|leases?|wears?|drinks?|eats?|pays? for|belongs? to|reads?"
    r"|looks? after|runs?|manages?|handles?|leads?|trains?|subscribes? to|is subscribed to)"
)
_BEHIND = (
    rf"(?=$|,| (?:on|at|in|every|each|with|for|from|twice|once|three|since|by|until|called|named|near|mostly|mainly|now"
    rf"|{_DAYS}|daily|weekly)\b)"
)
"""The end of a noun phrase: what follows it tells when, where and with whom."""
_HELD = re.compile(rf"(?:(?:still|also|usually) )?{_HOLDS} (?P<what>\S.*?){_BEHIND}")
_SO_THAT = re.compile(r",? (?:and|but|so) (?=(?:\w+ly )?(?:i|we|they|do|does|now|it|it's)\b)|, | - ")
_LISTS = re.compile(r"\b(?:and|or)\b|, (?:an?|the|two|three|four|five) ")
_DATED = re.compile(rf"\b(?:{'|'.join(WEEKDAYS)})s?\b")


_POSSESSED = re.compile(r"(?P<owner>(?i:my|our|the)|[\w-]+(?:'s|(?<=s)'))(?= )(?P<rest> .+)")
_NAMED = re.compile(r"(?P<name>[A-Z][\w-]+) (?P<rest>.+)")
_NOT_SAID = re.compile(
    r"\b(?:for (?:now|today|tonight|this|the|an?|one|two|surgery|repairs?|review|inspection"
    r"|(?!(?:some|any|no|every)thing)\w+ing)|to (?:read|sign|check|review|try|use|park|wash|fix|repair|look after)"
    r"|today|tonight|if|when|until|almost|nearly)\b"
)


def read_end(said: ClauseContext, known: Sequence[str]) -> Statement | None:
    """Return that somebody does or has no longer what a known claim says: "I had to stop lifting"."""
    if said.clause.is_hedged or _NOT_SAID.search(said.clause.sentence):
        return None
    for subject, claim in ending_claims(said, known):
        if any(ends_held(claim, each) for each in known):
            statement = make_statement(said, subject, attribute="ended", value=claim, claim="")
            return replace(statement, claim=claim, temporal=Temporal.PAST, is_correction=False)
    return None


def ending_claims(said: ClauseContext, known: Sequence[str]) -> Iterator[tuple[Subject, str]]:
    """Yield the claims in the third person that a clause may make."""
    text = said.clause.text.strip(" .!")
    subject = subject_of(text, said.speaker, said.names, spoken_of=said.spoken_of)
    if subject is not None:
        predicate = _in_third_person(subject.rest) if subject.is_own and not subject.is_third else subject.rest
        yield subject, _SO_THAT.split(f"{subject.label} {predicate}", maxsplit=1)[0]
    elif (match := _NAMED.fullmatch(text)) and any(each.startswith(f"{match['name']} ") for each in known):
        voice = Voice(speaker=said.speaker.label, is_own=False)
        named = Subject(label=match["name"], rest=match["rest"], voice=voice, names=(), is_third=True)
        yield named, _SO_THAT.split(text, maxsplit=1)[0]
    match = _POSSESSED.fullmatch(text)
    if match is None:
        return
    name = match["owner"].removesuffix("'s").removesuffix("'")
    is_own = match["owner"].lower() in ("my", "our", "the")
    label = said.speaker.label if is_own else f"{name[:1].upper()}{name[1:]}"
    voice = Voice(speaker=said.speaker.label, is_own=is_own)
    owner = Subject(label=label, rest="", voice=voice, names=said.speaker.names if is_own else (), is_third=True)
    if any(each.startswith(f"{label} ") for each in known):
        yield owner, f"{label}'s{match['rest']}"


def _in_third_person(rest: str) -> str:
    is_over = re.match(r"no longer (?=\w)", rest)
    return f"{is_over[0]}{third_person(rest[is_over.end() :].split())}" if is_over else third_person(rest.split())


def ends_held(new: str, old: str) -> bool:
    """Return True if a claim says that somebody has or does no longer what another claim says that they have or do."""
    if match := _OVER.fullmatch(new) or _QUIT.fullmatch(new):
        groups = match.groupdict()
        what = next(filter(None, map(groups.get, ("what", "bare", "run", "over"))), "")
        return _names_held(what, _predicate(match["subject"], old)) and _may_be_same_day(new, old)
    match = _LEFT_OFF.fullmatch(new)
    # a bare denial may be of this time only
    if match is None or (match["base"] and not match["anymore"]):
        return False
    words, verb = _predicate(match["subject"], old), next(filter(None, map(match.group, _VERB_GROUPS)))
    if _GOES.fullmatch(verb) and _names_held(match["rest"].removeprefix(" to").strip(), words):
        return _may_be_same_day(new, old)
    return _does(match, words) and _may_be_same_day(new, old)


def _predicate(subject: str, old: str) -> str:
    """Return the words of a claim after its subject, up to its first comma where no list follows; else empty."""
    if not old.casefold().startswith(f"{subject.casefold()} "):
        return ""
    words = old[len(subject) + 1 :].rstrip(".")
    return "" if _LISTS.search(words.split(", ")[0]) or re.search(r", (?:an?|and|two|three) ", words) else words


def _names_held(what: str, words: str) -> bool:
    """Return True if what has ended is the thing that a predicate names, with or without its adjectives."""
    if allergy := re.fullmatch(r"(?P<to>.+) (?:allergy|intolerance)", what):
        had = re.fullmatch(r"is allergic to (?P<to>[\w ]+)|has an? (?P<its>[\w -]+?) (?:allergy|intolerance)", words)
        return had is not None and _singular(had["to"] or had["its"]) == _singular(allergy["to"])
    held = _HELD.match(words)
    if held is None:
        return False
    ours, theirs = (re.sub(rf"^{_ARTICLE} ", "", each).casefold().split() for each in (what, held["what"]))
    is_named = what.split()[-1][:1].isupper() and len(ours) == 1 and ours[0] in theirs
    is_head = theirs[-len(ours) :] == ours
    # "the gym membership at FitOne"
    is_whole = re.match(rf"(?:{_ARTICLE} )?{re.escape(' '.join(ours))}\b", words[held.start("what") :], re.IGNORECASE)
    return is_head or is_named or (re.search(r" (?:on|at) ", what) is not None and is_whole is not None)


def _does(match: re.Match[str], words: str) -> bool:
    """Return True if a predicate says of the verb that was left off, and of all words behind it, that it is done."""
    rest = re.sub(rf"^ {_ARTICLE} ", " ", match["rest"])
    gerund, base = match["gerund"] or match["being"], match["base"] or match["verb"]
    stem = (gerund or "").removesuffix("ing")
    bases = [base] if base else [stem, f"{stem}e", stem[:-1]]
    known = [verb for verb in VERBS.values() if verb.gerund == gerund or base in (verb.base, verb.present)]
    for verb in known or [regular_verb(each) for each in bases if each]:
        does = rf"(?:{verb.base}|{verb.present}|(?:is|goes?) {verb.gerund})(?: {_ARTICLE}(?= ))?{re.escape(rest)}"
        if re.match(f"{does}{_BEHIND}", words, re.IGNORECASE):
            return True
    return False


def _singular(words: str) -> str:
    return re.sub(r"(?:(?<=[^aeious])|(?<=[ae]))s$", "", words.casefold())


def _may_be_same_day(new: str, old: str) -> bool:
    """Return False if the end names a day of the week, and the claim another one."""
    ours, theirs = ({day.rstrip("s") for day in _DATED.findall(each)} for each in (new, old))
    return not ours or not theirs or bool(ours & theirs)
