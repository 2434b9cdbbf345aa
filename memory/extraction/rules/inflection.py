"""Forms of English words: whether a word can be a verb, and in which form (by the lexicon of lemminflect)."""

import re
from functools import lru_cache

from lemminflect import getAllInflections, getAllLemmas, getInflection

from memory.extraction.rules.words import words

MODALS = words("will can cannot must should would could might may shall ought")
AUXILIARIES = MODALS | words("is are was were has have had does do did")
_PAST_OF_OTHERS = words("found saw felt lay ground wound bound bore fell")
"""Base forms that are rather the past of another verb: "I found", but not "I feed", the past of "fee"."""
_COMMON_VERBS = words(
    "need start hate love like want use run work live take help cost end open close visit stop change matter fear eat "
    "drink play sleep study move travel go come get make give keep hold fail break look feel sound smell taste return "
    "report leave share land ship build deploy sync talk call cover support total average"
)
"""Verbs that are nouns as well, and are verbs after a plural: "my girls hate jogging"."""
_PARTICIPLES = words("called named based written made hosted used given known built owned led run told asked")
"""Past forms that follow a noun without being its verb: "a widow called Hester"."""
_RATHER_NOUNS = words("minutes services seconds")
"""Plurals that are hardly ever the verb of a statement: "every 15 minutes on wifi"."""
_EDGE = re.compile(r"^[^\w']+|[^\w']+$")
_PLURALS = words("people kids children parents folks staff everything everyone")


def bare_word(token: str) -> str:
    """Return a token in lower case without the marks around it."""
    return _EDGE.sub("", token).lower()


@lru_cache(maxsize=10_000)
def lemmas(word: str) -> dict[str, tuple[str, ...]]:
    """Return the base forms of a word in lower case by its possible parts of speech (VERB, NOUN, ADJ …)."""
    found: dict[str, tuple[str, ...]] = getAllLemmas(word)
    return found


def is_base_form(word: str) -> bool:
    """Return True for a word that can be a verb in its base form: "use", "need"."""
    return word in lemmas(word).get("VERB", ())


@lru_cache(maxsize=10_000)
def is_past_form(word: str) -> bool:
    """Return True for a word that can be a verb in the past: "moved", "left"."""
    return any(word in getAllInflections(lemma, "VERB").get("VBD", ()) for lemma in lemmas(word).get("VERB", ()))


def is_third_form(word: str) -> bool:
    """Return True for a word in lower case that can be a verb in the third person singular: "wants"."""
    return any(third_person(lemma) == word != lemma for lemma in lemmas(word).get("VERB", ()))


@lru_cache(maxsize=10_000)
def third_person(base: str) -> str:
    """Return the third person singular of a verb in its base form: "watches"."""
    forms: tuple[str, ...] = getInflection(base, "VBZ")
    return forms[0] if forms else f"{base}s"


def conjugate(word: str) -> str:
    """Return the form that follows "the user" for one that follows "I"; empty if the word is no finite verb."""
    irregular = {"am": "is", "are": "is", "were": "was", "have": "has", "do": "does"}
    if word in irregular or word in AUXILIARIES:
        return irregular.get(word, word)
    if is_base_form(word) and word not in _PAST_OF_OTHERS:
        return third_person(word)
    return word if is_past_form(word) else ""


def is_finite(word: str, before: str, *, is_last: bool) -> bool:
    """Return True if a word is the verb of the noun `before` it, as far as the two can tell.

    The verb of a thing is hard to tell from a noun: "batch jobs run at night", "the night run". In doubt it is none.
    """
    if before in ("", "the", "a", "an", "my", "our", "every", "each"):
        return False
    if word in AUXILIARIES:
        return True
    possible = lemmas(word)
    if "VERB" not in possible or word in _RATHER_NOUNS:
        return False
    is_noun = "NOUN" in possible
    if is_base_form(word):
        return _is_plural(before) and not is_last and (not is_noun or word in _COMMON_VERBS)
    if word.endswith("s"):
        return not is_noun or not (before.endswith("s") or is_last)
    if word in _PARTICIPLES:
        return False
    return is_past_form(word) and (word in ("left", "moved", "changed") or not (is_noun or "ADJ" in possible))


def _is_plural(word: str) -> bool:
    return word in _PLURALS or any(lemma != word for lemma in lemmas(word).get("NOUN", ()))
