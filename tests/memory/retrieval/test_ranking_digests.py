"""The cache of turn features, which keeps nothing of the texts."""

import pytest

from memory.retrieval.ranking import turns
from memory.retrieval.ranking.turns import MAX_FEATURE_CHARACTERS, extract_features, turn_features

NUMERALS = ("none", "one", "one two")
"""By how many there are."""


def test_features_are_cached_by_the_part_of_the_text_that_is_read() -> None:
    long = "kept once " * MAX_FEATURE_CHARACTERS

    assert turn_features(long) is turn_features(f"{long} and more")
    assert turn_features(f"3 {long}") is not turn_features(long)


def test_the_feature_cache_holds_digests_and_numbers_but_no_text() -> None:
    read = turn_features("I painted the cellar yesterday.")

    kept = turns._cached_features
    assert any(read is each for each in kept.values())
    assert {type(key) for key in kept} == {int}
    assert {type(value) for each in kept.values() for value in each} == {float}


def test_the_feature_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_cached_features", {})
    monkeypatch.setattr(turns, "MAX_CACHED_TEXTS", 3)

    for place in [*range(9), *range(9)]:
        assert turn_features(f"{'again ' * place}{NUMERALS[place % 3]}").numbers == place % 3
        assert len(turns._cached_features) <= 3


@pytest.mark.parametrize("text", ["", "\ud800", "I saw \udfff in Lisbon", "\0", "é", "🦀" * 700], ids=ascii)
def test_any_text_has_a_digest(text: str) -> None:
    assert turn_features(text) == turn_features(text) == extract_features(text[:MAX_FEATURE_CHARACTERS])


def test_texts_that_differ_in_the_part_that_is_read_have_features_of_their_own() -> None:
    filler = "x " * (MAX_FEATURE_CHARACTERS // 2 - 1)

    assert [turn_features(f"{filler}{number}").numbers for number in ("1", "x", "2 3")] == [1, 0, 1]
