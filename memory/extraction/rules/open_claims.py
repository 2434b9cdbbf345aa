"""Claims in the speaker's own words, for what no rule reads (open information extraction).

"We push nothing to prod on Fridays, you know why" fits no rule, and becomes "The user pushes nothing to prod on
Fridays". A piece of a clause is a claim if it has a subject and a verb and refers to nothing outside of it: no "it",
"that" or "there", and no day that only the day of the turn explains. None is made of what its sentence doubts, reports
or makes depend on something else, nor of secrets and permissions (`doubts`). The first person becomes "the user" and
"they", a request becomes "The user asks to …", and dates are written out.

Grammar does not tell which of these claims are worth keeping. `memory.extraction.worth` judges that.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from memory.extraction.grounding import word_stems
from memory.extraction.rules.doubts import Boundary, end_of_certainty, is_of_machine, is_refused, is_tag
from memory.extraction.rules.inflection import (
    AUXILIARIES,
    bare_word,
    conjugate,
    is_base_form,
    is_finite,
    is_past_form,
    is_third_form,
    lemmas,
)
from memory.extraction.rules.open_dates import RELATIVE_DAY, date_claim
from memory.extraction.rules.phrases import GAP, Voice, possessive
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.subjects import Subject, subject_of
from memory.extraction.rules.words import ADVERBS, words
from memory.extraction.wording import has_id

OPEN = "said"
"""The attribute of claims in the speaker's own words: nothing but the words says what they are about."""
MIN_WORDS, MAX_WORDS = 4, 26
SAME_SHARE, NEARLY_ALL = 0.5, 0.8
"""Shares of the stems of two claims from which they count as the same: of one clause, and of one turn."""
_NEGATIONS = frozenset(["not", "neve", "no", "noth", "nobo", "none"])
_NO_LONGER = re.compile(r"\bno longer\b")
_ANY_MORE = re.compile(r" any ?(?:more|longer)\b")
_COMMON_STEMS = frozenset(["the", "user", "s", "is", "a", "an", "to", "of", "in", "on", "at", "and", "thei", "has"])
MAX_SUBJECT_WORDS = 8

_SUBORDINATE = "because|since|cause|cuz|although|though|while|which|until|unless|when|before|after|if|once"
_COMMA = r",(?!\d{3})"
"""A comma that is not within a number: "10,000"."""
_BOUNDARY = re.compile(
    rf"\s*(?:{_COMMA}|;|:(?=\s)|\s[-–—]+\s|—|…|\.(?=\s))\s*(?:(?:and|but|so|because|since|cause|cuz|although|though|while"
    rf"|plus|then)\s+)?|\s+(?:and|but|so|then|{_SUBORDINATE})\s+"
)
"""The words between two pieces of a clause, of which the second may be a clause of its own."""
_IS_MARK = re.compile(r"\s*[,;:.…]|\s+[-–—]|—")
_IS_SUBORDINATE = re.compile(rf"\b(?:{_SUBORDINATE})\b", re.IGNORECASE)
_IS_CONDITION = re.compile(r"\b(?:while|which|until|unless|when|before|after|if|once)\b", re.IGNORECASE)
"""Words after which a piece only holds with the one before it: "… until the exams are done"."""
_BEGINS_CLAUSE = words(
    "i we it they he she you my our this that there it's i'm that's there's they're he's she's you're who which its "
    "their your"
)
_DANGLING = re.compile(
    r"\b(?:(?-i:[Ii]t)|its|it's|itself|this(?! (?:repo|project|codebase|year|month|spring|summer|autumn|fall|winter)\b)"
    r"|these|those|they|them|theirs|they're|you|your|you're|yours|he|him|she|her|hers|here|there|there's|that's|thats"
    r"|else|every one|each one|something|someone|somebody|stuff|whatever|y'all|u|ur|such|that one|another one|the rest"
    r"|the ones|the one(?! (?:who|that|which)\b)|the (?:other|same|first|second|latter|former|last|new|old|next) (?:one|ones|thing|part))\b"
    r"|\bones?$|\b(?:new|old|other|last|next|first) ones?\b|\bthat(?=$| (?:is|was|has|one|way|will|would|day|week"
    r"|thing|part|time|kind|stuff|sort)\b)"
    r"|(?:^|\b(?:of|in|on|at|for|with|about|after|like|do|did|than|to|all|over|from|by) )that\b",
    re.IGNORECASE,
)
"""Words for what only the conversation explains."""
_THEIRS = re.compile(r"\b(?:their|they|them|theirs|themselves)\b", re.IGNORECASE)
_OF_OTHERS = re.compile(r"(?:his|her|its|their)\b", re.IGNORECASE)
_FILLERS = re.compile(
    r"(?:\s+(?:too|as well|again|now|btw|by the way|tho|though|you know|tbh|lol|haha|anyway|thank god|sir|ugh|please"
    r"|pls|ok|okay|right|so"
    r"|and|but|or|because|at least|i guess|already|actually|just|then|also|thanks|thank you))+$",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"^(?:(?:because|'?cause|cuz|so|and|but|plus|as)\s+)+(?=\w)", re.IGNORECASE)
