"""Kinds of sentences about work: decisions, rejections, blockers, constraints, next steps.

They serve runtimes that record no slots, and the compression of texts. The rules are for plain English and know the
usual forms of such sentences, not their meaning. A sentence is one note at most, of the first kind whose form it has,
and is quoted word for word.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory.extraction.terms import specific_terms
from memory.extraction.work_denials import is_cleared, is_denied, is_left_open, is_mended
from memory.providers.sentences import is_question, split_sentences

MAX_NOTED_CHARACTERS = 20_000
"""Characters of a text that are searched. Of a longer text these are half from the beginning, half from the end."""
MAX_SENTENCE_CHARACTERS = 600
"""Characters after which a sentence is cut."""


class NoteKind(StrEnum):
    """The meaning of a sentence for somebody who continues the work."""

    CORRECTION = "correction"
    QUESTION_OPEN = "question_open"
    BLOCKER = "blocker"
    REJECTION = "rejection"
    DECISION = "decision"
    CONSTRAINT = "constraint"
    ERROR = "error"
    NEXT_STEP = "next_step"
    RESULT = "result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A sentence about work, as it was said."""

    kind: NoteKind
    text: str


_CORRECTION = r"""
    ^(?:no|nope|wait|hold\ on|hmm|sorry|oops)\b\s*[,.;:!—–-](?!\s*thank) | ^actually\b | \bactually,
    | \b(?:correction|scratch\ that|never\ ?mind|my\ mistake|on\ second\ thoughts?|i\ misspoke|i\ stand\ corrected)\b
    | \b(?:i|we)\ (?:was|were|had\ it|got\ (?:it|that))\ wrong\b | \bi\ meant\b
    | \bchang(?:ed?|ing)\ (?:my|our|his|her|their)\ minds?\b | \bforget\ (?:what|about|the|that|it)\b
    | \btak(?:e|ing)\ (?:that|it)\ back\b | \b(?:is|are|was)\ (?:obsolete|outdated|superseded|withdrawn)\b
    | \b(?:is|are|was|were)\ given\ up\b
    | \b(?:after|turns?\ out)\b.{0,40}\bwrong\b | \binstead\b(?!\ of) | \bno\ longer\b | \bafter\ all\b
    | \b(?:un-?do|revert(?:ed)?|reversed)\ (?:that|the|our|this)\b
"""
_BLOCKER = r"""
    \bblock(?:ed|ers?|ing)\b | \bblocks\ (?:the|us|me|our|it|this|that|any)\b
    | \b(?:wait|waiting|waits|hold|holding)\ (?:for|on)\b | \bawait(?:s|ing|ed)?\b
    | \bstuck\b | \bheld\ up\b | \bdepends?\ on\b | \bpending\b | \bin\ (?:the|our)\ way\b | \bbottleneck\b
    | \b(?:can'?t|cannot|can\ not|won'?t|not|unable|nothing)\b.{1,80}\b(?:until|till|unless|before\ \w)
    | ^(?:until|unless)\b | \b(?:still|yet\ to)\ (?:need|missing|lack|waiting)\w*\b | \bno\ (?:access|answer|reply)\b
"""
_REJECTION = r"""
    \breject(?:ed|s|ing)?\b | \brul(?:e|ed|es|ing)\ (?:\w+\ ){0,3}out\b | \boff\ the\ table\b | \bno[- ]go\b
    | \bdecided\ (?:against|not\ to)\b | \b(?:not|isn'?t|aren'?t|wasn'?t)\ (?:really\ )?(?:an?\ option|worth)\b
    | \b(?:won'?t|doesn'?t|didn'?t|not|wouldn'?t|never)\ (?:\w+\ )?(?:work|fit|help|do|scale|fly|qualify|pan)\b
    | \btoo\ (?:expensive|slow|risky|big|small|heavy|late|long|loud|complex|complicated|fragile|old|much|many|dear)\b
      (?!\W+(?:\w+\ ){0,2}\d[\d.,]*\ ?(?:ms|s|sec\w*|min\w*|h|hours?|days?|[kmg]i?b)\b)
    | \b(?:turn(?:ed)?\ down|discard(?:ed)?|dismiss(?:ed)?|scrap(?:ped)?|drop(?:ped)?|ditch(?:ed)?|abandon(?:ed)?)\b
    | \bout\ of\ the\ question\b | \bnot\ going\ (?:to\ (?:use|do|go)|with)\b | \brather\ not\b
    | \b(?:do\ not|don'?t|doesn'?t|didn'?t)\ want\b | \b(?:can'?t|cannot)\ use\b
    | \b(?:do\ not|don'?t)\ (?:think|believe|feel)\ (?:that\ )?(?:we|it|i|this|that)\ (?:should|ought|need|can|makes)\b
    | \bwe\ (?:(?:should|will|would|are)\ (?:not|never)|shouldn'?t|won'?t|wouldn'?t|aren'?t)\ (?:going\ to\ )?
      (?:use|keep|take|go|switch|buy|order|ship|book)\b
"""
_DECISION = r"""
    \b(?:decided|decisions?|agreed|settled?\ (?:on|for)|chose|chosen|picked|opted|approved|signed\ off)\b
    | \b(?:go|going|went|stick|sticking|stay|staying)\ (?:\w+\ )?(?:with|for)\b
      (?!\ (?:\w+\ ){0,2}(?:lunch|dinner|breakfast|coffee|tea|walk|break|run|swim|beer|drinks?)\b)
    | \blet'?s\ (?!see\b|check\b|hope\b|look\b|talk\b|say\b|start\ by\b)\w+
    | \bwe(?:'ll|\ will|'re\ going\ to|\ are\ going\ to|\ should)\ (?:\w+\ )?
      (?:use|keep|do|run|take|split|move|make|put|write|build|buy|order|switch|ship|cut)\b
    | (?:^|[,;:–—-]\s|\b(?:so|and|then)\ )we\ (?:now\ )?(?:use|keep|take|move|switch|stay|book|postpone|choose)\ \w
    | \bthe\ plan\ (?:is|will|now)\b | \b(?:final|plan|choice)\ (?:is|:)
    | \b(?:i'd|i\ would|we'd)\ (?:rather|prefer)\b | \b(?:instead\ of|rather\ than|in\ favou?r\ of|in\ place\ of)\b
    | \b(?:moved|postponed|rescheduled|slipped|pushed\ back|brought\ forward)\ (?:[\w'-]+\ ){0,6}?to\ (?:the\ )?
      (?:\w+day\b|\d{1,2}(?:st|nd|rd|th)?\ (?:of\ )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)
      |(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\ \d)
    | \bdo\ it\ (?:that|this)\ way\b | \w\ it\ is[.!]?$ | \breplac(?:es|ed|ing)\b
"""
# words that make a rule only together: "approve" alone is something that somebody does
_BINDS = r"(?:must|should|shall|may|can|needs?|ha(?:s|ve)\ to|without|only|not|no|never|before|until|unless|ask|want)"
_BOUND = r"(?:approv(?:e|es|al)|permission|(?<![.\w])policy|sign(?:s|ed)?[- ]?off|up\ to\ (?:[€$£]\s?)?\d+)"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_CONSTRAINT = rf"""
    \b(?:must|mustn'?t|shall\ not|may\ not|not\ allowed|forbidden|mandatory|required?|non-negotiable)\b
    | (?<!\bhas\ )(?<!\bhave\ )(?<!\bhad\ )(?<!\bwas\ )(?<!\bwere\ )\bnever\ (?!\w+ed\b|got\b|came\b|went\b|saw\b)\w
    | \balways\ (?!\w+ed\b|\w+[^s\W]s\b)\w
    | \bwithout\ (?:\w+\ ){{0,3}}(?:approval|asking|permission|sign-?off|consent|my|telling|review|downtime)\b
    | \b(?:at\ (?:most|least)|no\ (?:more|less|later|fewer|earlier)\ than|only\ (?:if|when|after|with|on|in))\b
    | \b(?:under|below|above|over|within|before|until)\ (?:[€$£]\s?)?\d
    | \bby\ \d{{1,2}}(?:st|nd|rd|th)?(?:\ (?:of\ )?{_MONTH}|:\d\d|\s?(?:am|pm|o'clock)\b) | \bby\ \d{{4}}-\d\d
    | \b(?:has|have|needs?|got)\ to\ (?:be|stay|sign|approve|go|keep|run|agree|know|work|pass|come|have)\b
    | \b{_BINDS}\b.{{0,60}}\b{_BOUND}\b | \b{_BOUND}\b.{{0,60}}\b{_BINDS}\b
    | (?<![.\w])policy\ (?:is|says|requires|forbids)
    | \b(?:freeze|frozen|off[- ]limits|compliance|gdpr)\b
    | (?:^|[,;:—–-]\s*|\b(?:and|but|please|so|btw)\ )(?:do\ not|don'?t)\ (?!worry|know|mind|think)\w+
    | \b(?:maximum|minimum|capped|cap\ of|not\ (?:more|less|later|before|after|on|during|touch)|as\ long\ as)\b
    | \bby\ (?:mon|tues|wednes|thurs|fri|satur|sun)day\b | \bby\ the\ (?:end|\d) | \b(?:due|expires?|runs\ out)\b
    | \bno\ (?:\w+\ ){{1,3}}(?:on|after|before|during|without|in)\b
    | \bi\ (?:prefer|want|need|like|hate)\b
      (?!\ (?:you\ to\ help|your\ help|to\ (?:go|run|leave|say|think|thank)|it\b|that\b))
    | (?<!\bwill\ )(?<!'ll\ )(?<!\bfor\ you\ to\ )\bask\ (?:me|him|her|us|them)\b
    | \bonly\b.{{0,40}}\b(?:can|may|should|allowed)\b | \bcannot\ exceed\b
    | (?:^|[,;:–—-]\s|\b(?:and|but|so|that)\s)(?:nobody|no\ one)\ (?!(?:knows?|is|was|has|had|else|seems?|\w+ed)\b)\w+
"""
# a limit that was exceeded is an error, so sentences that only name a limit are matched after errors
_LIMIT = r"\b(?:budget|deadline|limit|ceiling|quota)\b"
_ERROR = r"""
    (?<!%\ )\berrors?\b(?!\ (?:rates?|budgets?)|-free)
    | \b(?:fail(?:s|ed|ing|ure|ures)?|exceptions?|traceback|fatal|panic)\b
    | \btimed\ out\b | \btime-?outs?\ (?:after|exceeded|error|of\ \d) | \bcrash(?:ed|es|ing)?\b
    | \b(?:refused|denied|deadlock(?:ed|s)?|corrupt(?:ed|ion)?|broken|out\ of\ memory|segfault|violat(?:es|ed|ion))\b
    | \b\w+(?:error|exception)\b | \b(?:err|sqlstate)[_-]?\w+ | \b(?:could\ not|couldn'?t|unable\ to)\b
    | \b(?:http|status|exit\ code|returned|code)\ (?![23]\d\d\b)[1-9]\d{0,2}\b
    | \bbug\b | \bregression\b | \b[45]\d\ds\b
    | \b(?:answer(?:ed|s)|got|gets|gave|gives|returns|repl(?:ied|ies))\ (?:with\ )?(?:an?\ )?(?:http\ )?[45]\d\d\b
    | \black(?:s|ed)?\ (?:the\ )?(?:permissions?|rights?|scopes?)\b
"""
_NEXT_STEP = r"""
    \bstill\ (?:open|undecided|unresolved|unanswered|missing|undone)\b
    | \b(?:one|ones|rest|question|point|issue|ticket|item|task|blocker|[a-z]+-\d+)s?\ (?:\d+\ )?(?:is|are)\ open\b
    | ^open\ (?:ends?|points?|questions?|items?)\b
    | \bnext(?:\ (?:step|up|thing)|,|\ is\b|:) | \bto-?do\b | \b(?:still|yet)\ (?:have|has|need|needs|to)\b
    | \b(?:remain(?:s|ing)?|left\ to|outstanding|follow[- ]?up|afterwards)\b | \bremember\ to\b | \bdon'?t\ forget\b
    | \b(?:tomorrow|monday|tuesday|wednesday|thursday|friday|later\ today|this\ afternoon)\b
    | \b(?:i'll|i\ will|we'll|we\ will|i'm\ going\ to)\b | \b(?:pick\ (?:it|this|up)|continue|resume|carry\ on)\b
    | ^then\b | \bonce\ (?:that|the|it|this|we)\b | \bneed(?:s)?\ to\b | \bshould\ (?:be|do|now|next|then)\b
"""
# results that end something, and results that were only found out
_COMPLETION = r"""
    \b(?:finished|done|pass(?:ed|es)|deployed|complet(?:ed|e)|merged|fixed|shipped|succeeded|confirmed|verified)\b
    | \b(?:(?<!\bi\ )(?<!\bwe\ )found|root\ cause|turn(?:s|ed)\ out|rolled\ (?:back|out)|migrated|restored|created)\b
    | \b(?:wrote|written|pushed|opened|ordered|booked|paid|sent|received|installed|applied)\b
    | \b(?:renamed|removed|added|repaired|resolved|released|published)\b | \bok\b\s*[:(]
    | \b(?:(?<!\bi\ )moved\b | moved\b(?!\ (?:back\ )?(?:to|from|in|out|house|home|abroad)\b))
    | \bran\b(?=[.!]?$|\ (?:fine|through|clean\w*|ok|green|without|successfully)\b)
    | \bis\ (?:now\ )?(?:live|up|green|ready|in\ place|stable|the\ (?:cause|culprit))\b
    | \b(?:came|comes)\ (?:back|to|in|out)\b
    | \b(?:went|got|came)\ through\b
      (?!\ (?:the|an?|all|every|each|your|my|our|his|her|its|their|it|them|this|that|these|those|\w+s)\b)
    | (?<!\bi\ )(?<!\bwe\ )\bworked\b
      (?=[.!]?$|,|\ (?:now|again|fine|this\ time|as\ expected|at\ last|perfectly)\b)
      (?!.{0,40}\b(?:before|until|yesterday|once|last)\b)
    | \bworks\ (?:now[.!]?$|(?:again|fine|as\ expected|at\ last|perfectly|this\ time)\b)
    | ^(?:(?:now\ )?(?:it|that|this|everything)\ (?:now\ )?)?works[.!]?$
    | \b(?:try|attempt|retry|rerun|run|time)\ (?:was|went|is)\ (?:fine|ok(?:ay)?|good|clean|well|green|smooth(?:ly)?)\b
"""
_FINDING = r"\b(?:measured|found|shows?|showed|took\ \d+|results?|caused\ by|because\ of)\b"
_RESULT = rf"{_COMPLETION} | {_FINDING}"
FORMS: Sequence[tuple[NoteKind, re.Pattern[str]]] = [
    (kind, re.compile(form, re.IGNORECASE | re.VERBOSE))
    for kind, form in (
        (NoteKind.CORRECTION, _CORRECTION),
        (NoteKind.BLOCKER, _BLOCKER),
        (NoteKind.REJECTION, _REJECTION),
        (NoteKind.DECISION, _DECISION),
        (NoteKind.CONSTRAINT, _CONSTRAINT),
        (NoteKind.ERROR, _ERROR),
        (NoteKind.CONSTRAINT, _LIMIT),
        (NoteKind.NEXT_STEP, _NEXT_STEP),
        (NoteKind.RESULT, _RESULT),
    )
]
"""Patterns in the order in which they are tried, from corrections to mere results."""
_RESULT_FORM = dict(FORMS)[NoteKind.RESULT]
_COMPLETION_FORM, _FINDING_FORM = (re.compile(form, re.IGNORECASE | re.VERBOSE) for form in (_COMPLETION, _FINDING))
DENIABLE = frozenset(NoteKind) - {NoteKind.CORRECTION, NoteKind.CONSTRAINT}
"""Kinds that a negation cancels. In constraints and corrections a "not" is part of the form."""
DENIED = frozenset({NoteKind.DECISION, NoteKind.ERROR, NoteKind.NEXT_STEP, NoteKind.RESULT})
"""Kinds whose negation has a meaning of its own (`kind_of_denied`)."""
OVER = {NoteKind.ERROR: is_mended, NoteKind.BLOCKER: is_cleared}
"""Checks of a match of a kind for words that say that it is over."""
_SUPPOSED = re.compile(r"[^.,;:]{0,80}\b(?:should|must|would|might|shall|will|if|unless)\b", re.IGNORECASE)
"""A sentence about what should or may happen reports no outcome."""
_STILL_OPEN = re.compile(r"\b(?:is|are|be|been|yet|still|isn't|aren't)\b", re.IGNORECASE)
"""Present forms: what "is not" done is still open, while what "was not" done has failed."""
_CALL = re.compile(r"\s*[\w.:-]{1,100}\(.*?\)\s*(?P<end>->|!!|$)\s*(?P<gave>.*)", re.DOTALL)
"""The format of a call (`turn_slots.Call.format`): tool, arguments, and result or error."""

