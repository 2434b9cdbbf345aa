"""What every test may ask for."""

import pytest

from memory.models import Account
from memory.owner import Owner


@pytest.fixture
def account(db: None) -> Account:
    return Account.objects.create(name="workshop")


@pytest.fixture
def owner(account: Account) -> Owner:
    return Owner(account_id=account.id, agent_id="assistant")