_HAS_NO_VERB = re.compile(r"(?:do|am|are|have|will|can|did|was|were)(?: not)?[,;:]")
"""The words after "I" that leave out what they say: "I do, except one", "I'm not, but she is"."""
_PICTURES = re.compile(r"\s*[\U0001f000-\U0001faff\u2600-\u27bf]+.*$")
_THEN = re.compile(r" (?:from|until|till|by|since) then$", re.IGNORECASE)
_OPEN_BRACKET = re.compile(r"\s*\([^)]*$")
_LEAD = re.compile(
    r"(?P<lead>(?:from|in|on|since|until|till|by|every|for|at|after|as of|starting|during)"
    r"(?: (?!(?:i|we|they|he|she|you|it|why|that|what|who|when)\b)[\w'.:&-]+){1,4}?"
    r"|internally|usually|normally|generally),? (?=(?:I|we|my|our)\b)",
    re.IGNORECASE,
)
"""Words before the subject that belong to the claim: "since January I get up at five"."""
_REQUEST = re.compile(r"(?:please |pls |and |just |so )*(?P<how>never |always |don't |do not |dont )?(?P<rest>.+)")
_IS_SPEAKER = re.compile(r"(?:I|[Ww]e) ")
_ASKS = {"never": "asks never to", "always": "asks to always", "": "asks to"}
_AFTER_ORDER = words("the a an my our all every only everything any me no in on at to with for under by")
_NO_ORDER = words(
    "is rule thank thanks let see look sorry wait guess hope think say go try ok remember got did had was said found "
    "told made came went"
)
_ORDERS = words(
    "use run check test name call set put show list sort order print log branch commit push pull merge fix keep make "
    "add write read turn turns open close start stop move store send"
)
"""Verbs that are nouns as well, with which an order begins rather than a statement about a thing."""
_SKIPPED = ADVERBS | words("also never only")
_LIKE_PAST = words("put cut hit set shut quit split let")
"""Verbs whose past is like their base form. "I put my rate up" is done, unless words say that it is usual."""
_USUAL = re.compile(
    r"\b(?:always|usually|often|never|normally|generally|sometimes|mostly|typically|every|everything|each|daily|weekly"
    r"|monthly|nightly|whenever|when|if|own|[a-z]+days|mornings|evenings|nights|weekends|at night"
    r"|(?:once|twice|times) an?)\b"
    r"|^let (?!.* (?:lapse|expire|run out|slip|down|know|go)\b)",
    re.IGNORECASE,
)
_IN_FIRST_PERSON = {
    "i": "they", "me": "them", "my": "their", "mine": "theirs", "myself": "themselves", "we": "they", "us": "them",
    "our": "their", "ours": "theirs", "ourselves": "themselves", "am": "are", "i'm": "they are", "i've": "they have",
    "we've": "they have", "i'd": "they would",
}  # fmt: skip
_NO_SUBJECT = words(
    "n and but so or because if when while as then there it this that these those he she they you what which who where "
    "why how here yes no yeah ok okay well oh hmm also not one another something someone thing things thanks thank "
    "sorry please let let's lets same such other both either neither like with to of by about just maybe still even "
    "only too very really now today tomorrow yesterday tonight hi hello hey great nice cool lol haha less lots part "
    "got done ready true false off"
)
_PREPOSITIONS = words("in on at for from since until after before")
_ANYBODY = words("nobody everybody everyone somebody someone anybody anyone it there this that everything nothing")
_NOT_IN_SUBJECT = words("to that which what who whom whose if when because")


