"""Parts that imports share: their options, the account to import into, and the file."""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import CommandError

from memory.models import Account
from memory.services.conversations.import_files import EMBED_SECONDS


def add_target_arguments(parser: ArgumentParser) -> None:
    """Add the options by which `find_target` finds an account."""
    parser.add_argument("--account", metavar="NAME", default="default", help="its name (default: %(default)s)")
    parser.add_argument("--create-account", action="store_true", help="create the account if it does not exist")


def find_target(options: Mapping[str, Any]) -> Account:
    """Return the account to import into, made if it is new and that was asked for. Raises CommandError.

    A dry run leaves nothing behind: it gets a new account that is not stored.
    """
    name = options["account"]
    account = Account.objects.filter(name=name).first()
    if account is None and options["create_account"]:
        return Account(name=name) if options["dry_run"] else Account.objects.get_or_create(name=name)[0]
    if account is None:
        raise CommandError(f"There is no account {name!r}. Add --create-account to make it.")
    return account


def duration(text: str) -> float:
    """Parse a number of seconds from 0 to 1,000,000. Raises ValueError."""
    value = float(text)
    if not 0 <= value <= 1_000_000:
        raise ValueError(text)
    return value


def add_import_arguments(parser: ArgumentParser) -> None:
    """Add the options of imports that embed what they store."""
    parser.add_argument(
        "--embed-seconds",
        type=duration,
        default=EMBED_SECONDS,
        help="seconds to spend on embedding; a job does the rest (default: %(default)s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="count what would be imported, and store nothing")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")


@contextmanager
def open_source(path: Path) -> Iterator[BinaryIO]:
    """Open a file, or standard input for `-`. Raises CommandError."""
    try:
        stream = (Path("/dev/stdin") if str(path) == "-" else path).open("rb")
    except OSError as err:
        raise CommandError(f"{path} cannot be read: {err.strerror}") from err
    with stream:
        yield stream
