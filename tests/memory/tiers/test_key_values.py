"""Tests of the plain key-value operations: texts by key, isolated by account."""

import pytest

from memory.owner import Owner
from memory.tiers.key_values import KeyValues
from memory_project.ids import uuid7
from memory_project.redis import client, value_key


@pytest.fixture
def owner() -> Owner:
    return Owner(account_id=uuid7())


def test_a_text_comes_back_until_it_is_deleted(owner: Owner) -> None:
    values = KeyValues(owner)

    values.set("plan", "123")
    before = values.get("plan")
    values.delete("plan")

    assert (before, values.get("plan")) == ("123", None)


def test_a_text_may_expire(owner: Owner) -> None:
    KeyValues(owner).set("plan", "A", ex=60)

    assert 0 < client().ttl(value_key(owner.account_id, "plan")) <= 60


def test_another_account_does_not_see_it(owner: Owner) -> None:
    KeyValues(owner).set("plan", "A")

    assert KeyValues(Owner(account_id=uuid7())).get("plan") is None
