"""The parts of a turn that its speaker states: plain sentences, cut into clauses that begin with a subject.

Quotations, marked-up text, code, transcripts, jokes, and turns that instruct a machine are skipped entirely, because
the speaker may not mean what they say. Questions, conditions and reports of what others said are told apart.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memory.dates import MONTHS, WEEKDAYS
from memory.extraction.numbers import NUMBER
from memory.extraction.rules.denials import ANY_MORE
from memory.extraction.rules.hedges import HEDGED, is_doubted
from memory.extraction.rules.labels import is_own_label
from memory.extraction.rules.laughter import begins_with_laugh, is_ironic, without_laughter, without_request
from memory.extraction.rules.phrases import GAP
from memory.extraction.rules.requests import UNTIL_I_AGREE, restate_request
from memory.extraction.rules.restatements import IS_DOING, restate
from memory.extraction.rules.specifics import MACHINERY
from memory.extraction.rules.takebacks import join_taken_back, without_taken_back
from memory.extraction.rules.words import PERSON_RELATIONS
from memory.providers.sentences import is_question, split_sentences

MAX_TURN_CHARACTERS = 100_000
"""Characters of a turn that are read. Longer turns are no statements of people about themselves."""
MAX_CLAIM_SENTENCE_CHARACTERS = 400
MAX_READ_SENTENCE_CHARACTERS = 1000
"""Characters of a sentence from which a laugh or a request is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A clause from its subject on, without introductory words. `sentence` is the whole sentence.

    `lead` is the text before the clause, which may name a time ("Last week, I …"). `is_correction` is True after
    "actually", "no", "sorry" and the like, unless the clause says that something has changed. `is_retraction` is True
    after an explicit retraction ("I meant").
    """

    text: str
    sentence: str
    lead: str = ""
    is_hedged: bool = False
    is_doubted: bool = False
    """True if the doubt is in the clause itself, or follows it: "…, I think"."""
    is_correction: bool = False
    is_retraction: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSentence:
    """A sentence. `is_asserted` is False for questions and reports, which only presuppose: "my sister Ana says …".

    `is_doubtful` is True if some of it is not meant as a fact, such as a condition; a part of it may be.
    `asks` is True if a request or question followed in the same sentence, which the text leaves out.
    """

    text: str
    is_asserted: bool
    is_doubtful: bool = False
    asks: bool = False


_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "\u00a0": " ", "\t": " "})
_TERM = re.compile(
    r"[\w./:@#+%{}$~^-]{1,80}(?:=[\w./:@-]{1,40})?|(?:npm|pnpm|yarn|make|git|docker|python|pytest|cargo|go|pip|uv"
    r"|kubectl|terraform|nix|just|poetry|ruff|helm|bun|npx|dotnet|gradle|mvn|rails|bundle|php"
    r"|composer)(?: [\w./:@=-]{1,40}){1,4}"
)
_WIDE = re.compile(r" {5,}")
_CURLY = re.compile(r"[“„«][^“”„«»]*+[”»“]?+")
_TITLE = re.compile(r"(?<= )[\"“](?P<title>[A-Z][\w':&-]*(?: [\w':&-]+){0,6})[\"”](?=[\s.,!?;)]|$)")
_SMALL_WORDS = frozenset(["a", "an", "and", "by", "for", "from", "in", "of", "on", "the", "to", "with"])
_SINGLE_QUOTED = re.compile(r"(?<![\w'])'(?!cause\b|em\b|til\b|bout\b)[^'\n]{1,300}'(?![\w'])")
_TAG = re.compile(r"</?[A-Za-z!?][^<>]{0,200}>")
_BRACKETED = re.compile(r"\[[^\[\]\n]{0,500}\]")
_LINE = re.compile(r"[^\n\r]*+[\n\r]?+")
_NO_PROSE = re.compile(
    r"\s*(?:>|\||#|[-*•]\s|\d{1,3}[.)]\s| {4}"
    r"|(?!\w+(?: \w+){0,6}(?<!\bMrs)(?<!\bProf)(?<!\bSgt)(?<=\w\w\w)\. )[\w .#-]{1,40}:(?:\s|$))"
)
_MAY_LEAD_A_LINE = re.compile(
    r"\s*(?:correction|confession|i misspoke|i meant|sorry|actually|wait|edit|update|ps|p\.s\.|btw|note to self|fyi"
    r"|(?:please )?(?:remember|note|don't forget)(?: that| this)?|important|about me|change of plans?"
    r"|(?:quick )?(?:context|intro(?:duction)?)|background|setup|heads up|reminder"
    r"|(?:plans? for )?(?:today|tonight|tomorrow|this (?:morning|afternoon|evening|week|sprint))"
    r"|(?:final |team )?decision(?: [\w' ]{1,30})?|for the record|one more thing|also|last thing|another thing"
    r"|(?:big |good |great |some )?news|(?:i|we)(?:'ve| have)?(?: just| finally)? (?:moved|switched|changed|swapped"
    r"|replaced|agreed|decided|upgraded|drop(?:ped)?|ditch(?:ed)?)(?: [\w' ]{1,30})?)\s*:\s*",
    re.IGNORECASE,
)

_NOT_MEANT = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,40}\b(?:instructions?|prompts?|rules|guidelines|above"
    r"|previous(?:ly)?|prior|everything)\b"
    r"|\bsystem (?:prompt|message|note|override|instruction)|\bnew instructions?\b|\binstructions? for (?:the|you)\b"
    r"|\b(?:you are|you're) (?:now|an ai|a (?:large )?language model|chatgpt)\b|\bact as\b|\bas an ai\b"
    r"|\brole[- ]?play|\bpretend\b|\bjailbreak|\bdeveloper mode\b"
    r"|\b(?:store|record|save|add|insert|write|log|update|delete|remember|note|memori[sz]e|extract)\b"
    r"[^.!?\n]{0,20}\b(?:facts?|memory|memories|database|knowledge|entity|entities|that the user|that user)\b"
    r"|\b(?:translate|proofread|rewrite|rephrase|paraphrase|summari[sz]e|autocomplete)\b"
    r"|\bcorrect (?:this|the|my)\b|\bfix (?:this|the|my) (?:text|grammar|sentence|email|paragraph)"
    r"|\bfollowing (?:text|sentences?|email|paragraph|story|passage|message|letter|statements?)\b"
    r"|\bwrite (?:me )?(?:a|an|the|some) (?:short |little |funny )?(?:stor(?:y|ies)|poem"
    r"|essay|letter|email|scene|dialog"
    r"|script|bio|song|speech|novel|post|tweet|joke|example)"
    r"|\b(?:example|sample) (?:sentences?|texts?|dialog(?:ue)?s?)\b|\bonce upon a time\b",
    re.IGNORECASE,
)
_JOKE = re.compile(
    r"\b(?:just kidding|kidding|joking|just a joke|jk|j/k|sarcasm|not really|as if|yeah right|april fools?)\b"
    r"|(?<!\S)/s\b|😜|🤪|🙃",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:said|says|saying|told|tells|claim(?:s|ed|ing)?|according to|apparently|heard that|i hear|wrote that)\b", re.I
)
NOT_ASSERTED = re.compile(
    r"\b(?:if|unless|whether|wish|imagin\w*|suppos(?:e|ing|edly)|assum(?:e|ing)|hypothetical\w*|provided that"
    r"|let's say|say that|would have|could have|should have|might have|otherwise|said|says|saying|told|tells"
    r"|claim(?:s|ed|ing)?|according to|apparently|alleg\w+|rumou?r\w*|heard that|i hear|quote|unquote|wrote that"
    r"|reads(?! (?:from|the|only|all|at|every)\b)|pretend\w*|dream(?:ed|t|s)?|story|stories|character|in the (?:game"
    r"|movie|film|book|novel|show|play|song|simulation)|someone (?:who|like)|people (?:who|like)|think(?:s"
    r"|ing)? that i|but (?:(?:i|we|then) ){0,2}(?:(?:came|went|gone|moved|am|are) back|(?:started|began) again"
    r"|relapsed)|not (?:true|the case)|(?<!is )(?<!to )(?<!= )(?<!default )false|fake|lied|lying|untrue)\b",
    re.IGNORECASE,
)
_IF_IN_DOUBT = re.compile(
    rf",? if (?:in doubt|needed|unsure|necessary|possible|you need \w+|there are questions)\b|{UNTIL_I_AGREE}", re.I
)
_THEN_IF = re.compile(r"(?:, (?:so|but|and)|;) if .*$")
_DREAM_OF = re.compile(r"\b(?:a|my|the|our) dream\b(?! (?:i|that i|where|in))", re.IGNORECASE)

_HEDGE = r"(?:I (?:think|guess|believe)(?: that)?|[Mm]aybe|[Pp]erhaps|[Pp]robably|[Pp]ossibly)"
_SAYING = (
    "hey|hi|hello|oh|ah|aw+|wow|whoa|well|yeah|yea|yes|yep|yup|sure|ok|okay|alright|right|thanks(?: so much| a lot)?"
    "|thank you(?: so much)?|so|also|and|but|btw|by the way|fyi|honestly|to be honest|tbh|anyway|anyways|luckily"
    "|fortunately|unfortunately|sadly|lately|recently|finally|plus|guess what|in fact|of course|definitely|absolutely"
    "|totally|for sure|same here|me too|exactly|indeed|overall|these days|nowadays|currently|at the moment|right now"
    "|actually|no|nope|sorry|oops|wait|correction|i misspoke|my mistake|my bad|i mean|i meant|i meant to say"
    "|no wait|scratch that|edit|update|ps|since then|then|later|afterwards|eventually|as for me|personally"
    "|(?:please |pls )?(?:remember|note|(?:keep|bear) in mind|do not forget)(?: that)?|turn(?:s|ed) out(?: that)?"
    r"|(?:please |pls )?remind (?:me|my \w+|(?-i:[A-Z])[\w'-]+)(?: that|(?= (?:(?:my|our|the) )?\w+ (?:is|are|has)\b))"
    "|it turn(?:s|ed) out(?: that)?|(?:first(?:ly)?|important|about me)(?=[:,])|for your information|just so you know"
    "|as a reminder|reminder|(?:please |pls )?(?:put in|put down|note down|write down|jot down|make a note) that"
    "|for me|so far|good news|great news|big news|as you know|you know what|you know|believe it or not|long story short"
    "|i (?:should|must|have to|want to) (?:also )?(?:(?:mention|say|note)(?: that)?|add that)|heads up"
    "|for the record|cool|great|nice|awesome|amazing|true|agreed|glad to hear that|how cool|congrats|hmm+|uh|um+|er|ha"
)
_INTRODUCTION = re.compile(
    (
        rf"(?:(?P<hedge>{_HEDGE})"
        rf"|(?P<saying>{_SAYING})(?:(?<!mean)(?<!meant)(?<!say)(?<!correction),?"
        r" (?-i:[A-Z])\w{1,20}(?=[,!.]))?)(?:\s*[,!.:;…—–-]+\s*|\s+)"
    ),
    re.IGNORECASE,
)
_EMOJI = re.compile(r"^[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\s]+")
_VOCATIVE = re.compile(r"[A-Z]\w{1,20}[,!]\s+(?=(?:I|[Ww]e|[Mm]y)\b)")
_CORRECTING = re.compile(r"actually|no|nope|sorry|oops|wait|no wait|scratch that|edit|update|i mean", re.IGNORECASE)
_RETRACTING = re.compile(r"correction|i misspoke|my mistake|my bad|i meant|i meant to say|scratch that", re.IGNORECASE)
_CHANGED = re.compile(r"\b(?:now|these days|nowadays|moved|anymore|no longer|since|starting|from now on)\b")
_JOINT = re.compile(
    r"(?:\s*[,;:…]\s*(?:(?:and|but|so|yet|then|because|'?cause|plus|as|though|which is why)\s+)?"
    r"|\s+(?:and|but|so|yet|because|'?cause|plus|as|though)\s+(?:then\s+)?|\s+[-–—]+\s*|\s*—\s*)"
    r"(?=(?:also |then |now |recently |actually )?(?:(?:I|[Ww]e|[Mm]y|[Oo]ur|[Ss]he|[Hh]e)(?:\b|')"
    rf"|[Hh](?:is|er) (?:{'|'.join(sorted(PERSON_RELATIONS, key=len, reverse=True))})\b))"
)
_HALF_A_SUBJECT = re.compile(
    r"(?:^|[,;:!] |\b(?:yesterday|ago|today|recently|night|week|weekend|month|year|\w+day) )"
    r"(?:[Mm]e|[Mm]y(?: [\w'-]+){1,2}|(?:[Ss]ome|[Aa] few"
    r"|[Aa]) (?:[\w'-]+ ){0,2}friends?(?: from [\w'-]+){0,1}|[A-Z][\w'-]+)$"
)
_DID = re.compile(
    r"(?:just |finally |also )?(?:(?:handed in|gave|put in|quit|sold|passed|booked|ordered|adopted|finished"
    r"|started|joined"
    r"|bought|got|turned in|signed up for|met|visited|picked up|stopped|cancelled|moved|lost|broke|renewed"
    r"|switched|went"
    r"|settled|opted|chose|ended up|decided) "
    r"(?=(?:in |with |for |on |to |into |from |up |taking |going |doing |eating |smoking |drinking |buying |getting )*"
    r"(?:my|our|an?|the|[A-Z]|[a-z]+ing\b)))",
    re.IGNORECASE,
)
_AT_WORK = re.compile(MACHINERY)
_CANNOT = re.compile(
    r"(?:can not (?:eat|drink|have|swim|drive|cook|dance|stand|bear|tolerate)|do not (?:eat|drink|smoke|drive"
    r"|have an?))\b"
    r"(?! (?:it|that|this|you|me|up|too|more)\b)(?=.{2,60}$)",
    re.IGNORECASE,
)
_DOING = re.compile(
    r"(?:starting|moving|flying|travelling|traveling|heading|visiting|running|taking|seeing|meeting|getting|going|having)"
    rf" (?=.{{2,80}}\b(?:(?:on|in|next|this|until) (?:the )?(?:(?i:{'|'.join((*MONTHS, *WEEKDAYS))}|week|month|year)\b"
    r"|\d{1,2}(?:st|nd|rd|th)?\b)|tomorrow\b|\d{1,2}(?:st|nd|rd|th)? (?:of )?[A-Z][a-z]{2,8}))",
    re.IGNORECASE,
)
_GERUND_IS_SUBJECT = re.compile(
    r"\b(?:is|was|are|were|has|have|had|would|will|can|could|might|may|must|should|makes?|made|feels?|felt|helps?|helped"
    r"|sounds?|seems?|takes?|took|means?|gives?|gave|gets?|brings?|brought|looks?|requires?|costs?)\b",
    re.IGNORECASE,
)
_SMALL_I = re.compile(r"(?<![\w'./-])i(?=['\s])")
_CONTRACTED = (
    (re.compile(r"\bI'm\b"), "I am"),
    (re.compile(r"\b[Ii]m\b"), "I am"),
    (re.compile(r"\b[Ii]ve\b"), "I have"),
    (re.compile(r"\b([Dd]o|[Dd]oes|[Dd]id|[Ii]s|[Aa]re)nt\b"), r"\1 not"),
    (re.compile(r"\b([Ss]he|[Hh]e)s\b"), r"\1 is"),
    (re.compile(r"\b([Ww]e|[Tt]hey)'re\b"), r"\1 are"),
    (re.compile(r"\b(I|[Ww]e|[Tt]hey)'ve\b"), r"\1 have"),
    (re.compile(r"\b(I|[Ww]e|[Tt]hey)'ll\b"), r"\1 will"),
    (re.compile(r"\b([Ss]he|[Hh]e)'s (?=(?:also |just |recently |always )?(?:been|got)\b)"), r"\1 has "),
    (
        re.compile(
            r"(?<=\w)'s (?=(?:just |also |recently |already |finally |never |now )*(?:started|stopped|turned"
            r"|moved|gone|quit"
            r"|joined|become|begun|finished|bought|sold|got|lost|taken|had|been|learned|learnt|left)\b(?!-))"
        ),
        " has ",
    ),
    (re.compile(r"\b([Ss]he|[Hh]e)'s\b"), r"\1 is"),
    (re.compile(rf"(?<=\w)'s (?=(?:an?|from|allergic|married|engaged|\d+ years|{IS_DOING})\b(?! of))"), " is "),
    (
        re.compile(
            r"(?<=\w)'s (?=(?:vegan|vegetarian|retired|pregnant|diabetic|divorced|dyslexic|coeliac|deaf|widowed"
            rf"|expecting|{NUMBER}(?: years old)?)(?:[.,;!]|$| (?:and|but|now)\b))"
        ),
        " is ",
    ),
    (re.compile(r"\b([Mm]y (?:(?:full|first) )?name)'s (?=[A-Z])"), r"\1 is "),
    (re.compile(r"(?<=\w)'s (?=(?:on (?:leave|holiday|vacation|call|sick leave)|away|out of office)\b)"), " is "),
    (re.compile(r"\b([Ss]he|[Hh]e)'ll\b"), r"\1 will"),
    (re.compile(r"\bI(?:'d| would) (?:really |also )?(?:like|love) to\b"), "I want to"),
    (re.compile(r"\b[Cc]an(?:'t|not)\b"), "can not"),
    (re.compile(r"\b[Ww]on't\b"), "will not"),
    (ANY_MORE, r"\1 anymore"),
    (re.compile(r"(?<=\w)n't\b"), " not"),
    # what somebody always does on a day of the week is no date
    (
        re.compile(
            rf"(\b(?:always|usually|normally|typically)\b[^.,;]{{1,60}}? on (?i:{'|'.join(WEEKDAYS)})"
            r"(?: (?:morning|afternoon|evening|night))?)\b(?! (?:morning|afternoon|evening|night|\d|the \d))"
        ),
        r"\1s",
    ),
    (re.compile(r"\b[Gg]onna\b"), "going to"),
    (re.compile(r"\b[Ww]anna\b"), "want to"),
)


def extract_prose(text: str) -> str:
    """Return the speaker's own prose, with GAP in place of code, tags, quotations and other lines; empty if none."""
    text = _WIDE.sub(" " * 4, text[:MAX_TURN_CHARACTERS].translate(_APOSTROPHES))
    if _NOT_MEANT.search(text):
        return ""
    for strip in (_without_code, _without_tags, _without_quotes):
        text = strip(text)
    return "".join(_prose_lines(_BRACKETED.sub(GAP, text)))


