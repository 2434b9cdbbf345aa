"""Every table and every key of Redis has a rule for the erasure of a user."""

from memory.services.custody.stores import KEY_RULES, RULES, rule_of, tables
from memory_project.redis import KEY_PATTERNS, SHARED_KEYS


def test_every_table_has_a_rule() -> None:
    for model in tables().values():
        rule_of(model)  # raises LookupError, which says what to do


def test_no_rule_is_left_of_a_table_that_is_gone() -> None:
    assert set(RULES) <= set(tables())


def test_every_key_of_redis_has_a_rule() -> None:
    patterns = {"session", "agent", "value", "once", "running", "written"}

    assert set(KEY_RULES) == {*KEY_PATTERNS, *SHARED_KEYS, *patterns}
