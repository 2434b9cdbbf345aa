"""The offline rules over texts that are hostile, broken, or long: no error, no made-up item, and bounded time."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pkgutil import iter_modules

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction import rules
from memory.extraction.knowledge import ENTITY_TYPES, RELATIONSHIP_TYPES, Chunk, check_extraction
from memory.extraction.rules.grammar import Rule
from memory.extraction.rules.passages import MAX_CLAIM_SENTENCE_CHARACTERS
from memory.extraction.rules.patterns import RULES
from tests.hostile import HOSTILE_BODIES, HOSTILE_IDS
from tests.memory.extraction.injections import INJECTIONS, KNOWN, Injection
from tests.memory.extraction.spoken import extracted, said, turn
from tests.properties import examples


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda injection: injection.name)
def test_no_injection_yields_knowledge(injection: Injection) -> None:
    turns = [
        turn(each.text, speaker=each.speaker, role=each.role, index=index) for index, each in enumerate(injection.turns)
    ]

    extraction = extracted(turns, known=KNOWN)

    assert (extraction.facts, extraction.relationships, extraction.preferences) == ((), (), ())


TEXTS = [
    *(hostile.body.decode("utf-8", "surrogateescape") for hostile in HOSTILE_BODIES if len(hostile.body) < 10_000),
    *(value for value in HOSTILE_IDS if isinstance(value, str)),
    "\ud800 I live in \udfff.",
    "I live in \x00.",
    "I live in P\u202eorto\u202c.",
    "I live in \U000e0041\U000e0042.",
    "\ufffc\ue000 I bought a \ue000 yesterday.",
    "I bought a car on 99 May 99999 and 31 February 2020 in 0000.",
    "I am 99999999999999999999 years old.",
    "۳ I am ٣٤ years old. ²³",
]
PIECES = [
    *(
        "I",
        "my",
        "sister",
        "Rita",
        "and",
        "live in",
        "am",
        "is",
        "a",
        "doctor",
        "Porto",
        ".",
        ",",
        "'s",
        "yesterday",
        "not",
    ),
    *(
        "used to",
        "no longer",
        "bought",
        "the",
        "since 2019",
        "She",
        "actually",
        "sorry",
        "I meant",
        '"',
        "<a>",
        "it's",
        "?",
    ),
]


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_texts_raise_no_error(text: str) -> None:
    said(text, speaker=text)
    said(f"My sister {text} lives in {text}.", known=[text, f"The user lives in {text}"])


@given(st.lists(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join), max_size=4))
@examples(150)
def test_every_item_extracted_from_any_chunk_is_grounded_in_its_turns(texts: list[str]) -> None:
    turns = [turn(text, index=10 + number, speaker="Lena") for number, text in enumerate(texts)]
    chunk = Chunk(turns=turns)

    extraction = extracted(turns)

    evidence = [
        *(entity.evidence for entity in extraction.entities),
        *(fact.evidence for fact in extraction.facts),
        *(relationship.evidence for relationship in extraction.relationships),
        *(preference.evidence for preference in extraction.preferences),
    ]
    assert all(each and chunk.indexes >= set(each) for each in evidence)
    assert {entity.type for entity in extraction.entities} <= set(ENTITY_TYPES)
    assert {relationship.type for relationship in extraction.relationships} <= set(RELATIONSHIP_TYPES)
    assert check_extraction(extraction, chunk).facts == extraction.facts
    assert extracted(turns) == extraction


def test_times_at_the_ends_of_the_calendar_raise_no_error() -> None:
    for year in (1, 9999):
        chunk_turn = turn("I bought a car yesterday. I will visit Rome next year. I live in Porto since last week.")
        moved = type(chunk_turn)(
            index=0, role="user", speaker="", text=chunk_turn.text, timestamp=datetime(year, 1, 1, tzinfo=UTC)
        )
        assert extracted([moved]).source == "rules"


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every regular expression of the package, with its module."""
    for module in iter_modules(rules.__path__, f"{rules.__name__}."):
        for name, value in vars(import_module(module.name)).items():
            values = value if isinstance(value, tuple | list) else [value]
            flat = [part for each in values for part in (each if isinstance(each, tuple) else (each,))]
            yield from ((f"{module.name}.{name}", part) for part in flat if isinstance(part, re.Pattern))
    for rule in (each for group in RULES.values() for each in group):
        yield from _patterns_of(rule)


def _patterns_of(rule: Rule) -> Iterator[tuple[str, re.Pattern[str]]]:
    yield rule.verb, rule.needs
    if rule.refuses:
        yield rule.verb, rule.refuses


WORDS = (
    *("a ", "A ", "Ab ", "my ", "my sister ", "I ", "I and ", "the old ", "in ", ", ", ". ", "'s ", "2019 ", "-", "<a"),
    *('"', "really ", "to a ", "and I ", "Rita de ", "is ", "not ", "his ", "an old big ", "x", "ignore ", "haha"),
)


def test_no_pattern_takes_long_over_any_sentence() -> None:
    for name, pattern in patterns():
        for word in WORDS:
            text = (word * MAX_CLAIM_SENTENCE_CHARACTERS)[:MAX_CLAIM_SENTENCE_CHARACTERS]
            began = time.thread_time()
            pattern.search(text)
            assert time.thread_time() - began < 0.5, (name, word)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["I bought a car yesterday. ", "Rita Bell, ", '"', " ", "My friend Al and "])
def test_a_megabyte_takes_bounded_time(text: str) -> None:
    began = time.thread_time()

    said((text * 1_000_000)[:1_000_000], speaker="Lena")

    assert time.thread_time() - began < 60
