"""Wordings: whatever says the same has one and the same, so that it is found by it; what has none is given one."""

from hashlib import blake2b

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from memory.models import Account, Fact, Kind, Memory
from memory.models.memory import WORDED
from memory.owner import Owner
from memory.services.contexts.snapshots import create_snapshot, restore_snapshot
from memory.services.duplicates.texts import says_the_same, with_s, word_unworded, wording_of
from memory.services.duplicates.words import FILLERS, INTERCHANGEABLE, NUMBERS, SYNONYMS, TIMES, UNCONTRACTED
from memory.services.memories.correct import correct_memory
from tests.memory.contexts import context_of, entry, keep, rewrite
from tests.memory.episodes import NOW
from tests.memory.facts import know
from tests.memory.services.duplicates.test_texts import OTHER, PLAIN, SAME, WORDS

THE_SAME = (
    *({line: line.split() for line in INTERCHANGEABLE}.values()),
    *([word, number] for word, number in NUMBERS.items()),
    *([" ".join(phrase), word] for phrase, word in TIMES.items()),
)


def wording(text: str) -> int:
    number = wording_of(Kind.FACT, text)
    assert number is not None
    return number


def worded(row: Memory) -> int | None:
    return Memory.objects.get(id=row.id).wording


@st.composite
def rewritten(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts that differ, word by word, in what may be exchanged, or left out: many of them say the same."""
    pairs = draw(st.lists(st.sampled_from((*PLAIN, *WORDS)).flatmap(exchanged), min_size=1, max_size=8))
    beginning = draw(st.sampled_from(("", "Ana ", "the ", "The crew is ")))
    one, other = (" ".join(words) for words in zip(*pairs, strict=True))
    return f"{beginning}{one}.", f"{beginning}{other}"


def exchanged(word: str) -> st.SearchStrategy[list[str]]:
    """The word and what may stand for it, or another pair; in any order."""
    pairs: list[st.SearchStrategy[list[str]]] = [
        st.just([word, word]),
        st.just([word, with_s(word)] if len(word) > 1 else [word, word]),
        st.just([word, word.capitalize()]),
        st.just([word, f"{word},"]),
        st.sampled_from(sorted(FILLERS)).map(lambda filler: [word, f"{filler} {word}"]),
        st.sampled_from(THE_SAME).flatmap(lambda line: st.permutations(line).map(lambda some: some[:2])),
    ]
    return st.one_of(pairs).flatmap(st.permutations)


@settings(max_examples=500)
@given(rewritten())
@example(("Ana Just just just the x.", "Ana Just just justs the x"))
def test_what_says_the_same_is_worded_alike(texts: tuple[str, str]) -> None:
    are_same = says_the_same(*texts)
    event(f"say the same: {are_same}")

    assert not are_same or wording(texts[0]) == wording(texts[1])


@pytest.mark.parametrize(("one", "other"), SAME)
def test_so_is_each_example_of_what_says_the_same(one: str, other: str) -> None:
    assert wording(one) == wording(other)


def test_few_of_those_that_do_not_are() -> None:
    alike = [texts for texts in OTHER if wording(texts[0]) == wording(texts[1])]

    assert len(alike) < len(OTHER) / 5


def test_long_texts_are_worded_alike_to_the_letter() -> None:
    long = "The pump is serviced by the crew. " * 40

    assert wording(f"{long}It hums.") == wording(f"{long}it hums")
    assert wording(f"{long}{long}It hums.") != wording(f"{long}{long}it hums")


@given(st.text(max_size=40))
@example("'")
@example("...")
@example("the")
@example("I'M late")
def test_any_text_has_one(text: str) -> None:
    """Also without a word; within what a column of 64 bits holds."""
    assert -(2**63) <= wording(text) < 2**63
    assert says_the_same(text, f"{text} ")


def test_wordings_that_are_kept_still_hold() -> None:
    """Whoever changes one, and so this number, has a migration empty the column."""
    words = [*sorted(FILLERS), *sorted(SYNONYMS), *NUMBERS, *map(" ".join, TIMES), *UNCONTRACTED]
    sentences = [
        "The deploys to staging, at 3:30 p.m., need 2 VPNs!",
        "Ana's cat isn’t 1,200.5 g.",
        "Ünïcode 東京",
        "'",
    ]
    told = [wording(text) for text in [*words, *sentences]]

    assert blake2b(repr(told).encode(), digest_size=8).hexdigest() == "8626c739eb5a013a"


def test_no_filler_has_a_synonym() -> None:
    """Or leaving it out would not leave out what it stands for."""
    assert FILLERS.isdisjoint(SYNONYMS)


@pytest.mark.parametrize("kind", list(Kind))
def test_only_what_is_merged_has_one(kind: Kind) -> None:
    assert (wording_of(kind, "Ana lives in Berlin.") is not None) == (kind in WORDED)


@pytest.mark.django_db
def test_it_stands_beside_the_text_and_changes_with_it(owner: Owner) -> None:
    context = context_of(owner)
    [row] = keep(owner, context, entry("Ana lives in Berlin."))
    snapshot = create_snapshot(owner, context.id, name="", now=NOW)
    assert worded(row) == wording("Ana lives in Berlin.")

    edited = rewrite(owner, row, "Ana lives in Rome.")
    assert worded(row) == wording("Ana lives in Rome.")

    correct_memory(owner, row.id, changes={"text": "Ana lives in Oslo."}, version=edited.version, now=NOW)
    assert worded(row) == wording("Ana lives in Oslo.")

    restore_snapshot(owner, context.id, snapshot.id, now=NOW)
    assert worded(row) == wording("Ana lives in Berlin.")


@pytest.mark.django_db
def test_what_has_none_is_given_one(owner: Owner, account: Account) -> None:
    facts = [know(owner, f"Room {number} is red.") for number in range(5)]
    Fact.objects.update(wording=None)

    assert [word_unworded(3, account_id=None) for _ in range(3)] == [3, 2, 0]

    again = dict(Memory.objects.values_list("id", "wording"))
    assert again == {fact.id: wording(fact.text) for fact in facts}
