"""Staff users: a superuser, one who may only open the admin, and one who is limited to an account."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from memory.models import Account, StaffLimit
from memory_project.staff import StaffGroup


@pytest.fixture
def chief(db: None) -> User:
    return User.objects.create_superuser("chief")


@pytest.fixture
def staff(chief: User) -> Client:
    """The browser of a superuser."""
    client = Client()
    client.force_login(chief)
    return client


@pytest.fixture
def newcomer(db: None) -> Client:
    """The browser of a staff user without any permission."""
    user = User.objects.create_user("newcomer", is_staff=True)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def member(account: Account) -> User:
    """A member of staff of all groups who is limited to one account."""
    user = User.objects.create_user("member", is_staff=True)
    user.groups.set(Group.objects.filter(name__in=list(StaffGroup)))
    StaffLimit.objects.create(user=user, account_ids=[account.id])
    return user


@pytest.fixture
def limited(member: User) -> Client:
    client = Client()
    client.force_login(member)
    return client
