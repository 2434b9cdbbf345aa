"""Expansion: the question in other words, which are embedded and searched for together with it.

Rules turn a question into the beginning of its answer: "Where does Ana live?" becomes "Ana lives in". An answer is a
statement, and nearer to another statement than to a question. The rules are for English and apply only if it is clear
which word is the verb; they add no word that says more than the question does.

A language model adds up to three rephrasings, and a made-up answer (HyDE), which is nearer to the real one than the
question is (Gao et al. 2022). Without a model nothing stands in for them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from memory.retrieval.plans import RecallContext
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.readings import (
    HYDE,
    MAX_ANSWER_CHARACTERS,
    MAX_REPHRASING_CHARACTERS,
    MAX_REPHRASINGS,
    QUERY_EXPANSION,
    LikelyAnswer,
    OtherWords,
    join_lines,
    read_with_model,
)
from memory.retrieval.rewriters.words import NAMELESS, frozen_words, merge_unique
from memory.verbs import VERBS, Verb, regular_verb

MAX_EXPANSIONS = 6
MAX_QUESTION_CHARACTERS = 300
"""A longer text holds more than a question."""
MIN_WORDS = 3
MAX_SUBJECT_WORDS = 5
MAX_OBJECT_WORDS = 4

_REGULAR = """
agree answer ask believe call cause charge collect configure connect contain cost cover decide depend deploy earn end
expect fail follow handle happen hope house import invest last listen mention merge need notice offer pack park pick
propose pull push reach reject rely remember reply report request require respond return save smell smoke stay store
suffer suggest taste test thank wait walk wash wish
"""
_IRREGULAR = """
cost cost cost costing|deal dealt dealt dealing|die died died dying|drop dropped dropped dropping
fall fell fallen falling|feel felt felt feeling|fight fought fought fighting
forget forgot forgotten forgetting|hear heard heard hearing
hit hit hit hitting|know knew known knowing|lend lent lent lending|let let let letting|log logged logged logging
mean meant meant meaning|occur occurred occurred occurring|pay paid paid paying|refer referred referred referring
say said said saying|send sent sent sending|ship shipped shipped shipping|shut shut shut shutting|sit sat sat sitting
sleep slept slept sleeping|stand stood stood standing|tell told told telling|think thought thought thinking
understand understood understood understanding|wake woke woken waking
"""
_VERBS: Mapping[str, Verb] = {
    **{base: verb for base, verb in VERBS.items() if base != "be"},
    **{base: regular_verb(base) for base in _REGULAR.split()},
    **{forms.split()[0]: Verb(*forms.split()) for forms in _IRREGULAR.strip().replace("\n", "|").split("|")},
}
_PARTICIPLES = frozenset(verb.participle for verb in _VERBS.values() if verb.participle != verb.base) | {"born"}
_GERUNDS = frozenset(verb.gerund for verb in _VERBS.values())
_FINITE = frozenset(verb.past for verb in _VERBS.values()) | {verb.present for verb in _VERBS.values()}

_PRONOUNS = frozenset(("i", "we", "they", "he", "she", "it"))
_DETERMINERS = frozenset(("the", "my", "our", "his", "her", "their", "its", "this", "that", "your"))
_ADVERBS = frozenset(
    ("also", "already", "usually", "just", "last", "first", "originally", "recently", "really", "still")
)
_PLACES = {"live": "in", "stay": "in", "work": "at", "study": "at", "move": "to", "go": "to", "travel": "to"}
_PREPOSITIONS = frozen_words("in at on to from for with about of by into under near")
_DO = frozenset(("do", "does", "did"))
_BE = frozenset(("is", "are", "was", "were", "am"))
_HAVE = frozenset(("has", "have", "had"))
_ASKING = frozenset(("where", "when", "what", "which", "who", "whom", "why", "how"))
_TIMES = frozenset(("time", "day", "date", "year", "month", "week"))

_CAPITAL = re.compile(r"[^\W\d_a-zß-öø-ÿ]")
_LEAD = re.compile(
    r"(?:(?:hey|hi|hello|so|and|but|ok|okay|well|please|also|now)\b,? ){0,3}"
    r"(?P<request>(?:(?:can|could|would) you )?(?:please )?(?:tell me|remind me|do you (?:remember|know|recall)) )?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?…]\s+")
_KIND_OF = re.compile(r"^(?:kinds?|types?|sorts?) of ", re.IGNORECASE)


def expand_query(query: Query, context: RecallContext) -> Query:
    """Add the text in other words. Return the same query if there are none."""
    by_rules = add_expansions(query, [restate_question(query.text)])
    if context.model is None or not query.text.strip():
        return by_rules
    answer = read_with_model(query, context, QUERY_EXPANSION, OtherWords, model=context.model, fallback=by_rules)
    rephrasings = answer.rephrasings[:MAX_REPHRASINGS]
    return add_expansions(
        by_rules, [join_lines(each, max_characters=MAX_REPHRASING_CHARACTERS) for each in rephrasings]
    )


def imagine_answer(query: Query, context: RecallContext) -> Query:
    """Add a made-up answer to the expansions. Return the same query without a model."""
    if context.model is None or not query.text.strip():
        return query
    reading = read_with_model(query, context, HYDE, LikelyAnswer, model=context.model, fallback=query)
    return add_expansions(query, [join_lines(reading.answer, max_characters=MAX_ANSWER_CHARACTERS)])


def add_expansions(query: Query, lines: Iterable[str]) -> Query:
    """Add the lines that are not empty and equal neither the text nor an expansion."""
    known = {each.casefold() for each in (query.text.strip(), *query.expansions)}
    new = [line for line in lines if line and line.casefold() not in known]
    return replace(query, expansions=merge_unique(query.expansions, new, limit=MAX_EXPANSIONS)) if new else query


def restate_question(text: str) -> str:
    """Return the last question of a text as the beginning of its answer; empty if no rule is sure of it."""
    if len(text) > MAX_QUESTION_CHARACTERS:
        return ""
    question = _SENTENCE_END.split(text.strip())[-1].rstrip("?!. ")
    lead = _LEAD.match(question)
    words = question[lead.end() if lead else 0 :].replace(",", " ").split()
    words = [word for word in words if word.lower() != "ever"]
    if len(words) < MIN_WORDS or not words[0].isalpha() or "you" in map(str.lower, words):
        return ""
    if lead and lead["request"] and words[0].lower() in _ASKING and words[1].lower() not in _DO | _BE | _HAVE:
        # "tell me where Ana lives" is a statement already
        return " ".join(words[1:])
    statement = restate_words(words)
    return statement if any(word.lower() not in NAMELESS for word in statement.split()) else ""


def restate_words(words: Sequence[str]) -> str:
    """Restate a question by its first word."""
    first, rest = words[0].lower(), words[1:]
    if first in _DO | _BE | _HAVE:
        return restate_inverted(words, behind="") if first in _DO or has_sure_subject(rest) else ""
    if first not in _ASKING:
        return ""
    if rest[0].lower() in _DO | _BE | _HAVE:
        behind = {"where": "where", "why": " because"}.get(first, "")
        return restate_inverted(rest, behind=behind)
    if first in ("who", "what") and rest[0].lower() in _FINITE:
        return " ".join(rest)
    return restate_what(rest) if first in ("what", "which", "how") else ""


def restate_what(words: Sequence[str]) -> str:
    """Restate "which city does Ana live in" or "how many bikes did Ana buy" with the object after the verb."""
    place = next((at for at, word in enumerate(words[: MAX_OBJECT_WORDS + 1]) if word.lower() in _DO), 0)
    # of "what must I never do" it is the last word, and no auxiliary
    clause = QuestionClause.read(words[place:]) if 0 < place < len(words) - 1 else None
    if clause is None:
        return ""
    thing = _KIND_OF.sub("", " ".join(words[:place]))
    if thing.lower() in _TIMES or thing.lower() in ("long", "often", "far"):
        return clause.text
    thing = re.sub(r"^(?:many|much) ", "", thing, flags=re.IGNORECASE)
    if clause.rest and clause.rest[-1].lower() in _PREPOSITIONS:
        return f"{clause.text} {thing}"
    return " ".join([clause.subject, clause.verb, thing, *clause.rest])


def restate_inverted(words: Sequence[str], *, behind: str) -> str:
    """Restate what begins with an auxiliary and append `behind`, or the preposition of its verb if that is "where"."""
    auxiliary = words[0].lower()
    if auxiliary in _DO:
        clause = QuestionClause.read(words)
        if clause is None:
            return ""
        if behind == "where":
            behind = "" if clause.rest else f" {_PLACES.get(clause.base, '')}"
        return f"{clause.text}{behind}".strip()
    statement = restate_being(words) if auxiliary in _BE else restate_having(words)
    return f"{statement}{behind}" if statement and behind != "where" else statement


@dataclass(frozen=True, slots=True)
class QuestionClause:
    """A subject, its verb in the form that it has in a statement, and the words that follow."""

    subject: str
    verb: str
    base: str
    rest: Sequence[str]

    @property
    def text(self) -> str:
        return " ".join([self.subject, self.verb, *self.rest])

    @classmethod
    def read(cls, words: Sequence[str]) -> Self | None:
        """Read a clause that begins with do, does or did. Return None if it is unclear which word is the verb."""
        inner = words[1:]
        place = find_verb_index(inner)
        if place == 0:
            return None
        verb = _VERBS[inner[place].lower()]
        form = {"do": verb.base, "does": verb.present, "did": verb.past}[words[0].lower()]
        return cls(subject=" ".join(inner[:place]), verb=form, base=verb.base, rest=inner[place + 1 :])


def find_verb_index(words: Sequence[str]) -> int:
    """Return the index of the verb: the one after a name or pronoun, or the only one. 0 if that is unclear."""
    sure = count_subject_words(words)
    while 0 < sure < len(words) and words[sure].lower() in _ADVERBS:
        sure += 1
    if 0 < sure < len(words) and words[sure].lower() in _VERBS:
        return sure
    least = 2 if needs_noun(words[0]) else 1
    places = [at for at, word in enumerate(words) if at >= least and word.lower() in _VERBS]
    # after "the" it is a noun
    is_sure = len(places) == 1 and places[0] <= MAX_SUBJECT_WORDS and not needs_noun(words[places[0] - 1])
    return places[0] if is_sure else 0


def count_subject_words(words: Sequence[str]) -> int:
    """Return the number of words of the pronoun or name at the beginning; 0 if there is none."""
    if words and words[0].lower() in _PRONOUNS:
        return 1
    count = 0
    while count < len(words) and (is_capital(words[count]) or (count > 0 and words[count] == "and")):
        count += 1
    while count and words[count - 1] == "and":
        count -= 1
    return 0 if count and needs_noun(words[count - 1]) else count


def is_capital(word: str) -> bool:
    return _CAPITAL.match(word) is not None and word.lower() not in NAMELESS


def needs_noun(word: str) -> bool:
    """Return True if a noun must follow, as after "the", "my" and "Ana's"."""
    return word.lower() in _DETERMINERS or word.endswith(("'s", "’s"))


def has_sure_subject(words: Sequence[str]) -> bool:
    return 0 < count_subject_words(words) < len(words)


def restate_being(words: Sequence[str]) -> str:
    """Restate "is Ana afraid of" as "Ana is afraid of", "is my favourite colour" as "my favourite colour is"."""
    being, inner = words[0].lower(), list(words[1:])
    count = count_subject_words(inner)
    if count:
        return " ".join([*inner[:count], being, *inner[count:]])
    last = inner[-1].lower() if inner else ""
    if last in _PARTICIPLES and len(inner) > 1 and not needs_noun(inner[-2]):
        return " ".join([*inner[:-1], being, inner[-1]])
    # nothing says where the verb belongs in "my sister studying", "the bread in"
    if not inner or last in _GERUNDS | _PREPOSITIONS:
        return ""
    return " ".join([*inner, being])


def restate_having(words: Sequence[str]) -> str:
    """Restate "has Ana visited" as "Ana has visited"."""
    inner = words[1:]
    count = count_subject_words(inner)
    if not 0 < count < len(inner) or inner[count].lower() not in _PARTICIPLES | {"been"}:
        return ""
    return " ".join([*inner[:count], words[0].lower(), *inner[count:]])
