"""Facts of an agent: entries of type fact in its own context."""

from dataclasses import replace

import pytest

from memory.errors import Conflict, Unprocessable
from memory.models import ContextAccessLog, Vector
from memory.owner import Owner
from memory.services.contexts.access_log import write_access_lines
from memory.services.contexts.entries import EntryDraft
from memory.services.contexts.manage import ensure_own_context
from memory.services.contexts.search import EntryQuestion, find_entries, search_facts, store_fact
from memory.services.memories.store import ClientVector
from tests.embedding_server import MODEL, EmbeddingServer
from tests.memory.contexts import entry, keep
from tests.memory.episodes import MODEL as OWN_MODEL
from tests.memory.episodes import NOW, direction

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

KEY_FACT = "The key is under the mat."


def fact_of(key: str = "key", content: str = KEY_FACT) -> EntryDraft:
    return EntryDraft(key=key, content=content)


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


def test_a_fact_is_an_entry_of_the_agents_own_context(owner: Owner) -> None:
    fact = store_fact(owner, fact_of(), now=NOW)

    assert (fact.entry_type, fact.memory_type, fact.key) == ("fact", "factual", "key")
    assert fact.context_id == ensure_own_context(owner, now=NOW).id
    assert Vector.objects.get(memory_id=fact.id).model == MODEL


def test_a_fact_under_the_same_key_is_its_next_version(owner: Owner) -> None:
    store_fact(owner, fact_of(), now=NOW)

    found = store_fact(owner, fact_of(content="The key is in the pot."), now=NOW)

    assert (found.text, found.content_version) == ("The key is in the pot.", 2)


def test_a_fact_may_be_any_json(owner: Owner) -> None:
    fact = store_fact(owner, EntryDraft(key="doors", value={"front": 1.0, "back": None}), now=NOW)

    fact.refresh_from_db()
    assert fact.value == {"front": 1.0, "back": None}


def test_a_fact_cannot_take_the_key_of_another_entry(owner: Owner) -> None:
    [seen] = keep(owner, ensure_own_context(owner, now=NOW), entry("We saw a key.", key="key"))

    with pytest.raises(Conflict):
        store_fact(owner, fact_of(), now=NOW)

    seen.refresh_from_db()
    assert (seen.text, seen.content_version) == ("We saw a key.", 1)


def test_facts_are_private_to_their_agent(owner: Owner, colleague: Owner) -> None:
    store_fact(owner, fact_of(), now=NOW)

    assert search_facts(colleague, "key", now=NOW).hits == []


def test_facts_need_an_agent(owner: Owner) -> None:
    account = replace(owner, agent_id="")

    for act in (
        lambda: store_fact(account, fact_of(), now=NOW),
        lambda: search_facts(account, "key", now=NOW),
    ):
        with pytest.raises(Unprocessable):
            act()


@pytest.mark.slow
def test_facts_are_found_however_many_other_entries_are_nearer(owner: Owner) -> None:
    store_fact(owner, fact_of(), now=NOW)
    others = [entry(KEY_FACT) for _ in range(30)]
    keep(owner, ensure_own_context(owner, now=NOW), *others)

    found = search_facts(owner, KEY_FACT, top_k=1, now=NOW)

    assert [hit.key for hit in found.hits] == ["key"]


@pytest.mark.parametrize("angle", [0.0, None], ids=["by meaning", "by words"])
def test_a_search_may_be_restricted_to_types(owner: Owner, angle: float | None) -> None:
    context = ensure_own_context(owner, now=NOW)
    for name in ("fact", "plan", "reflection"):
        keep(owner, context, entry("the mat", angle=0.1, entry_type=name), entry("the mat, pending", entry_type=name))
    own = None if angle is None else ClientVector(model=OWN_MODEL, vector=direction(angle))

    found = find_entries(owner, EntryQuestion(text="mat", own=own, types=["fact", "plan"]), now=NOW)

    assert sorted(hit.entry_type for hit in found.hits) == ["fact", "fact", "plan", "plan"]


def test_reads_of_facts_are_in_the_access_log(owner: Owner) -> None:
    fact = store_fact(owner, fact_of(), now=NOW)
    search_facts(owner, "key", now=NOW)

    write_access_lines(100, after="", account_id=None, now=NOW)

    lines = ContextAccessLog.objects.filter(entry_id=fact.id).values_list("action", flat=True)
    assert sorted(lines) == ["create", "search"]


@pytest.mark.slow
def test_without_an_embedder_facts_are_found_by_their_words(owner: Owner, embedding_server: EmbeddingServer) -> None:
    embedding_server.fail()
    store_fact(owner, fact_of(), now=NOW)

    found = search_facts(owner, "mat", now=NOW)

    assert [hit.key for hit in found.hits] == ["key"]
    assert found.degraded == ["embedder_unavailable"]
