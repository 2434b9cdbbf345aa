"""`manage.py set_language`: sets the language of an account's texts and reindexes what is stored."""

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from memory.management.base import OperatorCommand, count_until_interrupted, end_interrupted, find_account, progress_bar
from memory.models.accounts import DEFAULT_LANGUAGE, LANGUAGES
from memory.owner import Owner
from memory.services.accounts.register import (
    check_language,
    count_other_languages,
    reindex_texts,
    set_language,
)

EPILOG = f"""
Words are found by their stems: in `german`, "Häuser" finds "Haus". An account is {DEFAULT_LANGUAGE} until this command
says otherwise. `simple` takes words as they are written: right for scripts and languages that are not in the list, and
for accounts that mix many. Han characters and kana are words of their own in every language.

  {", ".join(LANGUAGES[:15])},
  {", ".join(LANGUAGES[15:])}

The account changes first. Then its stored texts are reindexed in batches, while the service runs; until that is done,
searches may miss words in rows that are still waiting. If it is stopped, run the same command again to continue. With
the account's present language it reindexes what was indexed in another, and otherwise does nothing.

  manage.py set_language --account workshop german --dry-run
  manage.py set_language --account workshop german

Exit status: 0, or 1 where there is no such account or language, 130 on Ctrl-C.
"""


class Command(OperatorCommand):
    help = "Set the language of an account's texts, and reindex what is stored."
    epilog = EPILOG

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("language", metavar="LANGUAGE", help="one of the languages listed below")
        parser.add_argument("--account", metavar="NAME", required=True, help="name of the account")
        parser.add_argument(
            "--dry-run", action="store_true", help="count the texts that would be reindexed, and change nothing"
        )
        parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        language, name = options["language"].lower(), options["account"]
        check_language(language)
        account = find_account(name)
        figures = {"account": name, "language": language, "was": account.language, "dry_run": options["dry_run"]}
        owner = Owner(account_id=account.id, actor="command")
        started = time.monotonic()
        rows, interrupted = self.run(owner, language, dry_run=options["dry_run"])
        self.report(figures | {"rows": rows, "seconds": round(time.monotonic() - started, 1)}, options)
        if interrupted:
            end_interrupted(self, "What is reindexed stays so; run the same command again to continue.")

    def run(self, owner: Owner, language: str, *, dry_run: bool) -> tuple[int, bool]:
        """Reindex the texts; return how many there were, and whether Ctrl-C ended it."""
        if dry_run:
            return count_other_languages(owner, language), False
        with progress_bar("memories", lambda: count_other_languages(owner, language)) as advance:
            return count_until_interrupted(change_language(owner, language), advance)

    def report(self, figures: dict[str, Any], options: dict[str, Any]) -> None:
        done = "would be reindexed" if options["dry_run"] else "reindexed"
        sentence = "{account}: {was} -> {language}, {rows} memories {done} in {seconds} seconds"
        self.print_figures(figures, sentence.format(**figures, done=done), options)


def change_language(owner: Owner, language: str) -> Iterator[int]:
    """Set the account's language, then yield the number of rows of each reindexed batch."""
    set_language(owner, language)
    yield from reindex_texts(owner, language)