def says_the_same(claim: frozenset[str], other: frozenset[str], *, share: float = SAME_SHARE) -> bool:
    """Return True if two claims, given by their `telling_stems`, say the same or one says a part of the other."""
    return len(claim & other) >= share * min(len(claim), len(other)) and (
        claim.isdisjoint(_NEGATIONS) == other.isdisjoint(_NEGATIONS)
    )


def repeats(claim: str, others: Iterable[frozenset[str]], *, share: float = SAME_SHARE) -> bool:
    """Return True if a claim, or what it says up to its first comma, says the same as one of others."""
    heads = {telling_stems(claim), telling_stems(re.split(_COMMA, claim, maxsplit=1)[0])} - {frozenset()}
    return any(says_the_same(head, other, share=share) for head in heads for other in others)


def telling_stems(claim: str) -> frozenset[str]:
    """Return the stems of the words of a claim that say what it is about."""
    return word_stems(_NO_LONGER.sub("not", _ANY_MORE.sub("", claim.replace("cannot", "can not")))) - _COMMON_STEMS


def read_open_claims(said: ClauseContext, known: Sequence[str] = (), *, asks: bool = False) -> Iterator[Statement]:
    """Yield a claim for each piece of the clause that makes one, the longest that does.

    `known` are the claims that rules have read in the clause, which are not made again. A clause that asks (`asks`)
    states only what is before its last piece.
    """
    known_stems = [telling_stems(claim) for claim in known]
    text = _trim(said.clause.text)
    boundaries = list(_boundaries(text))
    if asks:
        is_stated = boundaries and not is_tag(text[boundaries[-1].stop :])
        text = text[: boundaries[-1].start] if is_stated else ""
    text = text[: end_of_certainty(said.clause.sentence, text, boundaries)]
    if not text:
        return
    starts = [0, *(each.stop for each in boundaries if each.begins_clause)]
    done = 0
    for start in starts:
        stops = [each.start for each in reversed(boundaries) if start < each.start < len(text) and each.ends_claim]
        stops = [len(text), *stops]
        for stop in stops if start >= done else ():
            statement = _statement(said, _trim(text[start:stop]))
            if statement and not repeats(statement.claim, known_stems):
                yield statement
                done = stop
                break


def _boundaries(text: str) -> Iterator[Boundary]:
    """Yield the places at which a claim may end, or begin if a subject and a verb follow."""
    for match in _BOUNDARY.finditer(text):
        following = text[match.end() :].split()
        if not following:
            continue
        first = bare_word(following[0])
        begins_clause = first != "for" and (first in _BEGINS_CLAUSE or _place_of_verb(following) is not None)
        if begins_clause or _IS_MARK.match(match[0]) or _IS_SUBORDINATE.search(match[0]):
            is_condition = _IS_CONDITION.search(match[0]) is not None
            yield Boundary(
                start=match.start(),
                stop=match.end(),
                begins_clause=begins_clause and not is_condition,
                ends_claim=not is_condition or "which" in match[0],
            )


def _trim(text: str) -> str:
    text = _OPEN_BRACKET.sub("", _PICTURES.sub("", text.strip().rstrip(" .!,;:")))
    text = _THEN.sub("", text)
    return _CONJUNCTION.sub("", _FILLERS.sub("", text).rstrip(" .!,;:-–—"))