def _without_code(text: str) -> str:
    fenced = GAP.join(text.replace("~~~", "```").split("```")[0::2])
    pieces = fenced.split("`")
    kept = [piece if place % 2 == 0 or _is_term(piece, place, pieces) else GAP for place, piece in enumerate(pieces)]
    return "".join(kept)


def _is_term(piece: str, place: int, pieces: list[str]) -> bool:
    """Return True if a piece of code in a line is a name or a short command, and no statement."""
    return place < len(pieces) - 1 and _TERM.fullmatch(piece) is not None


def _without_tags(text: str) -> str:
    """Replace everything from the first to the last tag, because tags may be nested or not closed."""
    tags = list(_TAG.finditer(text))
    if not tags:
        return text
    rest = text[tags[-1].end() :] if tags[-1][0].startswith("</") else ""
    return text[: tags[0].start()] + GAP + rest


def _without_quotes(text: str) -> str:
    text = _TITLE.sub(lambda match: match["title"] if _is_title(match["title"]) else match[0], text)
    pieces = _CURLY.sub(GAP, text).split('"')
    if len(pieces) % 2 == 0:
        # one of the marks is missing: what follows the first of them may be quoted
        pieces = [pieces[0], ""]
    return _SINGLE_QUOTED.sub(GAP, GAP.join(pieces[0::2]))