# what people begin an instruction with
_VERBS = (
    "add|apply|ask|avoid|book|branch|bring|build|buy|call|cancel|change|check|choose|close|commit|compare|copy|count|"
    "create|cut|delete|deploy|do|document|draft|drop|fix|focus|get|give|go|hold|include|install|keep|leave|limit|list|"
    r"make(?! it (?!\d)\w+[.!]?$)|mark|measure|merge|move|name|note|open|order|pause|pick|plan|post|publish|push|put|"
    "remove|rename|"
    "repeat|replace|restart|restore|revert|roll|run|save|schedule|send|set|ship|show|skip|split|start|stay|stick|stop|"
    "store|switch|take|tell|test|treat|turn|update|use|wait|watch|write"
)
_INSTRUCTION = re.compile(
    rf"^(?:(?:please|then|and|so|just|first|for now|no,|yes,|ok,)[\s,]+)*(?:{_VERBS})\b(?!\s*[:=(])|"
    r"(?:^|[,;:–—-]\s*|\b(?:so|and|but)\s)(?:no|not one|not a single)\s(?!idea|problem|worries|doubt|way|need|rush)\w+",
    re.IGNORECASE,
)
_ERRAND = re.compile(
    r"(?:(?:please|then|and|so|just|first|ok,)[\s,]+)*(?:run|rerun|stop|start|restart|repeat|check|show|list|tell|open|close"
    r"|wait|watch|call|test|build|commit|push|deploy|restore|revert|roll|do|go|look|compare|measure|count|pause|fix|send)\b",
    re.IGNORECASE,
)
_LASTS = re.compile(
    r"\b(?:always|never|only|every|each|all|no|not|don'?t|until|unless|before|after|when|from now on|instead|with"
    r"|without|by|on|at|in|rather)\b",
    re.IGNORECASE,
)
_TO_BE = (
    r"\b(?:still|yet|remains?) to be \w+|\bto be (?:agreed|chosen|clarified|confirmed|decided|defined|determined)\b"
)
_UNDONE = re.compile(rf"{_TO_BE}|\btb[acd]\b", re.IGNORECASE)
"""What is still to be done, whatever that is: "The port is to be decided" is no decision."""
_OPEN = re.compile(
    rf"{_UNDONE.pattern}|\bstill (?:open|undecided|unresolved|unanswered|missing|undone)\b|^open \w+", re.IGNORECASE
)
_OPENERS = re.compile(
    r"(?:(?:ok(?:ay)?|alright|all right|well|so|right|yes|yeah|yep|sure|great|perfect|thanks(?: a lot)?|thank you|good|"
    r"fine|got it|understood|makes sense|sounds good|and|also|oh|hi|hello|hey|btw|by the way)\b[ ]?[,.!;:—–-]+\s*"
    r"|[-*•>#]+\s+)+",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"(?:and |but |so |now |then |finally |this time,? )?(?:it|they|that|this|these|those|she|he)(?:'s|'re|'ll)? "
    r"|(?:the )?(?:first|second|third|next|other|last|another|new) (?:ones?|try|attempt|run|time)\b"
    r"|(?:no|not|none|nothing|neither|only|same)\b.{0,30}\b(?:so far|yet|either|again)\b"
    r"|(?:and |so |then |please |just )*\w+ (?:with |for |on |by |to )?(?:it|that|this|them|those)[.!]?$"
    r"|still \w+ing\b|(?:waiting|pending|blocked|failed|finished|passed|works|worked|crashed|stuck)\b",
    re.IGNORECASE,
)
_LEAVES = re.compile(
    r"^(?:(?:sorry|but|and|well|right|i think)[,.!]* )*(?:i |i'?ve |we |we'?ve )?"
    r"(?:(?:(?:now |really |just )?(?:have|need|got|ought) to|must|gotta|should) "
    r"(?:run|dash|go|leave|rush|be off|be going|head (?:off|out|home)|log off|sign off)"
    r"(?: now| soon)?(?:$|[.!;–—]|, (?:\w+ ?){1,2}[.!]*$)"
    r"|(?:(?:i'?m |i am )?off to (?:the |my |a )?(?:dentist|doctor|gym|lunch|school|bed|sleep|train|airport)"
    r"|brb|afk|wish me luck|see you|talk (?:later|soon))\b|back (?:in|at) (?:\w+ ){0,2}\w+[.!]?$"
    r"|(?:have|need|got|must|gotta)(?: to)? (?:pick up|fetch|collect|drop off|feed|walk|visit|get home to) "
    r"(?:my|our) (?:son|daughter|kids?|children|wife|husband|partner|mum|mom|mother|dad|father|dog|cat)\b)",
    re.IGNORECASE,
)
"""A sentence with which somebody leaves the conversation, as "Have to run, train."."""
_SIGN = str.maketrans({"’": "'", "‘": "'"})


