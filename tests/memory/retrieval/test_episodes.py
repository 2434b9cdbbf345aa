"""Episodic search: by meaning, ordered by similarity; by words without a vector; with tenant isolation."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Memory
from memory.owner import Owner
from memory.retrieval.search import search_episodes
from tests.memory.episodes import NOW, draft, query, store

pytestmark = pytest.mark.django_db


def summaries(owner: Owner, **asked: object) -> list[str]:
    return [hit.summary for hit in search_episodes(owner, query(**asked), now=NOW).hits]  # type: ignore[arg-type]


def test_the_nearest_come_first_with_their_similarity(owner: Owner) -> None:
    store(owner, draft("far", angle=1.2), draft("near", angle=0.1), draft("between", angle=0.6))

    found = search_episodes(owner, query(), now=NOW)

    assert [hit.summary for hit in found.hits] == ["near", "between", "far"]
    assert [hit.similarity for hit in found.hits] == pytest.approx([np.cos(0.1), np.cos(0.6), np.cos(1.2)], abs=2e-3)
    assert found.degraded == []


def test_top_k_bounds_the_answer(owner: Owner) -> None:
    store(owner, *(draft(f"number {number}", angle=number / 10) for number in range(6)))

    assert summaries(owner, top_k=2) == ["number 0", "number 1"]


def test_another_agents_and_another_accounts_episodes_are_not_found(owner: Owner) -> None:
    stranger = Owner(account_id=Account.objects.create(name="strangers").id, agent_id=owner.agent_id)
    colleague = replace(owner, agent_id="colleague")
    for writer, text in ((owner, "mine"), (colleague, "a colleague's"), (stranger, "a stranger's")):
        store(writer, draft(text, angle=0.1))

    assert summaries(owner) == ["mine"]


def test_an_owner_without_an_agent_sees_all_of_its_account(owner: Owner) -> None:
    store(owner, draft("one agent's", angle=0.1))
    store(replace(owner, agent_id="colleague"), draft("another's", angle=0.2))

    assert summaries(replace(owner, agent_id="")) == ["one agent's", "another's"]


def test_a_user_narrows_the_search(owner: Owner) -> None:
    store(replace(owner, user_id="ana"), draft("ana's", angle=0.3))
    store(replace(owner, user_id="ben"), draft("ben's", angle=0.1))

    assert summaries(replace(owner, user_id="ana")) == ["ana's"]


def test_reads_look_in_the_active_channel_then_in_the_global_one(owner: Owner) -> None:
    for channel, angle in (("roof", 0.1), ("_global", 0.2), ("garden", 0.3)):
        store(replace(owner, channel=channel), draft(channel, angle=angle))

    assert summaries(replace(owner, channel="garden")) == ["_global", "garden"]


@pytest.mark.parametrize(
    "hidden", [{"archived": True}, {"quarantined": True}, {"expires_at": NOW - timedelta(seconds=1)}], ids=str
)
def test_archived_quarantined_and_expired_episodes_are_not_found(owner: Owner, hidden: dict[str, object]) -> None:
    row = store(owner, draft("gone", angle=0.1))[0]

    Memory.objects.filter(id=row.id).update(**hidden)

    assert summaries(owner) == []
    assert summaries(owner, text="gone", angle=None) == []


def test_a_pending_row_is_found_by_its_words_and_the_answer_says_so(owner: Owner) -> None:
    store(owner, draft("with a vector", angle=0.1), draft("The boiler was repaired on Monday"))

    found = search_episodes(owner, query("who repaired the boiler?"), now=NOW)

    assert [(hit.summary, hit.similarity is None) for hit in found.hits] == [
        ("with a vector", False),
        ("The boiler was repaired on Monday", True),
    ]
    assert found.degraded == ["embedding_pending"]


def test_pending_rows_are_reported_even_when_none_shares_a_word(owner: Owner) -> None:
    store(owner, draft("nothing in common"))

    found = search_episodes(owner, query("boiler"), now=NOW)

    assert (found.hits, found.degraded) == ([], ["embedding_pending"])


def test_without_a_query_vector_words_answer_for_all_rows(owner: Owner) -> None:
    store(owner, draft("The roof leaks", angle=0.1), draft("The boiler leaks and the boiler is old", angle=0.2))

    found = search_episodes(owner, query("boiler leaks", angle=None), now=NOW)

    assert [hit.summary for hit in found.hits] == ["The boiler leaks and the boiler is old", "The roof leaks"]
    assert found.degraded == ["embedder_unavailable"]


@pytest.mark.parametrize("text", ["'; DROP TABLE memories; --", "\\' | & ! ( : *", "%s %(x)s", "…", "the", "🧨" * 50])
def test_hostile_text_is_treated_as_plain_words(owner: Owner, text: str) -> None:
    store(owner, draft(f"quoting {text} here"))

    search_episodes(owner, query(text, angle=None), now=NOW)

    assert Memory.objects.count() == 1


def test_models_never_mix(owner: Owner) -> None:
    store(owner, draft("of the test model", angle=0.1))

    other = replace(query(), model="another-model")

    assert search_episodes(owner, other, now=NOW).hits == []


def test_large_owners_are_answered_like_small_ones(owner: Owner) -> None:
    store(owner, *(draft(f"number {number}", angle=number / 100) for number in range(40)))

    small = search_episodes(owner, query(top_k=7), now=NOW)
    large = search_episodes(owner, replace(query(top_k=7), exact_rows=5), now=NOW)

    assert large == small


def test_a_search_is_one_statement(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    store(owner, draft("with a vector", angle=0.1), draft("pending"))

    with django_assert_num_queries(1):
        search_episodes(owner, query("pending"), now=NOW)
