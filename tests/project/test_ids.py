"""Ids: UUIDs of version 7, in the order in which they were made, and bounds to look for them by time."""

import time
from datetime import UTC, datetime
from itertools import pairwise
from uuid import RFC_4122, UUID

from memory_project.ids import first_uuid7, uuid7

MOMENT = datetime(2026, 5, 4, 12, 0, 0, 250_000, tzinfo=UTC)


def milliseconds_of(made: UUID) -> int:
    return made.int >> 80


def test_an_id_is_a_version_7_uuid_of_the_current_time() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid7()

    assert (made.version, made.variant) == (7, RFC_4122)
    assert before <= milliseconds_of(made) <= time.time_ns() // 1_000_000


def test_ids_sort_in_the_order_in_which_they_were_made() -> None:
    made = [uuid7() for _ in range(10_000)]

    assert all(one < other for one, other in pairwise(made))
    assert len(set(map(milliseconds_of, made))) < len(made)


def test_the_random_parts_of_ids_are_unique() -> None:
    assert len({uuid7().int & (1 << 62) - 1 for _ in range(10_000)}) == 10_000


def test_the_first_id_of_a_time_sorts_before_ids_made_at_or_after_it() -> None:
    first = first_uuid7(MOMENT)

    assert (first.version, first.variant, milliseconds_of(first)) == (7, RFC_4122, 1_777_896_000_250)
    assert first_uuid7(datetime.now(UTC)) < uuid7() < first_uuid7(datetime(2100, 1, 1, tzinfo=UTC))