def find_notes(text: str) -> list[Note]:
    """Return the notes of a text in order, without the middle of a long text. Takes linear time.

    >>> [note.kind.value for note in find_notes("We go with MIT. No idea. It can't ship until Ana signs.")]
    ['decision', 'blocker']
    """
    classified = [(kind_of(sentence), sentence) for sentence in work_sentences(text)]
    return [Note(kind=kind, text=sentence) for kind, sentence in classified if kind is not None]


def work_sentences(text: str) -> list[str]:
    """Return the sentences of a text that are searched, each on one line and without an opener such as "Okay, "."""
    return [bare for sentence in split_sentences(drop_middle(text)) if (bare := strip_opener(sentence))]


def drop_middle(text: str) -> str:
    if len(text) <= MAX_NOTED_CHARACTERS:
        return text
    return f"{text[: MAX_NOTED_CHARACTERS // 2]}\n{text[-MAX_NOTED_CHARACTERS // 2 :]}"


def strip_opener(sentence: str) -> str:
    opener = _OPENERS.match(sentence)
    # a sentence that is nothing but an opener says nothing
    bare = sentence[opener.end() :] if opener else sentence
    return " ".join(bare[:MAX_SENTENCE_CHARACTERS].split())


def is_instruction(sentence: str) -> bool:
    """Return True for the form of an instruction, as "Use the old one" or "no new packages".

    Ask this only about what people said, since outputs of tools have the same form.
    """
    return not is_question(sentence) and _INSTRUCTION.search(sentence[:MAX_SENTENCE_CHARACTERS]) is not None


