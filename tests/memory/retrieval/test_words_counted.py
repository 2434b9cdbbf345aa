"""Words find memories with the scores of a plain loop over what is left, whatever happens to memories."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.maintenance import Batch
from memory.maintenance.memory_jobs import recall_statistics
from memory.models import Account, Memory
from memory.models.writer import delete_memory_rows
from memory.owner import Owner
from memory_project.ids import uuid7
from tests.memory.episodes import NOW, draft, store
from tests.memory.words import RECOUNT, SUMS, Document, found_by_search, found_by_words, naive_bm25, read_rows
from tests.properties import examples

pytestmark = pytest.mark.django_db

WORDS = ("pump", "seal", "roof", "field", "bean")
QUESTION = "pump seal bean"
COLUMNS: dict[str, dict[str, Any]] = {
    "archive": {"archived": True},
    "unarchive": {"archived": False},
    "quarantine": {"quarantined": True},
    "bury": {"buried": True},
    "release": {"quarantined": False, "buried": False},
    "expire": {"expires_at": NOW - timedelta(days=1)},
}

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
steps = st.tuples(st.sampled_from([*COLUMNS, "delete", "store", "edit"]), st.integers(0, 9), texts)


def take_step(owners: Sequence[Owner], action: str, number: int, text: str) -> None:
    owner = owners[number % 2]
    rows = Memory.objects.filter(account_id=owner.account_id).order_by("id")
    chosen = [row.id for row in rows][number // 2 :: 4]
    if action == "store":
        store(owner, draft(text), draft(f"{text} roof"))
    elif action == "edit":
        Memory.objects.filter(id__in=chosen).update(text=text, token_count=number + 1)
    elif action == "delete":
        delete_memory_rows(owner.account_id, chosen)
    else:
        Memory.objects.filter(id__in=chosen).update(**COLUMNS[action])


def documents_of(owner: Owner) -> dict[UUID, Document]:
    rows = Memory.objects.filter(account_id=owner.account_id)
    return {row.id: document_of(row) for row in rows}


def document_of(row: Memory) -> Document:
    is_counted = not (row.archived or row.quarantined or row.buried)
    return Document(text=row.text, tokens=row.token_count, is_counted=is_counted, is_found=row.expires_at is None)


def check(owners: Sequence[Owner]) -> None:
    assert read_rows(SUMS) == read_rows(RECOUNT)
    for owner in owners:
        expected = naive_bm25(documents_of(owner), QUESTION)
        for found in (found_by_words(owner, QUESTION), found_by_search(owner, QUESTION)):
            assert found == pytest.approx(expected, rel=1e-9)
            assert sorted(found.values(), reverse=True) == list(found.values())


@given(corpus=st.lists(texts, min_size=1, max_size=6), history=st.lists(steps, min_size=1, max_size=5))
@examples(20)
def test_word_scores_match_a_naive_implementation_after_any_history(
    db: None, corpus: Sequence[str], history: Sequence[tuple[str, int, str]]
) -> None:
    accounts = [Account.objects.create(name=str(uuid7())) for _ in range(2)]
    owners = [Owner(account_id=account.id, agent_id="assistant") for account in accounts]
    for owner in owners:
        store(owner, *map(draft, corpus))
    for step in history:
        take_step(owners, *step)
        check(owners)

    recall_statistics(now=NOW, batch=Batch(size=2, account_id=owners[0].account_id))

    check([*owners, replace(owners[0], agent_id="")])
