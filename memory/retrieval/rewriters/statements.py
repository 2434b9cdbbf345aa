"""Questions as the beginnings of their answers, by rules: "Where does Ana live?" as "Ana lives in".

What answers a question is a statement, and is nearer to another one than to a question. English only, and only where
the rule is sure which word is the verb; anything else yields nothing. No rule adds a word that says more than the
question does.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.retrieval.rewriters.words import NAMELESS
from memory.retrieval.rewriters.words import words as word_set
from memory.verbs import VERBS, Verb, regular_verb

LONGEST_QUESTION = 300
"""Characters; longer ones hold more than a question."""
LEAST_WORDS = 3
MOST_SUBJECT_WORDS = 5
MOST_THING_WORDS = 4

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
_PREPOSITIONS = word_set("in at on to from for with about of by into under near")
_DO = frozenset(("do", "does", "did"))
_BE = frozenset(("is", "are", "was", "were", "am"))
_HAVE = frozenset(("has", "have", "had"))
_ASKING = frozenset(("where", "when", "what", "which", "who", "whom", "why", "how"))
_TIMES = frozenset(("time", "day", "date", "year", "month", "week"))

_CAPITAL = re.compile(r"[^\W\d_a-zß-öø-ÿ]")
_LEAD = re.compile(
    r"(?:(?:hey|hi|hello|so|and|but|ok|okay|well|please|also|now)\b,? ){0,3}"
    r"(?P<tells>(?:(?:can|could|would) you )?(?:please )?(?:tell me|remind me|do you (?:remember|know|recall)) )?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?…]\s+")
_KIND_OF = re.compile(r"^(?:kinds?|types?|sorts?) of ", re.IGNORECASE)


def statement_of(text: str) -> str:
    """The beginning of the answer to the last question of a text; empty where no rule is sure of one."""
    if len(text) > LONGEST_QUESTION:
        return ""
    question = _SENTENCE_END.split(text.strip())[-1].rstrip("?!. ")
    lead = _LEAD.match(question)
    words = question[lead.end() if lead else 0 :].replace(",", " ").split()
    words = [word for word in words if word.lower() != "ever"]
    if len(words) < LEAST_WORDS or not words[0].isalpha() or "you" in map(str.lower, words):
        return ""
    if lead and lead["tells"] and words[0].lower() in _ASKING and words[1].lower() not in _DO | _BE | _HAVE:
        # "tell me where Ana lives" says it already
        return " ".join(words[1:])
    statement = state(words)
    return statement if any(word.lower() not in NAMELESS for word in statement.split()) else ""


def state(words: Sequence[str]) -> str:
    """By the word with which the question begins."""
    first, rest = words[0].lower(), words[1:]
    if first in _DO | _BE | _HAVE:
        return turn_around(words, behind="") if first in _DO or begins_surely(rest) else ""
    if first not in _ASKING:
        return ""
    if rest[0].lower() in _DO | _BE | _HAVE:
        behind = {"where": "where", "why": " because"}.get(first, "")
        return turn_around(rest, behind=behind)
    if first in ("who", "what") and rest[0].lower() in _FINITE:
        return " ".join(rest)
    return state_what(rest) if first in ("what", "which", "how") else ""


def state_what(words: Sequence[str]) -> str:
    """ "Which city does Ana live in", "How many bikes did Ana buy": with the thing behind the verb."""
    place = next((at for at, word in enumerate(words[: MOST_THING_WORDS + 1]) if word.lower() in _DO), 0)
    clause = Clause.read(words[place:]) if place else None
    if clause is None:
        return ""
    thing = _KIND_OF.sub("", " ".join(words[:place]))
    if thing.lower() in _TIMES or thing.lower() in ("long", "often", "far"):
        return clause.text
    thing = re.sub(r"^(?:many|much) ", "", thing, flags=re.IGNORECASE)
    if clause.rest and clause.rest[-1].lower() in _PREPOSITIONS:
        return f"{clause.text} {thing}"
    return " ".join([clause.subject, clause.verb, thing, *clause.rest])


def turn_around(words: Sequence[str], *, behind: str) -> str:
    """What begins with an auxiliary, as a statement; `behind` is what goes after it, "where" the place of its verb."""
    auxiliary = words[0].lower()
    if auxiliary in _DO:
        clause = Clause.read(words)
        if clause is None:
            return ""
        if behind == "where":
            behind = "" if clause.rest else f" {_PLACES.get(clause.base, '')}"
        return f"{clause.text}{behind}".strip()
    statement = state_being(words) if auxiliary in _BE else state_having(words)
    return f"{statement}{behind}" if statement and behind != "where" else statement


@dataclass(frozen=True, slots=True)
class Clause:
    """A subject, its verb in the form that it has in a statement, and what follows."""

    subject: str
    verb: str
    base: str
    rest: Sequence[str]

    @property
    def text(self) -> str:
        return " ".join([self.subject, self.verb, *self.rest])

    @classmethod
    def read(cls, words: Sequence[str]) -> "Clause | None":
        """What begins with do, does or did; None where it is not sure which word is the verb."""
        inner = words[1:]
        place = place_of_verb(inner)
        if place == 0:
            return None
        verb = _VERBS[inner[place].lower()]
        form = {"do": verb.base, "does": verb.present, "did": verb.past}[words[0].lower()]
        return cls(subject=" ".join(inner[:place]), verb=form, base=verb.base, rest=inner[place + 1 :])


def place_of_verb(words: Sequence[str]) -> int:
    """Behind a name or pronoun, or the only verb there is; 0 where that is not sure."""
    sure = words_of_subject(words)
    while 0 < sure < len(words) and words[sure].lower() in _ADVERBS:
        sure += 1
    if 0 < sure < len(words) and words[sure].lower() in _VERBS:
        return sure
    least = 2 if leads_on(words[0]) else 1
    places = [at for at, word in enumerate(words) if at >= least and word.lower() in _VERBS]
    # "the" before it, and it is a noun
    is_sure = len(places) == 1 and places[0] <= MOST_SUBJECT_WORDS and not leads_on(words[places[0] - 1])
    return places[0] if is_sure else 0


def words_of_subject(words: Sequence[str]) -> int:
    """How many words the pronoun or name at the beginning has; 0 where there is none."""
    if words and words[0].lower() in _PRONOUNS:
        return 1
    count = 0
    while count < len(words) and (is_capital(words[count]) or (count > 0 and words[count] == "and")):
        count += 1
    while count and words[count - 1] == "and":
        count -= 1
    return 0 if count and leads_on(words[count - 1]) else count


def is_capital(word: str) -> bool:
    return _CAPITAL.match(word) is not None and word.lower() not in NAMELESS


def leads_on(word: str) -> bool:
    """Whether a noun must follow: "the", "my", "Ana's"."""
    return word.lower() in _DETERMINERS or word.endswith(("'s", "’s"))


def begins_surely(words: Sequence[str]) -> bool:
    return 0 < words_of_subject(words) < len(words)


def state_being(words: Sequence[str]) -> str:
    """ "is Ana afraid of" as "Ana is afraid of", "is my favourite colour" as "my favourite colour is"."""
    being, inner = words[0].lower(), list(words[1:])
    count = words_of_subject(inner)
    if count:
        return " ".join([*inner[:count], being, *inner[count:]])
    last = inner[-1].lower() if inner else ""
    if last in _PARTICIPLES and len(inner) > 1 and not leads_on(inner[-2]):
        return " ".join([*inner[:-1], being, inner[-1]])
    # "my sister studying", "the bread in": where the verb belongs, nothing says
    if not inner or last in _GERUNDS | _PREPOSITIONS:
        return ""
    return " ".join([*inner, being])


def state_having(words: Sequence[str]) -> str:
    """ "has Ana visited" as "Ana has visited"."""
    inner = words[1:]
    count = words_of_subject(inner)
    if not 0 < count < len(inner) or inner[count].lower() not in _PARTICIPLES | {"been"}:
        return ""
    return " ".join([*inner[:count], words[0].lower(), *inner[count:]])