def is_errand(sentence: str) -> bool:
    """Return True for an instruction that is over once it is done and decides nothing: "Run the migration, then again".

    What lasts ("Run tests with -n 2", "Always stop the job first") has a word that says so, or names something.
    """
    return _ERRAND.match(sentence) is not None and not (_LASTS.search(sentence) or specific_terms(sentence))


def is_departure(sentence: str) -> bool:
    """Return True for words with which somebody leaves, or comes back, that say nothing of the work."""
    return _LEAVES.match(sentence.translate(_SIGN)) is not None


def is_still_open(sentence: str) -> bool:
    """Return True for a sentence that says in so many words that something is open."""
    return _OPEN.search(sentence) is not None and kind_of(sentence) == NoteKind.NEXT_STEP


def depends_on_previous(sentence: str) -> bool:
    """Return True if only the sentence before says what it is about, as "It waits." or "No reply so far."."""
    return _LEANS.match(sentence.translate(_SIGN)) is not None


def kind_of(sentence: str) -> NoteKind | None:
    """Return the kind of one sentence, or None. A call of a tool may be a result or an error."""
    plain = sentence[:MAX_SENTENCE_CHARACTERS].translate(_SIGN)
    if (call := _CALL.fullmatch(plain)) is not None:
        return kind_of_call(call)
    if is_question(sentence):
        return NoteKind.QUESTION_OPEN
    if is_departure(plain):
        return None
    undone = _UNDONE.search(plain)
    if undone is not None and not is_denied(plain, undone):
        return NoteKind.NEXT_STEP
    for kind, form in FORMS:
        found = list(form.finditer(plain))
        is_over = OVER.get(kind)
        mended = [match for match in found if is_over is not None and is_over(plain, match)]
        if found and (kind not in DENIABLE or not all(match in mended or is_denied(plain, match) for match in found)):
            return NoteKind.NEXT_STEP if kind == NoteKind.RESULT and is_left_open(plain) else kind
        if found and kind in DENIED:
            return kind_of_denied(kind, plain)
    return None