def _is_title(words: str) -> bool:
    """Return True if all words but small ones are capitalized, as in a title or a name."""
    large = [word for word in words.split() if word not in _SMALL_WORDS]
    return words.split()[0] not in ("I", "My", "We") and all(word[0].isupper() or word.isdecimal() for word in large)


def _prose_lines(text: str) -> Iterator[str]:
    for match in _LINE.finditer(text):
        lead = _MAY_LEAD_A_LINE.match(match[0])
        line = lead[0].replace(":", ",") + match[0][lead.end() :] if lead else match[0]
        yield f"{GAP}\n" if _NO_PROSE.match(line) and not is_own_label(line) else line


def stated_sentences_of(text: str) -> Iterator[StatedSentence]:
    """Yield the sentences of a prose that are no jokes, without what they take back or ask for, and laughter."""
    sentences = [_THEN_IF.sub("", _as_stated(each)) for each in join_taken_back(split_sentences(text))]
    joked = {place + step for place, each in enumerate(sentences) if _JOKE.search(each) for step in (-1, 0)}
    # a laugh at the beginning of a sentence, or a sentence of its own, is about the one before
    joked |= {place - 1 for place, each in enumerate(sentences) if begins_with_laugh(each)}
    joked |= {place - each.startswith("🙄") for place, each in enumerate(sentences) if is_ironic(each)}
    for place, each in enumerate(sentences):
        if len(each) > MAX_READ_SENTENCE_CHARACTERS:
            continue
        whole = without_laughter(each)
        sentence = without_request(whole)
        if place in joked or not sentence or len(sentence) > MAX_CLAIM_SENTENCE_CHARACTERS:
            continue
        if _is_asserted(sentence):
            yield StatedSentence(text=sentence, is_asserted=True, asks=sentence != whole)
        else:
            is_doubtful = NOT_ASSERTED.search(_REPORTED.sub("", sentence)) is not None
            yield StatedSentence(text=sentence, is_asserted=False, is_doubtful=is_doubtful)


