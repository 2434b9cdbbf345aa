"""Conditional requests: which versions a caller is content with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_project.http.conditional import etag_of, is_known, read_if_match
from memory_project.http.problems import Problem

VERSIONS = st.integers(min_value=1, max_value=9_999_999_999)


@given(VERSIONS)
def test_a_tag_names_its_version(version: int) -> None:
    assert read_if_match(etag_of(version)) == frozenset({version})


@given(st.sets(VERSIONS, min_size=1, max_size=5))
def test_a_list_of_tags_names_them_all(versions: set[int]) -> None:
    header = " , ".join(map(etag_of, versions))

    assert read_if_match(header) == frozenset(versions)


@pytest.mark.parametrize("header", [None, "*", " * "])
def test_without_a_tag_any_version_will_do(header: str | None) -> None:
    assert read_if_match(header) is None


@pytest.mark.parametrize("header", ['W/"3"', '"abc"', '""', '"03"', '"-1"', '"3.0"', '"٣"'.encode().decode("latin-1")])
def test_tags_that_were_never_given_match_nothing(header: str) -> None:
    assert read_if_match(header) == frozenset()


@pytest.mark.parametrize("header", ["3", "", '"3', '"3" "4"', '"3",', "W/3", '"3", *'])
def test_what_is_no_list_of_tags_is_refused(header: str) -> None:
    with pytest.raises(Problem) as refused:
        read_if_match(header)

    assert refused.value.details.status == 400


@given(st.text(alphabet='W/"3*, a', max_size=40))
def test_no_header_is_too_strange_to_be_judged(header: str) -> None:
    try:
        named = read_if_match(header)
    except Problem:
        return

    assert named is None or all(version > 0 for version in named)


@pytest.mark.parametrize(
    ("header", "known"),
    [(None, False), ("*", True), ('"3"', True), ('W/"3"', True), ('"2", "3"', True), ('"33"', False), ("3", False)],
)
def test_what_a_reader_has_already_is_known_to_it(header: str | None, known: bool) -> None:
    assert is_known(header, etag_of(3)) is known
