"""Every table has a rule for archives, and every column of an exported one can be written and read."""

from memory.services.custody.stores import tables
from memory.services.transfer.rules import EXPORTED, LEFT_OUT, exported_tables


def test_every_table_is_exported_or_left_out_for_a_reason() -> None:
    lacking = set(tables()) - EXPORTED - LEFT_OUT.keys()

    assert not lacking, f"add them to EXPORTED or LEFT_OUT in memory.services.transfer.rules: {lacking}"


def test_no_rule_is_left_of_a_table_that_is_gone() -> None:
    assert EXPORTED | LEFT_OUT.keys() == set(tables())
    assert not EXPORTED & LEFT_OUT.keys()


def test_a_table_comes_after_those_that_its_rows_go_with() -> None:
    order = list(exported_tables())

    for table in exported_tables().values():
        assert all(order.index(each.target) < order.index(table.name) for each in table.references)
        assert not [each for each in table.late_references if each.cascades]
