"""Two staff users: a superuser, and one without any permission except opening the admin."""

import pytest
from django.contrib.auth.models import User
from django.test import Client


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