def kind_of_call(call: re.Match[str]) -> NoteKind | None:
    if call["end"] == "!!":
        return NoteKind.ERROR
    kind = kind_of(call["gave"]) if call["gave"] else None
    return kind if kind in (NoteKind.RESULT, NoteKind.ERROR) else None


def kind_of_denied(kind: NoteKind, plain: str) -> NoteKind | None:
    """Return the kind of a sentence that negates its `kind`.

    No error is a result. A negated decision is nothing. A negated next step is a result if it reports one. A negated
    result is a next step or an error, depending on the tense.
    """
    if kind == NoteKind.RESULT:
        return NoteKind.NEXT_STEP if _STILL_OPEN.search(plain) else NoteKind.ERROR
    if kind == NoteKind.NEXT_STEP:
        found = list(_RESULT_FORM.finditer(plain))
        return None if all(is_denied(plain, match) for match in found) else NoteKind.RESULT
    return NoteKind.RESULT if kind == NoteKind.ERROR else None


def status_of(sentence: str) -> str:
    """Return the outcome that a sentence reports: succeeded, failed or open; empty if it reports none."""
    kind = kind_of(sentence)
    if _SUPPOSED.match(sentence):
        return ""
    if kind == NoteKind.NEXT_STEP:
        return "open" if reports_undone(sentence) else ""
    if kind == NoteKind.RESULT:
        is_finding = _FINDING_FORM.search(sentence) is not None and _COMPLETION_FORM.search(sentence) is None
        return "" if is_finding else "succeeded"
    return "failed" if kind == NoteKind.ERROR else ""


def reports_undone(sentence: str) -> bool:
    """Return True if it says that something is not done, which would be a result."""
    plain = sentence[:MAX_SENTENCE_CHARACTERS].translate(_SIGN)
    return is_left_open(plain) or any(is_denied(plain, match) for match in _RESULT_FORM.finditer(plain))
