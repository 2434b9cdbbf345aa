"""`manage.py set_language`: all texts are indexed in the account's language, also after an interruption."""

import json
from io import StringIO
from itertools import islice
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from memory.errors import NotFound, Unprocessable
from memory.models import Account, AuditEntry, Memory
from memory.models.accounts import LANGUAGES
from memory.owner import Owner
from memory.services.accounts.register import count_other_languages, reindex_texts, set_language
from memory_project.ids import uuid7
from tests.concurrency import PATIENCE_SECONDS, Start, run_in_thread
from tests.memory.episodes import draft, store
from tests.memory.words import RECOUNT, SUMS, read_rows, texts_by_words

pytestmark = pytest.mark.django_db

HOUSES = "Die Häuser stehen am Wasser."


def run(*arguments: str, account: str = "workshop") -> dict[str, Any]:
    output = StringIO()
    call_command("set_language", "--account", account, "--json", *arguments, stdout=output, stderr=StringIO())
    figures: dict[str, Any] = json.loads(output.getvalue())
    assert figures.pop("seconds") >= 0
    return figures


def expected_report(language: str, *, was: str, rows: int, dry_run: bool = False) -> dict[str, Any]:
    return {"account": "workshop", "language": language, "was": was, "rows": rows, "dry_run": dry_run}


def test_stored_texts_are_found_by_the_stems_of_the_new_language(owner: Owner) -> None:
    store(owner, draft(HOUSES))
    assert texts_by_words(owner, "Haus") == []

    assert run("german") == expected_report("german", was="english", rows=1)

    assert texts_by_words(owner, "Haus") == [HOUSES]
    assert read_rows(SUMS) == read_rows(RECOUNT)


def test_texts_stored_after_the_change_are_indexed_in_the_new_language(owner: Owner) -> None:
    run("german")

    store(owner, draft(HOUSES))

    assert Memory.objects.get().language == "german"
    assert texts_by_words(owner, "ein Haus") == [HOUSES]


def test_the_simple_language_does_not_stem_words(owner: Owner) -> None:
    store(owner, draft("two houses"))
    assert texts_by_words(owner, "house") == ["two houses"]

    run("simple")

    assert texts_by_words(owner, "house") == []
    assert texts_by_words(owner, "Houses") == ["two houses"]


def test_other_accounts_stay_as_they_are(owner: Owner, stranger: Account) -> None:
    for account_id in (owner.account_id, stranger.id):
        store(Owner(account_id=account_id, agent_id="assistant"), draft(HOUSES))

    run("german")

    assert Memory.objects.get(account_id=stranger.id).language == "english"
    stranger.refresh_from_db()
    assert stranger.language == "english"


def test_a_dry_run_reports_and_changes_nothing(owner: Owner) -> None:
    store(owner, draft(HOUSES), draft("another"))

    assert run("german", "--dry-run") == expected_report("german", was="english", rows=2, dry_run=True)

    assert Account.objects.get(name="workshop").language == "english"
    assert count_other_languages(owner, "german") == 2


def test_an_interrupted_change_resumes_where_it_stopped(owner: Owner) -> None:
    store(owner, *(draft(f"{HOUSES} {number}") for number in range(5)))
    set_language(owner, "german")
    list(islice(reindex_texts(owner, "german", size=2), 1))
    assert count_other_languages(owner, "german") == 3

    assert run("german") == expected_report("german", was="german", rows=3)

    assert run("german") == expected_report("german", was="german", rows=0)
    assert read_rows(SUMS) == read_rows(RECOUNT)


def test_versions_and_times_of_memories_stay(owner: Owner) -> None:
    store(owner, draft(HOUSES))
    before = Memory.objects.values("version", "updated_at", "embed_after", "text").get()

    run("german")

    assert Memory.objects.values("version", "updated_at", "embed_after", "text").get() == before


def test_the_change_is_audited_once(owner: Owner) -> None:
    run("german")
    run("german")

    entry = AuditEntry.objects.get(memory_type="account")
    assert (entry.operation, entry.actor, entry.affected_ids) == ("update", "command", [str(owner.account_id)])


def test_without_json_the_report_is_one_sentence(owner: Owner) -> None:
    store(owner, draft(HOUSES))
    output = StringIO()

    call_command("set_language", "German", "--account", "workshop", stdout=output)

    assert output.getvalue().startswith("workshop: english -> german, 1 memories reindexed in ")


@pytest.mark.parametrize(
    ("language", "name", "said"),
    [
        ("klingon", "workshop", "'klingon' is not a known language: use one of simple, arabic, "),
        ("", "workshop", "'' is not a known language"),
        ("german", "nobody's", 'There is no account "nobody\'s".'),
    ],
)
def test_an_unknown_language_or_account_is_refused(owner: Owner, language: str, name: str, said: str) -> None:
    with pytest.raises(CommandError) as refused:
        run(language, account=name)

    assert str(refused.value).startswith(said)
    assert Account.objects.get(id=owner.account_id).language == "english"


def test_the_service_also_refuses_an_unknown_language_or_account(owner: Owner) -> None:
    with pytest.raises(Unprocessable):
        set_language(owner, "klingon")
    with pytest.raises(NotFound):
        set_language(Owner(account_id=uuid7()), "german")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_can_be_read(owner: Owner, language: str) -> None:
    set_language(owner, language)

    store(owner, draft("Water Wasser eau 123 foo-bar a@b.example"))

    assert texts_by_words(owner, "wasser") == ["Water Wasser eau 123 foo-bar a@b.example"]


@pytest.mark.django_db(transaction=True)
def test_a_correction_made_meanwhile_is_kept_and_reindexed(owner: Owner, start_concurrently: Start) -> None:
    rows = store(owner, draft(HOUSES), draft("another"))
    with transaction.atomic():
        Memory.objects.filter(id=rows[0].id).update(text="Das Boot am Ufer")
        reading = start_concurrently(lambda: list(reindex_texts(owner, "german")))
    reading.result(PATIENCE_SECONDS)

    assert set(Memory.objects.values_list("text", "language")) == {
        ("Das Boot am Ufer", "german"),
        ("another", "german"),
    }
    assert run_in_thread(lambda: read_rows(SUMS)) == read_rows(RECOUNT)
