"""Conditional requests: which versions a caller is content with."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_project.http.conditional import (
    Versions,
    format_etag,
    intersect_versions,
    matches_if_none_match,
    parse_if_match,
)
from memory_project.http.problems import Problem
from memory_project.ids import version_tag

VERSIONS = st.integers(min_value=1, max_value=9_999_999_999)
ROWS = st.none() | st.uuids()
ROW = UUID("01890000-0000-7000-8000-0000deadbeef")


@given(VERSIONS, ROWS)
def test_an_etag_is_parsed_back_to_its_version(version: int, row_id: UUID | None) -> None:
    assert parse_if_match(format_etag(version, row_id)) == frozenset({version_tag(version, row_id)})


@given(st.sets(st.tuples(VERSIONS, ROWS), min_size=1, max_size=5))
def test_a_list_of_etags_is_parsed_to_all_its_versions(versions: set[tuple[int, UUID | None]]) -> None:
    header = " , ".join(format_etag(*version) for version in versions)

    assert parse_if_match(header) == frozenset(version_tag(*version) for version in versions)


def test_an_etag_of_a_row_ends_in_the_last_eight_digits_of_its_id() -> None:
    assert (format_etag(3, ROW), format_etag(3)) == ('"3.deadbeef"', '"3"')


@pytest.mark.parametrize("header", [None, "*", " * "])
def test_if_match_without_an_etag_allows_any_version(header: str | None) -> None:
    assert parse_if_match(header) is None


NEVER_OF_A_ROW = ('"3."', '"3.dead"', '"3.DEADBEEF"', '"3.deadbeef0"', '"0.deadbeef"', '".deadbeef"')


@pytest.mark.parametrize(
    "header", ['W/"3"', '"abc"', '""', '"03"', '"-1"', '"3.0"', *NEVER_OF_A_ROW, '"٣"'.encode().decode("latin-1")]
)
def test_etags_that_were_never_issued_match_no_version(header: str) -> None:
    assert parse_if_match(header) == frozenset()


@pytest.mark.parametrize("header", ["3", "", '"3', '"3" "4"', '"3",', "W/3", '"3", *'])
def test_an_invalid_list_of_etags_is_refused(header: str) -> None:
    with pytest.raises(Problem) as refused:
        parse_if_match(header)

    assert refused.value.details.status == 400


@given(st.text(alphabet='W/"3*, a', max_size=40))
def test_any_if_match_header_is_either_parsed_or_refused(header: str) -> None:
    try:
        named = parse_if_match(header)
    except Problem:
        return

    assert named is None or all(int(version.partition(".")[0]) > 0 for version in named)


@pytest.mark.parametrize(
    ("header", "known"),
    [(None, False), ("*", True), ('"3"', True), ('W/"3"', True), ('"2", "3"', True), ('"33"', False), ("3", False)],
)
def test_if_none_match_recognizes_the_version_that_a_client_has(header: str | None, known: bool) -> None:
    assert matches_if_none_match(header, format_etag(3)) is known


@pytest.mark.parametrize(
    ("header", "known"), [('"3.deadbeef"', True), ('W/"3.deadbeef"', True), ('"3.00000000"', False), ('"3"', False)]
)
def test_if_none_match_recognizes_a_row_version_only_with_the_id_of_that_row(header: str, known: bool) -> None:
    assert matches_if_none_match(header, format_etag(3, ROW)) is known


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (None, None, None),
        (None, {"3"}, {"3"}),
        ({"3"}, {"3", "4"}, {"3"}),
        ({"3"}, {"4"}, set()),
        ({"3.deadbeef", "4.deadbeef"}, {"3"}, {"3.deadbeef"}),
        ({"3.deadbeef"}, {"3.00000000"}, set()),
        ({"33.deadbeef"}, {"3"}, set()),
        ({"3"}, set(), set()),
    ],
)
def test_versions_named_twice_are_intersected(
    first: set[str] | None, second: set[str] | None, both: set[str] | None
) -> None:
    def frozen(versions: set[str] | None) -> Versions:
        return None if versions is None else frozenset(versions)

    assert (
        intersect_versions(frozen(first), frozen(second))
        == intersect_versions(frozen(second), frozen(first))
        == frozen(both)
    )