def _as_stated(sentence: str) -> str:
    """Return the order that a request makes, or the sentence, without what it takes back.

    One that is too long for a claim stays as it is.
    """
    if len(sentence) > MAX_CLAIM_SENTENCE_CHARACTERS:
        return sentence
    return without_taken_back(restate_request(sentence))


def _is_asserted(sentence: str) -> bool:
    sentence = _IF_IN_DOUBT.sub("", sentence)
    if len(sentence) > MAX_CLAIM_SENTENCE_CHARACTERS or is_question(sentence):
        return False
    return not NOT_ASSERTED.search(_DREAM_OF.sub("", sentence))


def clauses_of(sentence: str) -> list[Clause]:
    """Return the clauses of a sentence. Each begins with a subject and extends to the next one."""
    sentence = _SMALL_I.sub("I", sentence)
    for contracted, full in _CONTRACTED:
        sentence = contracted.sub(full, sentence)
    sentence = restate(sentence)
    is_hedged = HEDGED.search(sentence) is not None
    pieces = _pieces(sentence)
    return [
        replace(
            _clause(piece, sentence, lead=pieces[place - 1] if place else "", is_hedged=is_hedged),
            is_doubted=is_doubted(piece, *pieces[place + 1 : place + 2]),
        )
        for place, piece in enumerate(pieces)
    ]


