"""What sentences of work are: decisions, what was rejected, what is in the way, what must be kept to, what comes next.

For runtimes that record no slots, and for texts that are compressed. By rules for plain English: they know the usual
forms of such sentences, not their meaning. Each sentence is one note at most, of the first kind whose form it has; what
it says stands there word for word.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from memory.providers.sentences import is_question, split_sentences

LONGEST_TEXT = 20_000
"""Characters that are looked at: of a longer text the first half of these, and the last half."""
LONGEST_SENTENCE = 600
"""Characters; of a longer one no more is looked at, or told."""


class NoteKind(StrEnum):
    """What a sentence is to work that goes on."""

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
    """A sentence of work, as it was said."""

    kind: NoteKind
    text: str


_CORRECTION = r"""
    ^(?:no|nope|wait|hold\ on|hmm|sorry|oops)\b\s*[,.;:!—–-] | ^actually\b | \bactually,
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
    | \b(?:can'?t|cannot|can\ not|won'?t|not|unable|nothing)\b.{1,80}\b(?:until|till|unless|before)\b
    | ^(?:until|unless)\b | \b(?:still|yet\ to)\ (?:need|missing|lack|waiting)\w*\b | \bno\ (?:access|answer|reply)\b
"""
_REJECTION = r"""
    \breject(?:ed|s|ing)?\b | \brul(?:e|ed|es|ing)\ (?:\w+\ ){0,3}out\b | \boff\ the\ table\b | \bno[- ]go\b
    | \bdecided\ (?:against|not\ to)\b | \b(?:not|isn'?t|aren'?t|wasn'?t)\ (?:really\ )?(?:an?\ option|worth)\b
    | \b(?:won'?t|doesn'?t|didn'?t|not|wouldn'?t|never)\ (?:\w+\ )?(?:work|fit|help|do|scale|fly|qualify|pan)\b
    | \btoo\ (?:expensive|slow|risky|big|small|heavy|late|long|loud|complex|complicated|fragile|old|much|many|dear)\b
    | \b(?:turn(?:ed)?\ down|discard(?:ed)?|dismiss(?:ed)?|scrap(?:ped)?|drop(?:ped)?|ditch(?:ed)?|abandon(?:ed)?)\b
    | \bout\ of\ the\ question\b | \bnot\ going\ (?:to\ (?:use|do|go)|with)\b | \brather\ not\b
    | \b(?:do\ not|don'?t|doesn'?t|didn'?t)\ want\b | \b(?:can'?t|cannot)\ use\b
"""
_DECISION = r"""
    \b(?:decided|decisions?|agreed|settled?\ (?:on|for)|chose|chosen|picked|opted|approved|signed\ off)\b
    | \b(?:go|going|went|stick|sticking|stay|staying)\ (?:\w+\ )?(?:with|for)\b
    | \blet'?s\ (?!see\b|check\b|hope\b|look\b|talk\b|say\b|start\ by\b)\w+
    | \bwe(?:'ll|\ will|'re\ going\ to|\ are\ going\ to|\ should)\ (?:\w+\ )?
      (?:use|keep|do|run|take|split|move|make|put|write|build|buy|order|switch|ship|cut)\b
    | \bthe\ plan\ (?:is|will|now)\b | \b(?:final|plan|choice)\ (?:is|:)
    | \b(?:i'd|i\ would|we'd)\ (?:rather|prefer)\b | \b(?:instead\ of|rather\ than|in\ favou?r\ of|in\ place\ of)\b
    | \bdo\ it\ (?:that|this)\ way\b | \w\ it\ is[.!]?$ | \breplac(?:es|ed|ing)\b
"""
_CONSTRAINT = r"""
    \b(?:must|mustn'?t|never|always|shall\ not|may\ not|not\ allowed|forbidden|mandatory|required?|non-negotiable)\b
    | \bwithout\ (?:\w+\ ){0,3}(?:approval|asking|permission|sign-?off|consent|my|telling|review|downtime)\b
    | \b(?:at\ (?:most|least)|no\ (?:more|less|later|fewer|earlier)\ than|up\ to|only\ (?:if|when|after|with|on|in))\b
    | \b(?:under|below|above|over|within|before|by|until)\ (?:[€$£]\s?)?\d | \b(?:budget|deadline|limit|ceiling|quota)\b
    | \b(?:has|have|needs?|got)\ to\ (?:be|stay|sign|approve|go|keep|run|agree|know|work|pass|come|have)\b
    | \b(?:sign(?:s|ed)?[- ]?off|approv(?:e|es|al)|permission|freeze|frozen|off[- ]limits|compliance|policy|gdpr)\b
    | (?:^|[,;:—–-]\s*|\b(?:and|but|please|so)\ )(?:do\ not|don'?t)\ (?!worry|know|mind|think)\w+
    | \b(?:maximum|minimum|capped|cap\ of|not\ (?:more|less|later|before|after|on|during|touch)|as\ long\ as)\b
    | \bby\ (?:mon|tues|wednes|thurs|fri|satur|sun)day\b | \bby\ the\ (?:end|\d) | \b(?:due|expires?|runs\ out)\b
    | \bno\ (?:\w+\ ){1,3}(?:on|after|before|during|without|in)\b | \bi\ (?:prefer|want|need|like|hate)\b
    | \bask\ (?:me|him|her|us|them)\b | \bonly\b.{0,40}\b(?:can|may|should|allowed)\b | \bcannot\ exceed\b
    | (?:^|[,;:–—-]\s|\b(?:and|but|so|that)\s)(?:nobody|no\ one)\ (?!knows?\b|is\b|was\b|has\b|had\b|else\b|seems?\b)\w+
"""
_ERROR = r"""
    (?<!\bno\ )(?<!%\ )\berrors?\b(?!\ rates?) | \b(?:fail(?:s|ed|ing|ure|ures)?|exceptions?|traceback|fatal|panic)\b
    | \btimed\ out\b | \btime-?outs?\ (?:after|exceeded|error|of\ \d) | \bcrash(?:ed|es|ing)?\b
    | \b(?:refused|denied|deadlock(?:ed|s)?|corrupt(?:ed|ion)?|broken|out\ of\ memory|segfault|violat(?:es|ed|ion))\b
    | \b\w+(?:error|exception)\b | \b(?:err|sqlstate)[_-]?\w+ | \b(?:could\ not|couldn'?t|unable\ to)\b
    | \b(?:http|status|exit\ code|returned|code)\ (?:[45]\d\d|[1-9]\d{0,2})\b | \bbug\b | \bregression\b | \b[45]\d\ds\b
"""
_NEXT_STEP = r"""
    \bnext(?:\ (?:step|up|thing)|,|\ is\b|:) | \bto-?do\b | \b(?:still|yet)\ (?:have|has|need|needs|to)\b
    | \b(?:remain(?:s|ing)?|left\ to|outstanding|follow[- ]?up|afterwards)\b | \bremember\ to\b | \bdon'?t\ forget\b
    | \b(?:tomorrow|monday|tuesday|wednesday|thursday|friday|later\ today|this\ afternoon)\b
    | \b(?:i'll|i\ will|we'll|we\ will|i'm\ going\ to)\b | \b(?:pick\ (?:it|this|up)|continue|resume|carry\ on)\b
    | ^then\b | \bonce\ (?:that|the|it|this|we)\b | \bneed(?:s)?\ to\b | \bshould\ (?:be|do|now|next|then)\b
"""
_RESULT = r"""
    \b(?:finished|done|pass(?:ed|es)|deployed|complet(?:ed|e)|merged|fixed|shipped|succeeded|confirmed|verified)\b
    | \b(?:measured|found|shows?|showed|root\ cause|turn(?:s|ed)\ out|rolled\ (?:back|out)|migrated|restored|created)\b
    | \b(?:wrote|written|pushed|opened|ordered|booked|paid|sent|received|installed|applied)\b
    | \b(?:renamed|moved|removed|added)\b
    | \bis\ (?:now\ )?(?:live|up|green|ready|in\ place|stable|the\ (?:cause|culprit))\b | \btook\ \d | \bresults?\b
    | \b(?:came|comes)\ (?:back|to|in|out)\b | \bok\b\s*[:(] | \bcaused\ by\b | \bbecause\ of\b
"""
FORMS: Mapping[NoteKind, re.Pattern[str]] = {
    kind: re.compile(form, re.IGNORECASE | re.VERBOSE)
    for kind, form in (
        (NoteKind.CORRECTION, _CORRECTION),
        (NoteKind.BLOCKER, _BLOCKER),
        (NoteKind.REJECTION, _REJECTION),
        (NoteKind.DECISION, _DECISION),
        (NoteKind.CONSTRAINT, _CONSTRAINT),
        (NoteKind.ERROR, _ERROR),
        (NoteKind.NEXT_STEP, _NEXT_STEP),
        (NoteKind.RESULT, _RESULT),
    )
}
"""In the order in which they are tried: what is taken back first, what was merely done last."""

# what people begin an instruction with
_VERBS = (
    "add|apply|ask|avoid|book|branch|bring|build|buy|call|cancel|change|check|choose|close|commit|compare|copy|count|"
    "create|cut|delete|deploy|do|document|draft|drop|fix|focus|get|give|go|hold|include|install|keep|leave|limit|list|"
    "make|mark|measure|merge|move|name|note|open|order|pause|pick|plan|post|publish|push|put|remove|rename|"
    "repeat|replace|restart|restore|revert|roll|run|save|schedule|send|set|ship|show|skip|split|start|stay|stick|stop|"
    "store|switch|take|tell|test|treat|turn|update|use|wait|watch|write"
)
_INSTRUCTION = re.compile(
    rf"^(?:(?:please|then|and|so|just|first|for now|no,|yes,|ok,)[\s,]+)*(?:{_VERBS})\b(?!\s*[:=(])|"
    r"(?:^|[,;:–—-]\s*|\b(?:so|and|but)\s)(?:no|not one|not a single)\s(?!idea|problem|worries|doubt|way|need|rush)\w+",
    re.IGNORECASE,
)
_OPENERS = re.compile(
    r"(?:(?:ok(?:ay)?|alright|all right|well|so|right|yes|yeah|yep|sure|great|perfect|thanks(?: a lot)?|thank you|good|"
    r"fine|got it|understood|makes sense|sounds good|and|also|oh|hi|hello|hey|btw|by the way)\b[ ]?[,.!;:—–-]+\s*"
    r"|[-*•>#]+\s+)+",
    re.IGNORECASE,
)
_SIGN = str.maketrans({"’": "'", "‘": "'"})


def find_notes(text: str) -> list[Note]:
    """The notes of a text, in its order. Time grows linearly with the text, and of a long one the middle is left out.

    >>> [note.kind.value for note in find_notes("We go with MIT. No idea. It can't ship until Ana signs.")]
    ['decision', 'blocker']
    """
    told = [(kind_of(sentence), sentence) for sentence in work_sentences(text)]
    return [Note(kind=kind, text=sentence) for kind, sentence in told if kind is not None]


def work_sentences(text: str) -> list[str]:
    """The sentences of a text that are looked at, each without what only opens it ("Okay, …"), and on one line."""
    return [bare for sentence in split_sentences(shortened(text)) if (bare := bare_sentence(sentence))]


def shortened(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT // 2]}\n{text[-LONGEST_TEXT // 2 :]}"


def bare_sentence(sentence: str) -> str:
    opener = _OPENERS.match(sentence)
    # a sentence that is nothing but an opener says nothing
    bare = sentence[opener.end() :] if opener else sentence
    return " ".join(bare[:LONGEST_SENTENCE].split())


def is_instruction(sentence: str) -> bool:
    """Whether it has the form of what people tell others to do, or not to have: "Use the old one", "no new packages".

    Of use only where it is known who speaks: what tools print has the same form.
    """
    return not is_question(sentence) and _INSTRUCTION.search(sentence[:LONGEST_SENTENCE]) is not None


def kind_of(sentence: str) -> NoteKind | None:
    """What one sentence is; None for one that is none of these."""
    if is_question(sentence):
        return NoteKind.QUESTION_OPEN
    plain = sentence[:LONGEST_SENTENCE].translate(_SIGN)
    return next((kind for kind, form in FORMS.items() if form.search(plain)), None)
