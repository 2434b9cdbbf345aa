"""`manage.py bootstrap`: makes an installation usable. A second run changes nothing."""

import json
import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection, transaction

from memory.management.base import OperatorCommand, require_keys
from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, ensure_agent, issue_key

FIRST_ACCOUNT = "default"
FIRST_AGENT = "assistant"
ADMIN = "admin"
BOOTSTRAP_LOCK_ID = 0x6D656D626F6F7400
"""Key of the advisory lock; that of migrations is beside it."""


class Command(OperatorCommand):
    help = "Make the first account, agent, API key and admin user where there are none; print the new secrets as JSON."

    def handle(self, *args: Any, **options: Any) -> None:
        require_keys()
        with transaction.atomic(), connection.cursor() as cursor:
            # the second of two first starts finds what the first one made
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [BOOTSTRAP_LOCK_ID])
            made = {"api_key": make_first_key(), "admin_user": ADMIN, "admin_password": make_admin()}
        self.stdout.write(json.dumps(made))


def make_first_key() -> str | None:
    """Return the secret of the first account's key; None if an account exists."""
    if Account.objects.exists():
        return None
    account = Account.objects.create(name=FIRST_ACCOUNT)
    ensure_agent(account, FIRST_AGENT)
    return issue_key(account, scopes=READ_WRITE_OPERATE, name="first key").secret


def make_admin() -> str | None:
    """Return the password of the new superuser; None if one exists."""
    users = get_user_model()._default_manager
    if users.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(18)
    users.create_superuser(username=ADMIN, email="", password=password)
    return password