def _statement(said: ClauseContext, text: str) -> Statement | None:
    if not MIN_WORDS <= len(text.split()) <= MAX_WORDS or GAP in text or has_id(text) or is_refused(text):
        return None
    lead = _LEAD.match(text)
    found = _claim(said, text[lead.end() :] if lead else text)
    if found is None:
        return None
    subject, claim = found
    if lead:
        first, *others = _third_person_words(lead["lead"].split())
        claim = " ".join([claim, first.lower(), *others])
    claim, temporal, ends = date_claim(claim, said.turn.timestamp)
    if RELATIVE_DAY.search(claim):
        return None
    return replace(
        make_statement(said, subject, attribute=OPEN, value=claim, claim=""),
        claim=claim,
        temporal=temporal,
        valid_to=ends,
        is_correction=False,
        is_retraction=False,
    )


def _claim(said: ClauseContext, text: str) -> tuple[Subject, str] | None:
    """Return the subject and the claim of a piece; None if it has none or says too little on its own."""
    subject = subject_of(text, said.speaker, said.names, spoken_of=said.spoken_of)
    if _IS_SPEAKER.match(text):
        return _own_claim(subject) if subject is not None and subject.is_own else None
    if subject is not None and not subject.is_own and (claim := _claim_of_person(said, subject)):
        return subject, claim
    speaker = Subject(
        label=said.speaker.label,
        rest="",
        voice=Voice(speaker=said.speaker.label, is_own=True),
        names=said.speaker.names,
        is_third=True,
    )
    if request := _request(said, text):
        return speaker, request
    claim = _claim_of_thing(said, text)
    return (replace(speaker, voice=replace(speaker.voice, is_own=False)), claim) if claim else None


def _own_claim(subject: Subject) -> tuple[Subject, str] | None:
    """Return a claim about the speaker: "I get up at five" is "The user gets up at five"."""
    if _THEIRS.search(subject.rest) or _HAS_NO_VERB.match(subject.rest):
        return None
    predicate = third_person(subject.rest.split())
    if not predicate or _DANGLING.search(_THEIRS.sub("", predicate)):
        return None
    return subject, f"{subject.label} {predicate}"


def _claim_of_person(said: ClauseContext, subject: Subject) -> str:
    """Return a claim about somebody whom the clause names; empty if no verb follows or "she" is somebody else."""
    tokens = subject.rest.split()
    _, verb = _first_verb(tokens)
    is_verb = verb in AUXILIARIES or (
        "VERB" in lemmas(verb) and (verb.endswith("s") or is_past_form(verb) or subject.is_plural)
    )
    predicate = _about_others(tokens, said) if is_verb else ""
    is_clear = predicate and not _DANGLING.search(re.sub(r"\b(?:his|her|their)\b", "", predicate, flags=re.IGNORECASE))
    return f"{subject.label} {predicate}" if is_clear else ""


def _request(said: ClauseContext, text: str) -> str:
    """Return the claim of an order: "never touch the vendored files" is "The user asks never to touch …"."""
    match = _REQUEST.fullmatch(text[:1].lower() + text[1:])
    tokens = match["rest"].split() if match else []
    if match is None or len(tokens) < 2:
        return ""
    how, verb, following = (match["how"] or "").strip(), bare_word(tokens[0]), tokens[1]
    place = _place_of_verb(tokens)
    if place and tokens[place] in AUXILIARIES and (
        following in _PREPOSITIONS or all("NOUN" in lemmas(bare_word(word)) for word in tokens[1:place])
    ):
        # "deploy freeze is Friday" and "work at Acme is fun" are about things
        return ""
    is_order = is_base_form(verb) and (how or "NOUN" not in lemmas(verb) or following in _AFTER_ORDER)
    if not is_order or (verb in _NO_ORDER and not how) or _THEIRS.search(match["rest"]):
        return ""
    order = " ".join(_third_person_words(tokens))
    if _DANGLING.search(_THEIRS.sub("", order)):
        return ""
    return f"{said.speaker.label} {_ASKS.get(how, 'asks not to')} {order}"


