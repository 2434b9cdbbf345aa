"""`manage.py create_api_key`: a key for an account, which is made when it is new."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from memory.models import Account, ApiKey
from memory.services.accounts.register import READ_ONLY, READ_WRITE, READ_WRITE_OPERATE, issue_key, key_expiry
from memory_project.http.paths import CONTROL, MAX_ID_CHARACTERS

MAX_LIFE_DAYS = 36_500


def name(text: str) -> str:
    if not text or len(text) > MAX_ID_CHARACTERS or CONTROL.search(text):
        raise ArgumentTypeError(f"1 to {MAX_ID_CHARACTERS} characters, no control characters among them")
    return text


def days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_LIFE_DAYS):
        raise ArgumentTypeError(f"a whole number from 1 to {MAX_LIFE_DAYS}")
    return int(text)


class Command(BaseCommand):
    help = "Create an API key. Standard output is the key alone; it is shown this once and cannot be read again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--account", type=name, required=True, help="name of the account, created if it is new")
        parser.add_argument("--agent", type=name, help="bind the key to this agent")
        parser.add_argument("--user", type=name, help="bind the key to this user; it cannot have the scope operate")
        scopes = parser.add_mutually_exclusive_group()
        scopes.add_argument("--read-only", action="store_true", help="allow reading only")
        scopes.add_argument(
            "--operate",
            action="store_true",
            help="also allow jobs, the audit log, and custody of users; keys that write delete what they may change",
        )
        parser.add_argument("--deep-replay", action="store_true", help="also allow the replay of raw reasoning traces")
        parser.add_argument("--expires", type=days, metavar="DAYS", help="days until it expires (default: never)")

    def handle(self, *args: Any, **options: Any) -> None:
        account, is_new = Account.objects.get_or_create(name=options["account"])
        if options["user"] and options["operate"]:
            raise CommandError("A key that is bound to a user cannot have the scope operate: omit --user or --operate.")
        most = READ_WRITE_OPERATE if options["operate"] else READ_WRITE
        scopes = READ_ONLY if options["read_only"] else most
        issued = issue_key(
            account,
            scopes=[*scopes, ApiKey.Scope.DEEP_REPLAY] if options["deep_replay"] else scopes,
            agent_id=options["agent"] or "",
            user_id=options["user"] or "",
            name="made on the command line",
            expires_at=key_expiry(timezone.now(), options["expires"]),
        )
        if is_new:
            self.stderr.write(f"made the account {account.name}")
        self.stdout.write(issued.secret)
