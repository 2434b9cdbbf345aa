"""Passphrases that seal the keys of backups: from a file, the environment or a prompt."""

import sys
from argparse import ArgumentParser
from getpass import getpass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from memory.services.backup.keys import MIN_PASSPHRASE

VARIABLE = "MEMORY_BACKUP_PASSPHRASE"


def add_passphrase_arguments(parser: ArgumentParser) -> None:
    """Add the options by which `read_passphrase` finds a passphrase."""
    found = parser.add_mutually_exclusive_group()
    found.add_argument(
        "--passphrase-file",
        metavar="FILE",
        type=Path,
        help=f"file whose first line is the passphrase, of at least {MIN_PASSPHRASE} characters; "
        f"default: {VARIABLE}, or a prompt",
    )
    found.add_argument("--without-keys", action="store_true", help="leave the keys out")


def read_passphrase(options: dict[str, Any], *, again: bool) -> str | None:
    """Return the passphrase that a command's user gave; None without keys. `again` asks twice. Raises CommandError."""
    if options["without_keys"]:
        return None
    if options["passphrase_file"]:
        lines = options["passphrase_file"].read_text().splitlines()
        return str(lines[0]) if lines else ""
    if settings.BACKUP_PASSPHRASE:
        return str(settings.BACKUP_PASSPHRASE)
    if not sys.stdin.isatty():
        raise CommandError(f"A passphrase is needed for the keys: --passphrase-file, {VARIABLE} or --without-keys.")
    typed = getpass("Passphrase of the keys: ")
    if again and getpass("Once more: ") != typed:
        raise CommandError("The two passphrases differ.")
    return typed