def _pieces(sentence: str) -> list[str]:
    """Split the sentence before each subject, but not within a subject such as "my partner and I"."""
    pieces, start = [], 0
    for joint in _JOINT.finditer(sentence):
        if not (joint[0].strip() == "and" and _HALF_A_SUBJECT.search(sentence, start, joint.start())):
            pieces.append(sentence[start : joint.start()])
            start = joint.end()
    return [*pieces, sentence[start:]]


def _clause(piece: str, sentence: str, *, lead: str, is_hedged: bool) -> Clause:
    text, sayings = _EMOJI.sub("", piece).strip(), [_bare(word) for word in re.split(r"[,!.:;]", lead)]
    while match := _INTRODUCTION.match(text):
        sayings.append(_bare(match["saying"] or ""))
        text = text[match.end() :]
    text = _VOCATIVE.sub("", text, count=1) if _VOCATIVE.match(text) else text
    text = _with_subject(text) if sentence.startswith(piece.strip()[:20]) else text
    is_retraction = any(map(_RETRACTING.fullmatch, sayings))
    return Clause(
        text=text,
        sentence=sentence,
        lead=lead.strip(" ,;"),
        is_hedged=is_hedged,
        is_correction=is_retraction or (any(map(_CORRECTING.fullmatch, sayings)) and not _CHANGED.search(text)),
        is_retraction=is_retraction,
    )


def _with_subject(text: str) -> str:
    """Return a sentence with the "I" that it leaves out: "handed in my notice", "starting at Acme in June"."""
    if _CANNOT.match(text):
        return f"I {text[:1].lower()}{text[1:]}"
    if (match := _DID.match(text)) and not _AT_WORK.match(text, match.end()):
        return f"I {match[0].lower()}{text[match.end() :]}"
    if (match := _DOING.match(text)) and not _GERUND_IS_SUBJECT.search(text):
        return f"I am {match[0].lower()}{text[match.end() :]}"
    return text


def _bare(word: str) -> str:
    return word.strip(" ,;-–—").lower()