def _claim_of_thing(said: ClauseContext, text: str) -> str:
    """Return a claim about anything else, such as "The eu-west cluster is called heron"; empty if it is none."""
    tokens = text.split()
    place = _place_of_verb(tokens)
    first = bare_word(tokens[0])
    if first in _NO_SUBJECT or first in AUXILIARIES or not re.match(r"[\w#/.]", tokens[0]) or place is None:
        return ""
    if is_of_machine(text) or "ADV" in lemmas(first) or (place > 1 and first in _ORDERS):
        return ""
    if is_past_form(bare_word(tokens[place])) and is_third_form(tokens[0]):
        # "wants the data published" is what is left of a clause whose subject stands before it
        return ""
    claim = _about_others(tokens, said) if place + 1 < len(tokens) else ""
    return "" if _DANGLING.search(claim) or _OF_OTHERS.match(claim) else f"{claim[:1].upper()}{claim[1:]}"


def _place_of_verb(tokens: Sequence[str]) -> int | None:
    """Return the index of the verb whose subject the tokens begin with; None if it is not found."""
    for place in range(1, min(len(tokens), MAX_SUBJECT_WORDS)):
        word, before = bare_word(tokens[place]), bare_word(tokens[place - 1])
        if tokens[place - 1].endswith((",", ";", ":")) or word in _NOT_IN_SUBJECT:
            return None
        if before == "and" and word in _ANYBODY:
            # "900 a month and nobody comes" has the subject "nobody"
            return None
        if tokens[place].strip(",.;:!?") == "May":
            continue
        is_after_name = place == 1 and tokens[0][:1].isupper() and is_past_form(word)
        if before not in _PREPOSITIONS and (is_after_name or is_finite(word, before, is_last=place + 1 == len(tokens))):
            return place
    return None


def third_person(tokens: list[str]) -> str:
    """Return the words after "I", as they follow "the user"; empty if no finite verb is among the first."""
    place, verb = _first_verb(tokens)
    form = conjugate(verb)
    if not form:
        return ""
    if verb in _LIKE_PAST and not _USUAL.search(" ".join(tokens)):
        form = verb
    following = _third_person_words(tokens[place + 1 :])
    for at in range(1, len(following)):
        if following[at - 1] == "and" and form != verb and _is_present(following[at]):
            following[at] = conjugate(following[at])
    return " ".join([*tokens[:place], tokens[place].lower().replace(verb, form, 1), *following])


def _first_verb(tokens: Sequence[str]) -> tuple[int, str]:
    """Return the first word that is no adverb, and its index; an empty one if there is none."""
    place = next((at for at, word in enumerate(tokens) if bare_word(word) not in _SKIPPED), len(tokens))
    return place, bare_word(tokens[place]) if place < len(tokens) else ""


def _is_present(word: str) -> bool:
    """Return True for a second verb of "I": "… and have a dog"."""
    return word in ("am", "have", "do") or (is_base_form(word) and not {"NOUN", "ADJ"} & lemmas(word).keys())


def _third_person_words(tokens: Sequence[str]) -> list[str]:
    """Return the tokens with "they" for the first person, whose verbs have the same forms but for "was" and "am"."""
    turned: list[str] = []
    for token in tokens:
        word = bare_word(token)
        is_theirs = bool(turned) and turned[-1] == "they"
        new = "were" if is_theirs and word == "was" else _IN_FIRST_PERSON.get(word, "")
        turned.append(re.sub(re.escape(word), new, token, count=1, flags=re.IGNORECASE) if new else token)
    return turned


def _about_others(tokens: Sequence[str], said: ClauseContext) -> str:
    """Return the tokens with "the user" for the first person; empty for "X and I", and if "I" has no verb."""
    label = said.speaker.label
    user = label[:1].lower() + label[1:] if not said.speaker.person else label
    owner = possessive(label)
    turned: list[str] = []
    for at, token in enumerate(tokens):
        word = bare_word(token)
        if word in ("i", "we") and at + 1 < len(tokens):
            if turned and turned[-1] == "and":
                return ""
            predicate = third_person(list(tokens[at + 1 :]))
            return " ".join([*turned, user, predicate]) if predicate else ""
        if word in ("i", "we", "mine", "ours"):
            return ""
        new = {"my": owner, "our": owner, "me": user, "us": user}.get(word)
        turned.append(re.sub(re.escape(word), new, token, count=1, flags=re.IGNORECASE) if new else token)
    return " ".join(turned)
