"""Fixtures that tests of several services share."""

import pytest

from memory.models import Account
from memory.owner import Owner


@pytest.fixture
def staff(account: Account) -> Owner:
    return Owner(account_id=account.id, actor="staff:chief")
