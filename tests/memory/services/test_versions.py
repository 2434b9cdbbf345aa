"""Tests of expected versions: a number means any row's version, or that of a certain row."""

from uuid import UUID

import pytest

from memory.errors import StaleVersion
from memory.services.accounts.access import ExpectedVersions, check_version

ROW, OTHER = UUID("01890000-0000-7000-8000-0000deadbeef"), UUID("01890000-0000-7000-8000-000000000000")


@pytest.mark.parametrize("expected", [None, frozenset({3}), frozenset({"3"}), frozenset({2, 3}), frozenset({"7", "3"})])
@pytest.mark.parametrize("row_id", [None, ROW])
def test_a_number_means_the_version_of_any_row(expected: ExpectedVersions, row_id: UUID | None) -> None:
    check_version(3, expected, row_id=row_id)


def test_a_number_and_a_row_mean_that_rows_version() -> None:
    seen = frozenset({"3.deadbeef"})

    check_version(3, seen, row_id=ROW)
    for version, row_id in [(3, OTHER), (4, ROW), (3, None)]:
        with pytest.raises(StaleVersion):
            check_version(version, seen, row_id=row_id)


@pytest.mark.parametrize("expected", [frozenset[str](), frozenset({2}), frozenset({"33", "03"})])
def test_any_other_version_is_stale(expected: ExpectedVersions) -> None:
    with pytest.raises(StaleVersion):
        check_version(3, expected)
