"""Hashes of normalized texts: equivalent texts have equal hashes, and missing hashes are stored."""

from hashlib import blake2b

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from memory.kinds import spec_of
from memory.models import Account, Fact, Kind, Memory, MemoryRow
from memory.owner import Owner
from memory.services.contexts.snapshots import create_snapshot, restore_snapshot
from memory.services.duplicates.deduplicate import store_missing_hashes
from memory.services.duplicates.texts import (
    FILLERS,
    INTERCHANGEABLE,
    NUMBERS,
    SYNONYMS,
    TIMES,
    UNCONTRACTED,
    add_s_ending,
    normalized_text_hash,
)
from memory.services.memories.correct import correct_memory
from tests.memory.contexts import context_of, entry, keep, rewrite
from tests.memory.episodes import NOW
from tests.memory.facts import know
from tests.memory.services.duplicates.test_texts import OTHER, PLAIN, SAME, WORDS, are_equivalent
from tests.properties import examples

THE_SAME = (
    *({line: line.split() for line in INTERCHANGEABLE}.values()),
    *([word, number] for word, number in NUMBERS.items()),
    *([" ".join(phrase), word] for phrase, word in TIMES.items()),
)


def hash_of(text: str) -> int:
    number = normalized_text_hash(Kind.FACT, text)
    assert number is not None
    return number


def stored_hash(row: MemoryRow) -> int | None:
    return Memory.objects.get(id=row.id).wording


@st.composite
def text_pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Draw two texts that differ, word by word, in exchangeable words or fillers: many are equivalent."""
    pairs = draw(st.lists(st.sampled_from((*PLAIN, *WORDS)).flatmap(word_pairs), min_size=1, max_size=8))
    beginning = draw(st.sampled_from(("", "Ana ", "the ", "The crew is ")))
    one, other = (" ".join(words) for words in zip(*pairs, strict=True))
    return f"{beginning}{one}.", f"{beginning}{other}"


def word_pairs(word: str) -> st.SearchStrategy[list[str]]:
    """Draw a word and its replacement, or another pair, in any order."""
    pairs: list[st.SearchStrategy[list[str]]] = [
        st.just([word, word]),
        st.just([word, add_s_ending(word)] if len(word) > 1 else [word, word]),
        st.just([word, word.capitalize()]),
        st.just([word, f"{word},"]),
        st.sampled_from(sorted(FILLERS)).map(lambda filler: [word, f"{filler} {word}"]),
        st.sampled_from(THE_SAME).flatmap(lambda line: st.permutations(line).map(lambda some: some[:2])),
    ]
    return st.one_of(pairs).flatmap(st.permutations)


@pytest.mark.slow
@examples(500)
@given(text_pairs())
@example(("Ana Just just just the x.", "Ana Just just justs the x"))
def test_equivalent_texts_have_equal_hashes(texts: tuple[str, str]) -> None:
    are_same = are_equivalent(*texts)
    event(f"say the same: {are_same}")

    assert not are_same or hash_of(texts[0]) == hash_of(texts[1])


@pytest.mark.parametrize(("one", "other"), SAME)
def test_each_example_of_equivalent_texts_has_equal_hashes(one: str, other: str) -> None:
    assert hash_of(one) == hash_of(other)


def test_few_other_texts_have_equal_hashes() -> None:
    alike = [texts for texts in OTHER if hash_of(texts[0]) == hash_of(texts[1])]

    assert len(alike) < len(OTHER) / 5


def test_long_texts_have_equal_hashes_only_if_they_are_equal() -> None:
    long = "The pump is serviced by the crew. " * 40

    assert hash_of(f"{long}It hums.") == hash_of(f"{long}it hums")
    assert hash_of(f"{long}{long}It hums.") != hash_of(f"{long}{long}it hums")


@given(st.text(max_size=40))
@example("'")
@example("...")
@example("the")
@example("I'M late")
def test_any_text_has_a_hash(text: str) -> None:
    """A text without words has one, too, within the range of a 64-bit column."""
    assert -(2**63) <= hash_of(text) < 2**63
    assert are_equivalent(text, f"{text} ")


def test_stored_hashes_are_still_valid() -> None:
    """A change of the number requires a migration that empties the column."""
    words = [*sorted(FILLERS), *sorted(SYNONYMS), *NUMBERS, *map(" ".join, TIMES), *UNCONTRACTED]
    sentences = [
        "The deploys to staging, at 3:30 p.m., need 2 VPNs!",
        "Ana's cat isn’t 1,200.5 g.",
        "Ünïcode 東京",
        "'",
    ]
    hashes = [hash_of(text) for text in [*words, *sentences]]

    assert blake2b(repr(hashes).encode(), digest_size=8).hexdigest() == "8626c739eb5a013a"


def test_no_filler_has_a_synonym() -> None:
    """Otherwise leaving out the filler would not leave out its synonym."""
    assert FILLERS.isdisjoint(SYNONYMS)


@pytest.mark.parametrize("kind", list(Kind))
def test_only_deduplicated_kinds_have_a_hash(kind: Kind) -> None:
    assert (normalized_text_hash(kind, "Ana lives in Berlin.") is not None) == (spec_of(kind).merging is not None)


@pytest.mark.django_db
def test_the_hash_is_stored_and_changes_with_the_text(owner: Owner) -> None:
    context = context_of(owner)
    [row] = keep(owner, context, entry("Ana lives in Berlin."))
    snapshot = create_snapshot(owner, context.id, name="", now=NOW)
    assert stored_hash(row) == hash_of("Ana lives in Berlin.")

    edited = rewrite(owner, row, "Ana lives in Rome.")
    assert stored_hash(row) == hash_of("Ana lives in Rome.")

    correct_memory(owner, row.id, changes={"text": "Ana lives in Oslo."}, version=edited.version, now=NOW)
    assert stored_hash(row) == hash_of("Ana lives in Oslo.")

    restore_snapshot(owner, context.id, snapshot.id, now=NOW)
    assert stored_hash(row) == hash_of("Ana lives in Berlin.")


@pytest.mark.django_db
def test_missing_hashes_are_stored(owner: Owner, account: Account) -> None:
    facts = [know(owner, f"Room {number} is red.") for number in range(5)]
    Fact.objects.update(wording=None)

    assert [store_missing_hashes(3, account_id=None) for _ in range(3)] == [3, 2, 0]

    again = dict(Memory.objects.values_list("id", "wording"))
    assert again == {fact.id: hash_of(fact.text) for fact in facts}
