"""Tests of the data of pools: reading and writing it whole and by path, merging, limits, versions."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F, Func, IntegerField
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.errors import Forbidden, NotFound, StaleVersion, TooLarge, Unprocessable
from memory.models import AccessControl, Account, Agent, MemoryPool, WorkflowRun
from memory.owner import Owner
from memory.services.pools.data import merge_data, read_data, write_data
from memory.services.pools.manage import PoolStatistics, pool_statistics
from memory.tiers.json_documents import ABSENT, MAX_DEPTH, parse_path, value_at
from tests.memory.pools import NOW, make_pool
from tests.memory.tiers.test_json_documents import documents, leaves, names, path_of, values
from tests.properties import examples

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)
CHANGES = (write_data, merge_data)
with_database = examples(50)


def write(owner: Owner, data: Any, path: str = "") -> int:
    return write_data(owner, "board", path=path, data=data, expected=None, now=NOW).version


def merge(owner: Owner, data: Any, path: str = "") -> int:
    return merge_data(owner, "board", path=path, data=data, expected=None, now=NOW).version


def read(owner: Owner, path: str = "") -> Any:
    return read_data(owner, "board", path=path, now=NOW).data


@pytest.fixture
def board(owner: Owner) -> MemoryPool:
    return make_pool(owner, data={"plan": {"steps": ["a", "b"], "goal": None}, "": {"a/b": 1, "m~n": 2}})


# paths


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/plan/steps/1", "b"),
        ("/plan/goal", None),
        ("//a~1b", 1),
        ("//m~0n", 2),
        ("/", {"a/b": 1, "m~n": 2}),
    ],
)
def test_a_path_leads_to_a_part(owner: Owner, board: MemoryPool, path: str, data: Any) -> None:
    assert read(owner, path) == data


@pytest.mark.parametrize(
    "path", ["/no", "/plan/steps/2", "/plan/steps/-1", "/plan/steps/01", "/plan/steps/-", "/plan/goal/x"]
)
def test_a_missing_path_is_not_found_and_not_counted(owner: Owner, board: MemoryPool, path: str) -> None:
    with pytest.raises(NotFound):
        read(owner, path)

    assert pool_statistics(owner, "board", now=NOW).read_count == 0


@pytest.mark.parametrize("path", ["plan", "/a~2", "/a\0", "/x" * (MAX_DEPTH + 1)])
def test_an_invalid_path_is_refused(owner: Owner, board: MemoryPool, path: str) -> None:
    for attempt in (lambda: read(owner, path), lambda: write(owner, 1, path), lambda: merge(owner, 1, path)):
        with pytest.raises(Unprocessable):
            attempt()


@given(documents, st.lists(names | st.sampled_from([" 0", "+0", "00", "2147483648", "-2147483648"]), max_size=3))
@with_database
def test_postgresql_follows_a_path_as_python_does(owner: Owner, document: dict[str, Any], astray: list[str]) -> None:
    MemoryPool.objects.all().delete()
    make_pool(owner, data=document)

    for tokens in (*(tokens for tokens, _part in leaves(document)), tuple(astray)):
        path = path_of(*tokens)
        found = value_at(document, parse_path(path))
        try:
            assert repr(read(owner, path)) == repr(found)
        except NotFound:
            assert found is ABSENT


@given(st.lists(names, min_size=1, max_size=4), values)
@with_database
def test_a_value_written_by_path_is_read_back_unchanged(owner: Owner, tokens: list[str], value: Any) -> None:
    MemoryPool.objects.all().delete()
    make_pool(owner)

    write(owner, value, path_of(*tokens))

    assert repr(read(owner, path_of(*tokens))) == repr(value)


def test_values_come_back_with_the_type_and_order_they_had(owner: Owner, board: MemoryPool) -> None:
    value = {"z": "123", "a": 123, "m": 1.0, "n": None, "t": True, "big": 2**70, "ü": "\\u0000 \u2028 😀"}

    write(owner, value)

    assert repr(read(owner)) == repr(value)


# writes


def test_a_write_changes_its_part_and_a_merge_goes_deep(owner: Owner, board: MemoryPool) -> None:
    write(owner, "c", "/plan/steps/-")
    write(owner, 1, "/who/is/in")
    merge(owner, {"plan": {"goal": {"by": "may"}}, "": None})
    merge(owner, {"then": "june"}, "/plan/goal")

    assert read(owner) == {
        "plan": {"steps": ["a", "b", "c"], "goal": {"by": "may", "then": "june"}},
        "": None,
        "who": {"is": {"in": 1}},
    }


def test_a_write_returns_the_whole_and_its_version(owner: Owner, board: MemoryPool) -> None:
    stored = merge_data(owner, "board", data={"": 1}, expected=frozenset({1, 4}), now=NOW)

    assert stored == read_data(owner, "board", now=NOW)
    assert (stored.version, stored.data[""]) == (2, 1)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("", []),
        ("", None),
        ("/plan/steps/x", 1),
        ("/plan/steps/3", 1),
        ("/plan/goal/x", 1),
        ("/plan/steps/0/x", 1),
        ("/x", "\0"),
        ("/x", "\ud800"),
        ("/x", float("nan")),
        ("/x" * MAX_DEPTH, []),
    ],
)
def test_an_invalid_write_changes_nothing(owner: Owner, board: MemoryPool, change: Any, path: str, data: Any) -> None:
    before = MemoryPool.objects.values().get()

    with pytest.raises(Unprocessable):
        change(owner, "board", path=path, data=data, expected=None, now=NOW)

    assert MemoryPool.objects.values().get() == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_stale_write_changes_nothing(owner: Owner, board: MemoryPool, change: Any) -> None:
    write(owner, 1, "/count")

    with pytest.raises(StaleVersion):
        change(owner, "board", data={"count": 2}, expected=frozenset({1}), now=NOW)

    assert (read(owner, "/count"), change(owner, "board", data={}, expected=frozenset({2}), now=NOW).version) == (1, 3)


def test_a_write_over_the_limit_changes_nothing(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "POOL_LIMIT_BYTES", 1_024)
    make_pool(owner)
    write(owner, "ü" * 506, "/text")

    with pytest.raises(TooLarge) as refused:
        merge(owner, {"x": ""})

    assert refused.value.facts == {"stored": False, "size_bytes": 1_030, "limit_bytes": 1_024}
    assert (read(owner), pool_statistics(owner, "board", now=NOW).size_bytes) == ({"text": "ü" * 506}, 1_023)


def test_size_bytes_equals_the_size_of_the_stored_data(owner: Owner, board: MemoryPool) -> None:
    write(owner, 'ü"\\', "/plan/steps/0")

    text = Func(F("data"), template="octet_length(%(expressions)s::text)", output_field=IntegerField())
    assert MemoryPool.objects.annotate(stored_bytes=text).get(size_bytes=F("stored_bytes")).id == board.id


# statistics


def test_reads_and_writes_are_counted(owner: Owner, board: MemoryPool) -> None:
    before = pool_statistics(owner, "board", now=NOW)
    read(owner, "/plan")
    merge(owner, {"x": 1})
    read_data(owner, "board", now=LATER)

    figures = {"entry_count": 2, "size_bytes": 61, "limit_bytes": conf.POOL_LIMIT_BYTES}
    assert before == PoolStatistics(**figures, read_count=0, write_count=0, last_accessed_at=None)
    assert pool_statistics(owner, "board", now=NOW) == PoolStatistics(
        **figures | {"entry_count": 3, "size_bytes": 67}, read_count=2, write_count=1, last_accessed_at=LATER
    )


def test_a_read_makes_no_new_version(owner: Owner, board: MemoryPool) -> None:
    read(owner)

    assert read_data(owner, "board", now=NOW).version == 1


# permissions


def test_a_reader_cannot_write(owner: Owner, account: Account) -> None:
    make_pool(owner, scope="agent", access_control=AccessControl(read=["colleague"]), data={"a": 1})
    colleague = Owner(account_id=account.id, agent_id="colleague")

    for change in CHANGES:
        with pytest.raises(Forbidden):
            change(colleague, "board", data={}, expected=None, now=NOW)

    assert read(colleague) == {"a": 1}


def test_an_expired_pool_is_not_found(owner: Owner) -> None:
    make_pool(owner, data={"a": 1}, expires_at=LATER)

    with pytest.raises(NotFound):
        read_data(owner, "board", now=LATER)
    for change in CHANGES:
        with pytest.raises(NotFound):
            change(owner, "board", data={}, expected=None, now=LATER)


@pytest.mark.parametrize("pool_type", ["blackboard", "tool_cache"])
def test_a_pool_that_holds_rows_has_no_data(owner: Owner, account: Account, pool_type: str) -> None:
    run = WorkflowRun.objects.create(account=account, workflow_run_id="run", agents=["assistant"], started_at=NOW)
    MemoryPool.objects.create(account=account, pool_id="board", pool_type=pool_type, workflow_run=run)

    for attempt in (lambda: read(owner), lambda: write(owner, {}), lambda: merge(owner, {})):
        with pytest.raises(Unprocessable, match="tool caches and blackboards have no data"):
            attempt()


def test_the_first_write_creates_the_agent(
    owner: Owner, board: MemoryPool, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        write(owner, {})

    assert Agent.objects.get().agent_id == "assistant"


# cost


def test_a_read_takes_two_statements(
    owner: Owner, board: MemoryPool, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for path in ("", "/plan/steps/0"):
        with django_assert_num_queries(2):
            read(owner, path)


def test_a_write_takes_a_lock_an_update_and_an_audit_row_in_its_savepoint(
    owner: Owner, board: MemoryPool, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(3 + 2):
        write(owner, 1, "/plan/steps/0")
    with django_assert_num_queries(3 + 2):
        merge(owner, {"x": 1})
