"""Every table has a rule for archives, and every column of an exported one can be written and read."""

import json
from pathlib import Path

from memory.services.custody.stores import tables
from memory.services.transfer.export import VERSION
from memory.services.transfer.rules import ADDED_COLUMNS, EXPORTED, LEFT_OUT, added_since, exported_tables


def test_every_table_is_exported_or_left_out_for_a_reason() -> None:
    lacking = set(tables()) - EXPORTED - LEFT_OUT.keys()

    assert not lacking, f"add them to EXPORTED or LEFT_OUT in memory.services.transfer.rules: {lacking}"


def test_no_rule_is_left_of_a_table_that_is_gone() -> None:
    assert EXPORTED | LEFT_OUT.keys() == set(tables())
    assert not EXPORTED & LEFT_OUT.keys()


def test_columns_since_the_first_version_are_known_to_have_been_added() -> None:
    """Archives of former versions are read as long as this holds.

    For a new column, raise VERSION in `export`, and add the column with its value for older archives to ADDED_COLUMNS
    under the new version. A column that goes, or gets another name, makes older archives unreadable.
    """
    first = json.loads(Path(__file__).with_name("columns_of_version_1.json").read_text())

    columns = {name: set(table.columns) for name, table in exported_tables().items()}
    new = {name: added_since(1, name).keys() for name in columns}

    assert columns == {name: {*first.get(name, ()), *new[name]} for name in columns}
    assert set(first) <= set(columns)
    assert max(ADDED_COLUMNS, default=1) == VERSION


def test_a_table_comes_after_those_that_its_rows_go_with() -> None:
    order = list(exported_tables())

    for table in exported_tables().values():
        assert all(order.index(each.target) < order.index(table.name) for each in table.references)
        assert not [each for each in table.late_references if each.cascades]
